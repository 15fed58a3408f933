"""`seamark hunt`: searches for a new finding, guided by states that no run before had reached, and shrinks it."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from harness.campaign.evidence import evidence_at
from harness.cli.options import run_options
from harness.cli.output import print_json, resumable, standard_error, watched
from harness.cli.run import FAULTS_HELP, SEED_MAX
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.hunt.document import Hunt, Trophy, file_of, hunt_of, hunt_to_json
from harness.hunt.page import PAGE_FILE, hunt_page
from harness.hunt.search import Begun, Limits, Result, begin, carry_out, resumed
from harness.hunt.trophy import brought_home, made_small
from harness.judging.engines import EngineStart
from harness.record.store import STORE, write_atomically
from harness.report.screen import STYLES, plain, say, suggest
from harness.run.live import Watcher
from harness.run.single import encoded
from harness.scenario.left_open import ANY
from harness.shrink.case import Size
from harness.shrink.regression import into_bank
from harness.shrink.shrink import SCRIPT_FILE

RUNS = 1000  # The most runs, unless the command names another number.
SECONDS = 8.0  # Seconds of load in each run: many short runs reach more than few long ones.
RECENT = 20  # The number of latest runs whose new features the progress line counts.


def hunt(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario file (TOML or JSON): see seamark run. Faults and seeds vary.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="The system under test: see seamark clusters.")] = None,
    workload: Annotated[str | None, typer.Option(help="The load: see seamark clusters. Default: any.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides what is tried. Default: a new one.")] = None,
    time: Annotated[float | None, typer.Option(help="Seconds of load in each run. Default: 8.")] = None,
    rate: Annotated[float | None, typer.Option(help="Operations a second, at least. Default: 100.")] = None,
    nemesis: Annotated[str | None, typer.Option(help=FAULTS_HELP)] = None,
    bug: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Plant this bug; may be repeated.")] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the cluster.")] = None,
    is_at_points: Annotated[bool, typer.Option("--points", help="Begin with each fault at each failpoint.")] = False,
    known: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A known anomaly, symptom or fingerprint.")
    ] = None,
    baseline: Annotated[Path | None, typer.Option(metavar="SWEEP", help="Its findings are known.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Give up after this many runs. Default: 1,000.")] = None,
    time_budget: Annotated[float | None, typer.Option(min=1, help="Begin no run after this many seconds.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once. Default: all cores.")] = None,
    is_shrinking: Annotated[bool, typer.Option("--shrink/--no-shrink", help="Make what is found small.")] = True,
    bank: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Copy the test into this folder, which pytest collects.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="HUNT", help="Go on with the hunt in that folder, or with the latest.")
    ] = None,
    store: Annotated[Path, typer.Option(help="The folder in which runs and hunts are kept.")] = STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print hunt.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict and how to go on.")] = False,
) -> int:
    """Search seeds, parameters and fault plans for a finding that is not known, and shrink it.

    The exit code is 1 if there is one. Killed and called again with --resume, it goes on where it was.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    given: dict[str, Any] = {"workload": workload, "seed": seed, "time": time, "rate": rate, "nemesis": nemesis}
    given |= {"bug": bug, "option": option}
    if resume is None:
        of_hunt = {"known": (*(known or ()), *_fingerprints(baseline)), "is_at_points": is_at_points, "jobs": jobs}
        of_hunt["limits"] = Limits(runs=count or RUNS, seconds=time_budget)
        begun = _begun(scenario, {"cluster": cluster} | given, store, of_hunt)
    else:
        described = [scenario, known, baseline, is_at_points or None, *given.values()]
        begun = _resumed(resume, store, cluster, described, runs=count, seconds=time_budget)
    if not quiet:
        _announce(begun, standard_error() if as_json else Console(highlight=False))
    with resumable(begun.resumption), watched(is_shown=not quiet) as watcher:
        outcome = _carried_out(begun, jobs, watcher, is_shrinking=is_shrinking, bank=bank)
    return _print(begun, outcome, as_json=as_json, is_quiet=quiet)


def _carried_out(begun: Begun, jobs: int, watcher: Watcher | None, *, is_shrinking: bool, bank: Path | None) -> Hunt:
    """The outcome of the hunt, which is also stored in its folder."""
    with EngineStart("local") as start:
        result = carry_out(begun, jobs, lambda so_far: _tell(watcher, begun.order.limits, so_far))
        found = None if result.found is None else brought_home(begun, result.found, start.engine_for)
        if found is not None and is_shrinking:
            _store(begun, hunt_of(begun, result, found), result)  # Written first, as shrinking takes long.
            found = made_small(begun, found, start.engine_for, jobs=jobs, tell=lambda *at: _tell_size(watcher, *at))
            if bank is not None and found.test is not None:
                found = msgspec.structs.replace(found, test=str(into_bank(Path(found.test), bank)))
        outcome = hunt_of(begun, result, found)
        _store(begun, outcome, result)
        return outcome


