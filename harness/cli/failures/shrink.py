"""`seamark shrink`: makes a failing run small, and writes a test of it."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from harness.cli.output import print_json, resumable, watched
from harness.core.wording import counted
from harness.judging.engines import EngineStart
from harness.record.store import RUN_FILE, find_run, read_run_file
from harness.report.model import repetition
from harness.report.screen import say, suggest
from harness.run.live import Watcher
from harness.scenario.consent import consented
from harness.scenario.scenario import scenario_of
from harness.shrink.case import Size
from harness.shrink.regression import into_bank
from harness.shrink.shrink import PLAN_FILE, SCRIPT_FILE, Orders, Shrunk, lines, shrunk


def shrink(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    run: Annotated[Path, typer.Argument(help="A run's directory in the store, its run.json, or latest.")],
    finding: Annotated[
        str | None,
        typer.Option(help="The anomaly that must stay. Default: the first that breaks a promise."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="The file that the run's cluster is in, as a sign that it may be run.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many candidates at once. Default: one per core.")] = None,
    tries: Annotated[int, typer.Option(min=1, help="Try at most this many candidates.")] = 3000,
    times: Annotated[int, typer.Option(min=1, help="In containers: run each candidate this many times.")] = 3,
    rate: Annotated[
        float, typer.Option(min=0.01, max=1, help="In containers: the share of these runs that must show it.")
    ] = 0.6,
    bank: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Copy the test into this folder, which pytest collects.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the outcome only.")] = False,
) -> int:
    """Make a failing run small: the fewest faults, operations, keys and seconds that show the same finding.

    The result is a new run in the same store. Killed and called again, it goes on where it was.
    """
    folder = find_run(run)
    run_file = read_run_file(folder / RUN_FILE)
    is_sim = run_file.runtime == "sim"
    orders = Orders(
        run=folder,
        code=consented(scenario_of(run_file, folder / RUN_FILE).cluster, folder, cluster),
        symptom=finding,
        jobs=(jobs or len(os.sched_getaffinity(0))) if is_sim else 1,
        tries=tries,
        times=1 if is_sim else times,
        rate=1.0 if is_sim else rate,
    )
    with (
        resumable(f"the same command, on {folder}"),
        EngineStart("local") as start,
        watched(is_shown=not quiet) as watcher,
    ):
        done = shrunk(orders, start.engine_for, partial(_tell, watcher))
    done = done if bank is None else msgspec.structs.replace(done, test=str(into_bank(Path(done.test), bank)))
    if as_json:
        print_json(done)
    else:
        _show(Console(highlight=False), done, is_quiet=quiet)
    return 0


def _tell(watcher: Watcher | None, size: Size, count: int) -> None:
    """Show the progress."""
    if watcher is not None:
        left = f"{counted(size.steps, 'fault step')}, {counted(size.operations, 'operation')}, {size.seconds:g} s"
        watcher.line(f"  after {counted(count, 'try')}: {left}")


def _show(console: Console, done: Shrunk, *, is_quiet: bool) -> None:
    rows = [f"SHRUNK  {done.symptom}  in {counted(done.tries, 'try')}"]
    rows += [] if is_quiet else lines(done)
    if done.is_exhausted:
        rows.append(f"  stopped by --tries {done.tries}: with more it may get smaller, and goes on from here")
    run = Path(done.report.run or ".")
    if not is_quiet:
        rows += [f"  {finding.sentence}" for finding in done.report.findings if finding.symptom == done.symptom][:1]
        rows += [f"  read    {run / SCRIPT_FILE}", f"  plan    {run / PLAN_FILE}"]
    for row in rows:
        say(console, row)
    for label, text in (("open", run / "report.html"), ("test", done.test), ("again", repetition(done.report))):
        suggest(console, label, str(text))
