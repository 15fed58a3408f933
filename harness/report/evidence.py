"""The evidence of a finding: the records that show it, the records around them, and both as text for an issue.

A finding names operations and stream events. Around them a stretch of the run is chosen for the drawing: as much time
as contains at most OPS_MAX operations and EVENTS_MAX events. If the evidence alone spans more, the other records are
thinned evenly, never the evidence, and `notes` say so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from checkers.history.names import Forms
from harness.core.columns import NEVER, Bools, Int64s
from harness.core.record import Complete, Evidence, Invoke, Json, MicroOp, StreamEvent
from harness.core.verdict import Finding
from harness.record.formats.edn.exchange import edn_lines
from harness.record.formats.jsonl import json_line
from harness.record.formats.parquet.rows import some_records
from harness.report.pictures.members import PLAIN
from harness.report.pictures.plots import between
from harness.report.pictures.scale import moment, short
from harness.report.screen import visible
from harness.report.series import Series

OPS_MAX: Final = 48
EVENTS_MAX: Final = 120
# Shares of the run to show before and after the evidence; the first one with few enough records is used.
SHARES: Final = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
PAD_MAX_NS: Final = 2_000_000_000
MARKED_MAX: Final = 24  # The most operations and events in the table of one finding.
LINE_MAX: Final = 1_000  # The most characters of one raw record.


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the evidence: an operation or an event. The drawing shows its `number`."""

    number: int
    name: str
    when: str
    where: str
    what: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A record as stored, in JSON; the evidence links to its `anchor`."""

    seq: int
    text: str
    anchor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The stretch of the run around a finding. `operations` are pairs of invocation and completion."""

    low_ns: int
    high_ns: int
    first_ns: int  # The time of the records that make the anomaly.
    last_ns: int
    operations: tuple[tuple[Invoke, Complete | None], ...]
    events: tuple[tuple[int, StreamEvent], ...]
    numbers: dict[str, int]  # The number of each piece of evidence: "op 12", "event 99".
    rows: tuple[Row, ...]
    raw: tuple[Raw, ...]
    edn: str
    notes: tuple[str, ...]
    forms: Forms


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The records of a slice: operations by index, events by position; `marked` are the evidence itself."""

    prefix: str
    low_ns: int
    high_ns: int
    first_ns: int
    last_ns: int
    ops: tuple[int, ...]
    events: tuple[int, ...]
    marked: frozenset[str]
    notes: tuple[str, ...]


def choice(series: Series, finding: Finding, prefix: str, *, is_alone: bool = False) -> Choice | None:
    """The records to read for a finding; None if it names none. `prefix` makes anchors unique on a page.

    `is_alone`: only the evidence, without the records around it.
    """
    ops = _present(finding.ops[:MARKED_MAX], series.index)
    seqs = _present(finding.events[:MARKED_MAX], series.event_seq)
    if not len(ops) and not len(seqs):
        return None
    acting = _present(_acting(finding)[:MARKED_MAX], series.index)
    first_ns, last_ns = _extent(series, acting if len(acting) else ops, seqs)
    earliest_ns, latest_ns = _extent(series, ops, seqs)
    is_near = latest_ns - earliest_ns <= 2 * (last_ns - first_ns)
    low_ns, high_ns = _stretch(series, *((earliest_ns, latest_ns) if is_near else (first_ns, last_ns)))
    notes = list[str]()
    if first_ns < series.load_end_ns:
        high_ns = min(high_ns, series.limit_ns(last_ns))
    if earliest_ns < low_ns or latest_ns > high_ns:
        span = f"from {moment(earliest_ns, is_order=series.is_order)} to {moment(latest_ns, is_order=series.is_order)}"
        notes.append(f"The evidence is {span}; events outside of the drawing are at its edge.")
    beyond = len(finding.ops) + len(finding.events) - len(ops) - len(seqs)
    if beyond > 0:
        notes.append(f"{beyond} more pieces of evidence are named in report.json.")
    marked = [f"op {index}" for index in series.index[ops].tolist()]
    marked += [f"event {seq}" for seq in series.event_seq[seqs].tolist()]
    around = series.event_seq[between(series.event_ns, low_ns, high_ns)]
    open_ops = _ops_in(series, low_ns, high_ns)
    if is_alone:
        around, open_ops = series.event_seq[seqs], series.index[ops]
    return Choice(
        prefix=prefix,
        low_ns=low_ns,
        high_ns=high_ns,
        first_ns=first_ns,
        last_ns=last_ns,
        ops=_thinned(open_ops, series.index[ops], OPS_MAX, "operations", notes),
        events=_thinned(around, series.event_seq[seqs], EVENTS_MAX, "events", notes),
        marked=frozenset(marked),
        notes=tuple(notes),
    )


def slices(history: Path, choices: Sequence[Choice], *, is_order: bool, forms: Forms = PLAIN) -> list[Slice]:
    """The slices, all from one reading of the history: reading a large one takes most of the time."""
    ops = sorted({index for each in choices for index in each.ops})
    seqs = sorted({seq for each in choices for seq in each.events})
    by_op: dict[int, list[tuple[int, Evidence]]] = {}
    by_seq: dict[int, tuple[int, Evidence]] = {}
    for seq, record in some_records(history, ops=ops, events=seqs):
        if isinstance(record, Invoke | Complete):
            by_op.setdefault(record.index, []).append((seq, record))
        else:
            by_seq[seq] = (seq, record)
    found = []
    for each in choices:
        records = [*chain(*(by_op[index] for index in each.ops)), *(by_seq[seq] for seq in each.events)]
        found.append(_slice(each, records, is_order=is_order, forms=forms))
    return found


def _slice(chosen: Choice, records: list[tuple[int, Evidence]], *, is_order: bool, forms: Forms) -> Slice:
    records.sort(key=lambda each: each[0])
    completed = {record.index: record for _, record in records if isinstance(record, Complete)}
    operations = [(each, completed.get(each.index)) for _, each in records if isinstance(each, Invoke)]
    events = [(seq, record) for seq, record in records if isinstance(record, StreamEvent)]
    rows = tuple(_rows(operations, events, chosen, is_order=is_order, forms=forms))
    return Slice(
        low_ns=chosen.low_ns,
        high_ns=chosen.high_ns,
        first_ns=chosen.first_ns,
        last_ns=chosen.last_ns,
        operations=tuple(operations),
        events=tuple(events),
        numbers={row.name: row.number for row in rows},
        rows=rows,
        raw=tuple(_raw(seq, record, chosen) for seq, record in records),
        edn="\n".join(_cut(line) for line in edn_lines(record for _, record in records)),
        notes=chosen.notes,
        forms=forms,
    )


def first_moment(series: Series, finding: Finding) -> int | None:
    """The time of the last operation or event that makes the anomaly; None if the history has none of them."""
    ops = _present(_acting(finding), series.index)
    seqs = _present(finding.events, series.event_seq)
    return _extent(series, ops, seqs)[1] if len(ops) or len(seqs) else None


def _acting(finding: Finding) -> Sequence[int]:
    """The operations that make the anomaly: of a cycle its members, not those that only show an order of versions."""
    members = {step.source for step in finding.cycle}
    return [op for op in finding.ops if f"T{op}" in members] or finding.ops


def _present(numbers: Sequence[int], column: Int64s) -> Int64s:
    """The rows of those numbers that an ascending column contains."""
    if not len(column):
        return np.empty(0, np.int64)
    rows = np.minimum(np.searchsorted(column, numbers), len(column) - 1)
    present: Int64s = rows[column[rows] == np.asarray(numbers)]
    return present


def _extent(series: Series, ops: Int64s, seqs: Int64s) -> tuple[int, int]:
    ends = series.complete_ns[ops]
    times = np.concatenate((series.invoke_ns[ops], ends[ends < NEVER], series.event_ns[seqs]))
    return int(times.min()), int(times.max())


def _stretch(series: Series, first_ns: int, last_ns: int) -> tuple[int, int]:
    """The begin and end of the stretch of time to draw."""
    pads = [min(int(series.end_ns * share), PAD_MAX_NS) for share in SHARES]
    invoke_ns, ended_ns, event_ns = series.invoke_ns, series.ended_ns, series.event_ns
    for pad in pads:
        low_ns, high_ns = max(0, first_ns - pad), last_ns + pad
        # Each stretch is a part of the one before it, and so are its operations and events.
        is_inside = _are_open(invoke_ns, ended_ns, low_ns, high_ns)
        invoke_ns, ended_ns = invoke_ns[is_inside], ended_ns[is_inside]
        event_ns = event_ns[between(event_ns, low_ns, high_ns)]
        if len(invoke_ns) <= OPS_MAX and len(event_ns) <= EVENTS_MAX:
            return low_ns, max(high_ns, low_ns + 1)
    pad = max(pads[-1], (last_ns - first_ns) // 20, 1)
    return max(0, first_ns - pad), last_ns + pad


def _ops_in(series: Series, low_ns: int, high_ns: int) -> Int64s:
    """The operations that were open at some moment of the stretch. One without an end counts only if it began in it."""
    return series.index[_are_open(series.invoke_ns, series.ended_ns, low_ns, high_ns)]


def _are_open(invoke_ns: Int64s, ended_ns: Int64s, low_ns: int, high_ns: int) -> Bools:
    return (invoke_ns <= high_ns) & (ended_ns >= low_ns)


def _thinned(found: Int64s, marked: Int64s, most: int, what: str, notes: list[str]) -> tuple[int, ...]:
    """At most `most` records, evenly chosen, and all that are marked."""
    step = -(-len(found) // most)
    if step > 1:
        notes.append(
            f"Drawn here: one in {step} of the {len(found):,} {what} of this stretch, and all of the evidence."
        )
    kept = np.union1d(found[:: max(1, step)], marked)
    return tuple(kept.tolist())


def _rows(
    operations: Sequence[tuple[Invoke, Complete | None]],
    events: Sequence[tuple[int, StreamEvent]],
    chosen: Choice,
    *,
    is_order: bool,
    forms: Forms,
) -> Iterator[Row]:
    """The evidence in order of time; an operation's time is that of its answer."""
    found: list[tuple[int, str, str, str]] = []
    for invoke, complete in operations:
        if (name := f"op {invoke.index}") in chosen.marked:
            ns = invoke.time_ns if complete is None else complete.time_ns
            found.append((ns, name, _where(invoke, complete), operation_text(invoke, complete, forms)))
    for seq, event in events:
        if (name := f"event {seq}") in chosen.marked:
            found.append((event.time_ns, name, event.subscriber, event_text(event, forms)))
    for number, (ns, name, where, what) in enumerate(sorted(found, key=lambda each: each[0]), 1):
        anchor = _anchor(chosen, name)
        yield Row(number=number, name=name, when=moment(ns, is_order=is_order), where=where, what=what, anchor=anchor)


