"""Prints what containers cost: starting and stopping them, Toxiproxy in a link, and how late the harness wakes up.

Run as `python -m tests.bench.containers`. Absolute figures are those of this machine at this moment; beside each stands
what it is to be compared with, measured in the same minute. Without an engine nothing is measured.
"""

import asyncio
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import docker

import harness.runtimes.containers.deployment as deployed
from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.core.seams import Invocation
from harness.runtimes.containers.control import Hearers, Probes
from harness.runtimes.containers.deployment import Deployment
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.images.images import image_for
from harness.runtimes.containers.links.network import ContainerNetwork
from harness.runtimes.containers.links.wiring import peers
from harness.runtimes.containers.machines import Blueprint, Machines
from harness.runtimes.host.config import DATA_PORT
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines, module_of
from harness.scenario.scenario import Scenario, decide

ROUNDS = 3
ROUND_TRIPS = 3000
WRITES = 800  # The first half warms up.
LOAD_S = 10
CALL_NS = 1_000_000_000
ECHO_PORT, ECHO_PROXY_PORT = 7777, 30_000
LAGGING_CHILD = str(Path(__file__).with_name("lagging_child.py"))
N1, N2 = NodeId("n1"), NodeId("n2")

ECHO = f"""
import socket
door = socket.create_server(("0.0.0.0", {ECHO_PORT}))
while True:
    line = door.accept()[0]
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while received := line.recv(4096):
        line.sendall(received)
"""
ASK = f"""
import socket, statistics, sys, time
took = []
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as line:
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range({ROUND_TRIPS}):
        before = time.perf_counter()
        line.sendall(b"x" * 100)
        received = 0
        while received < 100:
            received += len(line.recv(4096))
        took.append(time.perf_counter() - before)
print(statistics.median(took) * 1e6)
"""


def blueprint(cluster: str) -> Blueprint:
    """A deployment of that cluster, for which no fault is planned."""
    loaded = load_machines(installed(cluster))
    return Blueprint(
        run_id=secrets.token_hex(4),
        cluster=loaded,
        code=module_of(installed(cluster)),
        settings=decide(Scenario(cluster=cluster, seed=1, runtime="docker"), loaded).settings,
        seed=1,
        epoch_ns=time.monotonic_ns(),
        epoch_realtime_ns=time.time_ns(),
    )


def deployment(engine: docker.DockerClient, cluster: str) -> Deployment:
    """The same, ready to be opened. Nobody listens to what its nodes tell."""
    hearers = Hearers(take=lambda node, result: None, failed=lambda node, text: None, probes=Probes())
    return Deployment(engine, Machines(blueprint(cluster), hearers))


@asynccontextmanager
async def opened(engine: docker.DockerClient, cluster: str) -> AsyncIterator[Deployment]:
    """The cluster in containers."""
    each = deployment(engine, cluster)
    try:
        await each.open()
        yield each
    finally:
        await each.close()


def bare_s(engine: docker.DockerClient) -> float:
    """Seconds to create, start and remove one container in which nothing happens."""
    begin = time.perf_counter()
    container = engine.containers.create(image_for("seamark-node"), ["sleep", "60"], labels=labels_for("bench"))
    container.start()
    container.remove(force=True)
    return time.perf_counter() - begin


async def start_and_stop(engine: docker.DockerClient) -> None:
    """Of six containers, and of eight."""
    bare = statistics.median(bare_s(engine) for _ in range(ROUNDS))
    print(f"one bare container, made, started and removed: {bare:.2f} s")
    for cluster in ("tutorial", "ndb"):
        opening, closing = [], []
        for _ in range(ROUNDS):
            each = deployment(engine, cluster)
            begin = time.perf_counter()
            await each.open()
            opening.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            await each.close()
            closing.append(time.perf_counter() - begin)
        start_s, stop_s, count = statistics.median(opening), statistics.median(closing), len(each.nodes) + 1
        ratio = (start_s + stop_s) / count / bare
        message = f"ready in {start_s:.2f} s (at best {min(opening):.2f}), gone in {stop_s:.2f} s"
        print(f"{cluster}, {count} containers: {message}; each {ratio:.2f} of a bare one")


