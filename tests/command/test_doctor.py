"""`seamark doctor` tells of the engine for containers, which may be missing, and of what dead runs left behind."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli import doctor
from harness.core.errors import DeployError
from harness.runtimes.containers.engine.sweeper import Swept
from tests.command.conftest import Seamark


def rows(out: str) -> dict[str, tuple[str, str]]:
    """State and text of each line, by its name."""
    return {line[9:19].strip(): (line[:8].strip(), line[20:]) for line in out.splitlines()}


def engine() -> SimpleNamespace:
    result = {"Version": "20.10.24", "Os": "linux", "Arch": "amd64"}
    return SimpleNamespace(version=lambda: result, close=lambda: None)


def test_a_machine_without_an_engine_is_fit_for_the_simulation(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> object:
        raise DeployError("no Docker engine at unix:///nowhere: none is there")

    monkeypatch.setattr(doctor, "connect", none)
    outcome = seamark("doctor")
    assert outcome.code == 0
    state, text = rows(outcome.out)["docker"]
    assert state == "note"
    assert text.startswith("no Docker engine at unix:///nowhere: none is there (only ")
    assert "images" not in rows(outcome.out)


def test_what_is_not_built_and_what_dead_runs_left_is_told_with_what_to_do(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kinds = ("container", "container", "network")
    left = tuple(Swept(kind=kind, name=f"{kind} {number}", run="1") for number, kind in enumerate(kinds))
    monkeypatch.setattr(doctor, "connect", engine)
    monkeypatch.setattr(doctor, "is_there", lambda _, tag: tag.startswith("seamark-toxiproxy:"))
    monkeypatch.setattr(doctor, "left_behind", lambda _: left)
    monkeypatch.setattr(doctor, "folders_left_behind", lambda: (tmp_path,))
    outcome = seamark("doctor")
    assert outcome.code == 0
    result = rows(outcome.out)
    assert result["docker"] == ("ok", "20.10.24 (linux/amd64)")
    state, text = result["images"]
    assert (state, text.split(";")[0]) == ("note", "seamark-toxiproxy")
    assert "not built yet: seamark-node, seamark-postgres; the first run that needs them builds them" in text
    removal = "of runs that died: container 2, network 1, folder 1; seamark clean removes it"
    assert result["left over"] == ("note", removal)


def test_where_everything_is_there_nothing_is_noted(seamark: Seamark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "connect", engine)
    monkeypatch.setattr(doctor, "is_there", lambda *_: True)
    monkeypatch.setattr(doctor, "left_behind", lambda _: ())
    monkeypatch.setattr(doctor, "folders_left_behind", lambda: ())
    result = rows(seamark("doctor").out)
    assert {result[name][0] for name in ("docker", "images", "left over")} == {"ok"}
    assert result["left over"][1] == "nothing"


def test_a_command_that_cannot_be_loaded_is_told(seamark: Seamark, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(command: str) -> None:
        if command == "check":
            raise IndexError("tuple index out of range")

    monkeypatch.setattr(doctor, "function_of", broken)
    outcome = seamark("doctor")
    assert outcome.code == 4
    state, text = rows(outcome.out)["packages"]
    assert state == "MISSING"
    assert "seamark check cannot be loaded (IndexError('tuple index out of range')): make setup installs" in text
