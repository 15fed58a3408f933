"""Bad datagram links, and bad wires between servers: messages or packets are lost, doubled, reordered."""

from typing import Final

from harness.core.draw import Stream
from nemesis.fault import MS, Fault, Package, Range, Targets
from nemesis.faults.slow_link import DELAY
from nemesis.faults.slow_subscriber import BANDWIDTH
from nemesis.plan import DatagramFault
from nemesis.topology import DATAGRAM, DIRECT, Strike, Topology, ends

_DOES: Final[dict[DatagramFault, str]] = {
    "drop": "are lost",
    "duplicate": "come twice",
    "reorder": "come late, so that others overtake them",
}
FAULTS: Final = tuple(
    Fault(
        name=name,
        does=f"`permille` of the messages, or of a direct link's packets, {does}",
        targets=Targets.PACKETS,
        required={"permille": Range(1, 1000)},
    )
    for name, does in _DOES.items()
)


def draw_datagrams(topology: Topology, stream: Stream) -> Strike:
    """One of the three, on all datagram links."""
    fault = stream.choice(tuple(_DOES))
    return Strike(fault=fault, targets=topology.all_links(DATAGRAM), args={"permille": stream.between(20, 300)})


def unfit_datagrams(topology: Topology) -> str | None:
    """The reason why there is no datagram to lose, or None."""
    return None if topology.all_links(DATAGRAM) else "no link is a datagram link"


def draw_packets(topology: Topology, stream: Stream) -> Strike | None:
    """One of the five, on the links of one server to others, or from them, or both. Lost, doubled or reordered are 20
    to 300 of 1000 packets; late ones take 20 to 250 ms, plus up to half of that; 20 to 200 kB pass in a second.

    None if no link is direct.
    """
    links = topology.all_links(DIRECT)
    if not links:
        return None
    node = stream.choice(tuple(dict.fromkeys(ends(link)[0] for link in links)))
    place = stream.choice(((0,), (1,), (0, 1)))
    targets = tuple(link for link in links if any(ends(link)[end] == node for end in place))
    match stream.choice((*FAULTS, DELAY, BANDWIDTH)):
        case fault if fault is DELAY:
            latency_ns = stream.between(20, 250) * MS
            return Strike(fault="delay", targets=targets, args={"latency_ns": latency_ns, "jitter_ns": latency_ns // 2})
        case fault if fault is BANDWIDTH:
            return Strike(fault="bandwidth", targets=targets, args={"bytes_per_s": stream.between(20, 200) * 1000})
        case fault:
            return Strike(fault=fault.name, targets=targets, args={"permille": stream.between(20, 300)})


def unfit_packets(topology: Topology) -> str | None:
    """The reason why no packet can be struck, or None."""
    return None if topology.all_links(DIRECT) else "no servers know each other by name, without a proxy in between"


DATAGRAMS = Package(
    name="datagrams",
    about="""Bad datagram links: messages are lost, doubled or reordered.

    On all datagram links 2 to 30 percent of the messages are lost, come twice, or come 1 to 20 ms late so that others
    overtake them.
    """,
    faults=FAULTS,
    draw=draw_datagrams,
    unfit=unfit_datagrams,
    probe="messages lost, doubled or reordered.",
    heals="links are as good as before.",
    colour="#999933",
)

WIRES = Package(
    name="packets",
    about="""Bad wires between servers: packets are lost, doubled, reordered, late, or few.

    Connections stay open: TCP sends lost packets again, and drops doubled ones. In containers, for servers that know
    each other by name. It needs root, and an engine on this machine.
    """,
    faults=(*FAULTS, DELAY, BANDWIDTH),
    draw=draw_packets,
    unfit=unfit_packets,
    probe="packets lost, doubled, held while others passed, or held up.",
    heals="packets pass as before; held ones go on.",
    colour="#aa7744",
)
PACKAGES = (DATAGRAMS, WIRES)
