"""Banks, counters, queues and ids: what each read or answer must satisfy, at the bounds and on either side of them."""

import pytest

from checkers.invariants import bank, counter, ids, queues
from checkers.invariants.operations import Op
from harness.core.columns import INFO, NEVER
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.worlds.plain_operations import a, flat, one, r, read, told, txn

TRANSFER: Json = {":from": 0, ":to": 1, ":amount": 1}


def found(judgement: Judgement) -> dict[str, int]:
    return {finding.anomaly: finding.count for finding in judgement.findings}


# Bank


def balances(*amounts: Json) -> Json:
    return {"#map": [[account, amount] for account, amount in enumerate(amounts)]}


@pytest.mark.parametrize(
    ("second", "anomaly"),
    [
        (balances(4, 6), None),
        (balances(4, 7), "wrong-total"),
        (balances(4, 5), "wrong-total"),
        (balances(11, -1), "negative-balance"),
        (balances(10, 0), None),
        (balances(10, None), "nil-balance"),
        (balances(10, 0, 0), "unexpected-key"),
        (balances(10, None, 5), "unexpected-key"),
        (balances(12, -1), "wrong-total"),
    ],
)
def test_a_bank_s_read_is_held_against_the_first_and_the_first_fault_counts(second: Json, anomaly: str | None) -> None:
    judgement = bank.judged(flat(read(balances(5, 5)), one("transfer", TRANSFER), read(second)))
    assert found(judgement) == ({anomaly: 1} if anomaly else {})
    assert all(finding.ops == (2,) and "T2 read" in finding.sentence for finding in judgement.findings)
    assert judgement.witnesses["wrong-total"] == 1


def decimal(text: str) -> Json:
    return {"#decimal": text}


@pytest.mark.parametrize(
    ("first", "second", "anomaly"),
    [
        (balances(0.1, 0.2, 0.3), balances(0.3, 0.2, 0.1), None),  # As floats these come to two sums.
        (balances(0.1, 0.2, 0.3), balances(0.3, 0.2, 0.2), "wrong-total"),
        (balances(decimal("10.5"), 1), balances(11, decimal("0.50")), None),
        (balances(decimal("10.5"), 1), balances(11, decimal("0.51")), "wrong-total"),
        (balances("10.50", "1.00"), balances("11.50", "0.00"), None),
        (balances("10.50", "1.00"), balances("11.51", "-0.01"), "negative-balance"),
        (balances({"#int": str(10**30)}, 1), balances({"#int": str(10**30 + 1)}, 0), None),
        (balances(1, 2), balances(True, 2), "nil-balance"),
        (balances(1, 2), balances("none", 2), "nil-balance"),
    ],
)
def test_balances_are_added_as_they_are_written(first: Json, second: Json, anomaly: str | None) -> None:
    assert found(bank.judged(flat(read(first), read(second)))) == ({anomaly: 1} if anomaly else {})


def test_a_total_that_is_told_binds_the_first_read_too() -> None:
    history = flat(one("transfer", TRANSFER), read(balances(5, 5)))
    assert found(bank.judged(history, total=10)) == {}
    judgement = bank.judged(history, total=11)
    assert found(judgement) == {"wrong-total": 1}
    assert "come to 10 in all; they must come to 11, as declared" in judgement.findings[0].sentence
    assert bank.judged(history).witnesses["wrong-total"] == 0  # It is what the total is taken from.


def test_reads_before_any_transfer_could_not_have_been_torn() -> None:
    judgement = bank.judged(flat(read(balances(5, 5)), read(balances(5, 5)), one("transfer", TRANSFER, kind="fail")))
    assert (found(judgement), judgement.witnesses["wrong-total"]) == ({}, 0)


def test_a_transfer_of_unclear_outcome_can_tear_a_read() -> None:
    unclear = one("transfer", TRANSFER, kind="info")
    assert bank.judged(flat(read(balances(5, 5)), unclear, read(balances(5, 5)))).witnesses["wrong-total"] == 1


def test_a_transfer_that_overlaps_a_read_can_tear_it() -> None:
    overlapping = told((1, "invoke", "read", None), *one("transfer", TRANSFER), (1, "ok", "read", balances(5, 5)))
    assert bank.judged(overlapping, total=10).witnesses["wrong-total"] == 1


