"""Carries out scenarios: creates a run's directory, runs a child process, and writes the history.

Nothing here judges. After any failure the directory holds the records made so far, and `seamark check` can judge them.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import msgspec

from harness.core.command import seamark
from harness.core.errors import ScenarioError, SeamarkError
from harness.core.promises import Naming, Promise
from harness.core.seams import Cluster, is_of_machines
from harness.core.system import SUBSCRIBER, nothing_to_prepare
from harness.core.trace import Window
from harness.judging.checks import require_known
from harness.judging.table import table_of
from harness.record.formats.parquet.parquet import write_history
from harness.record.journal import read_journal
from harness.record.store import (
    HISTORY,
    JOURNAL,
    LOGS,
    RUN_FILE,
    RunFile,
    create_run,
    one_writer,
    read_run_file,
    write_run_file,
)
from harness.scenario.consent import Code
from harness.scenario.installation import version
from harness.scenario.own_checks import brought, named_by
from harness.scenario.registry import code_sha256_of, load_cluster, module_of, of_machines
from harness.scenario.scenario import Decided, Scenario, decide, named
from nemesis.plan import Plan

CHILDREN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sim": ("-P", "-m", "harness.runtimes.simulation.child"),
        "docker": ("-P", "-m", "harness.runtimes.containers.child"),
    }
)
STDERR_LOG = f"{LOGS}/run.log"
WATCH_S = 0.2
BLOCK_BYTES = 4096  # The least free space: with less a file cannot grow, and a log loses its last lines.
FAREWELL_S = 30.0  # The grace for a child that has containers to remove.
OF_SEVERAL_WRITES = frozenset({"torn-unit", "torn-watermark", "intermediate-watermark"})


class RunFailed(SeamarkError):
    """The child process of a run failed; its records so far are in the run's directory."""

    def __init__(self, run: Path, reason: str) -> None:
        judge = seamark("check", run)
        super().__init__(f"{reason} (details in {run / STDERR_LOG}; judge what was recorded: {judge})")
        self.run = run


def prepare(scenario: Scenario, code: Code, store: Path, plan: Plan | None = None) -> tuple[Path, RunFile]:
    """A new run directory, and its run.json with all choices of the seed. The cluster is that of `code`.

    Raises ScenarioError, or DeployError without a container engine, before anything is created.
    """
    scenario = msgspec.structs.replace(scenario, cluster=code.name)
    code_sha256 = code_sha256_of(code)
    cluster = load_cluster(code, code_sha256)
    if scenario.runtime == "sim":
        of_machines(cluster)
    elif is_of_machines(cluster):
        module_of(code)
    if scenario.attach is not None:
        _require_attachable(scenario, cluster)
    scenario = named(scenario, cluster.workloads)
    decided = decide(scenario, cluster, plan)
    if scenario.runtime == "docker":
        _require_engine(scenario, cluster)
    promises = (*_exercised(cluster, decided), *decided.workload.promises)
    modules = named_by(cluster, code)
    require_known(promises, cluster.name, table_of(None, modules).checks)
    run_file = RunFile(
        versions=versions(),
        cluster=cluster.name,
        code_sha256=code_sha256,
        runtime=scenario.runtime,
        seed=scenario.seed,
        options=msgspec.to_builtins(scenario),
        bugs=tuple(sorted(decided.settings.bugs)),
        parameters=decided.settings.parameters | decided.shape,
        workload=decided.workload.name,
        checks=decided.workload.checks,
        types=decided.workload.types,
        plan=decided.plan,
        is_plan_given=plan is not None,
        promises=promises,
        stream=cluster.stream,
        subscribers=tuple(str(node.id) for node in cluster.nodes if node.role == "subscriber"),
        goals=(*cluster.goals, *(f"point:{point}" for point in cluster.points)),
        settle_ns=cluster.settle_ns,
        bounds=cluster.bounds(decided.settings),
        naming=getattr(cluster, "naming", Naming()),
        brought=tuple(map(brought, modules)),
    )
    run = create_run(store, cluster.name, scenario.seed)
    write_run_file(run, run_file)
    return run, run_file


def _exercised(cluster: Cluster, decided: Decided) -> tuple[Promise, ...]:
    """The cluster's promises. Those that the workload cannot break are no purpose of the test."""
    unit = cluster.stream.atomic_unit if cluster.stream is not None else "none"
    is_never_torn = decided.workload.is_single and unit == "transaction"
    return tuple(
        msgspec.structs.replace(promise, is_purpose=False)
        if is_never_torn and OF_SEVERAL_WRITES.issuperset(promise.forbids)
        else promise
        for promise in cluster.promised(decided.settings)
    )


