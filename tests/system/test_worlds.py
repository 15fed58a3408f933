"""Bad worlds: whatever goes, there is one clear line and the documented exit code, and what was recorded is judged."""

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pyarrow.parquet as pq
import pytest
from docker.errors import NotFound
from docker.models.containers import Container

from harness.core.record import Json
from harness.runtimes.containers.engine.engine import connect
from harness.runtimes.containers.engine.inside import output_of
from harness.runtimes.containers.engine.labels import labels_for
from harness.runtimes.containers.images.images import image_for
from tests.system.engine_proxy import EngineProxy
from tests.system.harnesses import RUN, SEAMARK, Harness, checked, folders_of, left_of, seamark, write_plan

pytestmark = pytest.mark.docker

BROKEN_CHILD = str(Path(__file__).with_name("broken_child.py"))
ROOT = Path(__file__).resolve().parents[2]
STORE_BYTES = 4 << 20


def start(folder: Path, *options: str, code: str = SEAMARK, **environment: str) -> Harness:
    arguments = (*RUN, "--plan", write_plan(folder), "--seed", "1", "--time", "4", *options)
    return Harness(folder, *arguments, code=code, **environment)


def container_of(engine: docker.DockerClient, harness: Harness, name: str) -> Container:
    [found] = engine.containers.list(
        all=True, filters={"label": f"seamark.pid={harness.child}", "name": f"-{name}$"}, ignore_removed=True
    )
    return found


def assert_one_line(harness: Harness, reason: str) -> str:
    """That line, with which it ended, and with 4: nothing else tells of an error, and there is no traceback."""
    code, out, err = harness.end()
    assert "Traceback" not in out + err
    lines = [line for line in (out + err).splitlines() if "HARNESS ERROR" in line or "seamark: " in line]
    assert len(lines) == 1, out + err
    assert reason in lines[0], lines
    assert code == 4
    return lines[0]


def assert_judged(harness: Harness, reason: str, at_least: int = 1) -> dict[str, Json]:
    """It ended like that, all that was recorded is in its history, and `check` judges that."""
    assert_one_line(harness, reason)
    harness.await_moment(lambda _: True)
    run = harness.run
    assert run is not None
    code, report = checked(harness.folder, run)
    assert (code, report["incomplete"]) == (4, True)
    stored = pq.read_table(run / "history" / "ops.parquet")["index"].to_pylist()
    assert set(stored) == set(harness.seen.invocations)
    assert len(stored) >= at_least
    return report


def test_without_an_engine_nothing_is_begun(tmp_path: Path) -> None:
    harness = Harness(tmp_path, *RUN, DOCKER_HOST="unix:///nowhere/docker.sock")
    assert_one_line(harness, "no Docker engine at unix:///nowhere/docker.sock: no engine is there: start it")
    assert not (tmp_path / "store").exists()


@pytest.mark.alone
def test_an_engine_that_dies_under_load_ends_the_run(engine: docker.DockerClient, tmp_path: Path) -> None:
    with EngineProxy(tmp_path) as proxy, start(tmp_path, DOCKER_HOST=proxy.host) as harness:
        harness.await_moment(lambda seen: seen.faults > 0 and len(seen.invocations) > 50)
        proxy.cut()
        assert_judged(harness, "the Docker engine does not answer any more", at_least=50)
    assert left_of(engine, harness.child) != []
    assert seamark(tmp_path, "clean")[0] == 0
    assert left_of(engine, harness.child) == folders_of(tmp_path) == []


def test_an_engine_that_dies_before_the_load_ends_the_run(engine: docker.DockerClient, tmp_path: Path) -> None:
    with EngineProxy(tmp_path) as proxy, start(tmp_path, DOCKER_HOST=proxy.host) as harness:
        harness.await_moment(lambda seen: seen.has_begun and left_of(engine, harness.child) != [])
        proxy.cut()
        assert_one_line(harness, "the Docker engine does not answer any more")
    assert harness.run is not None
    assert checked(tmp_path, harness.run)[0] == 4
    assert seamark(tmp_path, "clean")[0] == 0
    assert left_of(engine, harness.child) == []


