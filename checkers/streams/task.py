"""The work of one task: the stream rules over one log, and an example for each rule with the facts of its sentence."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from checkers.columns.blocks import BLOCK_ROWS
from checkers.columns.index import is_kind
from checkers.columns.runs import distinct, first_of_each, is_ascending
from checkers.history.around import NOTHING_AROUND, Around, read_around
from checkers.history.streams import Placement, StreamLog, told_by
from checkers.history.version_ranks import read_beside, reading
from checkers.streams.by_key import OfKeys, judged_by_key
from checkers.streams.rules.events.divergent_duplicate import divergent_duplicates
from checkers.streams.rules.events.duplicate_event import repetitions
from checkers.streams.rules.events.order_inversion import order_inversions
from checkers.streams.rules.events.wrong_value import phantom_events, wrong_values
from checkers.streams.rules.logs.real_time_order import RealTime, read_placed, real_time_order
from checkers.streams.rules.logs.rewritten_offset import rewritten_offsets
from checkers.streams.rules.logs.split_view import Sighted, Views, rows_at, views_of
from checkers.streams.rules.logs.zombie import zombie_events
from checkers.streams.rules.sessions.event_after_end import events_after_end
from checkers.streams.rules.sessions.hand_over_hole import hand_over_holes
from checkers.streams.rules.sessions.lost_tail import lost_tails
from checkers.streams.rules.sessions.outside_filter import moved_keys
from checkers.streams.rules.watermarks.late_event import regressions
from checkers.streams.rules.watermarks.missing_event import torn_units
from checkers.streams.rules.watermarks.silent_gap import silent_gaps
from checkers.streams.rules.watermarks.watermark_above_partitions import watermarks_above_partitions
from checkers.streams.rules.watermarks.watermark_from_future import watermarks_from_future
from checkers.streams.view import Ruling, StreamView, announced_view, defect, stream_view
from harness.core.columns import BACKFILL, GAP, INFO, NEVER, OK, ROW, WATERMARK, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract

LATE, BOUNDARY, REGRESS = "late-event", "late-event-boundary", "watermark-regress"
MISSING, TORN = "missing-event", "torn-unit"
INVERTED, DUPLICATE = "order-inversion", "duplicate-event"
PHANTOM, WRONG = "phantom-event", "wrong-value"
SILENT, MISMATCH, SPLIT = "silent-gap", "state-mismatch", "split-view"
DIVERGENT, OUTSIDE, MOVED = "divergent-duplicate", "outside-filter", "moved-key"
RESUME, TAIL, HANDOVER = "resume-hole", "lost-tail", "hand-over-hole"
FUTURE, ABOVE, REWRITTEN = "watermark-from-future", "watermark-above-partitions", "rewritten-offset"
ENDED, ZOMBIE, REAL_TIME = "event-after-end", "zombie", "real-time-order"
RULES = (
    *(LATE, BOUNDARY, REGRESS, MISSING, TORN, INVERTED, DUPLICATE),
    *(PHANTOM, WRONG, SILENT, MISMATCH, SPLIT, DIVERGENT, OUTSIDE, MOVED),
    *(RESUME, TAIL, HANDOVER, FUTURE, ABOVE, REWRITTEN, ENDED, ZOMBIE, REAL_TIME),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """An event of a log, in plain numbers; NEVER for a missing one."""

    kind: int
    seq: int
    ns: int
    session: int
    key: int
    value: int
    position: int


Seen = dict[Sighted, tuple[Sight, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A write that had not arrived, or that an event should show.

    `came` is its first delivery after the watermark, in the watermark's scope, if there was one.
    """

    op: int
    key: int
    value: int
    position: int
    came: Sight | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The first violation of a rule by one subscriber, and the number of violations."""

    anomaly: str
    subscriber: str
    count: int
    watermark: Sight  # For a rule without watermarks, the event that broke it.
    event: Sight | None
    missed: Missed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one log. `defect` is the reason why it could not be judged; then only `source` is set."""

    source: dict[str, int]  # Facts about the source, the same for all logs.
    defect: str | None = None
    examples: tuple[Example, ...] = ()
    witnesses: dict[str, int] = field(default_factory=dict)
    facts: dict[str, int] = field(default_factory=dict)
    views: Views | None = None
    timed: RealTime | None = None  # The result of the rule about the source alone, in the first log only.


