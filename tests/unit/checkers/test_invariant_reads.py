"""Sets, forks, skews and orders: what reads of collections must show, and what they may leave out."""

import pytest

from checkers.invariants import causal, forks, monotonic, sets
from checkers.invariants.operations import Op
from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.worlds.plain_operations import a, flat, one, r, read, told, txn


def found(judgement: Judgement) -> dict[str, int]:
    return {finding.anomaly: finding.count for finding in judgement.findings}


# Sets


@pytest.mark.parametrize("is_last_only", [False, True])
def test_an_acknowledged_element_that_the_last_read_lacks_is_lost(is_last_only: bool) -> None:
    judgement = sets.judged(flat(one("add", 1), one("add", 2), read([2])), is_last_only=is_last_only)
    assert found(judgement) == {"lost-element": 1}
    assert judgement.findings[0].ops == (0, 2)
    assert "T0 had added 1 in the set, but T2, which began later, does not show it" in judgement.findings[0].sentence
    assert judgement.witnesses["lost-element"] == 2


def test_an_element_that_comes_back_was_stale_and_is_not_lost() -> None:
    history = flat(one("add", 1), read([]), read([1]))
    assert found(sets.judged(history)) == {"stale-element": 1}
    assert found(sets.judged(history, is_last_only=True)) == {}


def test_who_read_an_element_makes_it_known_though_its_add_is_unclear() -> None:
    unclear = one("add", 1, kind="info")
    judgement = sets.judged(flat(unclear, read([1], process=2), read([], process=2)))
    assert (found(judgement), judgement.findings[0].ops) == ({"lost-element": 1}, (0, 1, 2))
    assert "1 in the set, from T0, had been read, and T1 was the last to show it" in judgement.findings[0].sentence


def test_an_unclear_add_that_was_never_read_owes_nothing() -> None:
    judgement = sets.judged(flat(one("add", 1, kind="info", process=1), read([])))
    assert (found(judgement), judgement.witnesses["lost-element"]) == ({}, 0)


def test_a_read_that_overlaps_an_add_may_show_it_or_not() -> None:
    either: tuple[Json, ...] = ([], [1])
    for shown in either:
        history = told(
            (1, "invoke", "add", 1), (2, "invoke", "read", None), (1, "ok", "add", 1), (2, "ok", "read", shown)
        )
        judgement = sets.judged(history)
        assert (found(judgement), judgement.witnesses["lost-element"]) == ({}, 0)


def test_an_add_after_the_last_read_is_not_lost() -> None:
    for is_last_only in (False, True):
        assert found(sets.judged(flat(read([]), one("add", 1)), is_last_only=is_last_only)) == {}


def test_what_nobody_added_is_unexpected_and_what_failed_is_told_apart() -> None:
    judgement = sets.judged(flat(one("add", 1, kind="fail"), read([1, 5])))
    assert found(judgement) == {"unexpected-element": 1, "failed-element": 1}
    assert judgement.witnesses["failed-element"] == 1


def test_an_element_that_failed_and_was_added_again_is_legal() -> None:
    assert found(sets.judged(flat(one("add", 1, kind="fail"), one("add", 1), read([1])))) == {}


def test_an_element_twice_in_a_read_is_a_duplicate() -> None:
    judgement = sets.judged(flat(one("add", 1), read([1, 1]), read([1])))
    assert (found(judgement), judgement.findings[0].ops) == ({"duplicate-elements": 1}, (1,))


def test_sets_of_edn_and_sets_with_keys_are_read_as_such() -> None:
    assert found(sets.judged(flat(one("add", 1), read({"#set": [1]})))) == {}
    keyed = (*one("add", [7, 1]), *one("add", [8, 1]))
    assert found(sets.judged(told(*keyed, *read([7, [1]]), *read([8, [1]])))) == {}
    assert found(sets.judged(told(*keyed, *read([7, [1]]), *read([8, []])))) == {"lost-element": 1}


@pytest.mark.parametrize("nothing", [None, [8, None]])
def test_a_read_that_was_answered_with_nothing_takes_no_keys_from_the_others(nothing: Json) -> None:
    keyed = (*one("add", [7, 1]), *one("add", [8, 1], kind="fail"), *read([7, [1]]))
    empty = one("read", nothing, process=9)
    assert found(sets.judged(told(*keyed, *empty))) == {}
    assert found(sets.judged(told(*keyed, *empty, *read([7, []])))) == {"lost-element": 1}