def test_an_image_that_cannot_be_built_ends_the_run_and_its_log_is_kept(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    (recipe / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN echo so far && exit 3\n", encoding="utf-8")
    children = {"docker": (BROKEN_CHILD, str(recipe))}
    code = f"import harness.run.running; harness.run.running.CHILDREN = {children!r}; "
    with start(tmp_path, code=code + SEAMARK) as harness:
        assert_one_line(harness, "the image seamark-node could not be built: ")
        assert harness.run is not None
        assert checked(tmp_path, harness.run)[0] == 4
        assert left_of(engine, harness.child) == []
        [folder] = folders_of(tmp_path)
        assert "so far" in (tmp_path / "tmp" / folder / "build.log").read_text(encoding="utf-8")
        assert seamark(tmp_path, "clean")[0] == 0
        assert folders_of(tmp_path) == []


@pytest.mark.parametrize(("name", "reason"), [("s1", "the container of s1 ended"), ("toxiproxy", "Toxiproxy ended")])
def test_a_container_that_ends_by_itself_ends_the_run(
    engine: docker.DockerClient, tmp_path: Path, name: str, reason: str
) -> None:
    with start(tmp_path) as harness:
        harness.await_moment(lambda seen: len(seen.invocations) > 20)
        container_of(engine, harness, name).kill()
        assert_judged(harness, reason, at_least=20)
        assert left_of(engine, harness.child) == folders_of(tmp_path) == []


def test_a_machine_that_raises_ends_the_run(engine: docker.DockerClient, tmp_path: Path) -> None:
    """Its source in the container is another one when the node is started again after its crash."""
    with start(tmp_path) as harness:
        harness.await_moment(lambda seen: seen.faults > 0)
        source = (ROOT / "clusters" / "tutorial" / "data_node.py").read_bytes()
        text = source.replace(
            b"    def handle(", b"    def handle(self, *_: object) -> None:\n        1 / 0\n\n    def handled(", 1
        )
        assert text != source
        container_of(engine, harness, "n2").put_archive("/opt/seamark/clusters/tutorial", packed("data_node.py", text))
        assert_judged(harness, "MachineFailed: node n2, at ")
        assert harness.run is not None
        assert "ZeroDivisionError('division by zero')" in (harness.run / "logs" / "run.log").read_text(encoding="utf-8")
        assert left_of(engine, harness.child) == folders_of(tmp_path) == []


def packed(name: str, content: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


@pytest.fixture
def small_store(tmp_path: Path) -> Iterator[Path]:
    """A store of its own with little room, until the test is over."""
    store = tmp_path / "store"
    store.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={STORE_BYTES}", "tmpfs", str(store)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system needs root on Linux")
    yield store
    subprocess.run(["umount", "--lazy", str(store)], check=True)


def test_a_store_without_space_ends_the_run_and_what_was_recorded_is_judged(
    engine: docker.DockerClient, tmp_path: Path, small_store: Path
) -> None:
    with start(tmp_path) as harness:
        harness.await_moment(lambda seen: len(seen.invocations) > 50)
        fill(small_store / "ballast")
        line = assert_one_line(harness, "No space left on device")
        assert harness.run is not None
        assert f"make room and judge again: seamark check {harness.run.relative_to(tmp_path)}" in line
        assert "the verdict was HARNESS ERROR, the run failed" in line
        assert left_of(engine, harness.child) == folders_of(tmp_path) == []
        (small_store / "ballast").unlink()
        code, report = checked(tmp_path, harness.run)
        assert (code, report["incomplete"]) == (3, True)  # There was no room to keep the failure.
        harness.await_moment(lambda _: True)
        assert len(harness.seen.invocations) > 50


def fill(path: Path) -> None:
    """Leave no room in that file system."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, bytes(4096))
    except OSError:
        os.close(descriptor)


def test_all_that_a_command_in_a_container_says_is_heard_on_a_busy_machine(
    engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came together with the head of an answer was lost once, and so was a disk that it reported."""
    container = engine.containers.run(
        image_for("seamark-node"), ["sleep", "60"], detach=True, labels=labels_for("tests")
    )
    try:
        with EngineProxy(tmp_path, held_s=0.2) as proxy:
            monkeypatch.setenv("DOCKER_HOST", proxy.host)
            busy = connect()
            code, text = output_of(busy.api, str(container.id), ["sh", "-c", "echo one; echo two >&2; exit 3"])
            # The engine copies both outputs by themselves: which of the two lines comes first is left open.
            assert (code, sorted(text.splitlines())) == (3, ["one", "two"])
            with pytest.raises(NotFound):
                output_of(busy.api, "nowhere", ["true"])
            busy.close()
    finally:
        container.remove(force=True)
