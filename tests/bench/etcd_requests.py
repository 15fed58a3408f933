"""Known defects of etcd by a few requests, without the harness: `python -m tests.bench.etcd_requests DEFECT VERSION`.

Each starts members of that version in containers, sends its requests, prints what it saw in one line, and exits with 1
if it saw the defect, else with 0; 4 if there is no container.

compacted-delete  a watch from the compacted revision of a delete does not get the delete (etcd #18089)
paused-holder     a lock's holder pauses longer than its lease, another gets the lock, and the first goes on (#11457)
fenced-holder     the same, but each write is on condition that its lock still exists: the control
divergence        members are killed under load until the hash of one revision differs between them (#13766)
"""

import asyncio
import itertools
import random
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final

import docker
from docker.models.containers import Container

from clusters.etcd.line import Line
from clusters.etcd.messages import message
from clusters.etcd.service import CLIENTS_PORT, MEMBERS, VERSIONS, service
from clusters.servers.client import Refused
from harness.core.errors import DeployError
from harness.core.machine import NodeId, Settings
from harness.core.seams import Address
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.engine.outside import address_of
from harness.runtimes.containers.engine.sweeper import remove_run, sweep
from harness.runtimes.containers.images.images import image_of

READY_S: Final = 60.0  # A member reads its whole store when it starts.
ROUNDS, ROUND_S, REST_S = 6, 30.0, 3.0
WRITERS, WRITES, KEYS = 16, 64, 500
LEASE_S: Final = 2
_GREATER, _BY_CREATION = 1, 1  # Of a comparison: its result and its target.
HARNESS_ERROR: Final = 4
Flags = tuple[str, ...]
# Snapshots of the log are frequent, so that a member that restarts replays little.
FLAGS: Final[dict[str, Flags]] = {"divergence": ("--snapshot-count=500",)}


class Members:
    """The containers of three members."""

    def __init__(self, containers: dict[NodeId, Container]) -> None:
        self._containers = containers

    def address(self, node: NodeId) -> Address:
        return Address(address_of(self._containers[node]), CLIENTS_PORT)

    async def kill(self, node: NodeId) -> None:
        await asyncio.to_thread(self._containers[node].kill)

    async def start(self, node: NodeId) -> None:
        await asyncio.to_thread(self._containers[node].start)

    async def ready(self) -> None:
        """Return when each member answers a linearizable read. Raises DeployError."""
        deadline_s = time.monotonic() + READY_S
        for node in self._containers:
            while True:
                with suppress(OSError, Refused, DeployError):
                    async with asyncio.timeout(2), Line(self.address(node)) as line:
                        await line.connected(1)
                        await line.ask("range", message("RangeRequest", key=b"x"))
                        break
                if time.monotonic() > deadline_s:
                    raise DeployError(f"{node} does not answer within {READY_S:g} s")
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def line(self, node: NodeId) -> AsyncIterator[Line]:
        async with Line(self.address(node)) as line:
            await line.connected(READY_S)
            yield line


@contextmanager
def members(version: str, flags: Flags) -> Iterator[Members]:
    """Three members of that version with those flags, which are removed in the end."""
    engine = connect()
    sweep(engine)
    run_id = f"track-{secrets.token_hex(4)}"
    labels = labels_for(run_id)
    settings = Settings(options={"version": version})
    try:
        network = engine.networks.create(f"seamark-{run_id}", driver="bridge", internal=True, labels=dict(labels))
        containers = {node: _started(engine, str(network.name), labels, node, settings, flags) for node in MEMBERS}
        yield Members(containers)
    finally:
        remove_run(engine, run_id)
        engine.close()


def _started(
    engine: docker.DockerClient, network: str, labels: dict[str, str], node: NodeId, settings: Settings, flags: Flags
) -> Container:
    made = service(node, {}, settings)
    container = engine.containers.create(
        image_of(made, engine),
        [*made.command, *flags],
        name=f"{network}-{node}",
        network=network,
        networking_config={network: engine.api.create_endpoint_config(aliases=[str(node)])},
        labels=dict(labels),
        mem_limit="512m",
    )
    container.start()
    return container


async def compacted_delete(cluster: Members) -> tuple[bool, str]:
    """Whether the delete is missing from a watch that begins at its revision, which is compacted."""
    async with cluster.line(MEMBERS[0]) as line:
        await line.ask("put", message("PutRequest", key=b"a", value=b"1"))
        deleted = (await line.ask("delete", message("DeleteRangeRequest", key=b"a"))).header.revision
        await line.ask("put", message("PutRequest", key=b"a", value=b"2"))
        await line.ask("compact", message("CompactionRequest", revision=deleted, physical=True))
        watch = line.watch()
        create = message("WatchCreateRequest", key=b"a", start_revision=deleted)
        await watch.tell(message("WatchRequest", create_request=create))
        events: list[tuple[str, int]] = []
        while (response := await watch.received(2)) is not None:
            events += [(("put", "delete")[each.type], each.kv.mod_revision) for each in response.events]
            if response.compact_revision:
                events.append(("compacted", response.compact_revision))
        watch.close()
    told = ", ".join(f"{kind} at {revision}" for kind, revision in events)
    is_missing = ("delete", deleted) not in events and not any(kind == "compacted" for kind, _ in events)
    return is_missing, f"deleted and compacted at {deleted}, watched from {deleted}: {told or 'nothing came'}"


