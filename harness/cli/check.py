"""`seamark check`: judge a stored run, or a history from elsewhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from checkers.words import models
from harness.cli.output import print_report, standard_error
from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.judging.checks import CHECKS
from harness.judging.engines import EngineStart
from harness.judging.judge import Budget
from harness.record.formats.promise_file import Promised, read_promise_file
from harness.record.formats.streams.mapping import stream_format
from harness.record.store import run_at
from harness.report.model import Report
from harness.report.screen import plain
from harness.run.single import PAGE_FILE, NotStored, judge_foreign, judge_run, store_report, write_page

MODEL_HELP = (
    f"The consistency model to judge by. Default: as promised, else {models.DEFAULT}. One of "
    f"{', '.join(models.MODELS)}. Short names, such as SER, SI, RR, RC, are in docs/history-format.md."
)


def check(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    path: Annotated[
        Path, typer.Argument(help="A run's directory, or a history: EDN, JSON, a Jepsen log, JSON Lines, Parquet.")
    ],
    model: Annotated[
        str | None,
        typer.Option(help=MODEL_HELP),
    ] = None,
    promises: Annotated[
        Path | None, typer.Option(help="What was promised where the history was recorded: a promise file, in TOML.")
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(help="The file is a change stream alone: crdb, debezium, or a mapping file, in TOML."),
    ] = None,
    check_timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds for each check; one that takes longer is unknown.")
    ] = None,
    engine: Annotated[Literal["spark", "local"], typer.Option(help="What judges.")] = "spark",
    master: Annotated[str | None, typer.Option(help="A Spark cluster to judge on, spark://HOST:PORT.")] = None,
    remote: Annotated[str | None, typer.Option(help="A Spark Connect server to judge on, sc://HOST:PORT.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Where to write the page (of a stored run: as well as into its folder).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict and how to go on.")] = False,
) -> int:
    """Judge what was recorded, without running any of its code. The exit code is the verdict's."""
    _require_one_way(path, engine=engine, is_elsewhere=bool(master) + bool(remote), model=model)
    budget = Budget(check_s=check_timeout)
    run = run_at(path)
    _require_foreign(path, run, promises=promises, stream=stream, model=model)
    promised = None if promises is None else promises_in(promises)
    form = None if stream is None else stream_format(stream)
    with EngineStart(engine, master=master, remote=remote, is_warmed=False) as start:
        if run is not None:
            report = _of_run(run, start, html, model=model, budget=budget)
        else:
            report = judge_foreign(
                path,
                start.engine,
                model=model,
                budget=budget,
                promised=promised,
                stream=form,
                html=html,
                command=_command(path, model=model, promises=promises, stream=stream),
            )
        return print_report(report, as_json=as_json, is_quiet=quiet, page=html)


def _of_run(run: Path, start: EngineStart, html: Path | None, *, model: str | None, budget: Budget) -> Report:
    """The report on a stored run, which is written into its folder; its page goes to `html` as well.

    Of a store that takes nothing the report is shown all the same. Raises NotStored if that left no page for `html`.
    """
    report = judge_run(run, start.engine, model=model, budget=budget)
    try:
        store_report(run, report)
    except OSError as error:
        note = f"{run}: the report could not be stored ({error.strerror})"
        if html is not None:
            raise NotStored(f"{note}, nor its page written: copy the run") from None
        standard_error().print(plain(f"seamark: {note}"), soft_wrap=True)
        return report
    if html is not None:
        write_page(html, (run / PAGE_FILE).read_text(encoding="utf-8"))
    return report


def _require_one_way(path: Path, *, engine: str, is_elsewhere: int, model: str | None) -> None:
    """Raise ScenarioError unless there is a history to judge, a single engine, and a known model."""
    if not path.exists():
        raise ScenarioError(f"{path}: there is no such file or folder; seamark list shows the runs in the store")
    if engine == "local" and is_elsewhere:
        raise ScenarioError("--master and --remote are Spark's: leave out --engine local")
    if is_elsewhere > 1:
        raise ScenarioError("--master and --remote exclude each other: choose one")
    if model is not None:
        models.canonical(model)


def _require_foreign(
    path: Path, run: Path | None, *, promises: Path | None, stream: str | None, model: str | None
) -> None:
    """Raise ScenarioError if a run of ours is to be judged by other promises, or a stream by two contracts."""
    if promises is not None and run is not None:
        raise ScenarioError("--promises is for histories from elsewhere: a run has its promises in run.json")
    if stream is not None and (run is not None or path.is_dir()):
        raise ScenarioError("--stream is for one file with a stream from elsewhere; a run has its own contract")
    if stream is not None and (promises is not None or model is not None):
        raise ScenarioError("--stream judges by the contract of the stream: leave out --promises and --model")


def _command(path: Path, **options: Path | str | None) -> str:
    """The command that repeats this judgement, by the same promises."""
    words: list[object] = ["check", path]
    for name, value in options.items():
        words += [f"--{name}", value] if value is not None else []
    return seamark(*words)


def promises_in(path: Path) -> Promised:
    """The content of a promise file, checked against the anomalies that checks look for. Raises ScenarioError."""
    return read_promise_file(path, CHECKS)