def test_lists_are_sets_by_key() -> None:
    history = (txn(0, a(1, 5)), txn(1, a(2, 5)), txn(2, r(1, 5)), txn(3, r(2)), txn(4, a(3, 6), outcome=FAIL))
    judgement = sets.judged(history)
    assert (found(judgement), judgement.findings[0].ops) == ({"lost-element": 1}, (1, 3))
    assert (judgement.facts["elements"], judgement.facts["stable"], judgement.facts["never read"]) == (3, 1, 1)


# Long fork


def test_reads_that_see_writes_in_different_orders_fork() -> None:
    judgement = forks.judged_long_fork((txn(0, r(1, 5), r(2)), txn(1, r(2, 6), r(1))))
    assert (found(judgement), judgement.findings[0].ops) == ({"long-fork": 1}, (0, 1))
    assert judgement.witnesses == {"long-fork": 2}


def test_reads_that_see_more_and_more_do_not_fork() -> None:
    reads = (txn(0, r(1), r(2)), txn(1, r(1, 5), r(2)), txn(2, r(1, 5), r(2, 6)), txn(3, r(1, 5), r(2, 6, 7)))
    judgement = forks.judged_long_fork(reads)
    assert (found(judgement), judgement.witnesses) == ({}, {"long-fork": 2})


def test_reads_of_other_keys_and_reads_that_write_are_not_compared() -> None:
    history = (txn(0, r(1, 5), r(2)), txn(1, r(2, 6), r(3)), txn(2, r(1), r(2, 6), a(1, 9)))
    judgement = forks.judged_long_fork(history)
    assert (found(judgement), judgement.witnesses) == ({}, {"long-fork": 0})


def test_a_plain_read_is_a_list_of_steps() -> None:
    steps: Json = [[":r", 1, 5], [":r", 2, None]]
    others: Json = [["r", 2, 5], ["r", 1, None]]
    assert found(forks.judged_long_fork(flat(read(steps), read(others)))) == {"long-fork": 1}
    assert found(forks.judged_long_fork(flat(read(steps), read([1, 2]), read(None)))) == {}


# Write skew


def skew(number: int, own: tuple[int, tuple[int, ...]], other: tuple[int, tuple[int, ...]], element: int) -> Op:
    (key, seen), (second, saw) = own, other
    return txn(number, r(key, *seen), r(second, *saw), a(key, element), after=number + 2)


def test_two_that_miss_each_other_s_writes_are_skewed() -> None:
    history = (skew(0, (1, ()), (2, ()), 10), skew(1, (2, ()), (1, ()), 20), txn(2, r(1, 10), r(2, 20)))
    judgement = forks.judged_write_skew(history)
    assert (found(judgement), judgement.findings[0].ops) == ({"write-skew": 1}, (0, 1))
    assert judgement.witnesses == {"write-skew": 2}
    assert "T0 wrote 10 to the former, T1 20 to the latter" in judgement.findings[0].sentence


def test_one_that_sees_the_other_is_serial() -> None:
    judgement = forks.judged_write_skew((skew(0, (1, ()), (2, ()), 10), skew(1, (2, ()), (1, (10,)), 20)))
    assert (found(judgement), judgement.witnesses) == ({}, {"write-skew": 2})


def test_two_that_write_the_same_key_or_did_not_commit_are_not_skewed() -> None:
    same = (skew(0, (1, ()), (2, ()), 10), skew(1, (1, (10,)), (2, ()), 11))
    assert forks.judged_write_skew(same).witnesses == {"write-skew": 0}
    unclear = skew(1, (2, ()), (1, ()), 20)._replace(outcome=INFO, after=NEVER)
    assert found(forks.judged_write_skew((skew(0, (1, ()), (2, ()), 10), unclear))) == {}


def test_transactions_one_after_the_other_could_not_have_been_skewed() -> None:
    first = skew(0, (1, ()), (2, ()), 10)._replace(after=1)
    judgement = forks.judged_write_skew((first, skew(1, (2, ()), (1, (10,)), 20)))
    assert judgement.witnesses == {"write-skew": 0}