def _require_attachable(scenario: Scenario, cluster: Cluster) -> None:
    """Raise ScenarioError if the scenario needs something that attached servers cannot offer."""
    if scenario.runtime != "docker" or is_of_machines(cluster):
        raise ScenarioError("--attach is for servers as others wrote them, with --runtime docker")
    if getattr(cluster, "prepare", None) is nothing_to_prepare:
        raise ScenarioError(f"{cluster.name} needs a prepare for --attach, which empties what earlier runs have left")
    if scenario.bugs:
        raise ScenarioError("--bug plants a bug when servers are started: not with --attach")


def _require_engine(scenario: Scenario, cluster: Cluster) -> None:
    """Raise DeployError without a container engine, or if the servers to attach to are not there."""
    from harness.runtimes.containers.compose import find_project  # noqa: PLC0415  Only containers wait for docker's SDK.
    from harness.runtimes.containers.engine.engine import connect  # noqa: PLC0415  Likewise.

    with closing(connect()) as engine:
        if scenario.attach is not None:
            servers = tuple(node.id for node in cluster.nodes if node.role != SUBSCRIBER)
            find_project(engine, scenario.attach, servers)


def execute(
    run: Path,
    code: Code,
    journal: Path | None = None,
    *,
    watch: Callable[[], bool] | None = None,
    trace: tuple[Window, Path] | None = None,
) -> float:
    """Carry out the run of `run`/run.json with the cluster of `code`, in a child process. Returns its seconds.

    Records go to `journal`, by default the run's own.

    `watch` is called a few times per second, and stops the run by returning True. `trace` is a window to trace, and the
    file for it. Raises RunFailed if the child fails; KeyboardInterrupt passes through.
    """
    started = time.monotonic()
    log = fresh_log(run)
    runtime = read_run_file(run / RUN_FILE).runtime
    command = [sys.executable, *CHILDREN[runtime], str(run / RUN_FILE), str(journal or run / JOURNAL), code.name]
    if trace is not None:
        command += map(str, trace)
    with log.open("xb") as stderr, subprocess.Popen(command, stderr=stderr, stdin=subprocess.DEVNULL) as child:  # noqa: S603  Our own interpreter and module.
        try:
            exit_code = _exit_code(child, watch)
            if exit_code is None:
                _end(child)
        except BaseException:
            _end(child)
            raise
    ended_with(run, exit_code)
    return time.monotonic() - started


def fresh_log(run: Path) -> Path:
    """The path of a new log for a child; no such file exists yet."""
    log = run / STDERR_LOG
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    return log


def ended_with(run: Path, exit_code: int | None) -> None:
    """Raise RunFailed, with the last words of its log, if a child failed.

    `exit_code` is -n for signal n, and None for a child that the watcher stopped.
    """
    if exit_code:
        raise RunFailed(run, _last_words(run / STDERR_LOG, exit_code))


def _exit_code(child: subprocess.Popen[bytes], watch: Callable[[], bool] | None) -> int | None:
    """The child's exit code; None if the watcher stopped it."""
    while watch is not None:
        try:
            return child.wait(WATCH_S)
        except subprocess.TimeoutExpired:
            if watch():
                return None
    return child.wait()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Terminate the child, and wait for it: one with containers may first remove them; a simulation ends at once."""
    child.terminate()
    try:
        child.wait(FAREWELL_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()  # After an interrupt, Popen itself does not wait for the child.


def finish(run: Path) -> None:
    """Write the history's Parquet files from the journal."""
    with one_writer(run):
        write_history(read_journal(run / JOURNAL), run / HISTORY)


def versions() -> Mapping[str, str]:
    """The versions of Seamark and Python, and the platform."""
    return {"seamark": version(), "python": ".".join(map(str, sys.version_info[:3])), "platform": sys.platform}


def _last_words(log: Path, code: int) -> str:
    if code < 0:
        return f"its process was killed by signal {-code}"
    if shutil.disk_usage(log.parent).free < BLOCK_BYTES:
        return f"the run failed: No space left on device, where {log.parent.parent} is"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"the run failed: {lines[-1] if lines else f'it exited with {code} and said nothing'}"
