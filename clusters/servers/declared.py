"""What the declarations of several systems share: their nodes, their faults, and the workloads of transactions."""

from typing import Final

from harness.core.machine import NodeId
from harness.core.seams import Node

SECOND: Final = 1_000_000_000
SUBSCRIBERS: Final = (NodeId("s1"), NodeId("s2"))
# Of servers that replicate, and lose nothing when their power fails.
FAULTS: Final = (
    "partition",
    "crash",
    "pause",
    "slow-link",
    "reset",
    "slow-subscriber",
    "power",
    "late",
    "packets",
)
# Of transactions on lists and registers.
WORKLOADS: Final = (
    "list-append",
    "rw-register",
    "bank",
    "sets",
    "monotonic",
    "long-fork",
    "write-skew",
    "counter",
    "cas-register",
)


def nodes(**roles: tuple[NodeId, ...]) -> tuple[Node, ...]:
    """The nodes of each role."""
    return tuple(Node(node, role) for role, of_role in roles.items() for node in of_role)
