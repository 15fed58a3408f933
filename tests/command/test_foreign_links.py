"""A run from elsewhere holds links: no command writes, empties, adds to, or reads what they lead to."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record.ownership import temporary_name, this_process
from tests.command.conftest import Seamark

LOCAL = ("--engine", "local", "--quiet")
SECRET = b'{"schema": 1, "secret": "of somebody else"}\n'
COMMANDS: dict[str, Callable[[Path], tuple[str | Path, ...]]] = {
    "check": lambda run: ("check", run, *LOCAL),
    "check run.json": lambda run: ("check", run / "run.json", *LOCAL),
    "check history": lambda run: ("check", run / "history", *LOCAL),
    "replay": lambda run: ("replay", run, *LOCAL),
    "replay --trace": lambda run: ("replay", run, "--trace", "0..1", *LOCAL),
    "export edn": lambda run: ("export", run),
    "export jsonl": lambda run: ("export", run, "--format", "jsonl"),
    "run": lambda run: ("run", run / "run.json", *LOCAL),
    "list": lambda run: ("list", "--store", run.parent.parent),
    "clean": lambda run: ("clean", "--store", run.parent.parent),
}
FILES = (
    *("run.json", "journal.log", "report.json", "report.html", "junit.xml", "trace.jsonl", "trace.html"),
    *("logs/run.log", "logs/harness.log", "logs/new.log"),
    *(f"history/{name}.parquet" for name in ("ops", "mops", "events", "faults", "states", "probes", "marks", "names")),
)
FOLDERS = ("logs", "history", "history/more", "again")
REFUSING = [name for name in COMMANDS if name not in {"run", "list", "clean"}]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that is none of the run's, with one file."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


def seen(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All files in there, with their times."""
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in folder.iterdir()}


def linked(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)


def pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each name with each command; but `run`, which reads run.json alone and then makes a run, with that name only."""
    return [(name, command) for name in names for command in COMMANDS if command != "run" or name == "run.json"]


@pytest.mark.parametrize(("name", "command"), pairs(FILES))
def test_no_command_touches_the_file_that_a_link_leads_to(
    seamark: Seamark, run_copy: Path, outside: Path, command: str, name: str
) -> None:
    before = seen(outside)
    linked(run_copy / name, outside / "secret")
    outcome = seamark(*COMMANDS[command](run_copy))
    assert seen(outside) == before
    assert "of somebody else" not in outcome.out + outcome.err
    is_in_sight = command != "check history" or name.startswith("history/")
    if command in REFUSING and is_in_sight:
        assert (outcome.code, outcome.out) == (4, "")
        assert f"{run_copy / name}: is a link" in outcome.line
    elif command == "run" and name == "run.json":
        assert outcome.code == 4


@pytest.mark.parametrize(("name", "command"), pairs(FOLDERS))
def test_no_command_enters_the_folder_that_a_link_leads_to(
    seamark: Seamark, run_copy: Path, outside: Path, command: str, name: str
) -> None:
    before = seen(outside)
    linked(run_copy / name, outside)
    outcome = seamark(*COMMANDS[command](run_copy))
    assert seen(outside) == before
    if command in REFUSING and command != "check history":
        assert (outcome.code, outcome.out) == (4, "")
        assert f"{run_copy / name}: is a link" in outcome.line


@pytest.mark.parametrize("command", REFUSING)
def test_no_command_waits_for_what_is_no_file(seamark: Seamark, run_copy: Path, command: str) -> None:
    path = run_copy / "history" / "names.parquet"
    path.unlink()
    os.mkfifo(path)
    outcome = seamark(*COMMANDS[command](run_copy))
    assert (outcome.code, outcome.out) == (4, "")
    assert f"{path}: is a link or no file" in outcome.line


def test_a_link_to_a_run_is_a_name_of_it(seamark: Seamark, run_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(run_copy)
    for command in ("check", "replay"):
        assert seamark(*COMMANDS[command](tmp_path / "latest")).code == 0


def test_the_log_of_what_goes_wrong_is_written_through_no_link(
    seamark: Seamark, run_copy: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("what nobody expected")

    before = seen(outside)
    linked(run_copy.parent.parent / "seamark-error.log", outside / "secret")
    monkeypatch.setattr("harness.run.checking.judge_run", broken)
    outcome = seamark("check", run_copy, *LOCAL)
    assert (outcome.code, "its details could not be written" in outcome.line) == (4, True)
    assert seen(outside) == before


@pytest.mark.parametrize("command", [name for name in REFUSING if name != "check history"])
@pytest.mark.parametrize("name", [*FILES[1:9], "logs", "history"])
def test_a_folder_in_the_place_of_a_file_is_refused_and_a_file_in_that_of_a_folder(
    seamark: Seamark, run_copy: Path, command: str, name: str
) -> None:
    path = run_copy / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_bytes(b"")
    else:
        path.unlink(missing_ok=True)
        (path / "more").mkdir(parents=True)
    outcome = seamark(*COMMANDS[command](run_copy))
    assert (outcome.code, outcome.out) == (4, "")
    assert f"{path}: is a f" in outcome.line


def test_an_export_is_written_through_no_link(seamark: Seamark, run_copy: Path, outside: Path, tmp_path: Path) -> None:
    before = seen(outside)
    (tmp_path / ".out.edn.tmp").symlink_to(outside / "secret")
    assert seamark("export", run_copy, "--output", tmp_path / "out.edn").code == 0
    assert seen(outside) == before
    assert (tmp_path / "out.edn").is_file()
    assert not (tmp_path / "out.edn").is_symlink()


@pytest.mark.parametrize("depth", ["store", "store/tutorial"])
def test_nothing_is_swept_behind_a_link_in_the_store(
    seamark: Seamark, run_copy: Path, outside: Path, tmp_path: Path, depth: str
) -> None:
    dead = temporary_name("file").replace(f"-{this_process().start}-", f"-{this_process().start - 1}-")
    (outside / "below").mkdir()
    for folder in (outside, outside / "below"):
        (folder / dead).write_bytes(b"of somebody else")
    (tmp_path / depth / "link").symlink_to(outside)
    seamark("clean", "--store", run_copy.parent.parent)
    assert all((folder / dead).is_file() for folder in (outside, outside / "below"))
