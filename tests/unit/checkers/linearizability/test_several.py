"""Several registers that are written together, and texts."""

from pathlib import Path
from typing import Literal

import pytest

from checkers.history.registers import Register
from checkers.words.anomalies import NON_LINEARIZABLE
from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Invoke, MicroOp, Outcome
from tests.unit.checkers.linearizability.judging import judged


def transactions(*steps: tuple[str, str]) -> list[Evidence]:
    """Transactions one after the other: "wx1 ry" as asked, "wx1 ry2" as answered."""
    evidence: list[Evidence] = []
    for number, each in enumerate(steps):
        asked, answered = (
            tuple(
                MicroOp("w" if mop[0] == "w" else "r", mop[1], int(mop[2:]) if mop[2:] else None)
                for mop in text.split()
            )
            for text in each
        )
        evidence += [Invoke(number, 2 * number, 2 * number, 0, "txn", None, asked)]
        evidence += [Complete(number, 2 * number + 1, "ok", None, answered)]
    return evidence


MANY = Register(model="multi-register", initial=0, is_initial_known=True)


@pytest.mark.parametrize(("seen", "count"), [("rx1 ry2", 0), ("rx1 ry0", 1), ("ry2", 0), ("rx0", 1)])
def test_registers_that_are_written_together_are_one(tmp_path: Path, seen: str, count: int) -> None:
    asked = " ".join(mop[:2] for mop in seen.split())
    evidence = transactions(("rx ry", "rx0 ry0"), ("wx1 wy2 rx", "wx1 wy2 rx1"), (asked, seen))
    judgement = judged(tmp_path, evidence, MANY)
    assert len(judgement.findings) == count
    assert judgement.witnesses == {NON_LINEARIZABLE: 1}


def test_the_states_of_several_registers_are_told_by_name(tmp_path: Path) -> None:
    evidence = transactions(("wx1 wy2", "wx1 wy2"), ("rx ry", "rx1 ry0"))
    (finding,) = judged(tmp_path, evidence, MANY).findings
    assert 'the state can only be "x" = 1, "y" = 2.' in finding.sentence
    assert 'T1 r "x" 1, r "y" 0 (process 0)' in finding.sentence


@pytest.mark.parametrize("outcome", ["info", "fail"])
@pytest.mark.parametrize("has_result", [True, False])
def test_an_unclear_transaction_may_come_late_and_a_failed_one_never(
    tmp_path: Path, outcome: Outcome, has_result: bool
) -> None:
    evidence = transactions(("wx1", "wx1"), ("wx2 ry", "wx2 ry7"), ("rx", "rx1"), ("rx", "rx2"), ("", ""))
    mops = evidence[3].mops if isinstance(evidence[3], Complete) else None
    evidence[3] = Complete(1, 3, outcome, None, mops if has_result else None)
    assert len(judged(tmp_path, evidence, MANY).findings) == (outcome == "fail")


@pytest.mark.parametrize(("nil", "count"), [("absent", 1), ("anything", 0)])
def test_nil_in_a_transaction_means_what_the_file_says(
    tmp_path: Path, nil: Literal["absent", "anything"], count: int
) -> None:
    evidence = transactions(("wx1", "wx1"), ("rx", "rx"))
    register = Register(model="multi-register", initial=0, is_initial_known=True, nil=nil)
    assert len(judged(tmp_path, evidence, register).findings) == count


@pytest.mark.parametrize(
    ("seen", "start"), [("rx3 ry4", '3 in "x" and 4 in "y"'), ("rx3", '3 in "x"'), ("ry4", '4 in "y"')]
)
def test_several_registers_may_have_held_something_before_the_history(tmp_path: Path, seen: str, start: str) -> None:
    asked = " ".join(mop[:2] for mop in seen.split())
    evidence = transactions((asked, seen), ("wx1 wy2", "wx1 wy2"), ("rx ry", "rx1 ry2"))
    judgement = judged(tmp_path, evidence, Register(model="multi-register"))
    assert judgement.findings == ()
    assert f"linearizable only if it held {start} before" in judgement.unknown[NON_LINEARIZABLE]
    assert len(judged(tmp_path, evidence, MANY).findings) == 1


def test_a_transaction_that_appends_is_about_no_register(tmp_path: Path) -> None:
    mops = (MicroOp("append", "x", 1),)
    with pytest.raises(HistoryError, match="operation 0 appends"):
        judged(tmp_path, [Invoke(0, 0, 0, 0, "txn", None, mops), Complete(0, 1, "ok", None, mops)], MANY)


def texts(*operations: tuple[str, str]) -> list[Evidence]:
    """Operations on the text of one key, one after the other; a get comes with what it saw."""
    evidence: list[Evidence] = []
    for index, (f, text) in enumerate(operations):
        given = None if f == "get" else text
        evidence.append(Invoke(index, 2 * index, 2 * index, 0, f, ["k", given]))
        evidence.append(Complete(index, 2 * index + 1, "ok", ["k", text]))
    return evidence


@pytest.mark.parametrize(
    ("operations", "start"),
    [
        ([("get", "old"), ("put", "a"), ("get", "a")], "old"),
        ([("append", "b"), ("get", "oldb"), ("append", "c"), ("get", "oldbc")], "old"),
        ([("append", "b"), ("append", "c"), ("get", "oldbc")], "old"),
        ([("get", "old"), ("get", "new"), ("put", "a")], None),
        ([("put", "a"), ("get", "old")], None),
        ([("append", "b"), ("append", "c"), ("get", "c")], None),
        ([("append", "b"), ("get", "oldb"), ("get", "old")], None),
    ],
)
def test_a_text_from_before_the_history_is_unknown_too(
    tmp_path: Path, operations: list[tuple[str, str]], start: str | None
) -> None:
    judgement = judged(tmp_path, texts(*operations), Register(nil="absent"))
    assert bool(judgement.findings) == (start is None)
    if start is not None:
        reason = f'initial-value: register "k" is linearizable only if it held {start} before'
        assert judgement.unknown[NON_LINEARIZABLE].startswith(reason)
        declared = judged(tmp_path, texts(*operations), Register(initial=start, is_initial_known=True, nil="absent"))
        assert (declared.findings, declared.unknown) == ((), {})
    assert len(judged(tmp_path, texts(*operations)).findings) == 1


@pytest.mark.parametrize(("seen", "count"), [("ab", 0), ("ba", 0), ("a", 1), ("", 1)])
def test_appends_to_a_text_stay_in_it_in_one_order(tmp_path: Path, seen: str, count: int) -> None:
    evidence: list[Evidence] = [Invoke(0, 0, 0, 0, "append", ["k", "a"]), Invoke(1, 1, 1, 1, "append", ["k", "b"])]
    evidence += [Complete(0, 2, "ok", ["k", "a"]), Complete(1, 3, "ok", ["k", "b"])]
    evidence += [Invoke(2, 4, 4, 0, "get", ["k", None]), Complete(2, 5, "ok", ["k", seen])]
    evidence += [Invoke(3, 6, 6, 0, "put", ["k", "z"]), Complete(3, 7, "ok", ["k", "z"])]
    evidence += [Invoke(4, 8, 8, 0, "get", ["k", None]), Complete(4, 9, "ok", ["k", "z"])]
    assert len(judged(tmp_path, evidence).findings) == count
