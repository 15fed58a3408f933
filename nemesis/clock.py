"""Wrong clocks: a node's own wall clock steps, drifts or freezes. Virtual time, and its timers, continue."""

from harness.core.draw import Stream
from nemesis.topology import Strike, Topology

MS = 1_000_000


def draw_clock(topology: Topology, stream: Stream) -> Strike:
    """A wrong clock until the end of the step: at one node, or every fourth time at all servers."""
    with_clock = tuple(node for node in topology.ids() if node not in topology.clockless)
    targets = topology.servers() if stream.chance(1, 4) else (stream.choice(with_clock),)
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