def _where(invoke: Invoke, complete: Complete | None) -> str:
    node = f" at {complete.node}" if complete is not None and complete.node else ""
    return f"client {invoke.process}{node}"


def operation_text(invoke: Invoke, complete: Complete | None, forms: Forms = PLAIN) -> str:
    """The operation as text: its steps, and its outcome."""
    mops = (complete.mops if complete is not None else None) or invoke.mops or ()
    done = "; ".join(mop_text(mop, forms) for mop in mops) if mops else f"{invoke.f} {short(invoke.value)}"
    if complete is None:
        return f"T{invoke.index}: {done}: never answered"
    place = ""
    if complete.commit_ts is not None:
        place = f", {forms.position(complete.commit_ts)}"
    why = f" ({short(complete.error)})" if complete.error else ""
    return f"T{invoke.index}: {done}: {'unknown' if complete.outcome == 'info' else complete.outcome}{place}{why}"


def mop_text(mop: MicroOp, forms: Forms = PLAIN) -> str:
    """A step of a transaction as a short text."""
    key = key_text(mop.key, forms) if mop.table is None else f"{mop.table}.{key_text(mop.key, forms)}"
    if mop.f == "r":
        return f"read {key}" + ("" if mop.value is None else f" = {short(mop.value, 32)}")
    return f"{'append' if mop.f == 'append' else 'write'} {short(mop.value, 24)} to {key}"


