"""Logs by hand: what is lost, skipped or seen again, at the bounds and on either side of them, and what is legal."""

from collections.abc import Sequence

import pytest

from checkers.invariants import logs
from checkers.invariants.operations import Op
from harness.core.columns import FAIL, INFO, OK
from harness.core.record import Json
from harness.core.verdict import Judgement


def op(number: int, *steps: Json, process: int = 0, outcome: int = OK, f: str = "txn") -> Op:
    return Op(number, process, outcome, number + 1, f, None, list(steps))


def send(key: str, value: Json, offset: int | None = None) -> Json:
    return ["send", key, value if offset is None else [offset, value]]


def poll(**logs_polled: Sequence[tuple[int, Json]]) -> Json:
    return ["poll", {key: [list(each) for each in messages] for key, messages in logs_polled.items()}]


def found(*operations: Op) -> dict[str, int]:
    return {finding.anomaly: finding.count for finding in judged(*operations).findings}


def judged(*operations: Op) -> Judgement:
    return logs.judged(operations)


FULL = op(0, send("x", "a", 0), send("x", "b", 1), send("x", "c", 2))


def test_a_log_that_is_polled_in_order_is_right() -> None:
    judgement = judged(FULL, op(1, poll(x=[(0, "a"), (1, "b")]), process=1), op(2, poll(x=[(2, "c")]), process=1))
    assert judgement.findings == ()
    assert judgement.witnesses["poll-skip"] == judgement.witnesses["nonmonotonic-poll"] == 1
    assert judgement.witnesses["lost-write"] == 3
    assert judgement.facts == {"unseen": 0}


@pytest.mark.parametrize(("offset", "count"), [(0, 0), (1, 1), (2, 2)])
def test_a_message_is_lost_below_the_highest_that_was_polled(offset: int, count: int) -> None:
    value = ("a", "b", "c")[offset]
    assert found(FULL, op(1, poll(x=[(offset, value)]), process=1)).get("lost-write", 0) == count


@pytest.mark.parametrize(("outcome", "is_lost"), [(INFO, False), (FAIL, True)])
def test_what_a_poll_without_an_answer_may_have_taken_is_not_certainly_lost(outcome: int, is_lost: bool) -> None:
    judgement = judged(FULL, op(1, ["poll"], process=1, outcome=outcome), op(2, poll(x=[(1, "b")]), process=2))
    assert [finding.anomaly for finding in judgement.findings] == ["lost-write"][:is_lost]
    assert set(judgement.unknown) == (set() if is_lost else {"lost-write"})


@pytest.mark.parametrize(
    ("then", "anomalies"),
    [
        ((0, "a"), {"nonmonotonic-poll": 1}),
        ((1, "b"), {"nonmonotonic-poll": 1}),  # The same message again.
        ((2, "c"), {}),
        ((5, "e"), {"poll-skip": 1}),
    ],
)
def test_a_consumer_goes_on_behind_what_it_polled_last(then: tuple[int, str], anomalies: dict[str, int]) -> None:
    everything = op(0, send("x", "a", 0), send("x", "b", 1), send("x", "c", 2), send("x", "e", 5))
    reader = op(1, poll(x=[(0, "a"), (1, "b"), (2, "c"), (5, "e")]), process=9)
    result = found(everything, reader, op(2, poll(x=[(0, "a"), (1, "b")]), process=1), op(3, poll(x=[then]), process=1))
    assert result == anomalies
    within = found(everything, reader, op(2, poll(x=[(1, "b"), then]), process=1))
    assert within == {f"internal-{name}": count for name, count in anomalies.items()}


def test_only_what_stands_in_the_log_can_be_skipped() -> None:
    """Offset 1 may be the mark of a transaction, or a message of one that failed."""
    sent = (op(0, send("x", "a", 0), process=5), op(1, send("x", "c", 2), process=6))
    failed = op(2, send("x", "b", 1), outcome=FAIL)
    polls = (op(3, poll(x=[(0, "a")]), process=1), op(4, poll(x=[(2, "c")]), process=1))
    looked = op(5, poll(x=[(1, "b")]), process=2, outcome=FAIL)
    assert found(*sent, failed, *polls) == {}
    assert found(*sent, failed, *polls, looked) == {}
    assert found(*sent, *polls, looked) == {"poll-skip": 1}


@pytest.mark.parametrize(
    "between",
    [
        op(2, poll(x=[(1, "b")]), process=1, outcome=INFO),
        op(2, ["poll"], process=1, outcome=INFO),
        Op(2, 1, OK, 3, "assign", None, ["y"]),
        Op(2, 1, INFO, 3, "subscribe", None, ["y"]),
    ],
)
def test_a_consumer_that_may_be_elsewhere_is_not_held_to_its_last_place(between: Op) -> None:
    first, last = op(1, poll(x=[(0, "a")]), process=1), op(3, poll(x=[(2, "c")]), process=1)
    reader = op(4, poll(x=[(0, "a"), (1, "b"), (2, "c")]), process=9)
    assert found(FULL, first, between, last, reader) == {}
    assert found(FULL, first, op(2, poll(x=[(1, "b")]), process=1, outcome=FAIL), last, reader) == {"poll-skip": 1}


def test_a_message_of_unclear_outcome_may_come_late() -> None:
    unclear = op(0, send("x", "a", 9), outcome=INFO)
    reader = op(2, poll(x=[(3, "b"), (9, "a")]), process=1)
    assert found(unclear, op(1, send("x", "b", 3)), reader) == {}
    assert found(op(0, send("x", "a", 9)), op(1, send("x", "b", 3)), reader) == {"nonmonotonic-send": 1}


def test_an_unclear_message_counts_only_where_it_is_proven() -> None:
    unclear = op(0, send("x", "a", 0), send("y", "p"), outcome=INFO)
    other = op(1, send("x", "b", 0), process=1)
    assert found(unclear, other) == {}
    assert found(unclear, other, op(2, poll(y=[(0, "p")]), process=2)) == {"inconsistent-offsets": 1}


def test_a_value_that_was_sent_again_with_success_is_not_aborted() -> None:
    failed, again = op(0, send("x", "a"), outcome=FAIL), op(1, send("x", "a", 0))
    reader = op(2, poll(x=[(0, "a")]), process=1)
    assert found(failed, reader) == {"G1a": 1}
    assert found(failed, again, reader) == {}


def test_a_value_that_is_a_pair_is_no_offset() -> None:
    pair: Json = [7, "a"]
    sent = Op(0, 0, OK, 1, "send", [["send", "x", pair]], [["send", "x", pair]])
    assert found(sent, op(1, poll(x=[(0, pair)]), process=1)) == {}


def test_nothing_is_witnessed_where_nothing_was_polled() -> None:
    witnesses = judged(FULL).witnesses
    assert {name for name, count in witnesses.items() if count} == {"internal-nonmonotonic-send", "internal-send-skip"}
    assert set(judged().witnesses.values()) == {0}


def test_a_skip_is_told_in_a_sentence() -> None:
    reader = op(1, poll(x=[(0, "a"), (2, "c")]), process=1)
    finding = next(each for each in judged(FULL, reader).findings if each.anomaly == "internal-poll-skip")
    assert finding.sentence == "T1 polled a, and then c of x, but between them stands b."
