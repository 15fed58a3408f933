"""Judges one run, or one history from elsewhere, and stores the report: report.json, the page and JUnit."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from checkers.engine.memory import one_heap
from checkers.history.names import Forms
from harness.core.command import seamark
from harness.core.errors import HistoryError, ScenarioError, SeamarkError
from harness.core.record import UNSOUND, Footer
from harness.core.verdict import Verdict
from harness.judging.engines import EngineFailed, EngineFor
from harness.judging.images import declared_or_seen
from harness.judging.judge import Budget, Outlet, forms_declared, history_identity, judge
from harness.judging.table import table_of
from harness.record.formats.load import Loaded, load
from harness.record.formats.parquet.parquet import footer_of, is_history
from harness.record.formats.promise_file import Promised
from harness.record.formats.streams.line import StreamFormat
from harness.record.journal import is_stopped
from harness.record.ownership import temporary_folder
from harness.record.store import HISTORY, RUN_FILE, RunFile, began_utc, read_run_file, write_atomically
from harness.report.model import REPORT_FILE, Report, error_report, read_report, to_json
from harness.report.trouble import RUN_LOG, in_one_line
from harness.run.reading import reading
from harness.scenario.consent import Code, code_in_file
from harness.scenario.own_checks import Loadable

PAGE_FILE = "report.html"
PAGE_HEAD = b"<!doctype html>"
JUNIT_FILE = "junit.xml"
UNCONFIRMED = (Verdict.VALID.value, Verdict.VACUOUS.value)


class NotStored(SeamarkError):
    """The store could not take the report; the message summarizes the report."""


def judge_run(
    run: Path,
    engine: EngineFor,
    *,
    model: str | None = None,
    budget: Budget | None = None,
    failure: str | None = None,
    tell: Callable[[str], None] | None = None,
    code: Code | None = None,
    given: Sequence[Loadable] = (),
) -> Report:
    """The report on a run's records. `failure` is the reason why it did not complete; findings count all the same.

    Checks that its system brings are loaded with the consent of `code`, the run's cluster if that may be loaded, and of
    the command line, which names those `given`.

    An incomplete run is vacuous at best; a run in which the harness itself failed is an error at best, also when it is
    judged again: its earlier report has the `failure`. `tell` gets the name of the check at work.
    """
    run_file, before = read_run_file(run / RUN_FILE), _earlier(run)
    failure = failure or (None if before is None else before.failure)
    with temporary_folder("check") as elsewhere:  # Used if the store cannot be written.
        try:
            loaded = load(run, elsewhere)
            footer = footer_of(loaded.history)
            if footer is not None and is_stopped(footer):
                loaded = msgspec.structs.replace(loaded, notes=(*loaded.notes, footer.reason))
            if tell is not None:
                tell("judging: starting the engine")
            with _helped(seamark("check", run, "--engine", "local"), failure):
                report = judge(
                    loaded,
                    engine(loaded.history),
                    run_file=run_file,
                    model=model,
                    budget=budget,
                    failure=failure,
                    outlet=Outlet(log=run / RUN_LOG, tell=tell),
                    table=table_of(run_file, given, code),
                )
            sha256, unseed = history_identity(loaded.history)
            report = confirmed(report, footer)
        except HistoryError as error:
            if failure is None:
                raise
            report = error_report(f"{failure}; and the records cannot be judged: {error}")
        else:
            report = msgspec.structs.replace(report, history_sha256=sha256, unseed=unseed)
    took = {} if before is None else {name: took_s for name, took_s in before.seconds.items() if name == "run"}
    return _about(msgspec.structs.replace(report, failure=failure, seconds=took | report.seconds), run, run_file)


@contextlib.contextmanager
def _helped(again: str, failure: str | None = None) -> Iterator[None]:
    """Raises EngineFailed with `again`, the command that judges without Spark, if the engine does not start."""
    try:
        yield
    except EngineFailed as error:
        before = f"{failure}; and " if failure else ""
        raise EngineFailed(f"{before}{error}. Nothing is lost; without Spark: {again}") from None


def confirmed(report: Report, footer: Footer | None) -> Report:
    """The report of a run: an error if a fault was unsound, or if the run was stopped for a violation that it lacks.

    In the second case either the check at run time or the one afterwards is wrong.
    """
    is_unconfirmed = footer is not None and is_stopped(footer) and report.verdict in UNCONFIRMED
    if footer is None or not (is_unconfirmed or footer.reason.startswith(UNSOUND)):
        return report
    reason = f"{footer.reason}; the records show no finding" if is_unconfirmed else footer.reason
    error = Verdict.ERROR
    return msgspec.structs.replace(report, verdict=error.value, exit_code=error.exit_code, reason=reason, clause=None)


def judge_foreign(  # noqa: PLR0913  Each argument is an option of the command.
    path: Path,
    engine: EngineFor,
    *,
    model: str | None,
    budget: Budget,
    promised: Promised | None = None,
    stream: StreamFormat | None = None,
    more: Sequence[Path] = (),
    html: Path | None = None,
    initial: str | None = None,
    command: str,
    tell: Callable[[str], None] | None = None,
    given: Sequence[Loadable] = (),
    is_only: bool = False,
    is_hashed: bool = True,
) -> Report:
    """The report on a foreign history. Nothing is written beside the history; the page goes to `html`, if given.

    With `stream` it is a stream alone, which goes on in the files `more`, judged by the promises of that format.
    `command` repeats this judgement. `tell` gets the name of the check at work. `given` are the modules of checks that
    the command line names; with `is_only` they alone are asked. Without `is_hashed` the report may lack the history's
    hash. Raises ScenarioError if the page cannot be written.
    """
    one_heap()  # Before any thread: a thread's own heap would stay, and lose what it frees.
    with temporary_folder("check") as folder:
        with reading(path, tell):
            if stream is None:
                loaded = load(path, folder, is_hashed=is_hashed)
            else:
                loaded, promised = _loaded_stream(path, folder, stream, more, is_hashed=is_hashed)
        loaded = msgspec.structs.replace(loaded, source=path.name or loaded.source)
        with _helped(f"{command} --engine local"):
            table = table_of(None, given, is_only=is_only)
            report = judge(
                loaded,
                engine(loaded.history),
                promised=promised,
                model=model,
                budget=budget,
                initial=initial,
                outlet=Outlet(tell=tell),
                table=table,
            )
        sha256, _ = history_identity(loaded.history)
        report = msgspec.structs.replace(report, history_sha256=sha256)
        if html is not None:
            forms = forms_declared(promised, loaded.history)
            _write_page(html, report, loaded.history, source=str(path), command=command, forms=forms)
    return report


def _loaded_stream(
    path: Path, folder: Path, stream: StreamFormat, more: Sequence[Path], *, is_hashed: bool
) -> tuple[Loaded, Promised]:
    from harness.record.formats.streams.convert import load_stream  # noqa: PLC0415  It loads all rules of streams.

    return load_stream(path, folder, stream, more, is_hashed=is_hashed)


def _write_page(html: Path, report: Report, history: Path, *, source: str, command: str, forms: Forms) -> None:
    from harness.report.page import page  # noqa: PLC0415  A page has pictures; most checks draw none.

    write_page(html, page(report, history, source=source, command=command, forms=forms))


def require_page(path: Path) -> None:
    """Raise ScenarioError unless a page may be written there: a new file in an existing folder, or an earlier page."""
    try:
        if not path.exists():
            path.parent.stat()
            return
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(len(PAGE_HEAD))
            if head.lower() in {b"", PAGE_HEAD}:
                return
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
    raise ScenarioError(f"{path}: is there, and no page, so it is not overwritten; choose another place")


def write_page(path: Path, html: str) -> None:
    """Write a page to the path that the user chose. Raises ScenarioError if that fails."""
    try:
        write_atomically(path, encoded(html))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def store_report(run: Path, report: Report) -> Report:
    """Write report.json, report.html and junit.xml into the run's folder; returns the report."""
    from harness.report.junit import junit  # noqa: PLC0415  As above.

    history = run / HISTORY
    html = _page(run, report, history if is_history(history) else None)
    write_atomically(run / REPORT_FILE, to_json(report))
    write_atomically(run / JUNIT_FILE, junit([report], suite=report.cluster or "seamark"))
    write_atomically(run / PAGE_FILE, encoded(html))  # Rendering may fail: it comes before any writing.
    return report