def transfer(number: int, source: int, target: int, amount: int, outcome: int = 0) -> Op:
    after = NEVER if outcome == INFO else None
    return txn(
        number, a(source, f'"{number}:-{amount}"'), a(target, f'"{number}:+{amount}"'), outcome=outcome, after=after
    )


def test_a_bank_of_lists_shows_every_transfer_whole() -> None:
    first, second = transfer(0, 1, 2, 3), transfer(1, 2, 1, 5)
    whole = txn(2, r(1, '"0:-3"', '"1:+5"'), r(2, '"0:+3"', '"1:-5"'))
    assert found(bank.judged((first, second, whole))) == {}
    torn = txn(2, r(1, '"0:-3"', '"1:+5"'), r(2, '"0:+3"'))
    judgement = bank.judged((first, second, torn))
    assert (found(judgement), judgement.findings[0].ops) == ({"wrong-total": 1}, (2,))
    assert "accounts that come to 5 in all; they must come to 0" in judgement.findings[0].sentence


def test_a_read_of_some_accounts_says_nothing_of_all() -> None:
    judgement = bank.judged((transfer(0, 1, 2, 3), transfer(1, 2, 3, 3), txn(2, r(1, '"0:-3"'), r(2, '"0:+3"'))))
    assert (found(judgement), judgement.witnesses["wrong-total"]) == ({}, 0)


def test_lists_of_something_else_are_no_bank() -> None:
    judgement = bank.judged((txn(0, a(1, 7), a(2, 8)), txn(1, r(1, 7), r(2)), txn(2, a(1, '"x"'), a(2, '"3:4"'))))
    assert (found(judgement), set(judgement.witnesses.values())) == ({}, {0})


# Counter


@pytest.mark.parametrize(("value", "is_legal"), [(0, False), (1, True), (4, True), (5, False), (-1, False)])
def test_a_counter_lies_between_what_was_certain_and_what_was_possible(value: int, is_legal: bool) -> None:
    history = told(
        *one("add", 1),
        *one("add", 8, kind="fail"),
        (1, "invoke", "read", None),
        (2, "invoke", "add", 3),
        (1, "ok", "read", value),
        (2, "ok", "add", 3),
        *one("add", 100),
    )
    judgement = counter.judged(history)
    assert (not judgement.findings) == is_legal
    assert judgement.witnesses == {"counter-out-of-bounds": 1}
    if not is_legal:
        assert f"T2 read the counter as {value}" in judgement.findings[0].sentence
        assert "came to 1, and when it ended" in judgement.findings[0].sentence
        assert judgement.findings[0].sentence.endswith("came to 4.")


@pytest.mark.parametrize(("value", "is_legal"), [(-3, False), (-2, True), (5, True), (6, False)])
def test_an_unclear_add_may_or_may_not_have_happened_whatever_its_sign(value: int, is_legal: bool) -> None:
    history = flat(one("add", 5, kind="info", process=1), one("add", -2, kind="info", process=2), read(value))
    assert (not counter.judged(history).findings) == is_legal


def test_a_counter_that_nobody_added_to_shows_nothing_but_zero() -> None:
    judgement = counter.judged(flat(read(0)))
    assert (found(judgement), judgement.witnesses) == ({}, {"counter-out-of-bounds": 0})
    assert found(counter.judged(flat(read(1)))) == {"counter-out-of-bounds": 1}


@pytest.mark.parametrize(("value", "is_legal"), [(2, False), (3, True), (4, False)])
def test_an_add_may_be_answered_with_the_new_total(value: int, is_legal: bool) -> None:
    history = flat(one("add", 1, 1), one("add", 1, 2), one("add", 1, 3), read(value))
    assert (not counter.judged(history).findings) == is_legal


def test_a_list_counts_its_appends() -> None:
    history = (txn(0, r(1), a(1, 10)), txn(1, r(1, 10), a(1, 11)), txn(2, r(1, 11)), txn(3, r(2)))
    judgement = counter.judged(history)
    assert found(judgement) == {"counter-out-of-bounds": 1}
    assert judgement.findings[0].ops == (2,)


# Queues


def test_a_queue_may_give_out_what_is_being_put_in() -> None:
    history = told(
        (1, "invoke", "dequeue", None),
        (2, "invoke", "enqueue", 7),
        (1, "ok", "dequeue", 7),
        (2, "info", "enqueue", 7),
    )
    judgement = queues.judged_queue(history)
    assert (found(judgement), judgement.witnesses["unexpected-element"]) == ({}, 1)


