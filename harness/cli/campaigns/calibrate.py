"""`seamark calibrate`: how soon the checks find each planted bug, and that they find nothing without one."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from harness.campaign.calibration.carry_out import calibrated
from harness.campaign.calibration.cells import Cell, Limits, cells_of
from harness.campaign.calibration.document import (
    CALIBRATION,
    CALIBRATION_FILE,
    Calibration,
    calibration_at,
    merged,
    worse,
)
from harness.campaign.calibration.rows import SCRIPTED
from harness.campaign.calibration.shown import PAGE_FILE, calibration_markdown, calibration_page, lines
from harness.campaign.spark_pool import require_cluster, spark_pool
from harness.cli.output import print_json, resumable, standard_error, watched
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.record.store import STORE, write_atomically
from harness.report.screen import plain
from harness.run.live import Watcher
from harness.run.single import encoded
from harness.scenario.left_open import ANY

PLANS = Path("tests/planted")


def calibrate(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    clusters: Annotated[list[str], typer.Argument(help="Clusters with planted bugs: see seamark clusters.")],
    bug: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this bug; may be repeated.")] = None,
    store: Annotated[Path, typer.Option(help="The folder in which its rows are kept.")] = STORE,
    workload: Annotated[str, typer.Option(help="The load of all runs. Default: any, by the seed.")] = ANY,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    time: Annotated[float, typer.Option(min=1, help="Seconds of load in each run.")] = 20.0,
    hits: Annotated[int, typer.Option(min=2, help="Runs that show a bug, of which no more are drawn.")] = 5,
    runs: Annotated[int, typer.Option(min=2, help="Runs after which a bug is given up.")] = 200,
    correct: Annotated[int, typer.Option(min=0, help="Runs without a bug.")] = 500,
    correct_in_containers: Annotated[
        int, typer.Option(min=0, help="The same for a cluster in containers, where runs take real time, one by one.")
    ] = 50,
    plans: Annotated[Path, typer.Option(help="Schedules of bugs that no seed shows: CLUSTER/BUG.json.")] = PLANS,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once. Default: all cores.")] = None,
    on: Annotated[
        str | None, typer.Option(metavar="SPARK", help="Simulate on this Spark cluster: spark://... or sc://...")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="JSON", help="An earlier one: exit with 4 if anything became worse.")
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="An earlier one: these clusters are written anew in it, its others stay."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/calibration.md and nothing else.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print calibration.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> int:
    """Measure how often, and by what, planted bugs are found. Runs that an earlier call made are not made again."""
    _require(plans, into, is_both=as_json and markdown)
    pool = None if on is None else partial(spark_pool, require_cluster(on))
    before = None if compare is None else calibration_at(compare)
    limits = Limits(
        hits=hits,
        runs=runs,
        correct=correct,
        correct_in_containers=correct_in_containers,
        time_s=time,
        workload=workload,
        seed=seed,
    )
    cells = cells_of(clusters, bug or (), limits, (folder := store / CALIBRATION) / "rows", plans)
    with resumable("the same command, which makes only the runs that are left"), watched(is_shown=not quiet) as watcher:
        outcome = calibrated(cells, limits, folder, partial(_tell, watcher), pool, jobs)
    _keep(outcome, folder, into)
    shown = print_json if as_json else _print_markdown if markdown else partial(_show, page=folder / PAGE_FILE)
    shown(outcome)
    return _compared(outcome, before)


def _require(plans: Path, into: Path | None, *, is_both: bool) -> None:
    """Raise ScenarioError if the options contradict each other, or name what is not there."""
    if is_both:
        raise ScenarioError("--json and --markdown both print one document: choose one")
    if plans != PLANS and not plans.is_dir():
        raise ScenarioError(f"--plans {plans}: there is no such folder; schedules are in it as CLUSTER/BUG.json")
    if into is not None:
        calibration_at(into)


def _keep(outcome: Calibration, folder: Path, into: Path | None) -> None:
    """Write the page and the document of a calibration, and its clusters into an earlier one."""
    write_atomically(folder / PAGE_FILE, encoded(calibration_page(outcome)))
    _write_json(folder / CALIBRATION_FILE, outcome)
    if into is not None:
        _write_json(into, merged(outcome, calibration_at(into)))


def _print_markdown(outcome: Calibration) -> None:
    sys.stdout.write(calibration_markdown(outcome))


def _show(outcome: Calibration, page: Path) -> None:
    console = Console(highlight=False)
    for line in (*lines(outcome), f"  open    {page}"):
        console.print(plain(line), soft_wrap=True)


def _tell(watcher: Watcher | None, cell: Cell, seed: int, verdict: str) -> None:
    """Show the progress of a cell."""
    if watcher is not None:
        made = f"{counted(len(cell.sample), 'run')}, {counted(sum(row.is_hit for row in cell.sample), 'hit')}"
        run = "its schedule" if seed == SCRIPTED else f"seed {seed}"
        watcher.line(f"  {cell.code.name} {cell.bug or 'correct'}  {run} {verdict}  {made}")


def _compared(outcome: Calibration, before: Calibration | None) -> int:
    """Print the cells that became worse. Returns the exit code: a false alarm counts even if it is not new."""
    problems = [] if before is None else worse(outcome, before)
    for problem in problems:
        standard_error().print(plain(f"  worse: {problem}", "bold red"), soft_wrap=True)
    return Verdict.ERROR.exit_code if problems or any(each.false_alarms for each in outcome.correct) else 0


def _write_json(path: Path, outcome: Calibration) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(outcome, order="sorted"), indent=1) + b"\n")
