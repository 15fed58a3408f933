"""`seamark shrink`: a small run with the same finding, and a test that fails with the bug and passes without it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness.cli.campaigns.calibrate
import harness.cli.failures.shrink
import seamark as api
from harness.core.generators.scripted import Script
from harness.record.store import RUN_FILE, read_run_file
from harness.scenario.scenario import scenario_of
from tests.command.conftest import Outcome, Seamark

SEED = 1


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Path:
    print(f"seed {SEED}")
    scenario = api.Scenario(
        cluster="tutorial", seed=SEED, time_s=8, rate=30, nemesis=("partition",), bugs=("lost-ack",)
    )
    report = api.run(scenario, store=tmp_path_factory.mktemp("red"))
    assert report.run is not None
    assert "missing-event TUT-3" in report.symptoms
    return Path(report.run)


def copied(red: Path, folder: Path) -> Path:
    return Path(shutil.copytree(red, folder / "store" / "tutorial" / red.name))


def outcome_of(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)


def script_in(run: Path) -> Script:
    script = scenario_of(read_run_file(run / RUN_FILE), run).script
    assert script is not None
    return script


def require_shown(shown: list[str], outcome: Outcome) -> None:
    """Require the lines of the page that stand below a command; "..." stands for those left out."""
    printed = iter(outcome.out.splitlines())
    for line in shown:
        assert line == "  ..." or line in printed, f"not printed, or not there: {line}"


def test_the_page_shows_what_is_printed_and_the_small_run_s_test_fails_with_the_bug_only(
    seamark: Seamark, tmp_path: Path
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "shrink.md"
    typed = re.findall(r"^\$ (.+?)(?=^\$|^```)", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    commands = [(words.split()[1:], shown) for words, *shown in (each.splitlines() for each in typed)]
    assert [words[0] for words, _ in commands] == ["run", "shrink", "run", "replay"]
    (begin, _), (shrink, shown), *others = commands
    seamark(*begin)
    (run,) = (tmp_path / "store" / "tutorial").iterdir()
    require_shown(shown, seamark(*shrink))
    require_small(seamark, run, tmp_path / "bank")
    for words, lines in others:
        require_shown(lines, seamark(*words))


def require_small(seamark: Seamark, run: Path, bank: Path) -> None:
    """Require that the run was made small, that its notes lead to the same result, and that its test is of the bug."""
    outcome = seamark("shrink", run, "--json", "--quiet", "--bank", bank)
    assert (outcome.code, outcome.err) == (0, "")
    done = outcome.json
    before, after = done["before"], done["after"]
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert before["operations"] > 200  # type: ignore[operator]
    assert after["operations"] <= 8  # type: ignore[operator]
    assert after["steps"] == 1
    report = done["report"]
    assert isinstance(report, dict)
    small = Path(str(report["run"]))
    assert len(script_in(small).load) == after["operations"]
    assert (small / "trace.html").exists()
    left = f"1 of {before['steps']} fault steps, {after['operations']} of {before['operations']} operations"
    assert left in (small / "report.html").read_text(encoding="utf-8")
    assert re.search(r"nemesis +(cut|stall|drop)", (small / "script.txt").read_text(encoding="utf-8"))

    again = seamark("replay", small, "--engine", "local", "--quiet")
    assert again.code == 1
    assert f"  shrunk  {left}, " in again.out

    test = Path(str(done["test"]))
    assert list(bank.iterdir()) == [test]
    assert re.fullmatch(r"test_missing_event_tut_3_[0-9a-f]{8}\.py", test.name)
    written = run.parent.glob(f"*/{test.stem.rpartition('_')[0]}.py")  # By the first call, and by this one.
    assert {each.read_bytes() for each in written} == {test.read_bytes()}
    own = Path(shutil.copy(test, bank.parent / test.name))
    failed = outcome_of(own)
    assert failed.returncode == 1, failed.stdout
    assert "1 failed" in failed.stdout
    text = own.read_text(encoding="utf-8")
    own.write_text(text.replace("BUGS = ('lost-ack',)", "BUGS = ()"), encoding="utf-8")
    assert own.read_text(encoding="utf-8") != text
    assert outcome_of(own).returncode == 0


def test_notes_that_say_what_is_not_so_are_found_out(seamark: Seamark, red: Path, tmp_path: Path) -> None:
    run = copied(red, tmp_path)
    seamark("shrink", run, "--finding", "missing-event", "--tries", "4", "--jobs", "1", "--quiet")
    (notes,) = run.glob("shrink-*.jsonl")
    noted = notes.read_bytes()
    assert b'"is_shown":false' in noted
    notes.write_bytes(noted.replace(b'"is_shown":false', b'"is_shown":true'))
    outcome = seamark("shrink", run, "--finding", "missing-event", "--tries", "4", "--jobs", "1", "--quiet")
    assert outcome.code == 4
    assert "its notes say that a run shows missing-event TUT-3 which does not; they are removed" in outcome.line
    assert not list(run.glob("shrink-*.jsonl"))
    notes.write_bytes(noted.replace(b'"is_shown":true', b'"is_shown":false'))  # Even of the whole run.
    assert seamark("shrink", run, "--finding", "missing-event", "--tries", "4", "--jobs", "1", "--quiet").code == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--finding", "missing-evnt"), "unknown finding 'missing-evnt'; did you mean missing-event?"),
        (("--cluster", "nowhere.py:Cluster"), "nowhere.py"),
    ],
)
def test_what_cannot_be_shrunk_says_why(
    seamark: Seamark, red: Path, tmp_path: Path, arguments: tuple[str, ...], line: str
) -> None:
    outcome = seamark("shrink", copied(red, tmp_path), *arguments)
    assert outcome.code == 64
    assert line in outcome.line


def test_a_run_without_a_finding_has_nothing_to_shrink(seamark: Seamark, run_copy: Path) -> None:
    outcome = seamark("shrink", run_copy)
    assert outcome.code == 64
    assert "has no finding" in outcome.line


def test_an_interrupt_says_how_to_go_on(
    seamark: Seamark, red: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(harness.cli.failures.shrink, "shrunk", interrupt)
    monkeypatch.setattr(harness.cli.campaigns.calibrate, "calibrated", interrupt)
    for command in (("shrink", copied(red, tmp_path)), ("calibrate", "tutorial")):
        outcome = seamark(*command)
        assert outcome.code == 130
        assert "  go on   the same command" in outcome.err
