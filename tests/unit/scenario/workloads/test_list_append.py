from collections import Counter
from itertools import pairwise

import pytest

from harness.core.errors import ScenarioError
from harness.core.record import MicroOp
from harness.scenario.workloads import WORKLOADS
from harness.scenario.workloads.list_append import next_of, planned_key_count
from tests.unit.generator_simulator import imperfect, simulate
from tests.worlds.workloads import SECOND, appends, options, transactions


def load_of(**changed: int) -> list[tuple[MicroOp, ...]]:
    return transactions(WORKLOADS["list-append"](options(**changed)).load)


def test_the_same_seed_asks_for_the_same_and_another_does_not() -> None:
    assert load_of(seed=3) == load_of(seed=3)
    assert load_of(seed=3) != load_of(seed=4)


def test_every_element_is_appended_to_its_key_once_and_counts_up() -> None:
    by_key: dict[int, list[int]] = {}
    for key, value in appends(load_of()):
        by_key.setdefault(key, []).append(value)
    assert len(by_key) > 10
    assert all(values == list(range(1, len(values) + 1)) for values in by_key.values())
    assert all(len(values) <= 48 for values in by_key.values())


def test_transactions_have_the_lengths_asked_for() -> None:
    lengths = Counter(len(mops) for mops in load_of(max_txn_length=4))
    assert sorted(lengths) == [1, 2, 3, 4]
    assert sorted(Counter(len(mops) for mops in load_of(max_txn_length=1))) == [1]


def test_many_transactions_read_one_key_and_append_to_two_others() -> None:
    history = load_of()
    dependent = [
        mops
        for mops in history
        if [mop.f for mop in mops] == ["r", "append", "append"] and len({m.key for m in mops}) == 3
    ]
    assert len(dependent) > len(history) // 4


def test_a_few_keys_get_most_of_the_traffic_and_all_keys_some() -> None:
    per_key = Counter(str(mop.key) for mops in load_of(max_appends_per_key=10_000) for mop in mops)
    counts = [count for _, count in per_key.most_common()]
    assert len(counts) == 8
    assert counts[0] > 3 * counts[-1] > 0


def test_operations_are_due_at_the_rate_asked_for() -> None:
    assert 1800 < len(load_of()) < 2200


def test_final_reads_cover_every_key_that_was_used_until_each_succeeded() -> None:
    workload = WORKLOADS["list-append"](options(duration_ns=3 * SECOND))
    used = {key for key, _ in appends(transactions(workload.load))}
    drawn = next_of.cache_info().misses
    trace = simulate(workload.final, imperfect, most=2000)
    assert next_of.cache_info().misses == drawn  # No transaction is drawn again.
    read = {invoke.index: invoke.mops for invoke in trace.invokes}
    succeeded = [mops[0].key for c in trace.completes if c.outcome == "ok" and (mops := read[c.index]) is not None]
    assert len(succeeded) == len(set(map(str, succeeded))) == planned_key_count(workload.load)
    assert used <= set(succeeded)
    assert trace.is_exhausted


def test_a_slow_system_uses_no_key_that_the_final_reads_do_not_know() -> None:
    """Operations that come too late are given up; those that come are the first ones of the very same plan."""
    workload = WORKLOADS["list-append"](options(duration_ns=SECOND))
    planned = transactions(workload.load)
    issued = [invoke.mops for invoke in simulate(workload.load, imperfect, threads=1).invokes]
    assert 10 < len(issued) < len(planned)
    assert issued == planned[: len(issued)]


def test_due_times_ascend() -> None:
    workload = WORKLOADS["list-append"](options(duration_ns=SECOND))
    due = [invoke.intended_ns for invoke in simulate(workload.load).invokes]
    assert all(earlier <= later for earlier, later in pairwise(due))


@pytest.mark.parametrize(
    "wrong", [{"rate_per_s": 0}, {"duration_ns": 0}, {"threads": 0}, {"key_count": 0}, {"max_txn_length": 0}]
)
def test_options_that_mean_nothing_are_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ScenarioError, match=next(iter(wrong))):
        options(**wrong)
