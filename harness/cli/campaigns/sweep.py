"""`seamark sweep`: a matrix of runs with one verdict, resumable."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from checkers.verdict.titles import title
from harness.campaign.config import Config, read_config
from harness.campaign.document import SWEEP_FILE, Sweep, SweepFinding
from harness.campaign.files import reports_as_one, store_sweep
from harness.campaign.judgement import shares
from harness.campaign.ledger.rows import Row, final_rows
from harness.campaign.page import PAGE_FILE, sweep_summary
from harness.campaign.spark_pool import require_cluster, spark_pool
from harness.campaign.sweep import Begun, begin, carry_out, resumed
from harness.campaign.way_out import way_out
from harness.cli.output import print_json, resumable, standard_error, tell_github, watched
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.record.store import STORE
from harness.report.model import Report
from harness.report.screen import STYLES, plain, say, suggest
from harness.run.live import Watcher
from harness.scenario.hand import at_hand
from harness.scenario.sut import sut_of

SUT_HELP = "The release under test: name, version, commit or image; may be repeated."
QUIETLY = (Verdict.VALID.value, Verdict.VACUOUS.value)  # A run with one of these verdicts gets no line of its own.
RED_SHOWN = 20  # The most red runs whose command is on the screen.
SHOWN = 8  # The most classes of findings on the screen.


def sweep(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file with a matrix of runs: see docs/sweeps.md.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The first seed, instead of the file's.")] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py:NAME", help="Code in a file that the config may name; may be repeated."),
    ] = None,
    sut: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=SUT_HELP)] = None,
    store: Annotated[Path, typer.Option(help="The folder in which runs and sweeps are kept.")] = STORE,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once. Default: all cores.")] = None,
    on: Annotated[
        str | None, typer.Option(metavar="SPARK", help="Simulate on this Spark cluster: spark://... or sc://...")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="SWEEP", help="Go on with the sweep in that folder, or with the latest.")
    ] = None,
    runtime: Annotated[
        str | None, typer.Option(metavar="docker", help="With --resume: its runs may start containers.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print sweep.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict and how to go on.")] = False,
) -> int:
    """Carry out a matrix of runs, and judge it as a whole. The exit code is the verdict's."""
    pool = None if on is None else partial(spark_pool, require_cluster(on))
    if runtime not in {None, "docker"} or (runtime is not None and resume is None):
        raise ScenarioError("--runtime docker confirms that --resume may start containers; else the config names them")
    begun = _begun(
        config,
        resume,
        store,
        seed=seed,
        allowed=cluster or (),
        is_away=on is not None,
        may_start_containers=runtime is not None,
        sut=sut_of(sut),
    )
    screen = standard_error() if as_json else Console(highlight=False)
    if not quiet:
        left = f"  resumed {begun.folder}" if resume is not None else f"  {begun.folder}"
        last = begun.config.seed + max(cell.count for cell in begun.config.cells) - 1
        count = f"{counted(begun.config.planned, 'run')} in {counted(len(begun.config.cells), 'cell')}"
        say(screen, f"seamark  sweep {begun.config.name}  {count}  seeds {begun.config.seed} to {last}{left}")
    with resumable(begun.resumption), watched(is_shown=not quiet) as watcher:
        outcome, rows = carry_out(begun, _Audience(watcher), pool, jobs)
    store_sweep(begun, outcome, rows)
    return _print(begun, outcome, rows, as_json=as_json)


def _begun(
    path: Path | None,
    resume: Path | None,
    store: Path,
    *,
    seed: int | None,
    allowed: Sequence[str],
    is_away: bool,
    may_start_containers: bool,
    sut: Mapping[str, str],
) -> Begun:
    """The sweep to carry out. Raises ScenarioError unless exactly one is named."""
    if resume is not None and (path is not None or seed is not None or sut):
        raise ScenarioError("--resume goes on with what its folder says: leave out the config, --seed and --sut")
    if is_away and allowed:
        raise ScenarioError("--on: the code of a cluster in a file does not travel; leave --on or --cluster out")
    if resume is not None:
        return resumed(resume, store, allowed, may_start_containers=may_start_containers)
    if path is None:
        raise ScenarioError("which sweep? Name a config, as in seamark sweep nightly.toml, or --resume latest")
    return begin(read_config(path, seed=seed, allowed=allowed, sut=sut), store)