def _begun(path: Path | None, given: dict[str, Any], store: Path, of_hunt: dict[str, Any]) -> Begun:
    """A new hunt with the options of a run that are `given`, and those of a hunt.

    Raises ScenarioError if an option fixes what a hunt varies.
    """
    if path is None and given["time"] is None:
        given["time"] = SECONDS
    options, code, plan = run_options(path, given)
    if plan is not None or options.script is not None:
        raise ScenarioError(f"{path}: contains a fault plan or operations, and a hunt draws both: leave them out")
    seed = secrets.randbelow(SEED_MAX) if options.seed is None else options.seed
    drawn = options.scenario(0)
    drawn = msgspec.structs.replace(drawn, workload=drawn.workload or ANY)
    return begin(drawn, code, store, seed=seed, **of_hunt)


def _resumed(
    path: Path,
    store: Path,
    cluster: str | None,
    described: Sequence[object],
    *,
    runs: int | None,
    seconds: float | None,
) -> Begun:
    """The hunt to continue. Raises ScenarioError if options describe it as well: its folder has them."""
    if any(each is not None for each in described):
        raise ScenarioError("--resume takes the hunt from its folder: leave out the options that describe a hunt")
    return resumed(path, store, cluster, runs=runs, seconds=seconds)


def _announce(begun: Begun, screen: Console) -> None:
    order = begun.order
    about = f"{order.scenario.time_s:g} s each  at most {order.limits.runs:,} runs  seed {order.seed}  {begun.folder}"
    say(screen, f"seamark  hunt {begun.code.name}  {about}")


def _fingerprints(baseline: Path | None) -> tuple[str, ...]:
    """The fingerprints of a sweep's findings."""
    return () if baseline is None else tuple(each.fingerprint for each in evidence_at(baseline).sweep.findings)


def _tell(watcher: Watcher | None, limits: Limits, so_far: Result) -> None:
    """Show the progress after a run."""
    if watcher is not None:
        rows = so_far.rows
        recent = rows[-RECENT:]
        new = sum(len(row.new) for row in recent) / len(recent)
        watcher.line(
            f"  {rows[-1].elapsed_s:.0f} s  {len(rows):,} of {limits.runs:,} runs  {len(so_far.corpus.counts):,} "
            f"features  {counted(len(so_far.corpus.entries), 'run')} in the corpus  lately {new:.1f} new in a run"
        )


def _tell_size(watcher: Watcher | None, size: Size, count: int) -> None:
    if watcher is not None:
        left = f"{counted(size.steps, 'fault step')}, {counted(size.operations, 'operation')}, {size.seconds:g} s"
        watcher.line(f"  shrinking: {counted(count, 'try')}  left: {left}")


def _store(begun: Begun, outcome: Hunt, result: Result) -> None:
    write_atomically(begun.folder / PAGE_FILE, encoded(hunt_page(outcome, result.rows, begun.folder)))
    write_atomically(file_of(begun.folder), hunt_to_json(outcome))


def _print(begun: Begun, outcome: Hunt, *, as_json: bool, is_quiet: bool) -> int:
    if as_json:
        print_json(outcome)
        return outcome.exit_code
    console = Console(highlight=False)
    for line in _lines(outcome, is_quiet=is_quiet):
        say(console, line)
    word = plain(Verdict(outcome.verdict).word, STYLES[outcome.verdict])
    say(console, word + plain(f"  {outcome.reason} (exit {outcome.exit_code})"), is_whole=True)
    suggest(console, "open", str(begun.folder / PAGE_FILE))
    if outcome.found is not None:
        for line in _how_to_repeat(outcome.found):
            say(console, line, is_whole=True)
    elif outcome.runs < outcome.planned:
        longer = f" --time-budget {2 * outcome.seconds:.0f}" if outcome.stopped else ""
        suggest(console, "go on", f"{begun.resumption}{longer}")
    return outcome.exit_code


def _lines(outcome: Hunt, *, is_quiet: bool) -> list[str]:
    """The outcome for the screen."""
    if is_quiet:
        return []
    never = [goal.name for goal in outcome.goals if not goal.runs]
    lines = [
        f"  {counted(outcome.features, 'distinct behaviour')} seen in {counted(outcome.runs, 'run')}",
        f"  {len(outcome.goals) - len(never)} of {len(outcome.goals)} rare situations reached"
        + (f"; not reached: {', '.join(never)}" if never else ""),
    ]
    lines += [f"  known   {symptom}  in {counted(count, 'run')}" for symptom, count in outcome.known.items()]
    lines += [f"  failed  {reason}" for reason in outcome.trouble]
    if outcome.found is not None:
        lines.append(f"  NEW     {outcome.found.symptom}  {outcome.found.sentence}")
    return lines


def _how_to_repeat(found: Trophy) -> list[str]:
    lines = [f"  run     {found.run}"]
    if found.small is not None and found.before is not None and found.after is not None:
        small = f"{found.before.steps} to {found.after.steps} fault steps"
        lines += [
            f"  small   {found.small}  {small}, {found.before.operations:,} to {found.after.operations:,} operations",
            f"  read    {Path(found.small) / SCRIPT_FILE}",
            f"  test    {found.test}",
        ]
    return [*lines, f"  again   {found.command}"]
