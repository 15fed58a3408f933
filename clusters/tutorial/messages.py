"""What the nodes of the tutorial say to each other, and what they keep on disk."""

from typing import Literal

from msgspec import Struct

from harness.core.machine import NodeId
from harness.core.record import Json, MicroOp

DATA_NODES = (NodeId("n1"), NodeId("n2"))


class View(Struct, frozen=True, tag=True):
    """Who leads. Views are numbered by the coordinator; a higher number fences the lower ones."""

    number: int
    primary: NodeId
    backup: NodeId | None = None


class Heartbeat(Struct, frozen=True, tag=True):
    """A data node is alive, and knows view `view`; `is_caught_up`: it leads, and its backup has the whole log.

    `clock_ns` is what its wall clock shows: nothing is decided by it, but the coordinator sees whether clocks agree.
    """

    view: int
    is_caught_up: bool
    clock_ns: int


class Operate(Struct, frozen=True, tag=True):
    """A client asks for one operation on a register: to read it, to write `value`, or to do that if it holds `old`.

    Registers are beside the lists, and what is done to them so is in no stream.
    """

    f: Literal["read", "write", "cas"]
    key: Json
    value: Json = None
    old: Json = None


class Entry(Struct, frozen=True, tag=True):
    """One transaction in the log, or one operation on a register; its position is its index + 1.

    `view` is the one in which it was appended.
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
    """A client asks for a transaction."""

    mops: tuple[MicroOp, ...]


class Done(Struct, frozen=True, tag=True):
    """It was committed at `position`; reads are filled in."""

    position: int
    mops: tuple[MicroOp, ...]


class Held(Struct, frozen=True, tag=True):
    """It was committed at `position`, and the register held `value` before. Not `is_done`: so it was left as it is."""

    position: int
    value: Json
    is_done: bool


class Refused(Struct, frozen=True, tag=True):
    """It was not even begun: ask `primary`, if one is known."""

    primary: NodeId | None


class Unclear(Struct, frozen=True, tag=True):
    """The node was deposed while the transaction was open: the next primary may have it, or not."""


class Subscribe(Struct, frozen=True, tag=True):
    """Send all rows above `after`, as the subscriber's session `session`."""

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
    """On a subscriber's disk: its latest session, and the watermark up to which it need not see anything again."""

    session: int = 0
    position: int = 0
    saved_ns: int = 0  # When, by the subscriber's wall clock; nothing is decided by it.
