"""Resets: connections are reset, and new ones fail.

Messages in transit are lost, and every attempt to connect fails.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import Fault, Package, Targets
from nemesis.faults.flaky_link import unfit_flaky_link
from nemesis.faults.partition import draw_partition
from nemesis.topology import FIFO, Strike, Topology, ends

RESET = Fault(
    name="reset",
    does="connections are reset, messages in transit are lost, and every attempt to connect fails",
    targets=Targets.CONNECTIONS,
    is_silencing=True,
)


def draw_reset(topology: Topology, stream: Stream) -> Strike | None:
    """The links of a partition, without datagram links.

    None if the drawn form breaks no connection of this topology.
    """
    drawn = draw_partition(topology, stream)
    links = [] if drawn is None else [each for each in drawn.targets if topology.kind(*ends(each)) == FIFO]
    is_total = drawn is not None and drawn.is_total
    return Strike(fault="reset", targets=tuple(links), is_total=is_total) if links else None


PACKAGE = Package(
    name="reset",
    about=__doc__,
    faults=(RESET,),
    draw=draw_reset,
    unfit=unfit_flaky_link,
    excuse=Excuse.LINKS,
    probe="connections reset, messages refused or lost.",
    heals="links can be connected again.",
    colour="#332288",
)
