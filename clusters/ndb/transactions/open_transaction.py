"""A transaction in progress, as its coordinator knows it."""

from enum import Enum

from clusters.ndb.transactions.messages import COMMITTED, SHORT
from harness.core.machine import NodeId
from harness.core.record import MicroOp


class State(Enum):
    """The state of a transaction."""

    EXECUTING = 1
    QUEUED = 2  # All its operations are done; no commit may begin.
    COMMITTING = 3
    COMPLETING = 4
    ABORTING = 5


class Transaction:
    """One transaction. `caller` is the client and the number of its call; None for one that was taken over."""

    __slots__ = (
        "awaited",
        "caller",
        "chains",
        "deadline_ns",
        "done",
        "epoch",
        "incomplete",
        "is_answered",
        "is_writer",
        "lock",
        "mops",
        "pending",
        "queued_ns",
        "seen",
        "started",
        "state",
        "transid",
    )  # fmt: skip

    def __init__(self, transid: int, caller: tuple[NodeId, int] | None, mops: tuple[MicroOp, ...]) -> None:
        self.transid = transid
        self.caller = caller
        self.mops = mops
        self.is_writer = any(mop.f == "append" for mop in mops)
        self.is_answered = caller is None
        self.state = State.EXECUTING
        self.done: list[MicroOp] = []  # The length of this list is the number of the current operation,
        self.pending: tuple[int, tuple[NodeId, ...]] = (0, ())  # at this fragment and those nodes,
        self.lock = COMMITTED  # with this lock,
        self.deadline_ns = 0  # and the deadline for it.
        self.chains: dict[int, tuple[NodeId, ...]] = {}
        self.started = 0  # The epoch that was current at the start.
        self.seen = 0  # The highest epoch of the rows read.
        self.epoch = 0
        self.queued_ns = 0
        self.awaited: dict[int, None] = {}  # Fragments whose primary has not committed, or whose chain has not aborted.
        self.incomplete: dict[tuple[int, NodeId], None] = {}

    def touch(self, fragment: int, chain: tuple[NodeId, ...]) -> None:
        """Add a participating chain; a chain that has become longer replaces the shorter one."""
        if len(chain) > len(self.chains.get(fragment, ())):
            self.chains[fragment] = chain

    def is_at(self, nodes: tuple[NodeId, ...]) -> bool:
        """True if an operation was at one of these nodes, or the current one may be."""
        chains = [*self.chains.values()]
        if self.state is State.EXECUTING:
            chains.append(self.pending[1])
        return any(node in nodes for chain in chains for node in chain)

    def touch_pending(self) -> None:
        """Add the chain of the current operation, which may have locked something."""
        if self.lock not in (COMMITTED, SHORT):
            self.touch(*self.pending)
