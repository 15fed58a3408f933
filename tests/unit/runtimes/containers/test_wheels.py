import hashlib
import zipfile
from pathlib import Path
from typing import cast

import docker
import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.images.catalogue import Image, Way
from harness.runtimes.containers.images.commands import Log
from harness.runtimes.containers.images.images import Build

WHEEL = "seamark_try-1.0-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: seamark-try\nVersion: 1.0\n"


class Engine:
    """Of an engine a build of wheels asks for its processor."""

    def version(self) -> dict[str, str]:
        return {"Arch": "amd64"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for all there is, with one wheel."""
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as wheel:
        wheel.writestr("seamark_try.py", "TRIED = True\n")
        wheel.writestr("seamark_try-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("seamark_try-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("seamark_try-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


def files(index: Path, requirement: str) -> dict[str, bytes]:
    """What a build takes for an image whose recipe asks for that."""
    (index / "wheels.txt").write_text(requirement + "\n", encoding="utf-8")
    folder = index / "build"
    folder.mkdir()
    engine = cast("docker.DockerClient", Engine())
    build = Build(engine=engine, tag="seamark-try:1", way=Way.DEBIAN, log=Log("seamark-try", folder), labels={})
    return dict(build.wheels(Image(name="seamark-try", recipe=str(index), wheels="wheels.txt")))


def test_a_wheel_with_the_hash_that_the_recipe_names_is_unpacked(index: Path) -> None:
    digest = hashlib.sha256((index / WHEEL).read_bytes()).hexdigest()
    assert files(index, f"seamark-try==1.0 --hash=sha256:{digest}")["wheels/seamark_try.py"] == b"TRIED = True\n"


def test_a_wheel_with_another_hash_is_refused(index: Path) -> None:
    with pytest.raises(DeployError, match="DO NOT MATCH THE HASHES"):
        files(index, f"seamark-try==1.0 --hash=sha256:{'0' * 64}")


def test_a_wheel_of_which_no_hash_is_known_is_refused(index: Path) -> None:
    with pytest.raises(DeployError, match="Hashes are required"):
        files(index, "seamark-try==1.0")
