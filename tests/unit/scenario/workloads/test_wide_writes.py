"""Wide writes: what is written at once, what beside it, and what stale reads ask for."""

from collections import Counter

import pytest

from harness.core.generators.generator import Context, Planned
from harness.core.record import MicroOp
from harness.core.seams import Invocation
from harness.scenario.workloads import WORKLOADS
from harness.scenario.workloads.wide_writes import AGE_MS, CHANGES, FUTURE_MS, PUSHED, WIDE
from tests.worlds.workloads import options, transactions

WIDTHS = {"large-vs-tick": WIDE, "pusher": PUSHED}
Mops = tuple[MicroOp, ...]


def planned(name: str, **changed: int) -> list[Invocation]:
    """All operations that the load plans, if a thread is always free."""
    idle, found = Context(time_ns=0, free=(0,), processes=(0,)), []
    answer = WORKLOADS[name](options(**changed)).load.op(idle)
    while answer is not None and isinstance(answer[0], Planned):
        found.append(Invocation(f=answer[0].f, value=answer[0].value, mops=answer[0].mops))
        answer = answer[1].op(idle)
    return found


@pytest.mark.parametrize("name", [*WIDTHS, "stale-reads", "restores", "region-churn"])
def test_the_same_seed_plans_the_same_and_another_does_not(name: str) -> None:
    assert planned(name, seed=3) == planned(name, seed=3)
    assert planned(name, seed=3) != planned(name, seed=4)


@pytest.mark.parametrize(("name", "width"), WIDTHS.items())
def test_wide_transactions_have_short_ones_beside_them(name: str, width: int) -> None:
    load: list[Mops] = transactions(WORKLOADS[name](options()).load)
    widths = Counter(len({str(mop.key) for mop in mops}) for mops in load)
    assert max(widths) == width
    assert 0 < widths[width] < len(load) // 10
    elements = Counter((str(mop.key), str(mop.value)) for mops in load for mop in mops if mop.f == "append")
    assert set(elements.values()) == {1}


def test_restores_are_of_keys_that_are_written_and_what_came_back_is_read() -> None:
    load = planned("restores")
    written = {mop.key for each in load for mop in each.mops or () if mop.f == "append"}
    asked = [(each.f, each.value) for each in load if each.mops is None]
    assert {f for f, _ in asked} == {"restore", "restored"}
    found = 0
    for _, value in asked:
        assert isinstance(value, list)
        (keys,) = value
        assert isinstance(keys, list)
        found += set(keys) <= written
    assert found > len(asked) * 3 // 4


def test_after_a_flashback_its_keys_have_new_names() -> None:
    ended: set[object] = set()
    begun: set[object] = set()
    later = 0
    for each in planned("restores"):
        for mop in each.mops or ():
            assert mop.key not in ended
            assert each.f == "flashback" or "@" not in str(mop.key) or mop.key in begun
            later += each.f == "txn" and mop.key in begun and mop.f == "append"
        if each.f == "flashback":
            ended |= {mop.key for mop in each.mops or () if mop.f == "r"}
            begun |= {mop.key for mop in each.mops or () if mop.f == "append"}
    assert len(begun) == len(ended) > WIDE
    assert later > 5


def test_stale_reads_ask_for_the_past_of_keys_that_are_written() -> None:
    load = planned("stale-reads")
    written = {mop.key for each in load for mop in each.mops or () if mop.f == "append"}
    stale = [each.value for each in load if each.f == "stale-read"]
    assert len(load) // 4 < len(stale) < len(load) // 2
    found = 0
    for value in stale:
        assert isinstance(value, list)
        keys, age_ms = value
        assert isinstance(keys, list)
        assert isinstance(age_ms, int)
        assert AGE_MS[0] <= age_ms < AGE_MS[1] or age_ms == -FUTURE_MS
        found += set(keys) <= written
    assert found > len(stale) * 3 // 4  # In some groups a pair is written in the wide transaction's place.


def test_region_churn_changes_regions_of_keys_that_are_in_use() -> None:
    load = planned("region-churn")
    written = {mop.key for each in load for mop in each.mops or () if mop.f == "append"}
    changes = [(each.f, each.value) for each in load if each.f in CHANGES]
    assert {f for f, _ in changes} == set(CHANGES)
    assert sum(isinstance(value, list) and value[0] in written for _, value in changes) > len(changes) // 2
    assert len(changes) < len(load) // 20
