"""Flaky links: connections close after a few messages, again and again.

Each connection closes once 200 to 1500 bytes have passed, since the step began or since it was opened. Those bytes
arrive.
"""

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
    """The connections of one node to its like, two times in three; else all to clients.

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
    about=__doc__,
    faults=(LIMIT_DATA,),
    draw=draw_flaky_link,
    unfit=unfit_flaky_link,
    excuse=Excuse.LINKS,
    probe="connections closed.",
    heals="connections last.",
    colour="#ddcc77",
)
