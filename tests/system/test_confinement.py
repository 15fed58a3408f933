"""Limits of a run's containers: no capability but those that `confinement` names, and no connection to the outside."""

import asyncio
import secrets
from collections.abc import Iterator

import docker
import pytest

from harness.core.machine import NodeId
from harness.runtimes.containers.crew import Crew
from harness.runtimes.containers.deployment import Deployment
from harness.runtimes.containers.engine import inside
from harness.runtimes.containers.engine.confinement import SERVER, confined, private_network
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.engine.sweeper import remove_run
from harness.runtimes.containers.images.images import image_for
from tests.system.confined import PORT, deployed, machines, neighbour, servers

pytestmark = pytest.mark.docker

# Linux's numbers of capabilities: include/uapi/linux/capability.h.
BITS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "SETGID": 6, "SETUID": 7, "NET_ADMIN": 12, "IPC_LOCK": 14}
N1 = NodeId("n1")
DIAL = f"timeout 2 bash -c 'exec 3<>/dev/tcp/$0/{PORT}' $0 2>/dev/null && echo connected || echo no connection"


def mask(*names: str) -> str:
    return f"{sum(1 << BITS[name] for name in names):016x}"


def status_of(engine: docker.DockerClient, container: str, process: str = "1") -> dict[str, str]:
    """Of a process in that container: the sets of capabilities, and whether it may gain any."""
    _, text = inside.output_of(engine.api, container, ["cat", f"/proc/{process}/status"])
    rows = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    return {name: rows[name] for name in ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs")}


def confinement(*names: str) -> dict[str, str]:
    return {**dict.fromkeys(("CapPrm", "CapEff", "CapBnd"), mask(*names)), "NoNewPrivs": "1"}


def seen(engine: docker.DockerClient, crew: Crew) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Of a deployment: the first process of n1, a command that the harness runs there, and Toxiproxy."""

    async def look() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
        async with deployed(engine, crew) as deployment:
            node = str(deployment.nodes[N1].container.id)
            proxy = f"seamark-{crew.run_id}-toxiproxy"
            return status_of(engine, node), status_of(engine, node, "self"), status_of(engine, proxy)

    return asyncio.run(look())


def test_a_node_may_change_packet_rules_where_packets_shall_vanish_and_nothing_else(
    engine: docker.DockerClient,
) -> None:
    node, command, proxy = seen(engine, machines("stall", "crash"))
    assert node == command == confinement("NET_ADMIN")
    assert proxy == confinement()


def test_without_such_a_fault_a_node_has_no_capability(engine: docker.DockerClient) -> None:
    assert seen(engine, machines("crash", "clock", "disk-full", "pause")) == (confinement(),) * 3


def test_a_server_in_an_image_of_ours_has_no_capability_but_what_it_declares(engine: docker.DockerClient) -> None:
    assert seen(engine, servers("seamark-node")) == (confinement(),) * 3
    assert seen(engine, servers("seamark-node", "CAP_IPC_LOCK"))[0] == confinement("IPC_LOCK")


def test_a_server_in_an_image_of_others_has_what_published_images_start_with(engine: docker.DockerClient) -> None:
    image = image_for("seamark-node", engine)  # By its tag, as any image that the engine has.
    assert seen(engine, servers(image))[0] == confinement(*SERVER)
    assert seen(engine, servers(image, "IPC_LOCK"))[0] == confinement(*SERVER, "IPC_LOCK")


# What the start of an official image does, as root: its server runs as 999, whose folder is a fresh volume.
START = (
    "set -e; mkdir /data; chown 999:999 /data; chmod 0700 /data; touch /data/file; "
    "exec setpriv --reuid 999 --regid 999 --clear-groups sh -c 'echo x >/data/own; id -u'"
)


def started(engine: docker.DockerClient, capabilities: set[str]) -> tuple[int, str]:
    """How that start ends with those capabilities, and what it says."""
    tag = image_for("seamark-node", engine)
    command = ["sh", "-c", START]
    container = engine.containers.create(tag, command, labels=labels_for("tests"), **confined(capabilities))
    try:
        container.start()
        code = container.wait()["StatusCode"]
        return code, container.logs().decode().strip()
    finally:
        container.remove(force=True)


def test_a_published_image_s_start_needs_each_capability_that_servers_have(engine: docker.DockerClient) -> None:
    assert started(engine, set(SERVER)) == (0, "999")
    for name in SERVER:
        code, said = started(engine, set(SERVER) - {name})
        assert code != 0, f"it starts without {name} as well"
        assert "ermitted" in said or "denied" in said


@pytest.fixture
def run_id(engine: docker.DockerClient) -> Iterator[str]:
    name = f"test-{secrets.token_hex(4)}"
    yield name
    remove_run(engine, name)


def dialled(engine: docker.DockerClient, container: str, host: str) -> str:
    """What a container says that dials PORT of that host."""
    return inside.output_of(engine.api, container, ["bash", "-c", DIAL, host])[1]


@pytest.mark.parametrize("crew", [machines("stall"), servers("seamark-node")], ids=["machines", "servers"])
def test_no_container_of_a_run_comes_to_the_outside_and_one_in_an_ordinary_network_does(
    engine: docker.DockerClient, crew: Crew, run_id: str
) -> None:
    async def look(host: str) -> list[str]:
        async with deployed(engine, crew) as deployment:
            names = [*(f"{node}" for node in deployment.nodes), "toxiproxy"]
            result = (asyncio.to_thread(dialled, engine, f"seamark-{crew.run_id}-{name}", host) for name in names)
            return await asyncio.gather(*result)

    with neighbour() as outside:
        labels = labels_for(run_id)
        network = engine.networks.create(f"seamark-{run_id}", driver="bridge", labels=labels)
        engine.containers.create(
            image_for("seamark-node", engine),
            ["sleep", "60"],
            name=f"seamark-{run_id}",
            network=network.name,
            labels=labels,
        ).start()
        assert dialled(engine, f"seamark-{run_id}", outside.host) == "connected"
        answers = asyncio.run(look(outside.host))
    assert len(answers) > 1
    assert set(answers) == {"no connection"}


def test_servers_are_in_an_internal_network_and_publish_nothing(engine: docker.DockerClient) -> None:
    async def look(deployment: Deployment) -> None:
        (node,) = deployment.nodes.values()
        node.container.reload()
        (joined,) = node.container.attrs["NetworkSettings"]["Networks"]
        assert engine.networks.get(joined).attrs["Internal"] is True
        assert node.container.ports == {}

    async def test() -> None:
        async with deployed(engine, servers("seamark-node")) as deployment:
            await look(deployment)

    asyncio.run(test())


def test_the_engine_publishes_no_port_of_who_is_in_an_internal_network_only(
    engine: docker.DockerClient, run_id: str
) -> None:
    """Why the nodes of machines, whose control channels the harness dials, are in no internal network."""
    published = {}
    for is_internal in (True, False):
        name, labels = f"seamark-{run_id}-{is_internal}", labels_for(run_id)
        network = private_network(engine, name, labels, is_internal=is_internal)
        container = engine.containers.create(
            image_for("seamark-node", engine),
            ["sleep", "60"],
            network=network.name,
            labels=labels,
            ports={"7001/tcp": ("127.0.0.1", 0)},
        )
        container.start()
        container.reload()
        published[is_internal] = bool(container.ports.get("7001/tcp"))
    assert published == {True: False, False: True}
