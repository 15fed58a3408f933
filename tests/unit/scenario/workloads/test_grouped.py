from collections import Counter

import pytest

from checkers.catalogue import CHECKS, RECORDS
from harness.core.generators.generator import Context, Planned
from harness.core.record import MicroOp
from harness.scenario.consent import cluster_names, installed
from harness.scenario.registry import load_cluster
from harness.scenario.workloads import WORKLOADS
from harness.scenario.workloads.bank import ACCOUNTS
from harness.scenario.workloads.grouped import FinalReads
from harness.scenario.workloads.list_append import next_of
from harness.scenario.workloads.long_fork import KEYS
from tests.worlds.workloads import options, transactions

GROUPED = ("bank", "sets", "monotonic", "long-fork", "write-skew")
LOCKED = ("bank-locked", "long-fork-locked", "write-skew-locked")
Mops = tuple[MicroOp, ...]


def load_of(name: str, **changed: int) -> list[Mops]:
    return transactions(WORKLOADS[name](options(**changed)).load)


def keys_of(mops: Mops) -> list[int]:
    return [mop.key for mop in mops if isinstance(mop.key, int)]


def writes(mops: Mops) -> list[MicroOp]:
    return [mop for mop in mops if mop.f == "append"]


@pytest.mark.parametrize("name", GROUPED)
def test_the_same_seed_asks_for_the_same_and_another_does_not(name: str) -> None:
    assert load_of(name, seed=3) == load_of(name, seed=3)
    assert load_of(name, seed=3) != load_of(name, seed=4)


@pytest.mark.parametrize("name", [*GROUPED, *LOCKED])
def test_every_element_of_a_key_is_appended_once(name: str) -> None:
    found = Counter((str(mop.key), str(mop.value)) for mops in load_of(name) for mop in writes(mops))
    assert len(found) > 200
    assert set(found.values()) == {1}


@pytest.mark.parametrize("name", [*GROUPED, *LOCKED])
def test_lists_stay_short_and_enough_is_read(name: str) -> None:
    load = load_of(name, duration_ns=30_000_000_000)
    lengths = Counter(mop.key for mops in load for mop in writes(mops) if isinstance(mop.key, int))
    assert max(lengths.values()) < 100
    assert sum(any(mop.f == "r" for mop in mops) for mops in load) > len(load) // 4


@pytest.mark.parametrize("name", [*GROUPED, *LOCKED])
def test_whole_transactions_can_be_told_by_those_of_two_rows(name: str) -> None:
    load = load_of(name)
    assert sum(len({mop.key for mop in writes(mops)}) == 2 for mops in load) > len(load) // 20


@pytest.mark.parametrize("name", [*GROUPED, *LOCKED])
def test_at_the_end_every_key_is_read_once(name: str) -> None:
    workload = WORKLOADS[name](options())
    used = {key for mops in transactions(workload.load) for key in keys_of(mops)}
    generator, read, drawn = workload.final, Counter[int](), next_of.cache_info().misses
    for process in range(10_000):
        answer = generator.op(Context(0, (0,), (process,)))
        if answer is None or not isinstance(answer[0], Planned):
            break
        read.update(keys_of(answer[0].mops or ()))
        generator = answer[1]
    assert next_of.cache_info().misses == drawn  # No transaction is drawn again.
    assert isinstance(workload.final, FinalReads)
    assert used <= set(read)
    assert set(read.values()) == {1}


@pytest.mark.parametrize("name", GROUPED)
def test_without_locking_no_read_speaks_of_locks(name: str) -> None:
    assert {mop.lock for mops in load_of(name) for mop in mops} == {None}


@pytest.mark.parametrize("name", LOCKED)
def test_with_locking_each_read_is_locked_as_it_needs(name: str) -> None:
    for mops in load_of(name):
        written = {mop.key for mop in writes(mops)}
        assert all(mop.lock == ("exclusive" if mop.key in written else "shared") for mop in mops if mop.f == "r")


def test_a_transfer_takes_from_one_account_what_it_gives_to_another_of_the_same_bank() -> None:
    for mops in load_of("bank"):
        banks = {key // ACCOUNTS for key in keys_of(mops)}
        assert len(banks) == 1
        if not writes(mops):
            assert len(mops) == ACCOUNTS
            continue
        amounts = [str(mop.value).partition(":")[2] for mop in mops]
        assert sorted(each[0] for each in amounts) == ["+", "-"]
        assert sum(map(int, amounts)) == 0
        assert len({mop.key for mop in mops}) == 2


def test_each_key_of_a_fork_is_written_once_and_read_with_the_others() -> None:
    load = load_of("long-fork")
    single = Counter(mop.key for mops in load for mop in writes(mops) if len(mops) == 1)
    assert set(single.values()) == {1}
    orders = {keys[0] % 5 for keys in map(keys_of, load) if len(keys) == 1}
    assert orders == set(range(KEYS))
    assert {len(mops) for mops in load if not writes(mops)} == {KEYS}


def test_write_skew_has_transactions_of_both_kinds_in_each_pair() -> None:
    kinds: dict[tuple[int, ...], set[int]] = {}
    for mops in load_of("write-skew"):
        if len(mops) == 3:
            first, second, target = keys_of(mops)
            kinds.setdefault((first, second), set()).add(target)
    whole = [targets for pair, targets in kinds.items() if targets == set(pair)]
    assert len(whole) > len(kinds) * 3 // 4


@pytest.mark.parametrize("name", WORKLOADS)
def test_what_a_workload_promises_is_looked_for(name: str) -> None:
    looked = {check.name: check.anomalies for check in CHECKS}
    for promise in WORKLOADS[name](options()).promises:
        assert promise.check is not None
        assert set(promise.forbids) <= set(looked[promise.check]) & set(RECORDS)
        assert promise.source.startswith("harness/scenario/workloads/")


def test_no_promise_of_a_workload_is_called_as_one_of_a_cluster() -> None:
    for cluster in map(load_cluster, map(installed, cluster_names())):
        for name in cluster.workloads:
            ids = [each.id for each in (*cluster.promises, *WORKLOADS[name](options()).promises)]
            assert len(set(ids)) == len(ids)
