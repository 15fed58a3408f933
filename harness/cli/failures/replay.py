"""`seamark replay`: repeats a run, compares the two, and judges the result."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from harness.cli.options import chosen_options, run_options
from harness.cli.output import print_report, standard_error, watched
from harness.cli.run import run_once
from harness.core.command import seamark
from harness.core.errors import HistoryError, ScenarioError
from harness.core.trace import window
from harness.core.verdict import Verdict
from harness.judging.engines import HELP, EngineName, EngineStart
from harness.record.store import RUN_FILE, RunFile, find_run, read_run_file
from harness.report.console.terminal import Amount
from harness.report.findings.messages import TRACE_PAGE
from harness.report.screen import plain, say
from harness.run.anew import Changes, anew, is_of, outcome
from harness.run.carry_out import difference
from harness.run.live import activity
from harness.run.replay import Difference, Repetition, repeat, show_trace
from harness.run.single import judge_run, show_again
from harness.scenario.consent import Code, consented
from harness.scenario.scenario import scenario_of

TRACE_HELP = (
    "Seconds of the run's time, such as 12.5..13: write every message, timer, write and fault of them to trace.jsonl, "
    "and a space-time diagram to trace.html, into the run's directory."
)
CLUSTER_HELP = (
    "The file that the run's cluster is in, as a sign that it may be run. If it has changed since, or is another "
    "cluster: the recorded operations and faults with that one, as a new run."
)
BUG_HELP = "Carry the operations and faults out with this planted bug; none for none."
OPTION_HELP = "Carry them out with this option of the cluster."
TIMES_HELP = "Number of runs with another version, each with other delays."
PLAN_HELP = "A file with another fault plan: the same scenario under it, as a new run in that store."


def replay(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    run: Annotated[Path, typer.Argument(help="A run's directory in the store, its run.json, or latest.")],
    trace: Annotated[str | None, typer.Option(metavar="FROM..TO", help=TRACE_HELP)] = None,
    cluster: Annotated[str | None, typer.Option(help=CLUSTER_HELP)] = None,
    bug: Annotated[list[str] | None, typer.Option(metavar="NAME", help=BUG_HELP)] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=OPTION_HELP)] = None,
    times: Annotated[int, typer.Option(min=1, max=1000, help=TIMES_HELP)] = 1,
    plan: Annotated[Path | None, typer.Option(help=PLAN_HELP)] = None,
    engine: Annotated[EngineName, typer.Option(help=HELP)] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the verdict and how to go on.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print all tables.")] = False,
) -> int:
    """Repeat a simulated run, compare every record, and judge it. The exit code is the verdict's; 4 if it differs.

    With --plan, or with another version of the cluster (--cluster, --bug, --option), new runs are made, and of these
    no record is compared.
    """
    amount, folder = Amount(is_quiet=quiet, is_verbose=verbose), find_run(run)
    run_file = read_run_file(folder / RUN_FILE)
    changes = _changes(folder, run_file, cluster, bug, option, times)
    if trace is not None and (plan is not None or changes is not None):
        raise ScenarioError("--trace is of the run as it was: make the new run first, and trace that")
    if times > 1 and (plan is not None or changes is None):
        raise ScenarioError(f"--times {times}: a repeated run is always the same: name another cluster or plan")
    if plan is not None:
        if bug or option:
            raise ScenarioError("--plan draws the operations anew: not with --bug or --option")
        return _under_plan(folder, plan, cluster, engine=engine, as_json=as_json, amount=amount)
    if changes is not None:
        return _anew(folder, changes, engine=engine, as_json=as_json, amount=amount)
    code, moments = _repeatable(folder, run_file, cluster), None if trace is None else window(trace)
    screen = standard_error() if as_json else Console(highlight=False)
    with EngineStart(engine) as start:
        with watched(is_shown=not quiet) as watcher:
            activity(watcher)("repeating the run")
            repetition = repeat(folder, code, trace=moments, watcher=watcher)
        if not quiet:
            _show(screen, folder, repetition)
        if moments is not None:
            shown = show_trace(folder, moments, repetition)
            say(screen, f"trace  {folder / TRACE_PAGE}  {shown}")
            show_again(folder)
        with watched(is_shown=not quiet) as watcher:
            report = judge_run(folder, start.engine_for, tell=activity(watcher), code=code)
        failure = difference(repetition)
        if failure is not None:  # This outranks even a finding: the command tests whether the run repeats.
            error = Verdict.ERROR
            report = msgspec.structs.replace(report, verdict=error.value, exit_code=error.exit_code, reason=failure)
        return print_report(report, as_json=as_json, amount=amount)


def _repeatable(folder: Path, run_file: RunFile, cluster: str | None) -> Code:
    """The code that repeats the run. Raises ScenarioError or HistoryError if the run cannot be repeated."""
    if run_file.runtime != "sim":
        raise ScenarioError(f"{folder}: a run in {run_file.runtime} cannot be repeated exactly; run its plan again")
    code = consented(scenario_of(run_file, folder / RUN_FILE).cluster, folder, cluster)
    if code.place is not None and run_file.code_sha256 is None:
        raise HistoryError(f"{folder}: its run.json lacks the hash of its code, which cannot be known to be the same")
    if not os.access(folder, os.W_OK):
        raise ScenarioError(f"{folder}: takes no files, and the repetition goes there: copy the run, and repeat that")
    return code


def _changes(
    folder: Path, run_file: RunFile, cluster: str | None, bugs: list[str] | None, option: list[str] | None, times: int
) -> Changes | None:
    """The requested changes to the run; None if there are none."""
    named = scenario_of(run_file, folder / RUN_FILE).cluster
    if cluster is None and bugs is None and option is None:
        return None
    code = consented(named, folder, cluster)
    if bugs is None and option is None and is_of(run_file, named, code):
        return None
    planted = None if bugs is None else tuple(bug for bug in bugs if bug != "none")
    return Changes(code=code, bugs=planted, options=chosen_options(option), times=times)


def _anew(folder: Path, changes: Changes, *, engine: EngineName, as_json: bool, amount: Amount) -> int:
    """Repeat the run with those changes, and show whether its findings are still there. Returns the exit code."""
    screen = standard_error() if as_json else Console(highlight=False)
    with EngineStart(engine) as start, watched(is_shown=not amount.is_quiet) as watcher:
        result = anew(folder, changes, start.engine_for, watcher)
    code = print_report(result.shown, as_json=as_json, amount=amount)
    for line in outcome(result):
        say(screen, line)
    return code


def _under_plan(
    folder: Path, plan: Path, cluster: str | None, *, engine: EngineName, as_json: bool, amount: Amount
) -> int:
    """Run the scenario of that run under another plan, into the same store."""
    attach = read_run_file(folder / RUN_FILE).options.get("attach")
    if attach is not None:
        command = seamark("run", folder, "--plan", plan, "--attach", attach)
        raise ScenarioError(f"{folder}: strikes the containers of a project: if that may be, {command}")
    given: dict[str, object] = {"plan": str(plan), "cluster": cluster, "engine": engine, "json": as_json}
    given |= {"quiet": amount.is_quiet, "verbose": amount.is_verbose, "store": str(folder.parent.parent)}
    options, code, prescribed = run_options(folder / RUN_FILE, given)
    return run_once(options, code, options.seed or 0, prescribed)


def _show(console: Console, folder: Path, repetition: Repetition) -> None:
    if repetition.is_exact and repetition.killed_at is not None:
        end = f"equal up to record {repetition.killed_at}, where the killed run's journal ends"
        say(console, f"exact  {folder}  {end}", is_whole=True)
        return
    if repetition.is_exact:
        say(console, f"exact  {folder}")
        say(console, f"       history {repetition.history_sha256}")
        say(console, f"       unseed {repetition.unseed or 'not reached'}")
        return
    say(console, plain(f"DIFFERENT  {folder} was not repeated", "bold red"))
    if repetition.difference is None:
        unseeds = f"{repetition.unseed_before}, now {repetition.unseed}"
        say(console, f"  the history is the same, the unseed is not: {unseeds}")
    else:
        _show_difference(console, repetition.difference)


def _show_difference(console: Console, difference: Difference) -> None:
    for record in difference.before:
        say(console, plain(f"            {record}", "dim"), is_whole=True)
    say(console, f"  record {difference.record}, the first that differs", is_whole=True)
    say(console, f"    was     {difference.first or 'nothing: the journal ends'}", is_whole=True)
    say(console, f"    is now  {difference.second or 'nothing: the repetition ends'}", is_whole=True)
    say(console, f"  nodes that differ by the next second: {', '.join(difference.nodes) or 'none'}", is_whole=True)
    say(console, f"  random streams that differ: {', '.join(difference.streams) or 'none'}", is_whole=True)