def test_a_queue_gives_out_nothing_before_it_was_put_in() -> None:
    judgement = queues.judged_queue(flat(one("dequeue", None, 7), one("enqueue", 7)))
    assert found(judgement) == {"unexpected-element": 1}
    assert judgement.findings[0].sentence == "T0 had taken 7 out before T1 began to put it in."


def test_a_queue_gives_out_nothing_that_failed_to_be_put_in() -> None:
    judgement = queues.judged_queue(flat(one("enqueue", 7, kind="fail"), one("dequeue", None, 7)))
    assert found(judgement) == {"unexpected-element": 1}


def test_a_queue_gives_out_as_many_as_were_put_in() -> None:
    twice = (*one("enqueue", 7), *one("enqueue", 7), *one("dequeue", None, 7), *one("dequeue", None, 7))
    assert found(queues.judged_queue(told(*twice))) == {}
    judgement = queues.judged_queue(told(*twice, *one("dequeue", None, 7)))
    assert found(judgement) == {"dequeued-twice": 1}


def test_an_empty_answer_is_no_value() -> None:
    judgement = queues.judged_queue(flat(((0, "invoke", "dequeue", None), (0, "ok", "dequeue", None))))
    assert (found(judgement), judgement.witnesses["unexpected-element"]) == ({}, 0)


def test_an_enqueue_may_be_answered_with_a_number_of_the_message() -> None:
    history = flat(one("enqueue", 7, "m-1"), one("enqueue", 8, "m-2"), one("dequeue", None, 7))
    assert found(queues.judged_queue(history)) == {}
    assert found(queues.judged_total_queue(history)) == {"lost-element": 1}
    assert queues.judged_total_queue(history).facts == {"missing": "8"}


def test_what_a_dequeue_was_invoked_with_did_not_come_out() -> None:
    judgement = queues.judged_queue(told((0, "invoke", "dequeue", "timeout: 5"), (0, "ok", "dequeue", None)))
    assert (found(judgement), judgement.witnesses["unexpected-element"]) == ({}, 0)


def test_what_was_put_in_and_never_comes_out_is_lost() -> None:
    history = flat(one("enqueue", 1), one("enqueue", 2), one("drain", None, [1, 3]))
    judgement = queues.judged_total_queue(history)
    assert found(judgement) == {"lost-element": 1, "unexpected-element": 1}
    assert {finding.ops for finding in judgement.findings} == {(1,), (2,)}
    assert judgement.facts == {"missing": "2"}


def test_what_was_not_acknowledged_is_not_lost() -> None:
    history = flat(one("enqueue", 1, kind="info", process=1), one("enqueue", 2, kind="fail"), one("drain", None, []))
    assert found(queues.judged_total_queue(history)) == {}


@pytest.mark.parametrize(("unclear", "lost"), [(0, 2), (1, 1), (2, 0), (3, 0)])
def test_a_dequeue_of_unclear_outcome_may_have_taken_what_is_missing(unclear: int, lost: int) -> None:
    taken = [one("dequeue", None, kind="info", process=10 + number) for number in range(unclear)]
    judgement = queues.judged_total_queue(flat(one("enqueue", 1), one("enqueue", 2), *taken))
    assert found(judgement) == ({"lost-element": lost} if lost else {})
    assert ("lost-element" in judgement.unknown) == (lost == 0)


def test_of_a_drain_of_unclear_outcome_anything_may_be_missing() -> None:
    open_drain = one("drain", None, kind="info")
    judgement = queues.judged_total_queue(flat(one("enqueue", 1), one("enqueue", 2), open_drain))
    assert (found(judgement), set(judgement.unknown)) == ({}, {"lost-element"})


def test_a_value_that_comes_out_twice_is_told_and_no_loss() -> None:
    history = flat(one("enqueue", 1), one("dequeue", None, 1), one("dequeue", None, 1))
    assert found(queues.judged_total_queue(history)) == {"dequeued-twice": 1}


# Ids


def test_an_id_is_given_out_once() -> None:
    unclear = one("generate", None, process=5, kind="info")
    unique = ids.judged(flat(one("generate", None, 1), one("generate", None, "1"), unclear))
    assert (found(unique), unique.witnesses) == ({}, {"duplicate-id": 1})
    judgement = ids.judged(flat(one("generate", None, 1), one("generate", None, 2), one("generate", None, 1)))
    assert (found(judgement), judgement.findings[0].ops) == ({"duplicate-id": 1}, (0, 2))
