"""Bad datagram links: messages are lost, doubled or reordered.

On all datagram links 2 to 30 percent of the messages are lost, come twice, or come 1 to 20 ms late so that others
overtake them.
"""

from typing import Final

from harness.core.draw import Stream
from nemesis.fault import Fault, Package, Range, Targets
from nemesis.plan import DatagramFault
from nemesis.topology import DATAGRAM, Strike, Topology

_DOES: Final[dict[DatagramFault, str]] = {
    "drop": "are lost",
    "duplicate": "come twice",
    "reorder": "come late, so that others overtake them",
}


def draw_datagrams(topology: Topology, stream: Stream) -> Strike:
    """One of the three, on all datagram links."""
    fault = stream.choice(tuple(_DOES))
    return Strike(fault=fault, targets=topology.all_links(DATAGRAM), args={"permille": stream.between(20, 300)})


def unfit_datagrams(topology: Topology) -> str | None:
    """The reason why there is no datagram to lose, or None."""
    return None if topology.all_links(DATAGRAM) else "no link is a datagram link"


PACKAGE = Package(
    name="datagrams",
    about=__doc__,
    faults=tuple(
        Fault(
            name=name,
            does=f"`permille` of the messages {does}",
            targets=Targets.DATAGRAMS,
            required={"permille": Range(1, 1000)},
            beyond={"docker": "links between containers are connections: use --runtime sim"},
        )
        for name, does in _DOES.items()
    ),
    draw=draw_datagrams,
    unfit=unfit_datagrams,
    probe="messages lost, doubled or reordered.",
    heals="links are as good as before.",
    colour="#999933",
)
