"""`seamark check` of several histories, of folders and of standard input: one line each, and one exit code."""

import io
from pathlib import Path

import pytest

from tests.command.conftest import SMALL, Seamark

GOOD = """
{:type :invoke, :process 0, :f :txn, :value [[:append 1 1]]}
{:type :ok, :process 0, :f :txn, :value [[:append 1 1]]}
{:type :invoke, :process 0, :f :txn, :value [[:r 1 nil]]}
{:type :ok, :process 0, :f :txn, :value [[:r 1 [1]]]}
"""
BAD = GOOD.replace("[:r 1 [1]]", "[:r 1 []]")
FILES = {"good.edn": GOOD, "bad.edn": BAD, "empty.edn": "", "damaged.edn": "{:type :ok", "page.md": "# A page\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / name).write_text(text)
    return tmp_path / "many"


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ("good good", 0),
        ("good empty", 3),
        ("good damaged empty", 4),
        ("damaged bad empty", 1),
    ],
)
def test_the_worst_of_several_decides(seamark: Seamark, folder: Path, names: str, code: int) -> None:
    outcome = seamark("check", *(folder / f"{name}.edn" for name in names.split()), "--engine", "local")
    assert outcome.code == code
    assert len(outcome.out.splitlines()) == len(names.split()) + 1


def test_a_named_file_that_is_no_history_is_64_after_the_rest_was_judged(seamark: Seamark, folder: Path) -> None:
    outcome = seamark("check", folder / "page.md", folder / "good.edn", "--engine", "local")
    assert outcome.code == 64
    assert "NO HISTORY" in outcome.out
    assert "PASS" in outcome.out


def test_in_a_folder_a_file_that_is_no_history_is_skipped_and_counted(seamark: Seamark, folder: Path) -> None:
    outcome = seamark("check", folder, "--engine", "local")
    assert outcome.code == 1
    assert "page.md" not in outcome.out
    assert "1 file skipped" in outcome.out
    assert "4 inputs (exit 1)" in outcome.out
    rows = [each for each in FILES if each != "page.md"]
    assert len(seamark("check", folder, "--json").out.split('"path"')) == len(rows) + 1


def test_a_folder_without_a_history_is_64(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "page.md").write_text("# A page\n")
    outcome = seamark("check", "notes", "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert "no file in these folders" in outcome.line


def test_files_that_seamark_writes_beside_runs_are_no_histories(seamark: Seamark, tmp_path: Path) -> None:
    batch = ("run", "--seed", "7", "--count", "2", "--jobs", "1", *SMALL)
    assert seamark(*batch, "--quiet").code == 0
    (tmp_path / "tiny.toml").write_text('name = "tiny"\n[[matrix]]\nclusters = ["tutorial"]\ncount = 1\ntime = 3.0\n')
    seamark("sweep", "tiny.toml", "--jobs", "1", "--quiet")
    seamark("hunt", "--cluster", "tutorial", "--count", "1", "--time", "2", "--jobs", "1", "--quiet")
    calibration = tmp_path / "store" / "calibration"
    calibration.mkdir()
    (calibration / "calibration.json").write_text('{\n "bugs": []\n}\n')
    (calibration / "rows.parquet").touch()
    (tmp_path / "store" / "seamark-error.log").write_text("Traceback (most recent call last):\nValueError: 1\n")
    for folder in ("store", "."):
        outcome = seamark("check", folder, "--engine", "local")
        assert (outcome.code, "HARNESS ERROR" in outcome.out) == (0, False), outcome.out
    for name in ("batches", "sweeps", "hunts", "calibration"):
        outcome = seamark("check", tmp_path / "store" / name, "--engine", "local")
        assert (outcome.code, outcome.out) == (64, "")
        assert "no file in these folders is in a format of histories" in outcome.line
    for path in (tmp_path / "store").glob("*s/**/*.json*"):
        assert "what Seamark wrote about runs" in seamark("check", path).line


def test_a_history_may_have_the_name_of_such_a_file(seamark: Seamark, tmp_path: Path) -> None:
    lines = '{"process": 0, "type": "invoke", "f": "txn", "value": [["append", 1, 1]]}\n'
    for name in ("report.json", "rows.jsonl"):
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / name).write_text(lines + lines.replace("invoke", "ok"))
    outcome = seamark("check", "many", "--engine", "local")
    assert "2 inputs" in outcome.out
    assert "skipped" not in outcome.out


class Pipe(io.TextIOWrapper):
    """Standard input with that text."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()))


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 1), ("no history", 64)])
def test_a_history_comes_from_standard_input(
    seamark: Seamark, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", Pipe(text))
    outcome = seamark("check", "-", "--engine", "local", "--quiet")
    assert outcome.code == code
    if code not in (0, 1):
        assert outcome.line.startswith("seamark: standard input: is in no format that I read")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_completes(seamark: Seamark, shell: str) -> None:
    outcome = seamark("completion", shell)
    assert outcome.code == 0
    assert "_SEAMARK_COMPLETE" in outcome.out


def test_commands_and_options_are_completed(seamark: Seamark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_SEAMARK_COMPLETE", "complete_bash")
    for words, place, wanted in (("seamark swe", "1", "sweep"), ("seamark check --prom", "2", "--promises")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", place)
        assert seamark().out.split() == [wanted]
