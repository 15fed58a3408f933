"""`seamark run --fail-fast`: a run ends at the first violation of its streams, the same way each time."""

from pathlib import Path

import msgspec
import pytest

from harness.core.record import Footer, Mark, StreamEvent
from harness.record.journal import read_journal
from harness.report.model import Report
from harness.run.single import confirmed
from tests.command.conftest import SEED, SMALL, USUAL, Outcome, Seamark

BUG = ("--cluster", "tutorial", "--bug", "late-row", "--seed", "1", "--time", "12", "--engine", "local")
FOOTER = Footer(1, "stopped at the first violation: late-event of s1, 1.000 s")


def notes(outcome: Outcome) -> list[str]:
    facts = msgspec.convert(outcome.json["facts"], dict[str, object])
    return msgspec.convert(facts.get("notes", []), list[str])


def test_a_run_is_ended_at_its_first_violation_and_repeats(seamark: Seamark, tmp_path: Path) -> None:
    runs = [seamark("run", *BUG, "--fail-fast", "--json") for _ in range(2)]
    one, other = runs
    note = notes(one)[0]
    assert (one.code, one.json["verdict"], one.json["incomplete"]) == (1, "invalid", False)
    assert note.startswith("stopped at the first violation: late-event")
    assert one.json["history_sha256"] == other.json["history_sha256"]
    assert notes(other) == notes(one)

    run = tmp_path / str(one.json["run"])
    *evidence, footer = read_journal(run / "journal.log")
    assert isinstance(footer, Footer)
    assert (footer.reason, footer.unseed) == (note, None)
    end = evidence[-1]
    assert isinstance(end, Mark)
    assert end.time_ns < 12 * 10**9
    assert any(isinstance(record, StreamEvent) for record in evidence)
    assert "stopped at the first violation" in (run / "report.html").read_text()

    replayed = seamark("replay", run, "--engine", "local", "--json")
    assert replayed.code == 1
    assert replayed.err.startswith("exact")
    checked = seamark("check", run, "--engine", "local", "--json")
    assert (checked.code, notes(checked)) == (1, notes(one))


def test_without_it_the_run_goes_on_to_its_end(seamark: Seamark) -> None:
    outcome = seamark("run", *BUG, "--json")
    assert (outcome.code, notes(outcome)) == (1, [])
    assert outcome.json["unseed"] is not None


def test_a_clean_run_is_not_ended(seamark: Seamark) -> None:
    outcome = seamark("run", "--seed", str(SEED), *SMALL, "--fail-fast", "--twice", "--json")
    assert (outcome.code, notes(outcome)) == (0, [])
    assert outcome.json["unseed"] is not None


def test_a_run_that_is_ended_early_can_be_run_twice(seamark: Seamark) -> None:
    outcome = seamark("run", *BUG, "--fail-fast", "--twice", "--json")
    assert (outcome.code, outcome.json["verdict"]) == (1, "invalid")


def test_of_many_runs_the_first_that_fails_ends_early_and_is_the_last(seamark: Seamark) -> None:
    outcome = seamark("run", *BUG, *USUAL, "--fail-fast", "--count", "5", "--json")
    runs = msgspec.convert(outcome.json["runs"], list[Report])
    assert (outcome.code, len(runs)) == (1, 1)
    assert str(runs[0].facts["notes"]).startswith("['stopped at the first violation")


@pytest.mark.parametrize("verdict", ["valid", "vacuous"])
def test_a_violation_that_the_judgement_does_not_show_is_an_error(verdict: str) -> None:
    report = confirmed(Report(verdict=verdict, exit_code=0, reason="r"), FOOTER)
    assert (report.verdict, report.exit_code) == ("error", 4)
    assert report.reason == f"{FOOTER.reason}; the records show no finding"


@pytest.mark.parametrize("verdict", ["invalid", "error", "unknown"])
def test_any_other_verdict_stays(verdict: str) -> None:
    report = Report(verdict=verdict, exit_code=1, reason="r")
    assert confirmed(report, FOOTER) is report
    assert confirmed(Report(verdict="valid", exit_code=0, reason="r"), Footer(1, "completed")).verdict == "valid"
