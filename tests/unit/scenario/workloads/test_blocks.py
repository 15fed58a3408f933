"""Loads for logs of events: what is appended, what is read, and what is asked at the end."""

from collections import Counter

import pytest

from harness.core.generators.generator import Context, Planned
from harness.core.seams import Invocation
from harness.scenario.workloads import WORKLOADS
from harness.scenario.workloads.blocks import FEWEST, MOST
from tests.worlds.workloads import options, transactions

NAMES = ("txn-blocks", "keyed-sequence")


def final(name: str) -> list[Invocation]:
    """All final operations, if each succeeds at once."""
    context, found = Context(time_ns=0, free=(0,), processes=(0,)), []
    answer = WORKLOADS[name](options()).final.op(context)
    while answer is not None and isinstance(answer[0], Planned):
        found.append(Invocation(f=answer[0].f, mops=answer[0].mops))
        answer = answer[1].op(context)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_plans_the_same_and_another_does_not(name: str) -> None:
    one, again, other = (transactions(WORKLOADS[name](options(seed=seed)).load) for seed in (3, 3, 4))
    assert one == again != other


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_appends_only_or_reads_one_key(name: str) -> None:
    load = transactions(WORKLOADS[name](options()).load)
    reads = [mops for mops in load if mops[0].f == "r"]
    assert {len(mops) for mops in reads} == {1}
    sizes = Counter(len(mops) for mops in load if mops[0].f == "append")
    assert set(sizes) == {1, *range(FEWEST, MOST + 1)}
    assert all(mop.f == mops[0].f for mops in load for mop in mops)


@pytest.mark.parametrize("name", NAMES)
def test_no_element_is_appended_twice(name: str) -> None:
    load = transactions(WORKLOADS[name](options()).load)
    elements = Counter((str(mop.key), str(mop.value)) for mops in load for mop in mops if mop.f == "append")
    assert set(elements.values()) == {1}


@pytest.mark.parametrize("name", NAMES)
def test_at_the_end_each_key_is_read_and_readers_are_asked_for(name: str) -> None:
    load = transactions(WORKLOADS[name](options()).load)
    used = {str(mop.key) for mops in load for mop in mops}
    *reads, last = final(name)
    assert last.f == "drain"
    assert used <= {str(each.mops[0].key) for each in reads if each.mops}
    assert {len(each.mops or ()) for each in reads} == {1}