async def paused_holder(cluster: Members, *, is_fenced: bool = False) -> tuple[bool, str]:
    """Whether one of two increments is lost, each made by a client that was given the lock before its read.

    With a fence a client's write does nothing once its lock is gone.
    """

    async def locked(line: Line, lease_s: int) -> bytes:
        lease = (await line.ask("grant", message("LeaseGrantRequest", TTL=lease_s))).ID
        return bytes((await line.ask("lock", message("LockRequest", name=b"lock", lease=lease))).key)

    async def increment(line: Line, lock: bytes, seen: int) -> bool:
        put = message("PutRequest", key=b"counter", value=b"%d" % (seen + 1))
        held = [message("Compare", key=lock, result=_GREATER, target=_BY_CREATION, create_revision=0)]
        success = [message("RequestOp", request_put=put)]
        asked = message("TxnRequest", compare=held if is_fenced else [], success=success)
        return bool((await line.ask("txn", asked)).succeeded)

    async with cluster.line(MEMBERS[0]) as one, cluster.line(MEMBERS[1]) as other:
        read = message("RangeRequest", key=b"counter")
        await one.ask("put", message("PutRequest", key=b"counter", value=b"0"))
        first = await locked(one, LEASE_S)
        seen = int((await one.ask("range", read)).kvs[0].value)
        # The first client pauses here; the second waits for the lock, gets it, and increments.
        second = await locked(other, 10 * LEASE_S)
        found = int((await other.ask("range", read)).kvs[0].value)
        done = [await increment(other, second, found), await increment(one, first, seen)]  # The first goes on.
        after = int((await one.ask("range", read)).kvs[0].value)
    return after < sum(done), f"{sum(done)} increments under the lock were acknowledged: the counter is {after}"


async def divergence(cluster: Members) -> tuple[bool, str]:
    """Whether members that were killed under load have different data at one revision, once at rest.

    3.5.1 saves the index of an entry that it has not applied, if its periodic commit comes between the two. A kill
    before the next commit loses that entry's writes. Only members that apply one entry after the other come into that
    state: so each entry has many writes.
    """
    done, kills = itertools.count(), itertools.count()
    told, is_diverged = "", False
    draw = random.Random(7)
    for _ in range(ROUNDS):
        stop_s = time.monotonic() + ROUND_S
        killing = _kill(cluster, draw, kills, stop_s)
        await asyncio.gather(killing, *(_write(cluster, number, done, stop_s) for number in range(WRITERS)))
        await cluster.ready()
        await asyncio.sleep(REST_S)
        is_diverged, told = await _compared(cluster)
        if is_diverged:
            break
    return is_diverged, f"{next(done)} transactions of {WRITES} puts, {next(kills)} kills; revision and hash: {told}"


async def _write(cluster: Members, number: int, done: Iterator[int], stop_s: float) -> None:
    """Send one transaction after the other to a member; to another one after an error."""
    draw = random.Random(number)
    while time.monotonic() < stop_s:
        with suppress(OSError, Refused, DeployError):
            async with Line(cluster.address(draw.choice(MEMBERS))) as line:
                await line.connected(1)
                while time.monotonic() < stop_s:
                    keys = (b"k%d" % key for key in draw.sample(range(KEYS), WRITES))
                    puts = (message("PutRequest", key=key, value=draw.randbytes(200)) for key in keys)
                    success = [message("RequestOp", request_put=put) for put in puts]
                    async with asyncio.timeout(2):
                        await line.ask("txn", message("TxnRequest", success=success))
                    next(done)
        await asyncio.sleep(0.05)


async def _kill(cluster: Members, draw: random.Random, kills: Iterator[int], stop_s: float) -> None:
    """Kill a member under load and start it, again and again."""
    while time.monotonic() < stop_s - 5:
        await asyncio.sleep(draw.uniform(0.2, 0.8))
        node = draw.choice(MEMBERS)
        await cluster.kill(node)
        next(kills)
        await cluster.start(node)
        await cluster.ready()


async def _compared(cluster: Members) -> tuple[bool, str]:
    """Whether the members differ, and each one's revision and hash at the lowest of them."""
    revisions, hashes = {}, {}
    for node in MEMBERS:
        async with cluster.line(node) as line:
            revisions[node] = (await line.ask("status", message("StatusRequest"))).header.revision
    for node in MEMBERS:
        async with cluster.line(node) as line:
            request = message("HashKVRequest", revision=min(revisions.values()))
            hashes[node] = (await line.ask("hash_kv", request)).hash
    is_diverged = len(set(hashes.values())) > 1 or len(set(revisions.values())) > 1
    return is_diverged, ", ".join(f"{node} {revisions[node]} {hashes[node]:08x}" for node in MEMBERS)


DEFECTS: Final[dict[str, Callable[[Members], Coroutine[Any, Any, tuple[bool, str]]]]] = {
    "compacted-delete": compacted_delete,
    "paused-holder": paused_holder,
    "fenced-holder": partial(paused_holder, is_fenced=True),
    "divergence": divergence,
}


async def seen(defect: str, version: str) -> tuple[bool, str]:
    """Whether the defect was seen, and the line about it. Raises DeployError."""
    with members(version, FLAGS.get(defect, ())) as cluster:
        await cluster.ready()
        return await DEFECTS[defect](cluster)


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in DEFECTS or sys.argv[2] not in VERSIONS:
        print(f"give one of {', '.join(DEFECTS)}, and one of {', '.join(VERSIONS)}", file=sys.stderr)
        return 64
    defect, version = sys.argv[1:]
    try:
        is_seen, told = asyncio.run(seen(defect, version))
    except Exception as error:  # noqa: BLE001  An error of ours must not count as a defect of etcd.
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return HARNESS_ERROR
    print(f"etcd {version}, {defect}: {'SEEN' if is_seen else 'not seen'}. {told}")
    return int(is_seen)


if __name__ == "__main__":
    sys.exit(main())
