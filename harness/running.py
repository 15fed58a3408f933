"""Carries scenarios out: makes a run's directory, lets a child process simulate, and writes the history.

Nothing here judges. Whatever goes wrong, the directory holds what was recorded, and `seamark check` can judge it.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from harness.core.errors import SeamarkError
from harness.core.trace import Window
from harness.formats.parquet import write_history
from harness.journal import read_journal
from harness.registry import load_cluster, version
from harness.scenario import Scenario, decide
from harness.store import HISTORY, JOURNAL, RUN_FILE, RunFile, create_run, write_run_file
from nemesis.plan import Plan

CHILD: tuple[str, ...] = ("-P", "-m", "harness.simulation.child")
STDERR_LOG = "logs/simulation.log"
WATCH_S = 0.2


class RunFailed(SeamarkError):
    """The simulation's process did not come to its end; what it had recorded is in the run's directory."""

    def __init__(self, run: Path, reason: str) -> None:
        super().__init__(f"{reason} (details in {run / STDERR_LOG}; judge what was recorded: seamark check {run})")
        self.run = run


def prepare(scenario: Scenario, store: Path, plan: Plan | None = None) -> tuple[Path, RunFile]:
    """A new run directory with its run.json, and what the seed decided. ScenarioError comes before anything is made."""
    cluster = load_cluster(scenario.cluster)
    decided = decide(scenario, cluster, plan)
    run_file = RunFile(
        versions=versions(),
        cluster=cluster.name,
        runtime="sim",
        seed=scenario.seed,
        options=msgspec.to_builtins(scenario),
        bugs=tuple(sorted(decided.settings.bugs)),
        parameters=decided.settings.parameters | decided.shape,
        workload=decided.workload.name,
        checks=decided.workload.checks,
        types=decided.workload.types,
        plan=decided.plan,
        promises=cluster.promises,
        stream=cluster.stream,
        subscribers=tuple(str(node.id) for node in cluster.nodes if node.role == "subscriber"),
        goals=(*cluster.goals, *(f"point:{point}" for point in cluster.points)),
        settle_ns=cluster.settle_ns,
        bounds=cluster.bounds(decided.settings),
    )
    run = create_run(store, cluster.name, scenario.seed)
    write_run_file(run, run_file)
    return run, run_file


def simulate(
    run: Path,
    journal: Path | None = None,
    *,
    watch: Callable[[], None] | None = None,
    trace: tuple[Window, Path] | None = None,
) -> float:
    """Simulate what `run`/run.json says into `journal` (the run's own by default), in a child process.

    `watch` is called a few times a second meanwhile. `trace` asks for one, and says where it is to go.
    Returns the seconds it took.
    Raises RunFailed if the child did not come to its end, KeyboardInterrupt as it comes.
    """
    started = time.monotonic()
    log = run / STDERR_LOG
    log.parent.mkdir(exist_ok=True)
    command = [sys.executable, *CHILD, str(run / RUN_FILE), str(journal or run / JOURNAL)]
    if trace is not None:
        command += map(str, trace)
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, stdin=subprocess.DEVNULL) as child:  # noqa: S603  Our own interpreter and module.
        try:
            code = _exit_code(child, watch)
        except BaseException:
            child.kill()
            child.wait()  # Popen itself would leave it unattended after an interrupt.
            raise
    if code != 0:
        raise RunFailed(run, _last_words(log, code))
    return time.monotonic() - started


def _exit_code(child: subprocess.Popen[bytes], watch: Callable[[], None] | None) -> int:
    while watch is not None:
        try:
            return child.wait(WATCH_S)
        except subprocess.TimeoutExpired:
            watch()
    return child.wait()


def finish(run: Path) -> None:
    """Write the history's Parquet files from the journal."""
    write_history(read_journal(run / JOURNAL), run / HISTORY)


def versions() -> Mapping[str, str]:
    """What a run was made with."""
    return {"seamark": version(), "python": ".".join(map(str, sys.version_info[:3])), "platform": sys.platform}


def _last_words(log: Path, code: int) -> str:
    if code < 0:
        return f"the simulation was killed by signal {-code}"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"the simulation failed: {lines[-1] if lines else f'it exited with {code} and said nothing'}"
