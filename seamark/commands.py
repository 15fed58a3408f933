"""The commands as functions. They print nothing, and raise SeamarkError where a command would exit with 4 or 64."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from checkers.own.check import Check
from checkers.own.model import Model, linearizable
from harness.cli.options import plan_file, run_options
from harness.core.errors import HistoryError, ScenarioError
from harness.judging.engines import EngineName, EngineStart
from harness.record.ownership import temporary_folder
from harness.record.store import find_run, list_runs
from harness.report.model import read_report
from harness.run.carry_out import carry_out
from harness.run.checking import Question, answer, answerable
from harness.run.running import prepare
from harness.scenario.consent import on_command_line
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from seamark.report import Report

AnyPath = str | os.PathLike[str]
Operations = Iterable[Mapping[str, object]]


def check(  # noqa: PLR0913  Each argument is an option of the command.
    history: AnyPath | Operations,
    *,
    model: str | Model | None = None,
    checks: Sequence[AnyPath | Check] = (),
    promises: AnyPath | None = None,
    initial: str | None = None,
    stream: str | None = None,
    key: str | None = None,
    html: AnyPath | None = None,
    timeout_s: float | None = None,
    engine: EngineName = "local",
) -> Report:
    """The report on a history: a path, as `seamark check` takes it, or operations as mappings, in Jepsen's format.

    `model` is a consistency model, or a model of your own, which alone is judged then. `checks` are checks of your own,
    or modules with such, as for `--checks`. `promises` is a promise file, `initial` the
    value of all registers at first, as JSON, or "first", `stream` the format of a change stream alone, `key` the key's
    columns where its lines have no key, `html` the path for the page, `timeout_s` the limit of each check. The new
    report on a stored run goes into the run's folder.
    Raises ScenarioError if the history cannot be judged by these options, HistoryError if it is malformed.
    """
    if html is not None and not isinstance(history, str | os.PathLike):
        raise ScenarioError("html is for a history in a file, which the page names: write the operations to one")
    with _in_file(history) as path:
        own = (linearizable(model),) if model is not None and not isinstance(model, str) else ()
        question = Question(
            path=path,
            model=model if isinstance(model, str) else None,
            promises=None if promises is None else Path(promises),
            initial=initial,
            stream=stream,
            key=key,
            html=None if html is None else Path(html),
            check_s=timeout_s,
            checks=tuple(os.fspath(each) for each in checks if not isinstance(each, Check)),
        )
        made = (*own, *(each for each in checks if isinstance(each, Check)))
        request = answerable(question, made, is_only=bool(own))
        with EngineStart(engine, first=request.question.path) as start:
            return Report.of(answer(request, start.engine_for, lambda note: warnings.warn(note, stacklevel=4)))


def run(
    scenario: Scenario | AnyPath,
    *,
    plan: AnyPath | None = None,
    model: str | None = None,
    engine: EngineName = "local",
    store: AnyPath = "store",
) -> Report:
    """Run a scenario under faults, keep it in the store, and judge it. Returns the report; `run` in it is the folder.

    `scenario` is a value, or a path to a scenario file or a run.json, of which `plan` and `model` override those named.
    A cluster in a file of yours is "path/to/file.py:Name"; scenario files may not name one, as they may come from
    anywhere. Raises ScenarioError if it cannot be carried out; the report of a run that fails halfway says so.
    """
    prescribed = None
    if isinstance(scenario, Scenario):
        code = on_command_line(scenario.cluster)
    else:
        options, code, prescribed = run_options(Path(scenario), {})
        if options.runs > 1:
            raise ScenarioError(f"{os.fspath(scenario)}: asks for {options.runs} runs, and this makes one: omit count")
        scenario, model = options.scenario(options.seed or 0), model or options.model
    prescribed = prescribed if plan is None else plan_file(Path(plan))
    folder, _ = prepare(scenario, code, Path(store), prescribed)
    with EngineStart(engine) as start:
        return Report.of(carry_out(folder, code, start.engine_for, model=model))


def repeat(
    case: str | Mapping[str, object],
    *,
    cluster: str | None = None,
    bugs: Sequence[str] = (),
    engine: EngineName = "local",
    store: AnyPath = "store",
) -> Report:
    """Carry out a case that `seamark shrink` wrote into a test, and judge it. Returns the report.

    A case is a scenario and a fault plan, as JSON or as the value that it decodes to. `cluster` and `bugs` replace
    those of the scenario; a cluster in a file of yours is "path/to/file.py:Name". Raises ScenarioError if `case` is no
    case.
    """
    try:
        parts = msgspec.json.decode(case) if isinstance(case, str) else case
        scenario = msgspec.convert(parts["scenario"], Scenario)
        prescribed = msgspec.convert(parts["plan"], Plan)
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise ScenarioError(f"a case has a scenario and a plan, as seamark shrink writes them ({error})") from None
    code = on_command_line(scenario.cluster if cluster is None else cluster)
    folder, _ = prepare(msgspec.structs.replace(scenario, bugs=tuple(bugs)), code, Path(store), prescribed)
    with EngineStart(engine) as start:
        return Report.of(carry_out(folder, code, start.engine_for))


def read(run: AnyPath) -> Report:
    """The stored report of a run, named by the run's folder, its run.json, or "latest". Nothing is judged again.

    Raises ScenarioError if there is no such run, HistoryError if it has not been judged or its report is malformed.
    """
    folder = find_run(Path(run))
    report = read_report(folder)
    if report is None:
        raise HistoryError(f"{folder}: has no report yet; seamark.check judges it")
    return Report.of(report)


def runs(store: AnyPath = "store") -> list[Path]:
    """The folders of all runs in a store, the latest first."""
    return list_runs(Path(store))


@contextmanager
def _in_file(history: AnyPath | Operations) -> Iterator[Path]:
    """The path of that history. Operations in memory are written to a temporary file."""
    if isinstance(history, str | os.PathLike):
        yield Path(history)
        return
    with temporary_folder("history") as folder:
        path = folder / "operations.json"
        try:
            path.write_bytes(msgspec.json.encode(list(history)))
        except TypeError as error:
            raise ScenarioError(f"operations are mappings of JSON values ({error})") from None
        yield path
