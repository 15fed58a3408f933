"""The command line in this process, and one stored run that tests may copy."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from harness.cli import output
from harness.cli.main import main
from harness.core.record import Json

SEED = 7
USUAL = ("--workload", "list-append", "--style", "swarm")  # Instead of what each seed of a batch draws.
SMALL = ("--cluster", "tutorial", "--time", "6", "--rate", "60", "--engine", "local")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Json]:
        """Standard output, which must be one JSON object and nothing else."""
        assert self.out, self.err
        return msgspec.json.decode(self.out, type=dict[str, Json])

    @property
    def line(self) -> str:
        """Standard error, which must be one line of ours."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("seamark: "), self.err
        return lines[0]


Seamark = Callable[..., Outcome]


@pytest.fixture
def seamark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Seamark:
    """`seamark ARGUMENTS` in an empty folder: the same entry as the installed command, without its start-up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(
        output, "EVERY_S", 3600.0
    )  # Progress depends on the machine, and these tests read all there is.

    def command(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["seamark", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, out, err)

    return command


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a clean cluster under all faults, judged; copy it before changing it."""
    folder = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["seamark", "run", "--seed", str(SEED), *SMALL, "--quiet"])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0
    return next((folder / "store" / "tutorial").iterdir())


@pytest.fixture
def run_copy(stored_run: Path, tmp_path: Path) -> Path:
    """The stored run under another path, free to be spoiled."""
    return Path(shutil.copytree(stored_run, tmp_path / "store" / "tutorial" / stored_run.name))
