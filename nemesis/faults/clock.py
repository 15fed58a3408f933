"""Wrong clocks: a node's own wall clock steps, drifts or stands still.

Clocks step by up to a minute, drift by 0.05 to 20 percent, or stand still. Timers go on as they should.
"""

from harness.core.draw import Stream
from nemesis.fault import HOUR_NS, MS, Fault, Package, Range, Targets
from nemesis.topology import Strike, Topology

CLOCK = Fault(
    name="clock",
    does="the clock is wrong by `step_ns` at once, runs fast by `drift_ppm` from then on, or stands still (`freeze` 1)",
    targets=Targets.CLOCKS,
    optional={
        "step_ns": Range(-24 * HOUR_NS, 24 * HOUR_NS),
        "drift_ppm": Range(-900_000, 900_000),
        "freeze": Range(0, 1),
    },
    needs_one=True,
    is_prepared=True,
)


def draw_clock(topology: Topology, stream: Stream) -> Strike:
    """One node, every fourth time all servers: only such as have a clock by which they decide."""
    with_clock = tuple(node for node in topology.ids() if node not in topology.clockless)
    servers = tuple(node for node in topology.servers() if node in with_clock)
    targets = servers if servers and stream.chance(1, 4) else (stream.choice(with_clock),)
    sign = stream.choice((-1, 1))
    match stream.choice(("step", "drift", "freeze")):
        case "step":
            # From a careless operator's error down to errors that NTP corrects.
            reach_ms = stream.choice((100, 1_000, 10_000, 60_000))
            return Strike(fault="clock", targets=targets, args={"step_ns": sign * stream.between(50, reach_ms) * MS})
        case "drift":
            return Strike(fault="clock", targets=targets, args={"drift_ppm": sign * stream.between(500, 200_000)})
        case _:
            return Strike(fault="clock", targets=targets, args={"freeze": 1})


PACKAGE = Package(
    name="clock",
    about=__doc__,
    faults=(CLOCK,),
    draw=draw_clock,
    probe="readings of a wrong clock by nodes; the note gives the largest error.",
    heals="the clocks are set right.",
    colour="#cc79a7",
)
