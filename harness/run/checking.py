"""Judges a path, a run or a foreign history, by the given model, promises or contract."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers.history.registers import ORDER, declared_initial
from checkers.own.check import Check
from checkers.words import models
from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.judging.engines import EngineFor
from harness.judging.judge import Budget
from harness.judging.table import table_of
from harness.record.formats.load import is_history_file, require_present
from harness.record.formats.promise_file import Promised, read_promise_file
from harness.record.formats.streams.line import StreamFormat
from harness.record.store import or_latest, run_at
from harness.report.model import Report
from harness.run.single import (
    PAGE_FILE,
    NotStored,
    judge_foreign,
    judge_run,
    require_page,
    store_report,
    write_page,
)
from harness.scenario.own_checks import Loadable, Made, on_command_line

CHECK_S_MAX: Final = 1_000_000_000  # Some 30 years: threads wait no longer than 292.


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A path to judge, and the model, promises or stream format to judge it by.

    `more` are the files in which a stream goes on; `key` names the key's columns in a stream whose lines have no key,
    `html` is the path of the page to write,
    `initial` the initial value of registers ("first" or JSON), `check_s` the limit of each check in seconds, and
    `checks` modules of checks that may be loaded: files, or installed ones. Without `is_hashed`, and without a page,
    the report may lack the hash of the history.
    """

    path: Path
    more: tuple[Path, ...] = ()
    model: str | None = None
    promises: Path | None = None
    stream: str | None = None
    key: str | None = None
    html: Path | None = None
    initial: str | None = None
    check_s: float | None = None
    checks: tuple[str, ...] = ()
    is_hashed: bool = True


class Answerable(msgspec.Struct, frozen=True, kw_only=True):
    """A question whose files have been read. `run` is the run's folder; None for a history from elsewhere."""

    question: Question
    run: Path | None
    promised: Promised | None
    form: StreamFormat | None
    given: tuple[Loadable, ...] = ()
    is_only: bool = False


def answerable(question: Question, made: Sequence[Check] = (), *, is_only: bool = False) -> Answerable:
    """The question with its files read. `made` are checks from Python; with `is_only` nothing else is asked.

    Raises ScenarioError unless it can be answered, HistoryError if the run is malformed.
    """
    path = or_latest(question.path)
    question = msgspec.structs.replace(question, path=path)
    require_present(path)
    if question.model is not None:
        models.decided(question.model)
    if question.check_s is not None and not 0 < question.check_s <= CHECK_S_MAX:
        raise ScenarioError(f"the limit of a check is {question.check_s} s: it must be above 0, at most {CHECK_S_MAX}")
    if question.html is not None:
        require_page(question.html)
    run = run_at(path)
    _require_foreign(question, run)
    _require_known(question, run)
    named = tuple(map(on_command_line, question.checks))
    given: tuple[Loadable, ...] = (*named, Made(tuple(made))) if made else named
    return Answerable(
        question=question,
        run=run,
        promised=None if question.promises is None else promises_in(question.promises, given),
        form=None if question.stream is None else _format(question.stream, question.key),
        given=given,
        is_only=is_only,
    )


def _format(name: str, key: str | None) -> StreamFormat:
    from harness.record.formats.streams.mappings.known import stream_format  # noqa: PLC0415  Few files are streams alone.

    return stream_format(name, key)


def answer(
    ready: Answerable,
    engine: EngineFor,
    warn: Callable[[str], None],
    tell: Callable[[str], None] | None = None,
) -> Report:
    """The report. That on a stored run is written into its folder.

    `warn` gets the reason if the store cannot be written, `tell` the name of the check at work.

    Raises NotStored if that left no page for `html`.
    """
    question = ready.question
    if ready.run is not None:
        return _of_run(ready.run, ready, engine, warn, tell)
    return judge_foreign(
        question.path,
        engine,
        model=question.model,
        budget=Budget(check_s=question.check_s),
        promised=ready.promised,
        stream=ready.form,
        more=question.more,
        html=question.html,
        initial=question.initial,
        command=command_of(question, question.path),
        tell=tell,
        given=ready.given,
        is_only=ready.is_only,
        is_hashed=question.is_hashed or question.html is not None,
    )


def promises_in(path: Path, given: Sequence[Loadable] = ()) -> Promised:
    """The content of a promise file, checked against the anomalies that checks look for, those in `given` as well.

    Raises ScenarioError.
    """
    return read_promise_file(path, table_of(None, given).checks)


def _of_run(
    run: Path,
    ready: Answerable,
    engine: EngineFor,
    warn: Callable[[str], None],
    tell: Callable[[str], None] | None,
) -> Report:
    """The report on a stored run. It is written into the run's folder, and its page to `html` as well."""
    question, given = ready.question, ready.given
    budget = Budget(check_s=question.check_s)
    report = judge_run(run, engine, model=question.model, budget=budget, tell=tell, given=given)
    try:
        store_report(run, report)
    except OSError as error:
        note = f"{run}: the report could not be stored ({error.strerror})"
        if question.html is not None:
            raise NotStored(f"{note}, nor its page written: copy the run") from None
        warn(note)
        return report
    if question.html is not None:
        write_page(question.html, (run / PAGE_FILE).read_text(encoding="utf-8"))
    return report


def _require_foreign(question: Question, run: Path | None) -> None:
    """Raise ScenarioError if the question gives a run of ours other promises, or a stream two contracts."""
    if question.promises is not None and run is not None:
        raise ScenarioError("--promises is for histories from elsewhere: a run has its promises in run.json")
    if question.initial is not None and run is not None:
        raise ScenarioError("--initial is for histories from elsewhere: registers of a run hold nothing at first")
    if question.initial is not None:
        declared_initial(ORDER, question.initial)
    if question.stream is None:
        if question.key is not None:
            raise ScenarioError("--key names the key's columns of a stream: write --stream")
        if question.more:
            raise ScenarioError("several files are one input only if they are one stream: write --stream")
        return
    if run is not None or question.path.is_dir():
        raise ScenarioError("--stream is for one file with a stream from elsewhere; a run has its own contract")
    if question.promises is not None or question.model is not None:
        raise ScenarioError("--stream judges by the contract of the stream: leave out --promises and --model")


def _require_known(question: Question, run: Path | None) -> None:
    """Raise ScenarioError, with the format's name, if the file is a stream that was not called one."""
    path = question.path
    if question.stream is not None or run is not None or not path.is_file() or is_history_file(path):
        return
    from harness.record.formats.streams.lines import first_lines  # noqa: PLC0415  As above.
    from harness.record.formats.streams.mappings.known import hint  # noqa: PLC0415

    if (advice := hint(first_lines(path))) is not None:
        raise ScenarioError(f"{path}: {advice}")


def command_of(question: Question, path: Path) -> str:
    """The command that judges the history at `path` by the question's options."""
    options = {
        "model": question.model,
        "promises": question.promises,
        "initial": question.initial,
        "stream": question.stream,
        "key": question.key,
    }
    words: list[object] = ["check", path, *question.more]
    for name, value in (*options.items(), *(("checks", each) for each in question.checks)):
        words += [f"--{name}", value] if value is not None else []
    return seamark(*words)
