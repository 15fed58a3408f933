import fcntl
import os
import tempfile
from pathlib import Path
from typing import cast

import docker
import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.images.builders import one_builder
from harness.runtimes.containers.images.images import remove_images


class NoImages:
    """An engine without images: what asks it has the lock already."""

    class images:  # noqa: N801  As docker's SDK names it.
        @staticmethod
        def list(name: str | None, filters: dict[str, str]) -> list[object]:
            return []


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the lock lies, in a temporary folder of this test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"seamark-images-{os.getuid()}.lock"


@pytest.fixture
def engine() -> docker.DockerClient:
    return cast("docker.DockerClient", NoImages())  # All that a removal of images asks of an engine.


def refusal(engine: docker.DockerClient) -> str:
    with pytest.raises(DeployError) as refused:
        remove_images(engine)
    return str(refused.value)


def test_a_link_is_refused_and_what_it_leads_to_is_kept(
    engine: docker.DockerClient, lock: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    lock.symlink_to(precious)
    assert refusal(engine) == (f"the lock {lock} is refused: it is a link; remove it, or set TMPDIR to another folder")
    assert precious.read_text(encoding="utf-8") == "kept"


def test_a_link_to_nothing_is_refused_and_nothing_is_made_there(
    engine: docker.DockerClient, lock: Path, tmp_path: Path
) -> None:
    lock.symlink_to(tmp_path / "made")
    assert "it is a link" in refusal(engine)
    assert [each.name for each in tmp_path.iterdir()] == [lock.name]


def test_another_name_of_a_file_is_refused_and_the_file_is_kept(
    engine: docker.DockerClient, lock: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept", encoding="utf-8")
    lock.hardlink_to(precious)
    assert "it is no plain file of your own" in refusal(engine)
    assert precious.read_text(encoding="utf-8") == "kept"


def test_a_pipe_is_refused_at_once(engine: docker.DockerClient, lock: Path) -> None:
    os.mkfifo(lock)
    assert "it is no plain file of your own" in refusal(engine)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(engine: docker.DockerClient, lock: Path) -> None:
    lock.touch()
    os.chown(lock, 65_534, 65_534)
    assert "it is no plain file of your own" in refusal(engine)


def test_the_lock_is_nobody_else_s_to_read_and_is_held_until_the_builder_is_done(lock: Path) -> None:
    with one_builder():
        assert lock.stat().st_mode & 0o777 == 0o600
        with lock.open("rb") as second, pytest.raises(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock.open("rb") as second:
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
