"""What clients, coordinators and storages say to each other about transactions, and what a storage keeps on disk.

Every message to a storage says in `view` which view its sender had: see invariant 3 of storage.py.
"""

from typing import Final

from msgspec import Struct

from clusters.ndb.shape import DATA_NODES, Key
from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp

COMMITTED: Final = "committed"  # Lock modes of reads: the last committed version, without a lock;
SHORT: Final = "short"  # with a lock that is dropped after the read;
SHARED: Final = "shared"  # with one that is held until the commit, beside other readers
EXCLUSIVE: Final = "exclusive"  # or alone. Appends always take this one.
LOCKS: Final = (COMMITTED, SHORT, SHARED, EXCLUSIVE)

NOT_STARTED: Final = "not started"  # The one reason to ask another node at once.
NODE_FAILED: Final = "a node failed"
LOCK_TIMEOUT: Final = "lock time-out"
MOVED: Final = "moved"
CUT_OFF: Final = "cut off from the others"
UNSUPPORTED: Final = "only reads and appends are supported"

SINCE_BITS: Final = 22
COUNTER_BITS: Final = 32


def life_of(node: NodeId, since: int) -> int:
    """The number of a node's life: the upper bits of the transids that it gives."""
    return DATA_NODES.index(node) << SINCE_BITS | since


def transid_of(life: int, counter: int) -> int:
    """A transaction's id, unique for ever. From the top: the node's index, its `since` in 22 bits, a counter in 32."""
    return life << COUNTER_BITS | counter


def life_in(transid: int) -> int:
    """The life of the coordinator that gave this id."""
    return transid >> COUNTER_BITS


def coordinator_in(transid: int) -> NodeId:
    """The node that gave this id."""
    return DATA_NODES[transid >> COUNTER_BITS + SINCE_BITS]


def since_in(transid: int) -> int:
    """The view in which the coordinator that gave this id came in."""
    return transid >> COUNTER_BITS & (1 << SINCE_BITS) - 1


class Transact(Struct, frozen=True, tag=True):
    """A client asks any data node for a transaction of reads and appends."""

    mops: tuple[MicroOp, ...]


class Done(Struct, frozen=True, tag=True):
    """It is committed in that epoch; reads are filled in. One that wrote nothing has the epoch current at its end."""

    epoch: int
    transid: int
    mops: tuple[MicroOp, ...]


class Refused(Struct, frozen=True, tag=True):
    """Certainly nothing has happened, and nothing will."""

    reason: str


class Operate(Struct, frozen=True, tag=True):
    """Coordinator to primary: carry out operation `number`; `lock` is what a read takes."""

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
    """The last of the chain to the coordinator: done at all of it. A read has `elements`, last changed in `epoch`."""

    transid: int
    view: int
    number: int
    chain: tuple[NodeId, ...]
    elements: list[Json] | None = None
    epoch: int = 0


class Declined(Struct, frozen=True, tag=True):
    """The node that was asked may not serve that operation."""

    transid: int
    number: int


class Commit(Struct, frozen=True, tag=True):
    """Along the chain, the last backup first: install. `path` are those after the receiver; the last one answers."""

    transid: int
    view: int
    epoch: int
    fragment: int
    path: tuple[NodeId, ...]
    coordinator: NodeId


class Committed(Struct, frozen=True, tag=True):
    """All of the chain have installed the transaction's rows of that fragment."""

    transid: int
    fragment: int


class Complete(Struct, frozen=True, tag=True):
    """Coordinator to each of the chain: free what is still locked, and forget the transaction."""

    transid: int
    view: int
    fragment: int


class Completed(Struct, frozen=True, tag=True):
    """It is forgotten here."""

    transid: int
    fragment: int


class Abort(Struct, frozen=True, tag=True):
    """Along the chain, the primary first, as the operations went: forget what was prepared."""

    transid: int
    view: int
    fragment: int


class Aborted(Struct, frozen=True, tag=True):
    """The last of the chain to the coordinator: forgotten at all of it."""

    transid: int
    fragment: int


class TransStatus(Struct, frozen=True, tag=True):
    """The master to all: what is there of coordinators that are no longer members?"""

    view: int


class TransConf(Struct, frozen=True, tag=True):
    """One such transaction, as far as it concerns one fragment: prepared, or committed in `epoch`."""

    view: int
    transid: int
    fragment: int
    chain: tuple[NodeId, ...]
    epoch: int | None


class TransLast(Struct, frozen=True, tag=True):
    """That was all, for the question of that view."""

    view: int


class CopyRow(Struct, frozen=True, tag=True):
    """A row for a node that has come in: its elements, each with the epoch of its commit."""

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
    """On disk: what is before this and belongs to a later global checkpoint is void."""

    gci: int


StorageMessage = Operate | Prepare | Commit | Complete | Abort | TransStatus | CopyRow | CopyRowConf | CopyDone
COORDINATOR_MESSAGES: Final = (Operated, Declined, Committed, Completed, Aborted, TransConf, TransLast)
STORAGE_MESSAGES: Final = (Operate, Prepare, Commit, Complete, Abort, TransStatus, CopyRow, CopyRowConf, CopyDone)
MESSAGES: Final = COORDINATOR_MESSAGES + STORAGE_MESSAGES
