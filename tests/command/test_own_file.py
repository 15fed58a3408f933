"""A cluster in a file is run, replayed, run again and judged from any folder, as long as the file is what it was."""

import json
import re
from pathlib import Path

import pytest

from tests.command.conftest import USUAL, Seamark

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-your-own-cluster.md"
SHORT = ("--time", "2", "--engine", "local", "--quiet")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file that the page on machines of one's own leads to."""
    path = tmp_path / "notes.py"
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    path.write_text("\n\n".join(blocks), encoding="utf-8")
    return path


def test_a_run_of_a_file_repeats_from_another_folder_until_the_file_changes(
    seamark: Seamark, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert seamark("run", "--cluster", "notes.py:Notes", "--seed", "3", *SHORT).code == 0
    [run] = (tmp_path / "store" / "notes").iterdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    it = ("--cluster", f"{notes}:Notes")
    assert seamark("replay", run, *it, "--engine", "local", "--quiet").code == 0
    assert seamark("run", run / "run.json", *it, *SHORT).code == 0
    for refused in (seamark("replay", run, "--engine", "local"), seamark("run", run / "run.json", *SHORT)):
        assert refused.code == 64
        assert f"its cluster is code in a file: if that may be run, add --cluster {notes}:Notes" in refused.line

    notes.write_text(notes.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    replayed = seamark("replay", run, *it, "--engine", "local", "--quiet")
    assert (replayed.code, "PASS" in replayed.out) == (0, True)
    assert len(list(run.parent.iterdir())) == 2  # A new run: records of the old are not compared.
    assert seamark("run", run / "run.json", *it, *SHORT).code == 0  # Its plan, with what the file is now.

    notes.unlink()
    assert "cannot be read" in seamark("replay", run, *it, "--engine", "local", "--quiet").line
    assert "cannot be read" in seamark("run", run / "run.json", *it, *SHORT).line
    assert seamark("check", run, "--engine", "local", "--quiet").code == 0


def test_many_runs_of_a_file_find_its_bug_and_a_replay_shows_that_it_is_mended(
    seamark: Seamark, notes: Path, tmp_path: Path
) -> None:
    many = ("--bug", "early-answer", "--seed", "1", "--count", "4", "--jobs", "2", "--until-found", *USUAL)
    it = ("--cluster", f"{notes}:Notes")
    assert seamark("run", *it, *many, "--time", "6", "--engine", "local", "--quiet").code == 1
    red = next(
        run
        for run in (tmp_path / "store" / "notes").iterdir()
        if json.loads((run / "report.json").read_text(encoding="utf-8"))["verdict"] == "invalid"
    )
    text = notes.read_text(encoding="utf-8")
    notes.write_text(f"{text}\n# A try that mends nothing.\n", encoding="utf-8")
    still = seamark("replay", red, *it, "--engine", "local", "--quiet")
    assert (still.code, "still there  " in still.out, "not seen" in still.out) == (1, True, False)
    notes.write_text(text.replace("EARLY_ANSWER in ", "False and "), encoding="utf-8")
    mended = seamark("replay", red, *it, "--times", "2", "--engine", "local", "--quiet")
    assert (mended.code, "not seen     " in mended.out, "still there" in mended.out) == (0, True, False)
    assert "in 2 runs; other delays can hide a bug" in mended.out


def test_a_machine_that_raises_is_named_with_its_line_and_stays_an_error(
    seamark: Seamark, notes: Path, tmp_path: Path
) -> None:
    text = notes.read_text(encoding="utf-8")
    notes.write_text(text.replace("self.count += 1", "self.count += 1 / 0"), encoding="utf-8")
    line = text[: text.index("self.count += 1")].count("\n") + 1
    failed = seamark("run", "--cluster", "notes.py:Notes", "--seed", "1", *SHORT)
    assert "raised ZeroDivisionError: division by zero at 398189 ns" in failed.out
    assert f"(at {notes}:{line})" in failed.out
    [run] = (tmp_path / "store" / "notes").iterdir()
    checked = seamark("check", run, "--engine", "local", "--quiet")
    assert (checked.code, checked.out.splitlines()[0]) == (4, failed.out.splitlines()[-4])


def test_machines_in_a_file_are_no_containers(seamark: Seamark, notes: Path) -> None:
    refused = seamark("run", "--cluster", f"{notes}:Notes", "--runtime", "docker")
    assert refused.code == 64
    assert "not in a node's image" in refused.line


def test_a_file_can_be_listed_and_one_that_is_none_is_refused(seamark: Seamark, notes: Path) -> None:
    assert "NOTES-1" in seamark("clusters", "notes.py:Notes").out
    refused = seamark("clusters", "notes.py:Note")
    assert (refused.code, refused.line) == (64, "seamark: notes.py: no 'Note' in it: did you mean 'Notes'?")


def test_what_a_file_of_ones_own_raises_in_a_run_is_told_with_its_line(seamark: Seamark, notes: Path) -> None:
    text = notes.read_text(encoding="utf-8").replace("invocation.mops or ()", "invocation.nops")
    notes.write_text(text, encoding="utf-8")
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "invocation.nops" in each)
    outcome = seamark("run", "--cluster", "notes.py:Notes", "--seed", "3", *SHORT)
    assert outcome.code == 4
    assert f"no attribute 'nops' (at {notes}:{line})" in " ".join(outcome.out.split())