def placement_of(log: StreamLog, threads: int = 1) -> Placement:
    """The placement that the deliveries of one log give to the source's writes, in `threads` threads."""
    return told_by(log, Path(log.directory), threads=threads)


def judge(log: StreamLog, contract: StreamContract, known: Placement | None, threads: int = 1) -> Outcome:
    """The outcome of all rules over one log, in `threads` threads.

    `known` is the placement that follows from all logs; None if this is the only one.
    """
    folder = Path(log.directory)
    with reading(log, folder, known, threads=threads) as found:
        writes, timed = found.writes, _timed(log, found.writes, contract)
        around = read_around(folder, found.readers, contract)
        deliveries = found.deliveries()
    del found
    return replace(judged(log, deliveries, writes, contract, around, threads=threads), timed=timed)


def _timed(log: StreamLog, writes: SourceWrites, contract: StreamContract) -> RealTime | None:
    """The result of the rule about the source alone: once, for the first log."""
    if contract.realtime == "none" or log.chosen[0] != log.subscribers[0]:
        return None
    return real_time_order(read_placed(Path(log.directory), writes), contract)


def sights(log: StreamLog, contract: StreamContract, known: Placement | None, wanted: tuple[Sighted, ...]) -> Seen:
    """The events that the log's sessions in `wanted` saw at their positions, by time: those that `views` summarize."""
    view = stream_view(*read_beside(log, Path(log.directory), known), contract)
    return {each: tuple(_sight(view, row) for row in rows.tolist()) for each, rows in rows_at(view, wanted).items()}


def judged(
    log: StreamLog,
    deliveries: Deliveries,
    writes: SourceWrites,
    contract: StreamContract,
    around: Around = NOTHING_AROUND,
    *,
    threads: int = 1,
    block_rows: int = BLOCK_ROWS,
) -> Outcome:
    """The outcome of the rules over columns; `writes` are placed, and empty if only the stream is known."""
    if problem := defect(deliveries, contract):
        return Outcome(source=source_facts(writes), defect=problem)
    view, of_keys = judged_by_key(deliveries, writes, contract, threads=threads, block_rows=block_rows)
    # Without a source, only the units that rows name are known.
    units = view if len(writes.op) else announced_view(deliveries, contract)
    torn = torn_units(units, threads=threads, block_rows=block_rows)
    is_alone = len(log.chosen) == len(log.subscribers)
    with ThreadPoolExecutor(threads) as pool:  # NumPy releases the interpreter's lock in all long calls.
        source = pool.submit(source_facts, writes)
        views = pool.submit(views_of, view, is_alone=is_alone, block_rows=block_rows)
        tasks = _tasks(view, of_keys, around, block_rows)
        others = {name: task.result() for name, task in [(name, pool.submit(rule)) for name, rule in tasks.items()]}
    rulings = {name: (view, one) for name, one in (_of_keys(of_keys) | others).items()} | {TORN: (units, torn)}
    rulings = {name: rulings[name] for name in RULES if name in rulings}
    examples = [
        _example(name, log, one, ruling, rows)
        for name, (one, ruling) in rulings.items()
        for rows in by_subscriber(one, ruling)
    ]
    facts = _facts(view) | {"events-at-exclusive-watermarks": rulings[BOUNDARY][1].legal}
    witnesses = {name: ruling.witnesses for name, (_, ruling) in rulings.items()}
    return Outcome(
        source=source.result(),
        examples=tuple(examples),
        witnesses=witnesses,
        facts=facts,
        views=views.result(),
    )


def _of_keys(found: OfKeys) -> dict[str, Ruling]:
    return {
        LATE: found.late,
        BOUNDARY: found.boundary,
        MISSING: found.missing,
        MISMATCH: found.mismatches,
        RESUME: found.holes.resumes,
        OUTSIDE: found.outside,
    }


