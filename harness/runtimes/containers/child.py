"""The child process of a run in containers. It deploys the cluster, carries out the test, and writes the journal.

Run as `python -m harness.runtimes.containers.child RUN_JSON JOURNAL CLUSTER`. CLUSTER is the code to which the user
consented, whatever run.json names. Exits 0 once the footer is written and everything that it started is gone. SIGINT,
and SIGTERM, which also follows the death of the harness, end the run early: faults are undone, containers removed, and
the records so far stay readable.
"""

import asyncio
import contextlib
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Final, Protocol

import docker
import msgspec

from harness.core.errors import SeamarkError, Unsound
from harness.core.machine import NodeId
from harness.core.record import SCHEMA, UNSOUND, Evidence, Footer, Header, Mark, StreamEvent
from harness.core.seams import Cluster, MachineCluster, ServiceCluster, Subscriber, is_of_machines, is_of_services
from harness.core.verdict import EXIT_INTERRUPTED
from harness.interpreter.clients import OpenClient, clients_of_machines, clients_of_services
from harness.interpreter.interpreter import Interpreter, Runtime
from harness.record.journal import JournalWriter
from harness.record.processes import die_with_parent
from harness.record.store import LOGS, read_run_file
from harness.runtimes.child import end_with, first_cause
from harness.runtimes.containers.collector import Collector
from harness.runtimes.containers.control import Hearers, Probes
from harness.runtimes.containers.deployment import PROXY_IMAGE, Deployment
from harness.runtimes.containers.engine.calls import in_thread
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.sweeper import sweep, sweep_folders
from harness.runtimes.containers.faults.faults import ContainerFaults, faults_on_machines
from harness.runtimes.containers.faults.site import Holds
from harness.runtimes.containers.images.images import image_for
from harness.runtimes.containers.lateness import Lateness
from harness.runtimes.containers.links.network import ContainerNetwork
from harness.runtimes.containers.links.wiring import CLIENT
from harness.runtimes.containers.machines import NODE_IMAGE, Blueprint, Machines
from harness.runtimes.containers.procedures import ServiceProcedures
from harness.runtimes.containers.service_site import ServiceSite
from harness.runtimes.containers.services import POWER, UPGRADE, ServiceBlueprint, Services
from harness.runtimes.containers.subscribers import Subscribers
from harness.scenario.consent import Code, on_command_line
from harness.scenario.registry import load_cluster, module_of
from harness.scenario.scenario import Decided, Scenario, decide, scenario_of, topology, upgraded
from nemesis.faults.crash import loses_writes

MS: Final = 1_000_000
SYNC_S: Final = 0.1


class MachineFailed(SeamarkError):
    """A machine raised an exception, which is a bug of the cluster or of ours; the message names the node."""


class Unrecorded(SeamarkError):
    """The journal cannot be written any more: later events are not evidence."""


