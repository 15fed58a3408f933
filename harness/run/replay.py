"""Repeats a simulated run and compares: the same history hash and unseed, or the first record that differs."""

import contextlib
from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from checkers.history.names import forms_of
from harness.core.errors import HistoryError, ScenarioError
from harness.core.record import Evidence, Footer, Header, Mark, Record
from harness.core.trace import SECOND, Window
from harness.record.journal import HistoryHash, end_after, is_stopped, read_journal
from harness.record.ownership import temporary_folder
from harness.record.store import HISTORY, JOURNAL, RUN_FILE, read_run_file, write_atomically
from harness.report.findings.messages import TRACE_FILE, TRACE_PAGE
from harness.report.model import read_report
from harness.report.trace import Traced, about, trace_page
from harness.run.live import LiveLine, Watcher
from harness.run.running import execute
from harness.scenario.consent import Code

CONTEXT_RECORDS = 10


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The point at which two runs of one seed diverge.

    `record` counts the evidence from 0; `first` or `second` is None at the end of a journal. At the next milestone,
    `nodes` differ in their count of handled events, and `streams` in their random position.
    """

    record: int
    first: Evidence | None
    second: Evidence | None
    before: tuple[Evidence, ...]
    nodes: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()


class Repetition(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a repetition. `difference` is None if every recorded record is the same.

    `killed_at` is the number of records in the journal of a run that was killed, which has no unseed.
    """

    history_sha256: str
    unseed: str | None
    difference: Difference | None = None
    unseed_before: str | None = None
    killed_at: int | None = None

    @property
    def is_exact(self) -> bool:
        """True if history and unseed are the same; of a killed run, if its history is the same as far as it goes."""
        return self.difference is None and (self.killed_at is not None or self.unseed == self.unseed_before)


def repeat(run: Path, code: Code, *, trace: Window | None = None, watcher: Watcher | None = None) -> Repetition:
    """Simulate the run in `run` again with that code, in a folder beside it, and compare.

    `trace` also traces that window into TRACE_FILE. `watcher` gets a line a few times per second.
    A run that was stopped at its first violation, or killed, is repeated and compared only as far as it was kept.
    Raises RunFailed if the simulation fails; the trace then ends there. Raises ScenarioError if the run ended before
    the window.
    """
    if trace is not None:
        _require_within(run, trace)
    with temporary_folder("again", run) as folder:
        again, traced = folder / JOURNAL, folder / TRACE_FILE
        try:
            _execute_alike(run, code, again, None if trace is None else (trace, traced), watcher)
        finally:
            if traced.exists():
                traced.replace(run / TRACE_FILE)
        return compare(run / JOURNAL, again)


def _execute_alike(
    run: Path, code: Code, again: Path, trace: tuple[Window, Path] | None, watcher: Watcher | None
) -> None:
    """Repeat the run. If it had been stopped, stop after as many records, with the same footer; if killed, after them.

    The journal of a killed run has no footer.
    """
    first, line = run / JOURNAL, LiveLine(again)
    last = next(iter(deque(read_journal(first), maxlen=1)), None)
    footer = last if isinstance(last, Footer) and is_stopped(last) else None
    is_part = footer is not None or not isinstance(last, Footer)
    size = first.stat().st_size

    def is_enough() -> bool:
        if watcher is not None:
            watcher.line(line.text(watcher.width))
        return is_part and trace is None and again.exists() and again.stat().st_size >= size

    execute(run, code, again, watch=is_enough, trace=trace)
    if footer is None:
        return
    kept = sum(not isinstance(record, Header | Footer) for record in read_journal(first))
    with contextlib.suppress(HistoryError):  # A shorter journal differs, and the comparison reports where.
        end_after(again, kept, footer)


def show_trace(run: Path, window: Window, repetition: Repetition) -> str:
    """Write the page of the trace that `repeat` left. Returns a sentence that says how much of it the page shows."""
    run_file = read_run_file(run / RUN_FILE)
    forms = forms_of(run_file.naming, run_file.stream, run_file.bounds)
    report = None
    with contextlib.suppress(HistoryError):
        report = read_report(run)
    traced = Traced(
        run=str(run),
        cluster=run_file.cluster,
        seed=run_file.seed,
        bugs=run_file.bugs,
        subscribers=run_file.subscribers,
        is_exact=repetition.is_exact,
        forms=forms,
        report=report,
        about=None if report is None else about(report, run / HISTORY, window, forms),
    )
    page = trace_page(run / TRACE_FILE, window, traced)
    write_atomically(run / TRACE_PAGE, page.html.encode("utf-8", "backslashreplace"))
    return page.shown


def _require_within(run: Path, window: Window) -> None:
    end_ns = max((_time_ns(record) for record in read_journal(run / JOURNAL)), default=0)
    if window.from_ns > end_ns:
        raise ScenarioError(f"--trace {window}: the run was over after {end_ns / SECOND:.3f} s")


def _time_ns(record: Record) -> int:
    return 0 if isinstance(record, Header) else record.time_ns


def compare(first: Path, second: Path) -> Repetition:
    """The comparison of two journals, record by record. If the first has no footer, its run was killed."""
    history_hash = HistoryHash()
    footers: list[Footer | None] = [None, None]
    before: deque[Evidence] = deque(maxlen=CONTEXT_RECORDS)
    pairs = zip_longest(_evidence(first, footers, 0), _evidence(second, footers, 1))
    difference: Difference | None = None
    recorded = 0
    for number, (one, other) in enumerate(pairs):
        recorded += one is not None
        if other is not None:
            history_hash.add(other)
        if difference is None:
            if one != other:
                difference = Difference(record=number, first=one, second=other, before=tuple(before))
            elif one is not None:
                before.append(one)
        if difference is not None and not (difference.nodes or difference.streams):
            difference = _with_culprits(difference, one, other)
    is_killed = footers[0] is None
    if is_killed and difference is not None and difference.first is None:
        difference = None  # The repetition goes on where the killed run could not.
    return Repetition(
        history_sha256=history_hash.hexdigest(),
        unseed=footers[1].unseed if footers[1] else None,
        unseed_before=footers[0].unseed if footers[0] else None,
        difference=difference,
        killed_at=recorded if is_killed else None,
    )


def _evidence(journal: Path, footers: list[Footer | None], place: int) -> Iterator[Evidence]:
    for record in read_journal(journal):
        if isinstance(record, Footer):
            footers[place] = record
        elif not isinstance(record, Header):
            yield record


def _with_culprits(difference: Difference, one: Evidence | None, other: Evidence | None) -> Difference:
    """The difference; if both records are milestones, with the nodes and streams whose counts differ."""
    if not (isinstance(one, Mark) and isinstance(other, Mark)):
        return difference
    return msgspec.structs.replace(
        difference, nodes=_differing(one.handled, other.handled), streams=_differing(one.streams, other.streams)
    )


def _differing(one: dict[str, int], other: dict[str, int]) -> tuple[str, ...]:
    return tuple(name for name in sorted(one | other) if one.get(name) != other.get(name))