def show_again(run: Path) -> None:
    """Write the page of a judged run again from the files now in its folder, such as a new trace."""
    report, history = read_report(run), run / HISTORY
    if report is not None:
        html = _page(run, report, history if is_history(history) else None)
        write_atomically(run / PAGE_FILE, encoded(html))


def _page(run: Path, report: Report, history: Path | None) -> str:
    """The page; without drawings if drawing fails, so that a bug there hides no finding."""
    from harness.report.page import page  # noqa: PLC0415  As above.

    run_file = read_run_file(run / RUN_FILE)
    try:
        return page(report, history, run_file)
    except Exception as error:  # noqa: BLE001  Whatever the error, the page without drawings reports it.
        return page(report, None, run_file, problem=f"Nothing is drawn: {in_one_line(error, run / RUN_LOG)}")


def encoded(html: str) -> bytes:
    """A page as the bytes of its file."""
    return html.encode("utf-8", "backslashreplace")


def _about(report: Report, run: Path, run_file: RunFile) -> Report:
    """The report, with the run's identity filled in."""
    return msgspec.structs.replace(
        report,
        run=str(run),
        cluster=run_file.cluster,
        code=code_in_file(run_file),
        runtime=run_file.runtime,
        seed=run_file.seed,
        bugs=run_file.bugs,
        sut=declared_or_seen(run_file, run),
        started_utc=began_utc(run),
    )


def _earlier(run: Path) -> Report | None:
    """The report of an earlier judgement, which alone has the run's duration and failure; None if it is unreadable."""
    with contextlib.suppress(HistoryError):  # A new report is about to replace it.
        return read_report(run)
    return None
