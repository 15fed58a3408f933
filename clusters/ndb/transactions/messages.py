"""Messages between clients, coordinators and storages about transactions, and a storage's records on disk.

Every message between nodes carries the number of its sender's view in `view`: see invariant 3 of storage.py, and
invariant 4 of data_node.py.
"""

from typing import Final

from msgspec import Struct

from clusters.ndb.shape import DATA_NODES, Key
from harness.core.errors import ProtocolError
from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp

COMMITTED: Final = "committed"  # Lock modes of reads: the last committed version, without a lock;
SHORT: Final = "short"  # with a lock that is dropped after the read;
SHARED: Final = "shared"  # with a lock that is held until the commit, shared with other readers
EXCLUSIVE: Final = "exclusive"  # or alone. Appends always take this one.
LOCKS: Final = (COMMITTED, SHORT, SHARED, EXCLUSIVE)

NOT_STARTED: Final = "not started"  # The only reason to try another node at once.
NODE_FAILED: Final = "a node failed"
LOCK_TIMEOUT: Final = "lock time-out"
MOVED: Final = "moved"
NO_ROW: Final = "no such row"
CUT_OFF: Final = "cut off from the others"
UNSUPPORTED: Final = "only reads and appends are supported"

SINCE_BITS: Final = 29  # A restart of the whole cluster takes 2 ** 16 view numbers: enough for 8,000 restarts.
COUNTER_BITS: Final = 32


def life_of(node: NodeId, since: int) -> int:
    """The number of a node's life: the upper bits of the transids that it gives."""
    if since >> SINCE_BITS:
        raise ProtocolError(f"view {since} has no room in the {SINCE_BITS} bits of a transid")
    return DATA_NODES.index(node) << SINCE_BITS | since


def transid_of(life: int, counter: int) -> int:
    """A transaction's id, unique forever. From the top: the node's index, its `since` in 29 bits, a counter in 32."""
    return life << COUNTER_BITS | counter


def life_in(transid: int) -> int:
    """The life of the coordinator that gave this id."""
    return transid >> COUNTER_BITS


def coordinator_in(transid: int) -> NodeId:
    """The node that gave this id."""
    return DATA_NODES[transid >> COUNTER_BITS + SINCE_BITS]


def since_in(transid: int) -> int:
    """The view in which the coordinator that gave this id joined."""
    return transid >> COUNTER_BITS & (1 << SINCE_BITS) - 1


class Transact(Struct, frozen=True, tag=True):
    """A client's request to any data node for a transaction of reads and appends."""

    mops: tuple[MicroOp, ...]


class Done(Struct, frozen=True, tag=True):
    """The transaction is committed in that epoch, with its reads' results.

    One without writes has the epoch current at its end.
    """

    epoch: int
    transid: int
    mops: tuple[MicroOp, ...]


class Refused(Struct, frozen=True, tag=True):
    """The transaction certainly did not happen, and never will."""

    reason: str


class Operate(Struct, frozen=True, tag=True):
    """Coordinator to primary: carry out operation `number`; `lock` is a read's lock mode."""

    transid: int
    view: int
    number: int
    f: str
    key: Key
    value: Json
    lock: str


class Prepare(Struct, frozen=True, tag=True):
    """Along the chain, from the primary on: lock the key for an append, and keep it ready."""

    transid: int
    view: int
    number: int
    key: Key
    value: Json
    chain: tuple[NodeId, ...]


class Operated(Struct, frozen=True, tag=True):
    """From the last of the chain to the coordinator: the operation is done in the whole chain.

    A read has `elements`, last changed in `epoch`.
    """

    transid: int
    view: int
    number: int
    chain: tuple[NodeId, ...]
    elements: list[Json] | None = None
    epoch: int = 0


class Declined(Struct, frozen=True, tag=True):
    """The sender may not serve that operation, or it cannot be carried out."""

    transid: int
    view: int
    number: int
    reason: str = MOVED


class Commit(Struct, frozen=True, tag=True):
    """Along the chain, the last backup first: install.

    `path` has the nodes after the receiver; the last one answers.
    """

    transid: int
    view: int
    epoch: int
    fragment: int
    path: tuple[NodeId, ...]
    coordinator: NodeId


class Committed(Struct, frozen=True, tag=True):
    """The whole chain has installed the transaction's rows of that fragment."""

    transid: int
    view: int
    fragment: int


class Complete(Struct, frozen=True, tag=True):
    """Coordinator to each node of the chain: free the remaining locks, and forget the transaction."""

    transid: int
    view: int
    fragment: int


class Completed(Struct, frozen=True, tag=True):
    """The sender has forgotten the transaction."""

    transid: int
    view: int
    fragment: int


class Abort(Struct, frozen=True, tag=True):
    """Along the chain, the primary first, like the operations: forget the prepared appends."""

    transid: int
    view: int
    fragment: int


class Aborted(Struct, frozen=True, tag=True):
    """From the last of the chain to the coordinator: the whole chain has forgotten the transaction."""

    transid: int
    view: int
    fragment: int


class TransStatus(Struct, frozen=True, tag=True):
    """The master's query to all: report transactions of coordinators that are no longer members."""

    view: int


class TransConf(Struct, frozen=True, tag=True):
    """One such transaction in one fragment: prepared, or committed in `epoch`."""

    view: int
    transid: int
    fragment: int
    chain: tuple[NodeId, ...]
    epoch: int | None


class TransLast(Struct, frozen=True, tag=True):
    """The end of the reports for that view's query."""

    view: int


class CopyRow(Struct, frozen=True, tag=True):
    """A row for a joined node: its elements, each with the epoch of its commit."""

    view: int
    key: Key
    elements: tuple[tuple[Json, int], ...]


class CopyRowConf(Struct, frozen=True, tag=True):
    """The row is in place."""

    view: int
    key: Key


class CopyDone(Struct, frozen=True, tag=True):
    """Every row has been copied."""

    view: int


class Redo(Struct, frozen=True, tag=True):
    """On disk: a transaction has appended these elements."""

    epoch: int
    transid: int
    key: Key
    elements: tuple[Json, ...]


class CopiedRow(Struct, frozen=True, tag=True):
    """On disk: the whole row was copied from another node."""

    key: Key
    elements: tuple[tuple[Json, int], ...]


class Invalidated(Struct, frozen=True, tag=True):
    """On disk: earlier entries of later global checkpoints are void."""

    gci: int


StorageMessage = Operate | Prepare | Commit | Complete | Abort | TransStatus | CopyRow | CopyRowConf | CopyDone
COORDINATOR_MESSAGES: Final = (Operated, Declined, Committed, Completed, Aborted, TransConf, TransLast)
STORAGE_MESSAGES: Final = (Operate, Prepare, Commit, Complete, Abort, TransStatus, CopyRow, CopyRowConf, CopyDone)
MESSAGES: Final = COORDINATOR_MESSAGES + STORAGE_MESSAGES
