"""`seamark check`: judge a stored run, or a foreign history."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from checkers.words import models
from harness.cli.histories.several import STANDARD_INPUT, inputs, is_one, judge_each, standard_input
from harness.cli.histories.smaller import Files, require_history, show_small, small_history, suggest_small, write_cycle
from harness.cli.output import print_report, standard_error, watched
from harness.core.errors import ScenarioError
from harness.judging.engines import HELP, EngineName, EngineStart
from harness.record.formats.streams.mappings.names import names
from harness.report.console.terminal import Amount
from harness.report.model import Report
from harness.report.screen import say
from harness.run.checking import CHECK_S_MAX, Question, answer, answerable
from harness.run.live import activity

MODEL_HELP = f"The consistency model to judge by, of those below. Default: as promised, else {models.DEFAULT}."
PATHS_HELP = (
    "A run's directory, latest, a history (EDN, JSON, Jepsen log, JSON Lines, Parquet), - for standard input, or "
    "several of these, or folders with them: one line each, and the worst decides. "
    "With --stream, several files are one stream."
)
INITIAL_HELP = "The value of all registers before the history, as JSON; or first: the first transaction wrote it."
STREAM_HELP = f"The file is a change stream alone: {', '.join(names())}, or a mapping file, in TOML."
KEY_HELP = "With --stream: the columns of the key, such as tenant,id, where lines have no key."
SUGGEST_HELP = "Print a mapping file for a stream, from its first lines; that of a known format, to change it."
EXPLAIN_HELP = "With --stream: print the first ten events as they are understood, and judge nothing."
SHRINK_HELP = "Write the smallest part of a history from elsewhere that still has its finding, as .edn or .jsonl."
CYCLE_HELP = "Write the cycle of the first finding that has one as a graph in DOT, for Graphviz."
CHECKS_HELP = "A module with checks that may be loaded: path/to/file.py, or an installed one by its name."


def check(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help=PATHS_HELP)],
    model: Annotated[str | None, typer.Option(help=MODEL_HELP)] = None,
    promises: Annotated[
        Path | None, typer.Option(help="A promise file (TOML): the guarantees of the system that recorded the history.")
    ] = None,
    initial: Annotated[str | None, typer.Option(help=INITIAL_HELP)] = None,
    stream: Annotated[str | None, typer.Option(help=STREAM_HELP)] = None,
    key: Annotated[str | None, typer.Option(help=KEY_HELP)] = None,
    suggest: Annotated[bool, typer.Option("--suggest", help=SUGGEST_HELP)] = False,
    explain: Annotated[bool, typer.Option("--explain", help=EXPLAIN_HELP)] = False,
    checks: Annotated[list[str] | None, typer.Option(help=CHECKS_HELP)] = None,
    check_timeout: Annotated[
        float | None,
        typer.Option(min=0.001, max=CHECK_S_MAX, help="Seconds for each check; one that takes longer is unknown."),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help=HELP)] = "auto",
    master: Annotated[str | None, typer.Option(help="A Spark cluster to judge on, spark://HOST:PORT.")] = None,
    remote: Annotated[str | None, typer.Option(help="A Spark Connect server to judge on, sc://HOST:PORT.")] = None,
    shrink: Annotated[Path | None, typer.Option(metavar="FILE", help=SHRINK_HELP)] = None,
    cycle: Annotated[Path | None, typer.Option(metavar="FILE", help=CYCLE_HELP)] = None,
    html: Annotated[Path | None, typer.Option(help="Where to write the page; a run keeps its own as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict and how to go on.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print all tables.")] = False,
) -> int:
    """Judge what was recorded, without running any of its code. The exit code is the verdict's."""
    if suggest or explain:
        return _understood(paths[0], stream, key, is_suggestion=suggest)
    _require_one_place(engine, is_elsewhere=bool(master) + bool(remote))
    question = Question(
        path=paths[0],
        model=model,
        promises=promises,
        stream=stream,
        key=key,
        html=html,
        initial=initial,
        check_s=check_timeout,
        checks=tuple(checks or ()),
    )
    start = partial(EngineStart, engine, master=master, remote=remote)
    files = Files(shrink, cycle)
    files.require(paths)
    if stream is not None:
        question = msgspec.structs.replace(question, more=tuple(paths[1:]))
        paths = paths[:1]
    if not is_one(paths):
        return _several(paths, question, start, as_json=as_json)
    return _one(paths[0], question, start, files, as_json=as_json, amount=Amount(is_quiet=quiet, is_verbose=verbose))


def _one(
    path: Path,
    question: Question,
    start: Callable[..., EngineStart],
    files: Files,
    *,
    as_json: bool,
    amount: Amount,
) -> int:
    """Judge the history at `path`, and write the other files that were asked for. Returns the exit code."""
    console = standard_error() if as_json else Console(highlight=False)
    with standard_input(path) as copy:
        ready = answerable(msgspec.structs.replace(question, path=copy, is_hashed=as_json))
        if files.small is not None:
            require_history(ready)
        with start(first=ready.question.path) as started:
            with watched(is_shown=not amount.is_quiet) as watcher:
                report = answer(ready, started.engine_for, _warn, activity(watcher))
            code = print_report(report, as_json=as_json, amount=amount, page=question.html)
            if files.cycle is not None:
                write_cycle(report, files.cycle, console)
            if files.small is not None:
                with watched(is_shown=not amount.is_quiet) as watcher:
                    made = small_history(ready, report, files.small, started.engine_for, activity(watcher))
                show_small(made, files.small, ready, console)
            elif not as_json and path != STANDARD_INPUT:
                suggest_small(ready, report, console)
            return code


def _several(paths: Sequence[Path], question: Question, start: Callable[..., EngineStart], *, as_json: bool) -> int:
    """Judge the histories that the paths name by the same options, one line each. Returns the exit code."""
    if question.html is not None:
        raise ScenarioError("--html is the page of one history: name one")

    def judged(path: Path) -> Report:
        with standard_input(path) as copy:
            ready = answerable(msgspec.structs.replace(question, path=copy, is_hashed=as_json))
            return answer(ready, started.engine_for, _warn)

    with start() as started:
        return judge_each(inputs(paths), judged, as_json=as_json)


def _understood(path: Path, stream: str | None, key: str | None, *, is_suggestion: bool) -> int:
    from harness.cli.histories.understood import show_mapping  # noqa: PLC0415  It judges nothing.

    return show_mapping(path, stream, key, is_suggestion=is_suggestion)


def _warn(note: str) -> None:
    say(standard_error(), f"seamark: {note}", is_whole=True)


def _require_one_place(engine: str, *, is_elsewhere: int) -> None:
    """Raise ScenarioError if the options name more than one place to judge in."""
    if engine == "local" and is_elsewhere:
        raise ScenarioError("--master and --remote are Spark's: leave out --engine local")
    if is_elsewhere > 1:
        raise ScenarioError("--master and --remote exclude each other: choose one")
