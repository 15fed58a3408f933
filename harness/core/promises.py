"""What a cluster declares as data: its promises, and the contract of its change stream."""

from typing import Annotated, Literal

import msgspec


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """A documented guarantee. A finding quotes it, so that no reader has to look it up.

    `forbids` are the anomalies that would break it, by the names of `checkers/names.py`; the run binds them to checks.
    `is_purpose`: this promise is what the test is for, so that too few witnesses make the run vacuous.
    """

    id: str  # "TUT-3"
    text: str  # One sentence, our own words.
    source: str  # The page or file, with the date of reading.
    forbids: tuple[str, ...]
    is_purpose: bool = True
    check: str | None = None  # Only what this check says counts; None: whatever says something about `forbids`.


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers by which a run is judged, as the parameters of that run make them. None: nothing is promised."""

    groups: tuple[tuple[str, ...], ...] = ()  # Nodes that hold the same data: each group must have one alive.
    # Positions with equal higher bits, above so many, are made durable together. A position has 63.
    saved_bits: Annotated[int, msgspec.Meta(ge=0, le=62)] | None = None
    loss_ns: int | None = None  # What was acknowledged so long before a failure of the whole cluster, survives it.
    records: int | None = None  # Epochs that a node keeps for subscribers at most.
    disconnect_ns: int | None = None  # A subscriber that acknowledges nothing for so long is disconnected.
    stall_ns: int | None = None  # The longest that watermarks may rest outside faults and their grace.
    blocked_ns: int | None = None  # The longest that a commit may wait for an epoch outside faults and their grace.
    grace_ns: int = 0  # After the end of a fault: detection, arbitration, take-over, restart.
    total: int | None = None  # What the accounts of a bank come to together; None: what its first read shows.


class StreamContract(msgspec.Struct, frozen=True, kw_only=True):
    """How a change stream is to be read. No default hides a choice that has lost data before: `closed` and `cut`.

    The fields are parameters of the rules S01 to S28, for which see `checkers/streams.py`.
    """

    closed: Literal["<", "<="]  # Does watermark w promise the events at w?
    cut: Literal["delivery", "position", "unknown"]  # Is the state at w all that came before w, or only what w closes?
    position: Literal["commit-timestamp", "revision", "offset", "lsn", "epoch"]
    order_key: Literal["none", "key", "partition", "global"] = "global"
    resume: Literal["after", "at"] = "after"
    delivery: Literal["exactly-once", "at-least-once", "at-most-once"] = "at-least-once"
    replay: Literal["resume", "session"] = "resume"
    atomic_unit: Literal["none", "response", "batch", "transaction", "epoch"] = "transaction"
    unit_scope: Literal["partition", "global"] = "global"
    unit_rows: Literal["final", "each"] = "each"
    versions: Literal["every", "latest-per-epoch", "latest"] = "every"
    is_position_unique: bool = True  # One unit for each position.
    is_position_global: bool = True
    follows_clock: bool = False  # Positions follow a clock, rather than the writes.
    identity: Literal["position+key", "position+key+ordinal", "position+key+value"] = "position+key+ordinal"
    wm_scope: Literal["session", "subscriber", "partition", "global"] = "subscriber"
    wm_idle: Literal["moves", "rests"] = "moves"
    has_gap_marker: bool = False
    has_noop_events: bool = True
    system_events: tuple[str, ...] = ()
    realtime: Literal["none", "follows", "reads"] = "none"
    # A clock's positions are ns of the harness's clock, ahead of it by so much at most; None: the two do not compare.
    clock_error_ns: int | None = None
    is_whole_least: bool = False  # A watermark of the whole stream is the least of those of its session's partitions.
    epochs: Literal["units", "owners"] = "units"  # Do events name the epoch of their unit, or of who owned the log?
    owners: Literal["unknown", "nodes"] = "unknown"  # nodes: who answered a write owned its log, in the write's epoch.
    backfill: Literal["partial", "whole"] = "partial"  # Does a snapshot hold every key, or those that it happens to?
    events_at_position: Literal["one", "many"] = "many"
    # held: a checkpoint was acknowledged upstream, and a session opens with what its subscriber's durable state holds.
    acknowledged: Literal["unknown", "held"] = "unknown"
    # A checkpoint was answered by the source: it goes on behind it, unless a session asks for a lower position.
    resumes_behind_checkpoint: bool = False
    tail: Literal["open", "settled"] = "open"  # Had everything come to rest when the recording ended?
