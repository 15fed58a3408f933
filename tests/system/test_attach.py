"""A project of docker compose that runs already is put under test, and goes on. Its labels are made by hand."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
import msgspec
import pytest
from docker.errors import NotFound
from docker.models.containers import Container

from harness.cli.new import template
from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.core.record import Json
from harness.core.seams import Service
from harness.runtimes.containers.compose import ONE_OFF, PROJECT, SERVICE, find_project
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.images.images import image_of
from nemesis.plan import Plan, Step
from tests.system.harnesses import MS, seamark

pytestmark = pytest.mark.docker

NAME = "seamark-tests-shop"
N1, N2 = NodeId("n1"), NodeId("n2")
REDIS = Service(debian_packages=("redis-server",), port=6379, hello=b"PING\r\n", folder="/data")
KEPT = ("--appendonly", "yes", "--appendfsync", "always")
EMPTY = """

async def prepare(doors: Doors, settings: Settings) -> None:
    client = Client(0, doors, settings)
    client.streams = await asyncio.open_connection(*doors[NODE])
    await client.answers(["FLUSHALL"])
    await client.close()
"""


@pytest.fixture
def project(engine: docker.DockerClient) -> Iterator[Container]:
    """A project with one service n1, as compose would make it: labels, a network of its own, and a name in that."""
    with running(engine, f"{NAME}_default") as container:
        yield container


@contextmanager
def running(engine: docker.DockerClient, network_name: str) -> Iterator[Container]:
    network = engine.networks.create(network_name, labels=labels_for("tests"))
    container = engine.containers.create(
        image_of(msgspec.structs.replace(REDIS, image="redis:7"), engine),
        ["redis-server", "--protected-mode", "no", "--dir", "/data", *KEPT],
        labels={PROJECT: NAME, SERVICE: N1, ONE_OFF: "False"} | labels_for("tests"),
        network=network.name,
        networking_config={str(network.name): engine.api.create_endpoint_config(aliases=[N1])},
    )
    container.start()
    try:
        yield container
    finally:
        with suppress(NotFound):
            container.remove(force=True, v=True)
        network.remove()


def step(fault: str, start_ms: int, end_ms: int, *targets: str, **args: int | str) -> Step:
    return Step(
        fault=fault,
        package="partition" if fault == "cut" else fault,
        at_ns=start_ms * MS,
        until_ns=end_ms * MS,
        targets=targets or (N1,),
        args=args,
    )


def write(folder: Path, *steps: Step) -> None:
    text = (
        template("shop")
        .replace("\n\n# 4.", f"{EMPTY}\n\n# 4.")
        .replace("service=service", "service=service, prepare=prepare")
    )
    (folder / "shop.py").write_text(text, encoding="utf-8")
    (folder / "plan.json").write_bytes(msgspec.json.encode(Plan(steps=steps)))


def test_servers_that_run_already_are_struck_twice_and_go_on_with_nothing_of_ours_left(
    engine: docker.DockerClient, project: Container, tmp_path: Path
) -> None:
    links = ("client>n1", "n1>client")
    write(
        tmp_path,
        step("crash", 800, 1_500, disk="kept"),
        step("pause", 5_000, 5_600),
        step("cut", 6_600, 7_200, *links),
    )
    shape = ("--time", "8", "--rate", "60", "--seed", "5", "--plan", "plan.json", "--engine", "local", "--json")
    attached = ("run", "--cluster", "shop.py:shop", "--runtime", "docker", "--attach", NAME, *shape)
    for _ in range(2):  # The second finds what the first has left, unless it is emptied.
        code, out, err = seamark(tmp_path, *attached)
        assert code == 0, err + out[:2_000]
        report = msgspec.json.decode(out, type=dict[str, Json])
        assert report["findings"] == []
    project.reload()
    assert project.status == "running"
    network = engine.networks.get(f"{NAME}_default")
    assert [each.id for each in network.containers] == [project.id]


@pytest.mark.parametrize("network", ["0shop_default", "app_default", "etcdnet", "zoo_default"])
def test_the_name_of_the_project_s_network_does_not_matter(
    engine: docker.DockerClient, tmp_path: Path, network: str
) -> None:
    """An engine moves published ports to the network whose name sorts first, which is on either side of ours."""
    write(tmp_path, step("pause", 1_000, 1_600))
    shape = ("--time", "4", "--rate", "60", "--seed", "5", "--plan", "plan.json", "--engine", "local", "--json")
    with running(engine, network):
        attached = ("run", "--cluster", "shop.py:shop", "--runtime", "docker", "--attach", NAME, *shape)
        code, out, err = seamark(tmp_path, *attached)
    assert code == 0, err + out[:2_000]


def test_what_a_project_cannot_do_is_refused_before_anything_is_made(project: Container, tmp_path: Path) -> None:
    write(tmp_path, step("crash", 1_000, 2_000))
    run = ("run", "--cluster", "shop.py:shop", "--attach", NAME, "--runtime", "docker")
    for options, told in (
        ((*run, "--nemesis", "full-disk"), "full-disk must be prepared when a server is started"),
        ((*run[:-1], "sim"), "use --runtime docker"),
        ((*run[:4], "another", *run[5:]), f"no docker compose project 'another' runs here; running: {NAME}"),
    ):
        code, out, err = seamark(tmp_path, *options)
        assert code in (4, 64), out
        assert told in err
    text = (tmp_path / "shop.py").read_text(encoding="utf-8")
    (tmp_path / "shop.py").write_text(text.replace(", prepare=prepare", ""), encoding="utf-8")
    assert "shop needs a prepare for --attach" in seamark(tmp_path, *run)[2]
    assert not (tmp_path / "store").exists()


def test_a_service_that_is_missing_or_at_rest_is_told(engine: docker.DockerClient, project: Container) -> None:
    assert find_project(engine, NAME, [N1]).network.name == f"{NAME}_default"
    with pytest.raises(DeployError, match=r"the service n2 of \S+ has 0 containers.*the project has n1"):
        find_project(engine, NAME, [N1, N2])
    project.pause()
    with pytest.raises(DeployError, match="is paused: each node needs one that runs"):
        find_project(engine, NAME, [N1])
    project.unpause()