def event_text(event: StreamEvent, forms: Forms = PLAIN) -> str:
    """An event that a subscriber received, as text."""
    place = "" if event.position is None else f" at {forms.position(event.position)}"
    where = "" if event.span is None else f" on {event.span}"
    if event.kind == "watermark" and event.position is not None:
        return f"{forms.announced(event.position, event.subscriber)}{where}"
    if event.key is None and event.value is None:
        return f"{event.kind}{place}{where}"
    return f"{event.kind} {key_text(event.key, forms)}: {short(event.value, 32)}{place}{where}"


def key_text(key: Json, forms: Forms) -> str:
    """A key as sentences name it, shortened."""
    return forms.key(short(key, 24), is_number=type(key) is int)


def _anchor(chosen: Choice, name: str) -> str:
    return f"{chosen.prefix}-{name.replace(' ', '-')}"


def _raw(seq: int, record: Evidence, chosen: Choice) -> Raw:
    name = f"op {record.index}" if isinstance(record, Invoke) else f"event {seq}"
    anchor = _anchor(chosen, name) if name in chosen.marked and not isinstance(record, Complete) else None
    return Raw(seq=seq, text=_cut(json_line(record).decode()), anchor=anchor)


def _cut(text: str) -> str:
    text = visible(text[: LINE_MAX + 1])
    return text if len(text) <= LINE_MAX else f"{text[:LINE_MAX]} … cut here; history/ has it whole"
