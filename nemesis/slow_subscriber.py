"""Slow subscribers: the stream meets full buffers, because of the network or of the subscriber itself."""

from harness.core.draw import Stream
from nemesis.topology import ENOUGH, SUBSCRIBER, Strike, Topology

MS = 1_000_000


def draw_slow_subscriber(topology: Topology, stream: Stream) -> Strike:
    """A strike on one subscriber, or every fourth time on all: low bandwidth, high latency, or slow handling of
    events.

    If several servers send to it, often only one link is slow, since the subscriber must merge their streams.
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
