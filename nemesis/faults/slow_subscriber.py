"""Slow subscribers: the stream to a subscriber is narrow or slow, or the subscriber is.

The links to a subscriber carry 100 to 1000 bytes a second (`bandwidth`), or take 0.2 to 1.5 seconds and up to half of
that (`delay`), or the subscriber takes 5 to 60 ms for each message (`consumer`).
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import HOUR_NS, MS, Fault, Package, Range, Targets
from nemesis.faults.slow_link import DELAY
from nemesis.topology import ENOUGH, SUBSCRIBER, Strike, Topology

BANDWIDTH = Fault(
    name="bandwidth",
    does="a link carries `bytes_per_s` at most",
    targets=Targets.LINKS,
    required={"bytes_per_s": Range(1, 10**12)},
)
CONSUMER = Fault(
    name="consumer",
    does="each message that is handled takes `delay_ns`",
    targets=Targets.NODES,
    required={"delay_ns": Range(1, HOUR_NS)},
    needs_messages=True,
)


def draw_slow_subscriber(topology: Topology, stream: Stream) -> Strike:
    """One subscriber, every fourth time all. Where three or more servers send, half of the time only the links from one
    of them.
    """
    subscribers = topology.of_role(SUBSCRIBER)
    chosen = subscribers if stream.chance(1, 4) else (stream.choice(subscribers),)
    members = topology.largest_role()
    sources = topology.servers()
    if len(members) >= ENOUGH and stream.chance(1, 2):
        sources = (stream.choice(members),)
    links = topology.existing([(source, target) for target in chosen for source in sources])
    match stream.choice(("bandwidth", "delay", "consumer") if links else ("consumer",)):
        case "bandwidth":
            return Strike(fault="bandwidth", targets=links, args={"bytes_per_s": stream.between(100, 1000)})
        case "delay":
            latency_ns = stream.between(200, 1500) * MS
            return Strike(fault="delay", targets=links, args={"latency_ns": latency_ns, "jitter_ns": latency_ns // 2})
        case _:
            return Strike(fault="consumer", targets=chosen, args={"delay_ns": stream.between(5, 60) * MS})


def unfit_slow_subscriber(topology: Topology) -> str | None:
    """The reason why there is nothing to slow down, or None."""
    return None if topology.of_role(SUBSCRIBER) else "no node has the role subscriber"


PACKAGE = Package(
    name="slow-subscriber",
    about=__doc__,
    faults=(BANDWIDTH, DELAY, CONSUMER),
    draw=draw_slow_subscriber,
    unfit=unfit_slow_subscriber,
    excuse=Excuse.SUBSCRIBERS,
    probe="messages held back, delayed, or handled late.",
    heals="links are as fast as before; queued messages are delivered.",
    colour="#009e73",
)
