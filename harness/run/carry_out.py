"""One run from its scenario to its report: simulate, write the history, judge, store the report."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.command import seamark
from harness.core.errors import SeamarkError
from harness.core.verdict import Verdict
from harness.judging.engines import EngineFor
from harness.judging.of_run import plan_sha256
from harness.record.store import HISTORY, JOURNAL, RUN_FILE, RunFile, read_run_file
from harness.report.findings.messages import window_of_first
from harness.report.model import WHERE, Report
from harness.report.trouble import RUN_LOG, in_one_line
from harness.run.live import LiveLine, Notes, Watcher, activity
from harness.run.replay import Repetition, repeat, show_trace
from harness.run.running import STDERR_LOG, execute, finish
from harness.run.single import NotStored, judge_run, show_again, store_report
from harness.run.stopping import FirstViolation
from harness.scenario.consent import Code

COLUMN = 44  # Width of the left column of a seed's choices, if the terminal is wide enough for two.


def carry_out(
    run: Path,
    code: Code,
    engine: EngineFor,
    *,
    model: str | None = None,
    is_twice: bool = False,
    is_fail_fast: bool = False,
    is_traced: bool = True,
    watcher: Watcher | None = None,
) -> Report:
    """Simulate and judge the prepared run in `run` with that code. The report includes failures on the way.

    `is_fail_fast` ends the run at the first violation in its streams. With `is_traced` a simulated run with a finding
    is repeated, to draw the messages around it. `watcher` gets a line a few times per second.
    """
    tell = activity(watcher)
    report = carried_out(
        run, code, engine, model=model, is_twice=is_twice, is_fail_fast=is_fail_fast, watcher=watcher, tell=tell
    )
    try:
        report = store_report(run, report)
    except OSError as error:
        verdict = f"the verdict was {Verdict(report.verdict).word}, {report.reason}"
        again = f"make room and judge again: {seamark('check', run)}"
        raise NotStored(f"{run}: the report could not be stored ({error.strerror}); {verdict}; {again}") from error
    if is_traced:
        _trace(run, code, report, tell)
    return report


def carried_out(  # noqa: PLR0913  Each argument is an option of some command.
    run: Path,
    code: Code,
    engine: EngineFor,
    *,
    model: str | None = None,
    is_twice: bool = False,
    is_fail_fast: bool = False,
    watcher: Watcher | None = None,
    tell: Callable[[str], None] | None = None,
    begin: Callable[[Path, Code], None] | None = None,
) -> Report:
    """Simulate and judge the prepared run in `run`, as `carry_out` does, but store no report.

    `begin`, if given, carries the run out instead of a child process; then no watcher can follow it.
    """
    started = time.monotonic()
    failure: str | None = None
    is_lasting = True
    try:
        if begin is None:
            _execute(run, code, is_fail_fast=is_fail_fast, watcher=watcher)
        else:
            begin(run, code)
        if tell is not None:
            tell("writing the history")
        is_lasting = False  # A history that cannot be written now is written when the run is judged again.
        finish(run)
        is_lasting = True
        if is_twice:
            failure = difference(repeat(run, code, watcher=watcher))
    except Exception as error:  # noqa: BLE001  Whatever the failure, the records so far are judged.
        failure = in_one_line(error, run / RUN_LOG)
    took_s = round(time.monotonic() - started, 3)
    report = judge_run(run, engine, model=model, failure=failure, tell=tell, code=code)
    kept = failure if is_lasting else None
    return msgspec.structs.replace(report, failure=kept, seconds={"run": took_s} | report.seconds)


def _trace(run: Path, code: Code, report: Report, tell: Callable[[str], None]) -> None:
    """Repeat a simulated run with a finding, and draw the messages around it. Nothing else depends on this."""
    with contextlib.suppress(SeamarkError, OSError):
        around = window_of_first(report, run / HISTORY)
        if around is not None:
            tell("repeating the run, for the finding's messages")
            show_trace(run, around, repeat(run, code, trace=around))
            show_again(run)


def _execute(run: Path, code: Code, *, is_fail_fast: bool, watcher: Watcher | None) -> None:
    """Carry out the run, with the watcher and the check for the first violation, if requested."""
    run_file = read_run_file(run / RUN_FILE)
    load_s = run_file.options.get("time_s")
    line = LiveLine(run / JOURNAL, load_s=float(load_s) if isinstance(load_s, int | float) else None)
    notes = Notes(run / STDERR_LOG)
    first = FirstViolation(run / JOURNAL, run_file) if is_fail_fast else None

    def watch() -> bool:
        if watcher is not None:
            for note in notes.read():
                watcher.note(note)
            watcher.line(line.text(watcher.width))
        return first is not None and first.look()

    execute(run, code, watch=None if watcher is None and first is None else watch)
    if first is not None:
        first.close()


def difference(repetition: Repetition) -> str | None:
    """The reason why a repetition was not exact, in one line; None if it was."""
    if repetition.is_exact:
        return None
    if repetition.difference is None:
        return "not repeatable: the same history, another unseed (disks or random streams differ)"
    found = repetition.difference
    if found.first is None:
        return f"not repeatable: the recorded journal ends before record {found.record}, the repetition goes on"
    if found.second is None:
        return f"not repeatable: the repetition ends before record {found.record} of the recorded journal"
    others = ", ".join((*found.nodes, *found.streams))
    return f"not repeatable: record {found.record} differs{f'; by the next second also {others}' if others else ''}"


def header(run: Path, run_file: RunFile) -> Iterator[tuple[str, str]]:
    """The lines printed before a run begins, as labels with their texts: the seed, then what is tested and how."""
    options = run_file.options
    first = f"{run_file.versions['seamark']}  {run_file.cluster} {WHERE[run_file.runtime]}  seed {run_file.seed}"
    yield "seamark ", first + (f"  planted: {', '.join(run_file.bugs)}" if run_file.bugs else "")
    load = f"{options['clients']} clients, {options['rate']:g} operations a second for {options['time_s']:g} s"
    yield "  load    ", f"{run_file.workload}: {load}"
    kinds = dict.fromkeys(step.package.replace("-", " ") for step in run_file.plan.steps)
    yield "  faults  ", ", ".join(kinds) or "none"
    yield "  kept in ", str(run)


def choices(run_file: RunFile, width: int = 2 * COLUMN) -> Iterator[str]:
    """The choices of a run's seed, in lines `width` columns wide."""
    drawn = [f"plan {plan_sha256(run_file)[:8]}", *(f"{name} {value}" for name, value in run_file.parameters.items())]
    drawn += [f"{name} {value}" for name, value in run_file.plan.drawn.items()]
    yield from _columns(drawn, min(COLUMN, width // 2))


def _columns(texts: Sequence[str], column: int) -> Iterator[str]:
    """The texts in two columns of `column` characters; a text too wide for its column gets its own line."""
    waiting: str | None = None
    for text in texts:
        if waiting is not None and len(text) < column:
            yield f"  {waiting:<{column}}{text}"
            waiting = None
            continue
        if waiting is not None:
            yield f"  {waiting}"
            waiting = None
        if len(text) < column:
            waiting = text
        else:
            yield f"  {text}"
    if waiting is not None:
        yield f"  {waiting}"
