import os
import socket
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.engine.engine import API_MIN, connect

pytestmark = pytest.mark.docker

ROOT = Path(__file__).resolve().parents[2]
NOTHING = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One of our commands, as a process of its own."""
    return subprocess.run(
        arguments, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_engine_of_this_machine_answers(engine: docker.DockerClient) -> None:
    version = str(engine.version()["ApiVersion"])
    assert tuple(int(part) for part in version.split(".")) >= API_MIN


def test_an_engine_that_hears_and_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/silent.sock")
        with pytest.raises(DeployError, match="did not answer in time"):
            connect(answer_within_s=1)


@pytest.mark.parametrize("words", [("images",), ("clean",)])
def test_without_an_engine_a_command_says_so_in_one_line(words: tuple[str, ...]) -> None:
    ended = command(sys.executable, "-c", "from harness.cli.main import main; main()", *words, **NOTHING)
    assert ended.returncode == 4
    lines = ended.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("seamark: no Docker engine at unix:///nowhere/docker.sock: no engine is there: start it")


def test_the_script_finds_a_running_engine_and_has_nothing_to_do(engine: docker.DockerClient) -> None:
    ended = command("scripts/docker")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("1", 1)])
def test_the_script_does_not_replace_an_engine_that_was_named(required: str, code: int) -> None:
    ended = command("scripts/docker", SEAMARK_REQUIRE_DOCKER=required, **NOTHING)
    assert ended.returncode == code
    assert "no engine is there" in ended.stdout + ended.stderr
    assert ("is skipped" in ended.stdout) is (code == 0)
