import hashlib
import zipfile
from pathlib import Path
from typing import cast

import docker
import pytest

from harness.core.errors import DeployError
from harness.core.seams import Wheel
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


def program(index: Path, digest: str, path: str) -> dict[str, bytes]:
    """The programs of an image that takes that file of the wheel."""
    wheel = Wheel(requirement="seamark-try==1.0", sha256=digest, path=path, name="try")
    folder = index / "build"
    folder.mkdir()
    engine = cast("docker.DockerClient", Engine())
    build = Build(engine=engine, tag="seamark-try:1", way=Way.DEBIAN, log=Log("seamark-try", folder), labels={})
    return dict(build.programs(Image(name="seamark-try", recipe=str(index), programs=(wheel,))))


def test_a_program_is_one_file_of_a_wheel_under_its_own_name(index: Path) -> None:
    digest = hashlib.sha256((index / WHEEL).read_bytes()).hexdigest()
    assert program(index, digest, "seamark_try.py") == {"programs/try": b"TRIED = True\n"}


def test_a_program_of_a_wheel_with_another_hash_is_refused(index: Path) -> None:
    with pytest.raises(DeployError, match="DO NOT MATCH THE HASHES"):
        program(index, "0" * 64, "seamark_try.py")


def test_a_program_that_the_wheel_does_not_have_is_named(index: Path) -> None:
    digest = hashlib.sha256((index / WHEEL).read_bytes()).hexdigest()
    with pytest.raises(DeployError, match=r"seamark_try-1\.0-py3-none-any\.whl has no bin/try"):
        program(index, digest, "bin/try")


def test_a_wheel_with_another_hash_is_refused(index: Path) -> None:
    with pytest.raises(DeployError, match="DO NOT MATCH THE HASHES"):
        files(index, f"seamark-try==1.0 --hash=sha256:{'0' * 64}")


def test_a_wheel_of_which_no_hash_is_known_is_refused(index: Path) -> None:
    with pytest.raises(DeployError, match="Hashes are required"):
        files(index, "seamark-try==1.0")