async def links(engine: docker.DockerClient) -> None:
    """A message from one node to another and back: bytes alone, and through the hosts, with Toxiproxy and without."""
    async with opened(engine, "tutorial") as each:
        each.proxies.create("echo", f"0.0.0.0:{ECHO_PROXY_PORT}", f"{N2}:{ECHO_PORT}")
        each.nodes[N2].container.exec_run(["python", "-c", ECHO], detach=True)
        await asyncio.sleep(1)
        places = {"direct": (str(N2), ECHO_PORT), "proxied": ("toxiproxy", ECHO_PROXY_PORT)}
        took = {
            name: [float(await each.run_in(N1, ["python", "-c", ASK, host, str(port)])) for _ in range(ROUNDS)]
            for name, (host, port) in places.items()
        }
    tell("100 bytes to another node and back", {name: min(rounds) for name, rounds in took.items()})
    writes: dict[str, list[float]] = {"direct": [], "proxied": []}
    for _ in range(ROUNDS):
        for name, rounds in writes.items():
            rounds.append(await write_us(engine, is_direct=name == "direct"))
    tell("a client's write, which is replicated", {name: min(rounds) for name, rounds in writes.items()})


def tell(what: str, took_us: Mapping[str, float]) -> None:
    """Both figures and their ratio."""
    direct, proxied = took_us["direct"], took_us["proxied"]
    print(f"{what}: {direct:.0f} us, {proxied:.0f} us with Toxiproxy between the nodes ({proxied / direct:.2f} x)")


async def write_us(engine: docker.DockerClient, *, is_direct: bool) -> float:
    """Microseconds (median) of a write, which the primary answers when its backup has it."""
    if is_direct:
        nodes = [node.id for node in load_machines(installed("tutorial")).nodes]
        put_peers(lambda wires, node: {peer: (str(peer), DATA_PORT) for peer in nodes if peer != node})
    try:
        async with opened(engine, "tutorial") as each:
            return await _write_us(each)
    finally:
        put_peers(peers)


def put_peers(dialled: Callable[..., object]) -> None:
    """Let nodes dial their peers there."""
    setattr(deployed, "peers", dialled)  # noqa: B010  A function takes the place of another, for mypy too.


async def _write_us(each: Deployment) -> float:
    cluster = load_machines(installed("tutorial"))
    connection = ContainerNetwork(each.client_ports, module_of(installed("tutorial"))).connect("client-0")
    client = cluster.client(0, connection, blueprint("tutorial").settings)
    took = []
    for number in range(WRITES):
        begin = time.perf_counter()
        completion = await client.invoke(Invocation(f="write", value=["x", number], mops=None), CALL_NS)
        if completion.outcome == "ok":
            took.append(time.perf_counter() - begin)
    await connection.close()
    assert len(took) > WRITES * 3 // 4  # Else the figure is of something else.
    return statistics.median(took[WRITES // 2 :]) * 1e6


def lag() -> None:
    """How late the sleeps of the process that carries a run out wake up, under load, without Spark and beside it."""
    for engine in ("local", "spark"):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "lag"
            code = (
                "import harness.run.running; from harness.cli.entry import main; "
                f"harness.run.running.CHILDREN = {{'docker': ({LAGGING_CHILD!r}, {str(out)!r})}}; main()"
            )
            words = ["run", "--runtime", "docker", "--cluster", "ndb", "--seed", "7", "--time", str(LOAD_S)]
            subprocess.run(
                [sys.executable, "-c", code, *words, "--engine", engine, "--store", folder, "--quiet"],
                stdout=subprocess.DEVNULL,
                check=False,
            )
            late_ms = sorted(map(float, out.read_text(encoding="ascii").split()))
        quantiles = {"median": 0.5, "99 %": 0.99, "99.9 %": 0.999, "worst": 1.0}
        result = ", ".join(f"{name} {late_ms[round(q * (len(late_ms) - 1))]:.2f} ms" for name, q in quantiles.items())
        print(f"sleeps wake up late, --engine {engine}: {result} (of {len(late_ms):,})")


def bench() -> None:
    """Print all figures."""
    try:
        engine = connect()
    except DeployError as error:
        print(f"not measured: {error}")
        return
    asyncio.run(start_and_stop(engine))
    asyncio.run(links(engine))
    engine.close()
    lag()


if __name__ == "__main__":
    bench()