class _Audience:
    """A display on a terminal: a lasting line for each run with a finding, and one line that changes for all."""

    def __init__(self, watcher: Watcher | None) -> None:
        self._watcher = watcher

    def progress(self, config: Config, rows: Sequence[Row]) -> None:
        if self._watcher is not None and rows:
            final = final_rows(rows)
            so_far = shares([row.report for row in final])
            share = len(final) / config.planned
            left = f"about {rows[-1].elapsed_s * (1 - share) / share:.0f} s left" if final else "no run has ended"
            made = f"{len(final):,} of {config.planned:,} runs"
            self._watcher.line(f"  {share:.0%}  {made}  {rows[-1].elapsed_s:.0f} s, {left}  {so_far}")

    def row(self, config: Config, row: Row) -> None:
        report = row.report
        if self._watcher is not None and report.verdict not in QUIETLY:
            again = "" if row.is_final else "  (tried again)"
            where, word = f"{config.cells[row.cell].title}  seed {row.seed}", Verdict(report.verdict).word
            self._watcher.note(f"{where}  {word}  {report.reason}{again}")


def _print(begun: Begun, sweep: Sweep, rows: Sequence[Row], *, as_json: bool) -> int:
    """Show the outcome of a sweep; returns its exit code."""
    tell_github(_failed_reports(begun, sweep, rows), lambda: sweep_summary(sweep), as_json=as_json)
    if as_json:
        print_json(sweep)
        return sweep.exit_code
    console = Console(highlight=False)
    shown = sweep.findings[:SHOWN]
    clusters = {each.cluster for each in sweep.findings}
    for each in shown:
        seen = f"in {each.runs:,} of {counted(each.judged, 'run')}"
        seen += f" of {each.cluster}" if len(clusters) > 1 else ""
        line = f"  {mark_of(each):<10}{title(each.anomaly)}  {seen}  {each.promise or ''}"
        say(console, line)
    word = plain(Verdict(sweep.verdict).word, STYLES[sweep.verdict])
    say(console, word + plain(f"  {sweep.reason} (exit {sweep.exit_code})"), is_whole=True)
    change = way_out(sweep)
    if change is not None:
        say(console, change.sentence, "  ")
    suggest(console, "open", str(begun.folder / PAGE_FILE))
    seeds = Counter(red.seed for red in sweep.red)
    for red in sweep.red[:RED_SHOWN]:
        which = f", {red.workload}" if seeds[red.seed] > 1 else ""
        suggest(console, f"seed {red.seed}{which}", at_hand(red.command, begun.config.in_files))
    if len(sweep.red) > RED_SHOWN:
        say(console, f"and {len(sweep.red) - RED_SHOWN} more red runs in {begun.folder / SWEEP_FILE}", "  ")
    if sweep.runs < sweep.planned:
        suggest(console, "go on", begun.resumption)
    return sweep.exit_code


def mark_of(finding: SweepFinding) -> str:
    """The word before a finding: PERMITTED if it breaks no promise, so that nobody takes it for a failure."""
    if finding.promise is None:
        return "PERMITTED"
    return "NEW" if finding.is_new else "ONGOING"


def _failed_reports(begun: Begun, sweep: Sweep, rows: Sequence[Row]) -> list[Report]:
    """The reports for annotations. If no single run explains the verdict, one report says what the sweep lacks."""
    reports = reports_as_one(begun.order.design, sweep, rows)
    if sweep.exit_code and all(report.verdict != sweep.verdict for report in reports):
        lacking = Report(verdict=sweep.verdict, exit_code=sweep.exit_code, reason=sweep.reason)
        return [*reports, lacking]
    return reports
