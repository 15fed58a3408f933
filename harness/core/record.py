"""The records of a journal: all evidence of a run, in the order of events.

`seq`, the number of a record in its journal, is not stored: it is the record's position. Times are nanoseconds since
the start of the run. The history's hash covers every record but `Header` and `Footer`.
"""

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

if TYPE_CHECKING:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:
    Json = Any  # msgspec cannot read a recursive alias, and decodes into nothing else.
Outcome = Literal["ok", "fail", "info"]


class MicroOp(msgspec.Struct, frozen=True, array_like=True):
    """One step of a transaction. `f` is r (read), append or w (write).

    The `value` of a read is the list that was read, or None if it is unknown (an invocation, an unclear outcome); a
    read of an absent key gives the empty list. `lock` is the lock mode, if the workload chooses one.
    """

    f: Literal["r", "append", "w"]
    key: Json
    value: Json = None
    table: str | None = None
    lock: str | None = None


class Invoke(msgspec.Struct, frozen=True, tag="invoke", array_like=True):
    """An operation was invoked. `index` is its rank among the invocations; `intended_ns` is the time it was due."""

    index: int
    time_ns: int
    intended_ns: int
    process: int
    f: str
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None


class Complete(msgspec.Struct, frozen=True, tag="complete", array_like=True):
    """The operation of that index completed. `mops` is None if its reads carry no information (fail, info)."""

    index: int
    time_ns: int
    outcome: Outcome
    value: Json = None
    mops: tuple[MicroOp, ...] | None = None
    error: str | None = None
    node: str | None = None
    txn: int | None = None
    start_ts: int | None = None
    read_ts: int | None = None
    commit_ts: int | None = None
    epoch: int | None = None


class StreamEvent(msgspec.Struct, frozen=True, tag="event", array_like=True):
    """An event that a subscriber received, with the fields of `Delivery`.

    `number` counts within the session, from 0.
    """

    time_ns: int
    subscriber: str
    session: int
    number: int
    kind: str
    span: str | None = None
    key: Json = None
    value: Json = None
    position: int | None = None
    ordinal: int | None = None
    epoch: int | None = None
    unit: int | None = None
    unit_rows: int | None = None


BUSY: Final = "busy-machine"  # The kind of a fault that nobody injected: the machine was too busy to run the nodes.


class Fault(msgspec.Struct, frozen=True, tag="fault", array_like=True):
    """An action of the nemesis for step `step` of its plan. `phase`: begin, effect (measured), end, or refused."""

    time_ns: int
    step: int
    phase: Literal["begin", "effect", "end", "refused"]
    kind: str
    targets: tuple[str, ...]
    effect: int | None = None  # The probe's count: messages held back, nodes down, readings of a wrong clock.
    note: str | None = None


class Probe(msgspec.Struct, frozen=True, tag="probe", array_like=True):
    """A metric that a node reported."""

    time_ns: int
    node: str
    name: str
    value: int


class State(msgspec.Struct, frozen=True, tag="state", array_like=True):
    """One object of a node's state, dumped at quiescence or after a restart."""

    time_ns: int
    node: str
    object: str
    key: Json
    value: Json
    position: int | None = None
    txn: int | None = None


class Mark(msgspec.Struct, frozen=True, tag="mark", array_like=True):
    """A milestone of the run: `phase` is set-up, load, healing, final or tick (once per second, for comparing runs).

    `streams` are the positions of the random streams, `handled` the number of events that each node handled, `goals`
    how often each `sometimes` goal (and, as point:NAME, each failpoint) was reached. All count from the start.
    """

    time_ns: int
    phase: str
    streams: dict[str, int] = {}
    handled: dict[str, int] = {}
    goals: dict[str, int] = {}
    note: str | None = None


class Header(msgspec.Struct, frozen=True, tag="header", array_like=True):
    """The first record. `created_utc` is ISO 8601; `schema` is the version of this record format."""

    schema: int
    created_utc: str


UNSOUND: Final = "unsound: "  # The beginning of a footer's reason: a fault was not what it must be. Nothing is proved.


class Footer(msgspec.Struct, frozen=True, tag="footer", array_like=True):
    """The last record of a run that ended: the reason, and the run's unseed (hex) if it is repeatable."""

    time_ns: int
    reason: str
    unseed: str | None = None


Record = Header | Invoke | Complete | StreamEvent | Fault | Probe | State | Mark | Footer
Evidence = Invoke | Complete | StreamEvent | Fault | Probe | State | Mark  # The records that the history's hash covers.
RECORD_TYPES: tuple[type, ...] = get_args(Record)
SCHEMA = 1
