"""The child process of a simulated run: one thread. It writes the journal and nothing else.

Run as `python -m harness.runtimes.simulation.child RUN_JSON JOURNAL CLUSTER [FROM..TO TRACE]`; with the latter it also
traces those seconds. CLUSTER is the code to which the user consented, whatever run.json names. Exits 0 once the footer
is written. Errors go to standard error, with one sentence as the last line; the records so far stay readable.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import msgspec

from harness.core.draw import Draw
from harness.core.machine import NodeId
from harness.core.record import SCHEMA, Evidence, Footer, Header, Mark, StreamEvent
from harness.core.seams import MachineCluster
from harness.core.trace import window
from harness.interpreter.clients import clients_of_machines
from harness.interpreter.interpreter import Interpreter, Runtime
from harness.record.journal import HistoryHash, JournalWriter
from harness.record.processes import die_with_parent
from harness.record.store import read_run_file
from harness.runtimes.child import end_with
from harness.runtimes.simulation.tracer import Tracer
from harness.runtimes.simulation.world import World
from harness.scenario.consent import Code, on_command_line
from harness.scenario.registry import load_machines
from harness.scenario.scenario import Decided, Scenario, decide, scenario_of

MS = 1_000_000


class Onlooker(Protocol):
    """An observer of a run from inside, which changes nothing in it."""

    def observe(self, evidence: Evidence) -> None:
        """Note that a record was written."""

    def reached(self, time_ns: int, node: NodeId, goal: str) -> None:
        """Note that a node reached a goal or, as point:NAME, a failpoint."""


def simulate(
    scenario: Scenario,
    cluster: MachineCluster,
    decided: Decided,
    record: Callable[[Evidence], None],
    tracer: Tracer | None = None,
    onlooker: Onlooker | None = None,
) -> tuple[str, World]:
    """Carry out the scenario in a new world. Returns why it ended, and the world in its final state."""
    interpreter: Interpreter | None = None

    def reached(node: NodeId, goal: str) -> None:
        if onlooker is not None:
            onlooker.reached(world.clock.now_ns(), node, goal)

    def observe(evidence: Evidence) -> None:
        record(evidence)
        if onlooker is not None:
            onlooker.observe(evidence)
        if tracer is not None:
            tracer.observe(evidence)
        if isinstance(evidence, StreamEvent) and interpreter is not None:
            interpreter.observe(evidence)

    def mark(phase: str, note: str | None) -> Mark:
        return Mark(world.clock.now_ns(), phase, world.positions(), world.handled(), world.goals(), note)

    async def dump() -> None:
        world.dump()

    reports = None if onlooker is None else reached
    world = World(cluster, decided.settings, Draw(scenario.seed), observe, tracer, reports)
    runtime = Runtime(
        clock=world.clock,
        open_client=clients_of_machines(cluster, world.network, decided.settings),
        faults=world.faults,
        record=observe,
        mark=mark,
        dump=dump,
    )
    interpreter = Interpreter(
        runtime,
        cluster=cluster,
        workload=decided.workload,
        plan=decided.plan,
        threads=scenario.clients,
        timeout_ns=scenario.timeout_ms * MS,
    )
    world.start()
    return world.loop.run_until_complete(interpreter.run()), world


def unseed(history_sha256: str, world: World) -> str:
    """The digest of a run: of its history, of its random streams' positions, and of every disk."""
    parts = (history_sha256, world.positions(), world.durable_digests())
    return blake2b(msgspec.msgpack.encode(parts, order="sorted"), digest_size=16).hexdigest()


def main() -> int:
    """Simulate a run.json. Returns the exit code."""
    run_json, journal, named, *trace = sys.argv[1:]
    die_with_parent()
    with _tracer(*trace) as tracer:
        record_run(Path(run_json), Path(journal), on_command_line(named), tracer)
    return 0


def record_run(
    run_json: Path, journal: Path, code: Code, tracer: Tracer | None = None, onlooker: Onlooker | None = None
) -> None:
    """Simulate that run with the cluster of `code`, in this process, and write its journal."""
    run = read_run_file(run_json)
    scenario = scenario_of(run, run_json)
    cluster = load_machines(code, run.code_sha256, is_checked=True)
    decided = decide(scenario, cluster, run.plan)
    history_hash = HistoryHash()
    with JournalWriter(journal) as writer:

        def record(evidence: Evidence) -> None:
            writer.append(evidence)
            history_hash.add(evidence)

        writer.append(Header(SCHEMA, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())))
        reason, world = simulate(scenario, cluster, decided, record, tracer, onlooker)
        writer.append(Footer(world.clock.now_ns(), reason, unseed(history_hash.hexdigest(), world)))
        writer.sync()


@contextmanager
def _tracer(window_text: str | None = None, path: str = "") -> Iterator[Tracer | None]:
    """The tracer of that window, if one is given."""
    if window_text is None:
        yield None
    else:
        with Tracer(window(window_text), Path(path)) as tracer:
            yield tracer


if __name__ == "__main__":
    end_with(main)
