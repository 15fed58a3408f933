"""The declared initial state of registers: a value, or what the first transaction wrote."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.registers import ORDER, declared_initial
from harness.core.errors import ScenarioError
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.report.model import Report

FIRST = ("[[:w :x 0] [:w :y 0]]", 9)
HIDDEN = (("[[:w :x 1]]", 0), ("[[:r :x 1]]", 1), ("[[:r :x 0]]", 1))


def judged(folder: Path, transactions: tuple[tuple[str, int], ...], model: str, initial: str | None) -> Report:
    """The report on transactions one after the other, each of a process."""
    lines = [
        f"{{:index {2 * at + is_end}, :type {kind}, :process {process}, :f :txn, :value {mops}}}\n"
        for at, (mops, process) in enumerate(transactions)
        for is_end, kind in enumerate((":invoke", ":ok"))
    ]
    path = folder / "history.edn"
    path.write_text("".join(lines), encoding="utf-8")
    return judge(load(path, folder / "loaded"), LocalEngine(1), model=model, initial=initial)


@pytest.mark.parametrize(("initial", "verdict"), [(None, "valid"), ("first", "invalid"), ("0", "invalid")])
def test_a_first_transaction_that_wrote_all_values_hides_a_violation_until_it_is_declared(
    initial: str | None, verdict: str, tmp_path: Path
) -> None:
    report = judged(tmp_path, (FIRST, *HIDDEN), "strong-session-serializable", initial)
    assert report.verdict == verdict


def test_what_nobody_wrote_is_named_and_may_have_been_there_at_first(tmp_path: Path) -> None:
    report = judged(tmp_path, HIDDEN, "serializable", None)
    assert report.verdict == "valid"
    notes = report.facts["notes"]
    assert isinstance(notes, list)
    assert "T2 read 0 in :x, which no operation wrote; if keys held it at first" in str(notes[0])
    assert judged(tmp_path, HIDDEN, "strong-session-serializable", None).verdict == "unknown"
    assert judged(tmp_path, HIDDEN, "strong-session-serializable", "0").verdict == "invalid"


def test_of_two_values_that_nobody_wrote_one_is_garbage(tmp_path: Path) -> None:
    report = judged(tmp_path, (*HIDDEN, ("[[:r :x 7]]", 2)), "serializable", None)
    assert report.verdict == "unknown"
    assert "1 key(s) had two such values" in report.reason


def test_each_read_of_what_nobody_wrote_is_listed(tmp_path: Path) -> None:
    shown = [(f"[[:r :y [8 {at}]] [:append :y {at}]]", 3 + at) for at in range(2)]
    facts = judged(tmp_path, (*HIDDEN, ("[[:r :x 7]]", 2), *shown), "serializable", None).facts["serializability"]
    assert isinstance(facts, dict)
    assert facts["unwritten_reads"] == {
        "count": 4,
        "first": [
            {"op": 2, "key": ":x", "value": "0"},
            {"op": 3, "key": ":x", "value": "7"},
            {"op": 4, "key": ":y", "value": "8"},
            {"op": 5, "key": ":y", "value": "8"},
        ],
    }


def test_what_was_not_declared_was_not_there(tmp_path: Path) -> None:
    report = judged(tmp_path, (*HIDDEN, ("[[:r :x 7]]", 2)), "serializable", "0")
    assert report.verdict == "invalid"
    sentence = "T3 read :x as 7, which no operation wrote; nor was it declared as the initial value."
    assert [finding.sentence for finding in report.findings if finding.anomaly == "unwritten-read"] == [sentence]


@pytest.mark.parametrize("initial", [None, "8"])
def test_of_a_list_no_declaration_is_asked_for(initial: str | None, tmp_path: Path) -> None:
    shown = (("[[:r :y [8]] [:append :y 0]]", 0), ("[[:r :y [8 0]]]", 1))
    facts = judged(tmp_path, shown, "serializable", initial).facts["serializability"]
    assert isinstance(facts, dict)
    expected = "T0 read 8 in :y, which no operation wrote, one of 2 such reads; the list may have held it at first"
    assert facts["notes"] == [f"garbage-read: {expected}"]


def test_a_first_transaction_that_reads_is_no_initial_state(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="the first transaction is no initial state"):
        judged(tmp_path, HIDDEN[1:], "serializable", "first")


def test_a_value_that_is_not_json_gets_one_line() -> None:
    with pytest.raises(ScenarioError, match="--initial zero: write the value as JSON"):
        declared_initial(ORDER, "zero")


def test_a_value_of_any_kind_can_be_declared(tmp_path: Path) -> None:
    history = (('[[:w :x "b"]]', 0), ('[[:r :x "b"]]', 1), ('[[:r :x "a"]]', 1))
    assert judged(tmp_path, history, "strong-session-serializable", '"a"').verdict == "invalid"