def test_two_inserts_for_one_key_must_not_both_succeed() -> None:
    both = flat(one("insert", [1, [5, None]], "row 5"), one("insert", [1, [None, 6]]))
    assert found(forks.judged_write_skew(both)) == {"write-skew": 1}
    refused = flat(one("insert", [1, [5, None]]), one("insert", [1, [None, 6]], kind="fail"))
    judgement = forks.judged_write_skew(refused)
    assert (found(judgement), judgement.witnesses) == ({}, {"write-skew": 1})
    assert forks.judged_write_skew(flat(one("insert", [1, [5, None]]))).witnesses == {"write-skew": 0}


# Causal reverse, sequential


def test_a_read_that_shows_a_write_shows_all_that_had_ended_before_it() -> None:
    judgement = causal.judged_causal(flat(one("write", 1), one("write", 2), read([2])))
    assert (found(judgement), judgement.findings[0].ops) == ({"causal-reverse": 1}, (0, 1, 2))
    assert found(causal.judged_causal(flat(one("write", 1), one("write", 2), read([1])))) == {}


def test_a_write_that_overlaps_or_is_unclear_precedes_nothing() -> None:
    overlapping = told(
        (1, "invoke", "write", 1), (2, "invoke", "write", 2), (1, "ok", "write", 1), (2, "ok", "write", 2)
    )
    last = Op(2, 3, 0, 3, "read", value=[2])
    judgement = causal.judged_causal((*overlapping, last))
    assert (found(judgement), judgement.witnesses) == ({}, {"causal-reverse": 0})
    unclear = flat(one("write", 1, kind="info", process=1), one("write", 2), read([2]))
    assert found(causal.judged_causal(unclear)) == {}


def test_a_read_of_what_nobody_wrote_has_no_past() -> None:
    assert found(causal.judged_causal(flat(one("write", 1), read([7])))) == {}


def test_once_something_is_there_all_older_parts_must_be() -> None:
    hole = causal.judged_sequential(flat(read([7, ["c", None, "a"]])))
    assert (found(hole), hole.witnesses) == ({"sequence-hole": 1}, {"sequence-hole": 1})
    young = causal.judged_sequential(flat(read([7, [None, "b", "a"]]), read([7, [None, None, "a"]]), read([7, [None]])))
    assert (found(young), young.witnesses) == ({}, {"sequence-hole": 1})


# Monotonic


def test_a_process_that_no_longer_sees_what_it_saw_went_back() -> None:
    back = (txn(0, r(1, 5, 6), process=3), txn(1, r(1, 5), process=3))
    judgement = monotonic.judged(back)
    assert (found(judgement), judgement.findings[0].ops) == ({"non-monotonic-read": 1}, (0, 1))
    assert "Process 3 read 1 in T0 with 6 in it, and later, in T1, without." in judgement.findings[0].sentence


def test_processes_and_keys_are_apart_and_reads_may_grow() -> None:
    history = (
        txn(0, r(1, 5, 6), process=3),
        txn(1, r(1, 5), process=4),
        txn(2, r(2), process=3),
        txn(3, r(1, 5, 6, 7), process=3),
        txn(4, r(1), process=3, outcome=FAIL),
    )
    judgement = monotonic.judged(history)
    assert (found(judgement), judgement.witnesses) == ({}, {"non-monotonic-read": 1})


def test_a_number_that_falls_went_back() -> None:
    falls = flat(one("inc", None, 2), one("read", None, 1))
    assert found(monotonic.judged(falls)) == {"non-monotonic-read": 1}
    keyed = flat(one("read", [1, None], [1, 5]), one("read", [2, None], [2, 1]), one("read", [1, None], [1, 5]))
    assert found(monotonic.judged(keyed)) == {}


def test_the_last_read_of_a_set_is_the_one_that_ended_last() -> None:
    # T1 began before T2 and saw the set empty; T2 ended first, and T1 after it.
    first, begun_first, begun_last = Op(0, 0, OK, 1, "add", 1, 1), Op(1, 1, OK, 3, "read"), Op(2, 2, OK, 3, "read")
    with_all = begun_first._replace(value=[1], ended=5), begun_last._replace(value=[], ended=4)
    with_none = begun_first._replace(value=[], ended=5), begun_last._replace(value=[1], ended=4)
    assert found(sets.judged([first, *with_all], is_last_only=True)) == {}
    assert found(sets.judged([first, *with_none], is_last_only=True)) == {sets.LOST: 1}
