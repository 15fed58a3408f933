import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import docker
import pytest
from msgspec.structs import replace

from harness.cli.clean import clean
from harness.record import ownership
from harness.record.ownership import Owner, start_of, this_process
from harness.runtimes.containers.engine.labels import PID, labels_for
from harness.runtimes.containers.engine.sweeper import Swept, remove_run, sweep
from harness.runtimes.containers.images.images import image_for

pytestmark = pytest.mark.docker

KINDS = ["container", "container", "container", "network", "volume"]


@pytest.fixture
def own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place of this test's own: harnesses that sweep meanwhile take its dead ones for those of another machine.

    To this test they stand elsewhere as well, alive or not: it must not sweep everything.
    """
    place = f"test-{uuid4().hex[:12]}/1"
    monkeypatch.setattr(ownership, "host_id", lambda: place)


@pytest.fixture
def run_id(engine: docker.DockerClient) -> Iterator[str]:
    """A run of this test's own; whatever is left of it goes in the end."""
    name = f"test-{uuid4().hex[:12]}"
    yield name
    remove_run(engine, name)


@pytest.fixture
def dead() -> Owner:
    """A harness that was killed."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        owner = replace(this_process(), pid=process.pid, start=start_of(process.pid) or 0)
        process.kill()
    return owner


def make(engine: docker.DockerClient, run_id: str, labels: dict[str, str]) -> None:
    """A network with a container that runs, one that is paused and one that never started, and a volume in use."""
    tag = image_for("seamark-toxiproxy", engine)
    network = engine.networks.create(f"seamark-{run_id}", labels=labels)
    volume = engine.volumes.create(f"seamark-{run_id}", labels=labels)
    made = [
        engine.containers.create(
            tag,
            ["sleep", "600"],
            name=f"seamark-{run_id}-{number}",
            labels=labels,
            network=network.name,
            volumes={volume.name: {"bind": "/kept", "mode": "rw"}},
        )
        for number in range(3)
    ]
    made[0].start()
    made[1].start()
    made[1].pause()


def left(engine: docker.DockerClient, run_id: str) -> list[str]:
    filters: dict[str, str | list[str] | bool] = {"label": f"seamark.run={run_id}"}
    return [
        *("container" for _ in engine.containers.list(all=True, filters=filters)),
        *("network" for _ in engine.networks.list(filters=filters)),
        *("volume" for _ in engine.volumes.list(filters=filters)),
    ]


def of_run(swept: tuple[Swept, ...], run_id: str) -> list[str]:
    return [each.kind for each in swept if each.run == run_id]


def test_what_a_live_harness_owns_is_kept_and_goes_when_its_run_ends(engine: docker.DockerClient, run_id: str) -> None:
    make(engine, run_id, labels_for(run_id))
    assert of_run(sweep(engine), run_id) == []
    assert of_run(sweep(engine, everything=True), run_id) == []
    assert left(engine, run_id) == KINDS
    assert [each.kind for each in remove_run(engine, run_id)] == KINDS
    assert left(engine, run_id) == []


@pytest.mark.usefixtures("own_place")
def test_what_a_killed_harness_left_is_removed_paused_and_attached_things_too(
    engine: docker.DockerClient, run_id: str, dead: Owner
) -> None:
    make(engine, run_id, labels_for(run_id, dead))
    assert of_run(sweep(engine), run_id) == KINDS
    assert left(engine, run_id) == []
    assert of_run(sweep(engine), run_id) == []


def test_what_another_machine_made_is_kept_until_everything_is_asked_for(
    engine: docker.DockerClient, run_id: str, dead: Owner
) -> None:
    labels = labels_for(run_id, replace(dead, host="another/1"))
    volume = engine.volumes.create(f"seamark-{run_id}", labels=labels)
    assert of_run(sweep(engine), run_id) == []
    assert engine.volumes.get(volume.name).attrs["Labels"] == labels
    # Not everything of this engine: the same question, of this run alone.
    assert [each.run for each in remove_run(engine, run_id)] == [run_id]


def test_what_carries_spoiled_labels_is_left_alone(engine: docker.DockerClient, run_id: str, dead: Owner) -> None:
    engine.volumes.create(f"seamark-{run_id}", labels=labels_for(run_id, dead) | {PID: "x"})
    assert of_run(sweep(engine, everything=True), run_id) == []
    assert left(engine, run_id) == ["volume"]


@pytest.mark.usefixtures("own_place")
def test_two_sweepers_at_once_remove_everything_between_them(
    engine: docker.DockerClient, run_id: str, dead: Owner
) -> None:
    make(engine, run_id, labels_for(run_id, dead))
    with ThreadPoolExecutor(3) as several:
        swept = list(several.map(lambda _: sweep(engine), range(3)))
    # The engine may grant two requests to remove one container, if the first of them has just ended.
    removed = {(each.kind, each.name) for some in swept for each in some if each.run == run_id}
    assert sorted(kind for kind, _ in removed) == KINDS
    assert left(engine, run_id) == []


@pytest.mark.usefixtures("own_place")
def test_the_command_says_what_it_removed(
    engine: docker.DockerClient, run_id: str, dead: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    make(engine, run_id, labels_for(run_id, dead))
    assert clean() == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[1] for line in lines if line[-1] == run_id] == KINDS
    assert left(engine, run_id) == []
