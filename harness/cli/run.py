"""`seamark run`: runs a test under faults, judges it, and shows the next commands."""

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cli.batches import print_batch
from harness.cli.options import UNTIL_FOUND_MAX, RunOptions, run_options
from harness.cli.output import print_report, standard_error, watched
from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.judging.engines import HELP, EngineStart
from harness.report.console.terminal import show_header
from harness.report.model import WHERE, Report
from harness.report.screen import STYLES, plain, say, suggest
from harness.run.batch import Orders, run_batch
from harness.run.carry_out import carry_out, choices, header
from harness.run.running import prepare
from harness.scenario.consent import Code
from harness.scenario.left_open import ANY, STYLE_NAMES
from harness.scenario.scenario import LIMITS
from nemesis.plan import Plan
from nemesis.registry import PACKAGES

SEED_MAX = 2**31  # The number of seeds to draw from: short enough to be typed.
SUT_HELP = "The release under test: name, version, commit or image; may be repeated."
FAULTS_HELP = f"Packages of faults, with commas between; none for none: {', '.join(PACKAGES)}."
WORKLOAD_HELP = "The load with its checks: see seamark clusters. Default: the first; with --count any, by the seed."
STYLE_HELP = (
    f"How the faults are drawn: {', '.join(STYLE_NAMES)}. Default: {STYLE_NAMES[0]}; with --count any, by the seed."
)

TIME, RATE, CLIENTS = (f"{low:,} to {high:,}" for low, high in map(LIMITS.__getitem__, ("time", "rate", "clients")))
KEYS_HELP = "Keys in use at a time, 1 to 1,000. Default: 6 to 12, by the seed."
UNTIL_FOUND_HELP = f"Begin no run after an anomaly. Without --count up to {UNTIL_FOUND_MAX:,} runs."
FAIL_FAST_HELP = "End a run soon after its stream breaks a promise, and begin none after a run that did not pass."


def run(  # noqa: PLR0913, PLR0917  Each argument is an option of the command.
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario file (TOML or JSON) with these options, or a run.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="The system under test: see seamark clusters.")] = None,
    runtime: Annotated[str | None, typer.Option(help="sim (default), or docker: real processes and networks.")] = None,
    workload: Annotated[str | None, typer.Option(help=WORKLOAD_HELP)] = None,
    seed: Annotated[int | None, typer.Option(help="Decides everything that is drawn. Default: a new one.")] = None,
    time: Annotated[float | None, typer.Option(help=f"Seconds of load, {TIME}. Default: 60.")] = None,
    rate: Annotated[float | None, typer.Option(help=f"Operations a second, {RATE}. Default: 100.")] = None,
    clients: Annotated[int | None, typer.Option(help=f"Client processes, {CLIENTS}. Default: 5.")] = None,
    timeout_ms: Annotated[int | None, typer.Option(help="How long a client waits. Default: 1000.")] = None,
    keys: Annotated[int | None, typer.Option(help=KEYS_HELP)] = None,
    nemesis: Annotated[str | None, typer.Option(help=FAULTS_HELP)] = None,
    style: Annotated[str | None, typer.Option(help=STYLE_HELP)] = None,
    plan: Annotated[str | None, typer.Option(help="A file with a fault plan, instead of a drawn one.")] = None,
    bug: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Plant this bug; may be repeated.")] = None,
    isolation: Annotated[str | None, typer.Option(help="The isolation level, where the cluster has several.")] = None,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the cluster.")] = None,
    attach: Annotated[str | None, typer.Option(metavar="PROJECT", help="A docker compose project to strike.")] = None,
    sut: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=SUT_HELP)] = None,
    count: Annotated[int | None, typer.Option(help="How many runs, with seeds from --seed on.")] = None,
    jobs: Annotated[int | None, typer.Option(help="How many of them at once.")] = None,
    twice: Annotated[bool | None, typer.Option("--twice", help="Run each twice and compare every record.")] = None,
    until_found: Annotated[bool | None, typer.Option("--until-found", help=UNTIL_FOUND_HELP)] = None,
    fail_fast: Annotated[bool | None, typer.Option("--fail-fast", help=FAIL_FAST_HELP)] = None,
    time_budget: Annotated[float | None, typer.Option(help="Begin no run after this many seconds.")] = None,
    min_runs: Annotated[int | None, typer.Option(help="With fewer runs a batch is VACUOUS. Default: 1.")] = None,
    engine: Annotated[str | None, typer.Option(help=f"{HELP} Default: auto.")] = None,
    model: Annotated[str | None, typer.Option(help="Judge transactions by this consistency model.")] = None,
    store: Annotated[str | None, typer.Option(help="The folder in which runs are kept. Default: store.")] = None,
    as_json: Annotated[bool | None, typer.Option("--json", help="Print report.json and nothing else.")] = None,
    quiet: Annotated[bool | None, typer.Option("--quiet", help="Print the verdict and how to go on.")] = None,
    verbose: Annotated[bool | None, typer.Option("--verbose", help="Print all choices and tables.")] = None,
) -> int:
    """Run a cluster under faults and judge what happened. The exit code is the verdict's."""
    given = {name: value for name, value in locals().items() if name not in ("scenario", "as_json")}
    options, code, prescribed = run_options(scenario, given | {"json": as_json})
    if prescribed is not None and options.runs > 1 and options.plan is None:
        raise ScenarioError("a run.json repeats one run: leave --count out, or take its options without its plan")
    first = options.seed if options.seed is not None else secrets.randbelow(SEED_MAX)
    if options.runs > 1 or options.until_found:
        return _batch(options, code, first, prescribed)
    return run_once(options, code, first, prescribed)


