"""The data by which a run is judged: promises, bounds, the contract of a change stream, and the excuses of faults."""

from collections.abc import Mapping
from enum import Flag, auto
from types import MappingProxyType
from typing import Annotated, Final, Literal

import msgspec


class Excuse(Flag):
    """The kind of harm besides delays for which a fault excuses the system."""

    DELAYS = 0  # Only delays: everything may be late while the fault is in force, and shortly after.
    NODES = auto()  # Others may take a node for lost.
    MEMORY = auto()  # A process ends, and its memory is lost.
    WRITES = auto()  # Writes that were not synced are lost as well.
    LINKS = auto()  # Connections may break.
    SUBSCRIBERS = auto()  # Only subscribers may be late.


MODEL: Final = "MODEL"  # The id of a promise that consists of one consistency model. It is shown by the model's name.
Excuses = Mapping[str, Excuse]  # By package of faults. Faults without an excuse here, such as a busy machine: DELAYS.


# Checks by the names that earlier versions gave them, in recorded runs and in users' files.
RENAMED: Final[Mapping[str, str]] = MappingProxyType({"acknowledgements": "streams", "epoch-owners": "streams"})


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A documented guarantee. A finding quotes it, so that no reader has to look it up.

    `forbids` are the anomalies that would break it, by the names of `checkers/catalogue.py`; the run binds them
    to checks. `is_purpose`: the test exists for this promise, so too few witnesses make the run vacuous.
    """

    id: str  # "TUT-3"
    text: str  # One sentence, our own words.
    source: str  # The page or file, with the date of reading.
    forbids: tuple[str, ...]
    is_purpose: bool = True
    check: str | None = None  # Only this check's findings count; None: those of all checks that look for `forbids`.

    def __post_init__(self) -> None:
        if (today := RENAMED.get(self.check or "")) is not None:
            msgspec.structs.force_setattr(self, "check", today)

    @property
    def called(self) -> str:
        """The promise's name for people: its id, or the model if the user named only a model."""
        return self.forbids[0] if self.id.startswith(MODEL) and self.forbids else self.id


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A view that a system maintains, or a query whose answers name timestamps: which rows it must have.

    A row has a key and a value. `key` and `value` are places of columns in values that are lists; None: the row's own
    key, and the whole value. `sum` has for each key the sum of the values, which are integers; `join` the pairs of the
    values of a key in both inputs; `distinct` each value of a key once; `top-1` the row of a key with the greatest
    value; `rows` the rows themselves. `order` is the column that decides between rows with the same greatest value:
    the greatest there is first. None: any of them is right.
    """

    name: str
    operator: Literal["sum", "join", "distinct", "top-1", "rows"]
    inputs: tuple[str, ...]
    key: int | None = None
    value: int | None = None
    order: int | None = None


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits by which a run is judged, for the parameters of that run. None: nothing is promised."""

    groups: tuple[tuple[str, ...], ...] = ()  # Nodes that hold the same data: at least one of each group must be alive.
    # Positions that agree above this many low bits become durable together. A position has 63.
    saved_bits: Annotated[int, msgspec.Meta(ge=0, le=62)] | None = None
    loss_ns: int | None = None  # Writes acknowledged this long before a failure of the whole cluster survive it.
    records: int | None = None  # The most epochs that a node keeps for subscribers.
    disconnect_ns: int | None = None  # A subscriber that acknowledges nothing for this long is disconnected.
    stall_ns: int | None = None  # The longest that watermarks may stand still outside faults and their grace.
    blocked_ns: int | None = None  # The longest that a commit may wait for an epoch outside faults and their grace.
    behind_ns: int | None = None  # The longest that a committed write may stay above the watermark; as for stalls.
    spurious: tuple[str, ...] = ()  # Parts of errors; an operation fails with one only due to a fault.
    spurious_keys: int = 0  # Only operations that append to at least so many keys meet such errors.
    grace_ns: int = 0  # After the end of a fault: detection, arbitration, take-over, restart.
    views: tuple[View, ...] = ()  # What is computed again from its inputs, at the timestamps that answers name.
    total: int | None = None  # The sum of all accounts of a bank; None: the sum that its first read shows.


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The forms in which a system's users name the numbers of a history: patterns, each with one {}.

    None: as the contract's `position` suggests, such as "LSN {}" for an lsn. Raw records keep the numbers. With
    `logical_bits` a position is milliseconds, shifted by these bits, and a counter: "3.251 s +2", or "3251-2" as an id.
    """

    key: str = "k{}"  # A key that is a number.
    position: str | None = None  # "epoch {}"
    watermark: str | None = None  # "resolved timestamp {}"
    logical_bits: Annotated[int, msgspec.Meta(ge=1, le=62)] | None = None
    logical_form: Literal["time", "id"] = "time"


class StreamContract(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for reading a change stream.

    `closed` and `cut` have no default, because wrong choices have lost data before.

    The fields are parameters of the stream rules, see `checkers/streams/check.py`.
    """

    closed: Literal["<", "<="]  # Does watermark w promise the events at w?
    cut: Literal["delivery", "position", "unknown"]  # Is the state at w all events before w, or only what w closes?
    position: Literal["commit-timestamp", "revision", "offset", "lsn", "epoch"]
    order_key: Literal["none", "key", "partition", "global"] = "global"
    resume: Literal["after", "at"] = "after"
    delivery: Literal["exactly-once", "at-least-once", "at-most-once"] = "at-least-once"
    replay: Literal["resume", "session"] = "resume"
    atomic_unit: Literal["none", "response", "batch", "transaction", "epoch"] = "transaction"
    # The rows of units in a log: mixed, each unit together, or so with one order of units in all logs.
    unit_layout: Literal["mixed", "together", "one-order"] = "mixed"
    unit_scope: Literal["partition", "global"] = "global"
    unit_rows: Literal["final", "each"] = "each"
    versions: Literal["every", "latest-per-epoch", "latest"] = "every"
    is_position_unique: bool = True  # One unit for each position.
    is_position_global: bool = True
    follows_clock: bool = False  # Positions follow a clock, not the writes.
    identity: Literal["position+key", "position+key+ordinal", "position+key+value"] = "position+key+ordinal"
    wm_scope: Literal["session", "subscriber", "partition", "global"] = "subscriber"
    wm_idle: Literal["moves", "rests"] = "moves"
    has_gap_marker: bool = False
    has_noop_events: bool = True
    system_events: tuple[str, ...] = ()
    realtime: Literal["none", "follows", "reads"] = "none"
    # Positions are times in ns, at most this far ahead of the harness's clock; None: the two are not comparable.
    clock_error_ns: int | None = None
    is_whole_least: bool = False  # A watermark of the whole stream is the minimum over its session's partitions.
    epochs: Literal["units", "owners"] = "units"  # Do events name the epoch of their unit, or of the log's owner?
    owners: Literal["unknown", "nodes"] = "unknown"  # nodes: a write's node owned its log in that epoch.
    backfill: Literal["partial", "whole"] = "partial"  # Does a snapshot hold every key, or only some of them?
    events_at_position: Literal["one", "many"] = "many"
    # held: a checkpoint was acknowledged upstream, and a session opens with the subscriber's durable state.
    acknowledged: Literal["unknown", "held"] = "unknown"
    # After a checkpoint the source resumes behind it, unless a session requests a lower position.
    resumes_behind_checkpoint: bool = False
    positions: Literal["sparse", "dense"] = "sparse"  # dense: every integer is the position of an event.
    # joined: a session begins where the one before it of its subscriber ended, or below.
    sessions: Literal["apart", "joined"] = "apart"
    partitions: Annotated[int, msgspec.Meta(ge=1)] | None = None  # How many the stream has; None: unknown.
    tail: Literal["open", "settled"] = "open"  # Was everything at rest when the recording ended?
    tombstones: Literal["unknown", "each"] = "unknown"  # each: a tombstone directly follows each deletion.
    consumers: Literal["each", "group"] = "each"  # group: subscribers share the events out among themselves.