def _tasks(view: StreamView, of_keys: OfKeys, around: Around, block_rows: int) -> dict[str, Callable[[], Ruling]]:
    """The rules that need the whole log."""
    return {
        INVERTED: partial(order_inversions, view, of_keys.ties, block_rows=block_rows),
        WRONG: partial(wrong_values, view, block_rows=block_rows),
        DUPLICATE: partial(repetitions, view, block_rows=block_rows),
        TAIL: partial(lost_tails, view, of_keys.missing, around, block_rows=block_rows),
        SILENT: partial(silent_gaps, view, of_keys.missing),
        HANDOVER: partial(hand_over_holes, view, of_keys.holes),
        DIVERGENT: partial(divergent_duplicates, view),
        REGRESS: partial(regressions, view),
        PHANTOM: partial(phantom_events, view),
        MOVED: partial(moved_keys, view),
        FUTURE: partial(watermarks_from_future, view, around.readers, block_rows=block_rows),
        ABOVE: partial(watermarks_above_partitions, view),
        REWRITTEN: partial(rewritten_offsets, view),
        ENDED: partial(events_after_end, view),
        ZOMBIE: partial(zombie_events, view),
    }


def source_facts(writes: SourceWrites) -> dict[str, int]:
    """Counts of placed writes: ok operations without a position, and unclear ones that nobody saw."""
    is_ok, is_unplaced = writes.outcome == OK, writes.position == NEVER
    return {
        "writing-operations": _distinct_count(writes.op if is_ok.all() else writes.op[is_ok]),
        "unplaced-operations": _distinct_count(writes.op[is_ok & is_unplaced]),
        "unobserved-info-operations": _distinct_count(writes.op[(writes.outcome == INFO) & is_unplaced]),
    }


def _distinct_count(values: Int64s) -> int:
    """The number of distinct values. Ascending values are not copied."""
    ascending = values if is_ascending(values) else np.sort(values)
    return int(np.count_nonzero(first_of_each(ascending)))


def by_subscriber(view: StreamView, ruling: Ruling) -> list[Int64s]:
    """The violations of each subscriber, as places in the ruling, earliest first."""
    who = view.deliveries.subscriber[ruling.watermark]
    return [np.flatnonzero(who == each) for each in distinct(who).tolist()]


def _example(anomaly: str, log: StreamLog, view: StreamView, ruling: Ruling, places: Int64s) -> Example:
    first = int(places[0])
    watermark, row, write = (int(column[first]) for column in (ruling.watermark, ruling.row, ruling.write))
    return Example(
        anomaly=anomaly,
        subscriber=log.subscribers[int(view.deliveries.subscriber[watermark])],
        count=len(places),
        watermark=_sight(view, watermark),
        event=_sight(view, row) if row >= 0 else None,
        missed=_missed(view, watermark, write) if write >= 0 else None,
    )


def _missed(view: StreamView, watermark: int, write: int) -> Missed:
    w = view.writes
    shown = view.match == int(np.searchsorted(view.expected, write))
    is_expected = write in view.expected
    came = np.flatnonzero(shown & is_expected & (view.scope == view.scope[watermark]))
    return Missed(
        op=int(w.op[write]),
        key=int(w.key[write]),
        value=int(w.value[write]),
        position=int(w.position[write]),
        came=_sight(view, int(came[0])) if len(came) and came[0] > watermark else None,
    )


def _sight(view: StreamView, row: int) -> Sight:
    d = view.deliveries
    return Sight(
        kind=int(d.kind[row]),
        seq=int(d.seq[row]),
        ns=int(d.ns[row]),
        session=int(d.session[row]),
        key=int(d.key[row]),
        value=int(d.value[row]),
        position=int(d.position[row]),
    )


def _facts(view: StreamView) -> dict[str, int]:
    is_event = is_kind(view.deliveries.kind, (ROW, BACKFILL))
    return {
        "events": int(is_event.sum()),
        "watermarks": int((view.deliveries.kind == WATERMARK).sum()),
        "gap-markers": int((view.deliveries.kind == GAP).sum()),
        "sessions": int(view.session.max(initial=-1)) + 1,
        "repeated-events": int((is_event & ~view.is_phantom).sum()) - len(view.first),
        "phantom-events": int(view.is_phantom.sum()),
    }
