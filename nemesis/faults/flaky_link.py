"""Flaky links: connections close after a few messages, again and again."""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Range, Targets
from nemesis.topology import CLIENT, FIFO, Strike, Topology, ends

LIMIT_DATA = Fault(
    name="limit-data",
    does="a connection closes once `bytes` have passed since the step began, or since it was opened",
    targets=Targets.CONNECTIONS,
    required={"bytes": Range(1, 10**12)},
)


def draw_flaky_link(topology: Topology, stream: Stream) -> Strike:
    """A strike that closes connections again and again, after a few messages: those of one node to its role, or all to
    clients.

    Between servers only one node's: if all connections break all the time, no work is done, and nothing is tested.
    """
    members = topology.largest_role()
    near, far = ((stream.choice(members),), members) if stream.chance(2, 3) else (members, (CLIENT,))
    links = topology.existing([pair for one in near for other in far for pair in ((one, other), (other, one))])
    connections = tuple(link for link in links if topology.kind(*ends(link)) == FIFO)
    return Strike(
        fault="limit-data",
        targets=connections or topology.all_links(FIFO),
        args={"bytes": stream.between(200, 1500)},
    )


def unfit_flaky_link(topology: Topology) -> str | None:
    """The reason why there is no connection to close, or None."""
    return None if topology.all_links(FIFO) else "no link is a connection"


PACKAGE = Package(
    name="flaky-link",
    faults=(LIMIT_DATA,),
    draw=draw_flaky_link,
    unfit=unfit_flaky_link,
    excuse=Excuse.LINKS,
    summary="connections close after a few messages, again and again",
    does="each connection closes once 200 to 1500 bytes have passed, since the step began or since it was opened. What "
    "passed arrives.",
    probe="connections closed.",
    heals="connections last.",
    drawn="two times in three the connections of one node to its like, else all to clients. Datagram links are left "
    "out.",
    colour="#ddcc77",
)
