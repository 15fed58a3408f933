from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.record import MicroOp
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from harness.scenario.scenario import Scenario, decide
from harness.scenario.workloads import WORKLOADS
from harness.scenario.workloads.list_append import planned_key_count
from harness.scenario.workloads.populations import NDB_MIX
from tests.unit.generator_simulator import imperfect, simulate
from tests.worlds.workloads import appends, options, transactions

Mops = tuple[MicroOp, ...]
MIXES = ["churn", "counter", "list-append", "list-append-locked", "ndb-mix", "two-keys"]  # They share their keys.


def load_of(name: str, **changed: int) -> list[Mops]:
    return transactions(WORKLOADS[name](options(**changed)).load)


def appended_keys(mops: Mops) -> list[int]:
    return [key for key, _ in appends([mops])]


def sort_of(mops: Mops) -> str:
    """What a reader of the history would call that transaction."""
    forms, keys = [mop.f for mop in mops], {str(mop.key) for mop in mops}
    if "r" in forms:
        locks = {mop.lock for mop in mops if mop.f == "r"}
        is_counter = forms == ["r", "append"] and len(keys) == 1 and locks == {"exclusive"}
        return "counter or locked" if is_counter else "committed" if locks == {"committed"} else "locked"
    if len(keys) >= 6:
        return "wide"
    if len(forms) in {2, 3} and len(keys) == 1:
        return "churn"
    return "two keys" if len(forms) == len(keys) == 2 else "writes"


def test_the_mixture_has_every_sort_of_transaction_in_plenty() -> None:
    sorts = Counter(map(sort_of, load_of("ndb-mix", duration_ns=60 * 10**9)))
    assert sum(percent for percent, _ in NDB_MIX) == 100
    assert sorts["committed"] > 1200
    assert sorts["locked"] > 1200
    assert sorts["two keys"] > 700
    assert sorts["counter or locked"] > 400
    assert sorts["churn"] > 400
    assert sorts["wide"] > 200


def test_all_sorts_of_the_mixture_meet_at_the_same_keys() -> None:
    keys: dict[str, set[int]] = {}
    for mops in load_of("ndb-mix"):
        keys.setdefault(sort_of(mops), set()).update(appended_keys(mops))
    assert all(len(keys["locked"] & others) >= len(others) // 3 for others in keys.values())


@pytest.mark.parametrize("name", MIXES)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), key_count=st.integers(1, 12), longest=st.integers(1, 8))
def test_every_element_is_appended_to_its_key_once_and_counts_up(
    name: str, seed: int, key_count: int, longest: int
) -> None:
    by_key: dict[int, list[int]] = {}
    load = load_of(name, seed=seed, key_count=key_count, max_txn_length=longest, duration_ns=2 * 10**9)
    for key, value in appends(load):
        by_key.setdefault(key, []).append(value)
    assert all(values == list(range(1, len(values) + 1)) for values in by_key.values())
    assert all(len(values) <= 48 for values in by_key.values())
    assert all(mops for mops in load)


@pytest.mark.parametrize("name", ["list-append-locked", "counter"])
def test_a_locked_read_is_exclusive_just_where_its_key_is_appended_to_as_well(name: str) -> None:
    reads = 0
    for mops in load_of(name):
        written = set(appended_keys(mops))
        for mop in mops:
            if mop.f == "r":
                reads += 1
                assert mop.lock == ("exclusive" if mop.key in written else "shared")
            else:
                assert mop.lock is None
    assert reads > 1000


def test_plain_reads_ask_for_no_lock() -> None:
    assert {mop.lock for mops in load_of("list-append") for mop in mops} == {None}


def test_two_keys_lie_in_different_groups() -> None:
    load = load_of("two-keys")
    assert all([mop.f for mop in mops] == ["append", "append"] for mops in load)
    pairs = [appended_keys(mops) for mops in load]
    assert all(one != other for one, other in pairs)
    apart = sum((one - other) % 2 for one, other in pairs)
    assert apart > 0.95 * len(pairs)  # But where all keys in use happen to be of one parity.


def test_a_counter_reads_the_key_that_it_then_appends_to() -> None:
    load = load_of("counter")
    assert all([mop.f for mop in mops] == ["r", "append"] and len({m.key for m in mops}) == 1 for mops in load)
    per_key = Counter(appended_keys(mops)[0] for mops in load)
    assert min(list(per_key.values())[:-1]) >= 12


def test_churn_appends_to_one_key_two_or_three_times() -> None:
    counts = Counter(len(mops) for mops in load_of("churn"))
    assert sorted(counts) == [2, 3]
    assert all(len(set(appended_keys(mops))) == 1 for mops in load_of("churn"))


def test_most_transactions_of_the_mixture_take_their_keys_in_order_and_some_do_not() -> None:
    load = [mops for mops in load_of("ndb-mix") if len({mop.key for mop in mops}) > 1]
    in_order = sum(
        keys == sorted(keys) for keys in ([mop.key for mop in mops if isinstance(mop.key, int)] for mops in load)
    )
    assert 0.85 < in_order / len(load) < 0.97


@pytest.mark.parametrize(("key_count", "widths"), [(12, {6, 7, 8}), (7, {6, 7}), (4, {4})])
def test_wide_transactions_append_to_many_keys_over_all_groups(key_count: int, widths: set[int]) -> None:
    load = [mops for mops in load_of("ndb-mix", key_count=key_count) if len(mops) >= 4 and len(mops) in widths]
    wide = [mops for mops in load if {mop.f for mop in mops} == {"append"} and len(set(appended_keys(mops))) in widths]
    assert {len(mops) for mops in wide} == widths
    both = [mops for mops in wide if {key % 2 for key in appended_keys(mops)} == {0, 1}]
    assert len(both) > 0.8 * len(wide) > 10


@pytest.mark.parametrize("name", MIXES)
def test_every_key_is_read_at_the_end(name: str) -> None:
    workload = WORKLOADS[name](options(duration_ns=2 * 10**9))
    used = {key for mops in transactions(workload.load) for key in appended_keys(mops)}
    trace = simulate(workload.final, imperfect, most=2000)
    read = {mops[0].key for invoke in trace.invokes if (mops := invoke.mops) is not None}
    assert used <= read
    assert len(read) == planned_key_count(workload.load)
    assert trace.is_exhausted
    assert workload.name == name


def test_each_seed_draws_how_many_keys_and_how_long_transactions_there_are() -> None:
    cluster = load_cluster(installed("tutorial"))
    shapes = [decide(Scenario(seed=seed), cluster).shape for seed in range(40)]
    assert {shape["key_count"] for shape in shapes} == set(range(6, 13))
    assert {shape["max_txn_length"] for shape in shapes} == set(range(3, 7))
    assert decide(Scenario(seed=3), cluster).shape == shapes[3]
    for seed, shape in enumerate(shapes[:5]):
        load = transactions(decide(Scenario(seed=seed), cluster).workload.load)
        assert max(map(len, load)) == shape["max_txn_length"]
