import hashlib
import socket
from pathlib import Path

import docker
import pytest
from docker.errors import APIError, DockerException

from harness.core.errors import DeployError
from harness.runtimes.containers.engine.calls import short
from harness.runtimes.containers.engine.engine import connect


def reason(monkeypatch: pytest.MonkeyPatch, host: str) -> str:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(DeployError) as failed:
        connect()
    assert host in str(failed.value)
    assert "\n" not in str(failed.value)
    return str(failed.value)


def test_no_socket_means_that_an_engine_must_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "no engine is there: start it" in reason(monkeypatch, f"unix://{tmp_path}/none.sock")


def test_a_socket_that_a_dead_engine_left_means_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead.sock"))
    assert "no engine listens there: start it" in reason(monkeypatch, f"unix://{tmp_path}/dead.sock")


def test_an_address_that_is_none_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "port is required" in reason(monkeypatch, "nonsense")


def test_an_engine_that_we_may_not_use_says_which_group_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> docker.DockerClient:
        raise DockerException("('Connection aborted.', PermissionError(13, 'Permission denied'))")

    monkeypatch.setenv("DOCKER_HOST", "tcp://engine")
    monkeypatch.setattr(docker, "from_env", refuse)
    with pytest.raises(DeployError, match="the group docker"):
        connect()


def test_an_engine_that_is_too_old_is_refused_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        def ping(self) -> bool:
            return True

        def version(self) -> dict[str, str]:
            return {"ApiVersion": "1.38"}

    monkeypatch.setenv("DOCKER_HOST", "tcp://engine")
    monkeypatch.setattr(docker, "from_env", lambda **_: Old())
    with pytest.raises(DeployError, match=r"speaks API 1\.38: 20\.10 \(API 1\.41\) or newer is needed"):
        connect()


def test_without_an_address_docker_s_current_context_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = f"unix://{tmp_path}/of-the-context.sock"
    folder = tmp_path / "contexts" / "meta" / hashlib.sha256(b"mine").hexdigest()
    folder.mkdir(parents=True)
    meta = f'{{"Name": "mine", "Metadata": {{}}, "Endpoints": {{"docker": {{"Host": "{host}"}}}}}}'
    (folder / "meta.json").write_text(meta, encoding="utf-8")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONTEXT", "mine")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    with pytest.raises(DeployError, match="of-the-context"):
        connect()


def test_the_cause_at_the_end_of_a_long_message_of_the_engine_stays() -> None:
    cause = 'exec: "nosuch": executable file not found in $PATH: unknown'
    result = short(Exception(f"400 Client Error for http+docker://localhost/{'x' * 600}/start: {cause}"))
    assert result.endswith("executable file not found in $PATH: unknown")
    assert len(result) < 420
    assert short(APIError("400 Client Error", explanation=f"OCI runtime\n  create failed: {cause}")) == (
        f"OCI runtime create failed: {cause}"
    )