def run_once(options: RunOptions, code: Code, seed: int, plan: Plan | None) -> int:
    """Run the scenario of those options with that seed, and show its report. Returns the exit code."""
    screen = standard_error() if options.json else Console(highlight=False)
    run, run_file = prepare(options.scenario(seed), code, Path(options.store), plan)
    used = 0
    if not options.quiet:
        used = show_header(screen, header(run, run_file))
    if options.verbose:
        for line in choices(run_file, screen.width):
            say(screen, line)
    with _kept(run), EngineStart(options.engine) as start, watched(is_shown=not options.quiet) as watcher:
        report = carry_out(
            run,
            code,
            start.engine_for,
            model=options.model,
            is_twice=options.twice,
            is_fail_fast=options.fail_fast,
            watcher=watcher,
        )
    is_same = "  repeated: both runs are equal, record by record" if options.twice and not report.exit_code else None
    if is_same is not None and not options.quiet:
        say(screen, is_same)
    return print_report(report, as_json=options.json, amount=options.amount, used=used)


@contextmanager
def _kept(run: Path) -> Iterator[None]:
    """Name the run's folder, and the command that judges it, if Ctrl-C or SIGTERM ends what is in this context."""
    try:
        yield
    except KeyboardInterrupt:
        suggest(standard_error(), "kept in", str(run))
        suggest(standard_error(), "judge", seamark("check", run))
        raise


def _batch(options: RunOptions, code: Code, first: int, plan: Plan | None) -> int:
    screen = standard_error() if options.json else Console(highlight=False)
    if not options.quiet:
        line = f"seamark  {options.cluster} {WHERE[options.runtime]}  seeds {first} to {first + options.runs - 1}"
        screen.print(plain(f"{line}  {options.jobs} at a time"))
    orders = Orders(
        scenario=options.scenario(first),
        code=code,
        count=options.runs,
        jobs=options.jobs,
        store=Path(options.store),
        plan=plan,
        model=options.model,
        is_twice=options.twice,
        until_found=options.until_found,
        fail_fast=options.fail_fast,
        time_budget_s=options.time_budget,
        min_runs=options.min_runs,
    )

    done = Counter[str]()

    def tell(report: Report) -> None:
        done[Verdict(report.verdict).word] += 1
        if not options.quiet:
            load = f"  {report.workload or '?':<17}" if orders.scenario.workload == ANY else ""
            line = f"  seed {report.seed}{load}  {Verdict(report.verdict).word:<14}{report.reason}"
            say(screen, plain(line, STYLES[report.verdict]), is_whole=True)

    with EngineStart(options.engine) as start:
        try:
            batch = run_batch(orders, None if options.engine == "local" else start.engine, tell)
        except KeyboardInterrupt:
            made = ", ".join(f"{count} {word}" for word, count in done.items()) or "none ended"
            say(standard_error(), f"{done.total()} of {options.runs} runs: {made}; they are kept: seamark list", "  ")
            raise
    return print_batch(batch, as_json=options.json)
