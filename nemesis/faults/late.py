"""Late requests: what a client wrote on a connection that it has closed since reaches the server seconds later.

The client has reported the operation as unknown by then. In containers, and for clusters of servers only. A piece is
dropped if the server's end is gone when the step ends.
"""

from harness.core.draw import Stream
from harness.core.promises import Excuse
from nemesis.fault import HOUR_NS, MS, Fault, Package, Range, Targets
from nemesis.topology import CLIENT, Strike, Topology

LATE = Fault(
    name="late",
    does="on every second connection each piece that a client writes arrives `delay_ns` later, also if it has hung up",
    targets=Targets.CLIENTS,
    required={"delay_ns": Range(1, HOUR_NS)},
    beyond={"sim": "no request of a simulated client outlives its connection: use --runtime docker"},
)


def draw_late(topology: Topology, stream: Stream) -> Strike | None:
    """All connections of clients to one server, every fourth time to all. The delay is 1.2 to 3 seconds: longer than
    the usual time-out of an operation. Never for less than 2 seconds, in which half of the requests can time out.

    None if clients do not dial the drawn server.
    """
    servers = topology.servers()
    chosen = servers if stream.chance(1, 4) else (stream.choice(servers),)
    links = topology.existing([(CLIENT, server) for server in chosen])
    delay_ns = stream.between(1200, 3000) * MS
    return Strike(fault="late", targets=links, args={"delay_ns": delay_ns}) if links else None


def unfit_late(topology: Topology) -> str | None:
    """The reason why no request can be late, or None."""
    is_dialled = topology.existing([(CLIENT, server) for server in topology.servers()])
    return None if is_dialled else "clients dial no server"


PACKAGE = Package(
    name="late",
    about=__doc__,
    faults=(LATE,),
    draw=draw_late,
    unfit=unfit_late,
    excuse=Excuse.LINKS,
    least_ns=2_000 * MS,  # A client must have hung up before everything that is held arrives.
    probe="pieces of requests that arrived after their clients had hung up; the note also counts the dropped ones.",
    heals="everything that is held arrives, or is dropped.",
    colour="#117733",
)