class WallClock:
    """The `Clock` of containers: CLOCK_MONOTONIC, which they all share with the harness."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Set the start of the run to now."""
        self.epoch_ns, self.epoch_realtime_ns = time.monotonic_ns(), time.time_ns()

    def now_ns(self) -> int:
        """Nanoseconds since the start of the run."""
        return time.monotonic_ns() - self.epoch_ns

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait for that much time."""
        await asyncio.sleep(max(0, duration_ns) / 1_000_000_000)


class Recorder:
    """A writer of evidence to the journal, which also informs the interpreter."""

    def __init__(self, append: Callable[[Evidence], None], fail: Callable[[SeamarkError], None]) -> None:
        self._append, self._fail = append, fail
        self._trouble: Unrecorded | None = None
        self.interpreter: Interpreter | None = None

    def record(self, evidence: Evidence) -> None:
        """Record the evidence. Raises Unrecorded if the journal could not take all of it, and on every later call.

        No record may follow a partial one; and an OSError would be mistaken for a connection's error.
        """
        if self._trouble is not None:
            raise self._trouble
        try:
            self._append(evidence)
        except OSError as error:
            self._trouble = Unrecorded(f"the journal takes nothing any more: {error}")
            self._fail(self._trouble)
            raise self._trouble from error
        if isinstance(evidence, StreamEvent) and self.interpreter is not None:
            self.interpreter.observe(evidence)


class Test:
    """One run, from the deployment to the last record."""

    def __init__(
        self, scenario: Scenario, code: Code, decided: Decided, clock: WallClock, append: Callable[[Evidence], None]
    ) -> None:
        self._scenario, self._code, self._decided, self._clock = scenario, code, decided, clock
        self._failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._recorder = Recorder(append, self._fail)
        self._collector = Collector(self._recorder.record, clock.now_ns)
        self._run_id = secrets.token_hex(4)
        steps = decided.plan.steps
        self._faults = frozenset(POWER if loses_writes(step) else step.fault for step in steps)

    async def carry_out(self, cluster: Cluster, logs: Path) -> str:
        """Deploy, carry out the scenario, remove everything. Returns why the run ended."""
        client = connect()
        await in_thread(sweep, client)
        await in_thread(sweep_folders)
        await in_thread(self._build, cluster, client)
        self._clock.begin()  # Building images is no part of a run.
        if is_of_machines(cluster):
            return await self._on_machines(cluster, client, logs)
        assert is_of_services(cluster)
        return await self._on_services(cluster, client, logs)

    def _build(self, cluster: Cluster, client: docker.DockerClient) -> None:
        """Build or pull every image that is missing. Raises DeployError."""
        image_for(PROXY_IMAGE, client)
        if is_of_machines(cluster):
            image_for(NODE_IMAGE, client)
        elif is_of_services(cluster) and self._scenario.attach is None:
            blueprint = self._services(cluster)
            crew, later = Services(blueprint), upgraded(cluster, blueprint.settings.options)
            for node in crew.nodes:
                crew.image(node, client)
                if later is not None and UPGRADE in self._faults:
                    crew.serve(node, msgspec.structs.replace(blueprint.settings, options=later))
                    crew.image(node, client)

    def _services(self, cluster: ServiceCluster) -> ServiceBlueprint:
        return ServiceBlueprint(
            run_id=self._run_id,
            cluster=cluster,
            settings=self._decided.settings,
            faults=self._faults,
            attach=self._scenario.attach,
        )

    async def _on_machines(self, cluster: MachineCluster, client: docker.DockerClient, logs: Path) -> str:
        hearers = Hearers(take=self._collector.take, failed=self._fail_node, probes=Probes())
        blueprint = Blueprint(
            run_id=self._run_id,
            cluster=cluster,
            code=module_of(self._code),
            settings=self._decided.settings,
            seed=self._scenario.seed,
            epoch_ns=self._clock.epoch_ns,
            epoch_realtime_ns=self._clock.epoch_realtime_ns,
            faults=self._faults,
        )
        deployment = Deployment(client, Machines(blueprint, hearers))
        async with removed_after(deployment, logs):
            await deployment.open()
            network = ContainerNetwork(deployment.client_ports, blueprint.code)
            runtime = self._runtime(
                clients_of_machines(cluster, network, self._decided.settings),
                faults_on_machines(deployment, topology(cluster), network.traffic),
                deployment.handled,
                deployment,
            )
            return await self._interpret(cluster, runtime, deployment)

    async def _on_services(self, cluster: ServiceCluster, client: docker.DockerClient, logs: Path) -> str:
        settings = self._decided.settings

        def make(node: NodeId, kept: dict[str, object]) -> Subscriber:
            return cluster.subscriber(node, site.doors(node), settings, kept)

        subscribers = Subscribers(make, self._collector.deliver, self._fail_node)
        blueprint = self._services(cluster)
        site = ServiceSite(client, blueprint, subscribers)
        procedures = ServiceProcedures(site, blueprint, upgraded(cluster, settings.options))
        async with removed_after(site, logs):
            await site.open()
            runtime = self._runtime(
                clients_of_services(cluster, site.doors(CLIENT), settings),
                ContainerFaults(site, topology(cluster, settings.options), site, Holds(), procedures),
                site.handled,
                site.deployment,
            )
            return await self._interpret(cluster, runtime, site.deployment)

    def _runtime(
        self,
        open_client: OpenClient,
        faults: ContainerFaults,
        handled: Callable[[], dict[str, int]],
        deployment: Deployment,
    ) -> Runtime:
        def mark(phase: str, note: str | None) -> Mark:
            return Mark(self._clock.now_ns(), phase, {}, handled(), deployment.goals(), note)

        return Runtime(
            clock=self._clock,
            open_client=open_client,
            faults=faults,
            record=self._recorder.record,
            mark=mark,
            dump=deployment.dump,
        )

    async def _interpret(self, cluster: Cluster, runtime: Runtime, deployment: Deployment) -> str:
        interpreter = self._recorder.interpreter = Interpreter(
            runtime,
            cluster=cluster,
            workload=self._decided.workload,
            plan=self._decided.plan,
            threads=self._scenario.clients,
            timeout_ns=self._scenario.timeout_ms * MS,
        )
        lateness = Lateness(
            deployment.answering,
            self._recorder.record,
            self._clock.now_ns,
            targets=tuple(node.id for node in cluster.nodes),
            step=len(self._decided.plan.steps),
        )
        watchers = deployment.watch(), deployment.count(), lateness.watch()
        return await _first(interpreter.run(), *watchers, self._failed)

    def _fail(self, error: SeamarkError) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    def _fail_node(self, _: NodeId, text: str) -> None:
        self._fail(MachineFailed(text))  # The error names the node.


class Deployed(Protocol):
    """A deployment that must be removed in the end."""

    async def close(self, logs: Path | None = None) -> None: ...


@contextlib.asynccontextmanager
async def removed_after(deployed: Deployed, logs: Path) -> AsyncIterator[None]:
    """Remove the containers on exit, in any case. An earlier error takes precedence over a failed removal."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(SeamarkError):  # Without an engine, the next run removes them.
            await _closed(deployed, logs)
        raise
    await _closed(deployed, logs)


