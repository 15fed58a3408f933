"""Other explanations of a finding that a reader may consider, each with the evidence that excludes it in this history.

Claims rest on the history alone. Explanations that it does not exclude are listed too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from checkers.columns.arrow import integers
from checkers.columns.index import codes
from harness.core.columns import NOTHING, READ
from harness.core.record import Complete, Invoke
from harness.record.formats.parquet.tables import read_table
from harness.record.store import RunFile
from harness.report.evidence import Slice
from harness.report.model import FindingRow, Report
from harness.report.pictures.scale import moment
from harness.report.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Another explanation, whether it is excluded, and why."""

    explanation: str
    is_excluded: bool
    because: str


@dataclass(frozen=True, slots=True)
class Writes:
    """The number of different values written to keys, and of those written more than once."""

    count: int = 0
    repeated: int = 0


def read_writes(history: Path) -> Writes:
    """The writes of a history. A value names its writer only if it was written once."""
    mops = read_table(history, "mops", ["table", "f", "key", "value"])
    written = mops.filter(pc.not_equal(mops["f"], int(READ)))
    tables = written["table"].combine_chunks().dictionary_encode().indices
    counts = np.bincount(codes(*(integers(each, NOTHING) for each in (tables, written["key"], written["value"]))))
    return Writes(len(counts), int(np.count_nonzero(counts > 1)))


def exclusions(
    report: Report, finding: FindingRow, found: Slice, *, series: Series, writes: Writes, run_file: RunFile | None
) -> tuple[Exclusion, ...]:
    """The other explanations of one finding."""
    return (
        *_duplicate_values(finding, writes),
        *_retries(series, run_file),
        *_unclear_answers(found),
        *_clocks(finding, series, run_file),
        *_reconnects(found),
        *_lateness(found, series),
        *_one_opinion(report, finding),
    )


def _duplicate_values(finding: FindingRow, writes: Writes) -> Iterator[Exclusion]:
    if finding.ops and writes.count:
        because = f"each of the {writes.count:,} values was written to its key once, so it names its writer"
        if writes.repeated:
            because = f"{writes.repeated:,} of {writes.count:,} values were written to their key more than once"
        yield Exclusion(
            explanation="Two writers wrote the same value", is_excluded=not writes.repeated, because=because
        )


def _retries(series: Series, run_file: RunFile | None) -> Iterator[Exclusion]:
    """The explanation by client retries, for our own runs only: foreign histories do not show their clients."""
    if run_file is not None and len(series.index):
        yield Exclusion(
            explanation="A client sent a request twice",
            is_excluded=True,
            because=f"each of the {len(series.index):,} operations was sent once and has one answer at most; what was "
            "sent again, is an operation of its own",
        )


def _unclear_answers(found: Slice) -> Iterator[Exclusion]:
    marked = [each for each in found.operations if f"op {each[0].index}" in found.numbers]
    if not marked:
        return
    unsure = [text for invoke, complete in marked if (text := _unsure(invoke, complete))]
    because = f"all {len(marked)} operations of the evidence were acknowledged"
    if unsure:
        because = f"the finding rests on how these are counted: {', '.join(unsure)}"
    elif len(marked) == 1:
        because = "the operation of the evidence was acknowledged"
    yield Exclusion(explanation="An unclear answer was misread", is_excluded=not unsure, because=because)


def _unsure(invoke: Invoke, complete: Complete | None) -> str | None:
    """The outcome of an operation that was not acknowledged, as text; None if it was."""
    name = f"T{invoke.index}"
    if complete is None:
        return f"{name} (never answered)"
    if complete.outcome == "ok":
        return None
    outcome = "unknown" if complete.outcome == "info" else "failed"
    return f"{name} ({outcome}: {complete.error})" if complete.error else f"{name} ({outcome})"


def _clocks(finding: FindingRow, series: Series, run_file: RunFile | None) -> Iterator[Exclusion]:
    explanation = "A clock was wrong"
    timed = [place for place, step in enumerate(finding.cycle, 1) if step.relation in ("realtime", "process")]
    if finding.cycle and not timed:
        yield Exclusion(explanation=explanation, is_excluded=True, because="no step of the proof compares times")
    elif timed:
        steps = f"step{'s' * (len(timed) > 1)} {', '.join(map(str, timed))}"
        because = f"{steps} of the proof: the order in which answers and calls were recorded, which no clock decides"
        yield Exclusion(explanation=explanation, is_excluded=True, because=because)
    elif run_file is not None and not series.is_order:
        is_steady = bool((np.diff(series.invoke_ns) >= 0).all())
        because = "all times come from the harness's one clock, which never ran back"
        if not is_steady:
            because = "the harness's clock ran back in this run"
        yield Exclusion(explanation=explanation, is_excluded=is_steady, because=because)


def _reconnects(found: Slice) -> Iterator[Exclusion]:
    marked = [event for seq, event in found.events if f"event {seq}" in found.numbers]
    sessions = list(dict.fromkeys((event.subscriber, event.session) for event in marked))
    if len(marked) > 1:
        because = f"all its events are of one connection, session {sessions[0][1]} of {sessions[0][0]}"
        if len(sessions) > 1:
            because = "its events are of " + ", ".join(f"session {number} of {name}" for name, number in sessions)
        yield Exclusion(
            explanation="A subscriber connected again in between", is_excluded=len(sessions) == 1, because=because
        )


def _lateness(found: Slice, series: Series) -> Iterator[Exclusion]:
    """The explanation by late replication, for evidence with final reads: those follow healing and settling."""
    final_ns = series.phases.get("final")
    marked = [invoke for invoke, _ in found.operations if f"op {invoke.index}" in found.numbers]
    if final_ns is not None and any(invoke.time_ns >= final_ns for invoke in marked):
        because = f"operations of the final phase show it, from {moment(final_ns)} on, when all faults had been healed"
        yield Exclusion(explanation="It was only late", is_excluded=True, because=because)


def _one_opinion(report: Report, finding: FindingRow) -> Iterator[Exclusion]:
    checks = _checks(report.findings, finding)
    if finding.promise is None:
        return
    because = f"the check {finding.checker} alone found this promise broken"
    if len(checks) > 1:
        because = f"{len(checks)} checks found it broken, each by separate rules: {', '.join(checks)}"
    yield Exclusion(explanation="One check is mistaken", is_excluded=len(checks) > 1, because=because)


def _checks(findings: Sequence[FindingRow], finding: FindingRow) -> list[str]:
    return list(dict.fromkeys(each.checker for each in findings if each.promise == finding.promise))
