"""Numbers for pairs of key and element, dense or sparse, against a dictionary."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.list_versions import Slots
from tests.worlds.small_language import concurrent

near, far = st.integers(0, 6), st.sampled_from([0, 1, 5, 1 << 20, (1 << 20) + 1, 1 << 40, 1 << 53])


@settings(max_examples=200)
@given(data=st.data(), element=st.sampled_from([near, far]))
def test_each_pair_that_occurs_has_a_slot_of_its_own_and_no_other_pair_has_one(
    data: st.DataObject, element: st.SearchStrategy[int]
) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 3), element)))
    asked = [(code, value) for code in range(4) for value in (0, 1, 2, 5, 7, 1 << 20, (1 << 20) + 2, 1 << 53)]
    code, value = np.array([*pairs, (0, 0)], np.int64)[:-1].T
    slots = Slots(code, value, 4)
    found = slots.of(*np.array([*pairs, *asked], np.int64).T).tolist()
    by_pair = dict(zip([*pairs, *asked], found, strict=True))
    taken = [by_pair[pair] for pair in set(pairs)]
    assert slots.given.tolist() == [by_pair[pair] for pair in pairs]
    assert len(set(taken)) == len(set(pairs))
    assert all(0 <= slot < slots.count for slot in taken)
    if len(set(pairs)) == slots.count:  # A table that is dense has slots for what lies between, too.
        assert all(by_pair[pair] == -1 for pair in asked if pair not in pairs)


def test_a_table_has_slots_from_the_least_element_of_each_key_to_its_greatest() -> None:
    slots = Slots(np.array([0, 0, 2]), np.array([5, 7, 9]), 3)
    assert slots.count == 4
    assert slots.of(np.array([0, 0, 1, 2, 2]), np.array([4, 8, 5, 8, 10])).tolist() == [-1] * 5


def test_far_apart_elements_take_no_table() -> None:
    slots = Slots(np.array([0, 0, 1]), np.array([0, 1 << 50, 7]), 2)
    assert slots.count == 3
    assert slots.of(np.array([0, 0, 0, 1, 1]), np.array([0, 1 << 50, 7, 7, (1 << 50) + 1])).tolist()[2::2] == [-1, -1]


@pytest.mark.parametrize("element", ["0", "1"])
def test_the_element_zero_is_like_any_other(element: str) -> None:
    history = concurrent(f"ax{element} ay{element}", f"rx{element} ry")
    findings = check_sources([to_transactions(history)], LocalEngine(1)).findings
    assert [finding.anomaly for finding in findings] == ["G-single"]