async def _closed(deployed: Deployed, logs: Path) -> None:
    """Remove everything. An interrupt meanwhile waits until that is done, or containers would be left behind."""
    closing = asyncio.ensure_future(deployed.close(logs))
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait([closing])
        raise


async def _first(test: Coroutine[None, None, str], *watchers: Awaitable[object]) -> str:
    """The test's result, or the exception that a watcher raises before; then all of them are stopped."""
    running = asyncio.ensure_future(test)
    tasks = [running, *map(asyncio.ensure_future, watchers)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in tasks:
            if each.done():
                await each
        return await running
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _synced(writer: JournalWriter) -> None:
    """Make the records durable ten times per second. Never returns."""
    while True:
        await asyncio.sleep(SYNC_S)
        await in_thread(writer.sync)


async def _main(run_json: Path, journal: Path, code: Code) -> int:
    run = read_run_file(run_json)
    scenario = scenario_of(run, run_json)
    cluster = load_cluster(code, run.code_sha256, is_checked=True)
    decided = decide(scenario, cluster, run.plan)
    clock = WallClock()
    with JournalWriter(journal) as writer:
        writer.append(Header(SCHEMA, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())))
        syncing = asyncio.create_task(_synced(writer))
        try:
            test = Test(scenario, code, decided, clock, writer.append)
            reason = await test.carry_out(cluster, run_json.parent / LOGS)
        except Exception as error:
            cause = first_cause(error)
            if isinstance(cause, Unsound):
                writer.append(Footer(clock.now_ns(), f"{UNSOUND}{cause}"))
                writer.sync()
            raise
        finally:
            syncing.cancel()
        writer.append(Footer(clock.now_ns(), reason))
        writer.sync()
    return 0


def main() -> int:
    """Carry out a run.json. An interrupt exits with 130, after everything is removed."""
    run_json, journal, named = sys.argv[1:]
    die_with_parent(signal.SIGTERM)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        running = loop.create_task(_main(Path(run_json), Path(journal), on_command_line(named)))

        def interrupt() -> None:
            """Cancel the run once.

            A terminal's interrupt is followed by the harness's, which must not stop the removal.
            """
            if not running.cancelling():
                running.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        try:
            return loop.run_until_complete(running)
        except asyncio.CancelledError:
            return EXIT_INTERRUPTED


if __name__ == "__main__":
    end_with(main)
