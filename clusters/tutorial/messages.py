"""The messages between the nodes of the tutorial, and their records on disk."""

from typing import Literal

from msgspec import Struct

from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp

DATA_NODES = (NodeId("n1"), NodeId("n2"))


class View(Struct, frozen=True, tag=True):
    """The leader and its backup. The coordinator numbers views; a higher number fences the lower ones."""

    number: int
    primary: NodeId
    backup: NodeId | None = None


class Heartbeat(Struct, frozen=True, tag=True):
    """A data node is alive, and knows view `view`. `is_caught_up`: it leads, and its backup has the whole log.

    `clock_ns` is its wall clock: no decision depends on it, but the coordinator sees if clocks agree.
    """

    view: int
    is_caught_up: bool
    clock_ns: int


class Operate(Struct, frozen=True, tag=True):
    """A client's request to read a register, to write `value`, or to write `value` if it holds `old`.

    Registers are separate from the lists, and these operations are in no stream.
    """

    f: Literal["read", "write", "cas"]
    key: Json
    value: Json = None
    old: Json = None


class Entry(Struct, frozen=True, tag=True):
    """One transaction in the log, or one operation on a register; its position is its index + 1.

    `view` is the view in which it was appended.
    """

    view: int
    mops: tuple[MicroOp, ...]
    operate: Operate | None = None


class Replicate(Struct, frozen=True, tag=True):
    """The primary's log from index `start` on."""

    view: int
    start: int
    entries: tuple[Entry, ...]


class Replicated(Struct, frozen=True, tag=True):
    """The backup has the first `length` entries of that view's log, durably."""

    view: int
    length: int


class Transact(Struct, frozen=True, tag=True):
    """A client's request for a transaction."""

    mops: tuple[MicroOp, ...]


class Done(Struct, frozen=True, tag=True):
    """The transaction was committed at `position`; reads have their results."""

    position: int
    mops: tuple[MicroOp, ...]


class Held(Struct, frozen=True, tag=True):
    """The operation was committed at `position`, and the register held `value` before.

    Not `is_done`: it is unchanged.
    """

    position: int
    value: Json
    is_done: bool


class Refused(Struct, frozen=True, tag=True):
    """The request was not begun: try `primary`, if one is known."""

    primary: NodeId | None


class Unclear(Struct, frozen=True, tag=True):
    """The node was deposed while the transaction was open: the next primary may or may not have it."""


class Subscribe(Struct, frozen=True, tag=True):
    """A request for all rows above `after`, as the subscriber's session `session`."""

    session: int
    after: int


class Row(Struct, frozen=True, tag=True):
    """One append or write of the transaction at `position`, which has `rows` of them; this one is number `ordinal`."""

    session: int
    position: int
    ordinal: int
    rows: int
    key: Json
    value: Json


class Watermark(Struct, frozen=True, tag=True):
    """Every row at or below `position` has been sent."""

    session: int
    position: int


class Progress(Struct, frozen=True, tag=True):
    """On a subscriber's disk: its latest session, and the watermark up to which it needs no repetition."""

    session: int = 0
    position: int = 0
    saved_ns: int = 0  # The save time by the subscriber's wall clock; no decision depends on it.
