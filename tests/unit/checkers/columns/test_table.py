"""Tables: rows of any class of columns are taken, put together, sorted and joined; held against loops over rows."""

from types import GenericAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from checkers.columns.parts import constant
from checkers.columns.table import Join, _scalar, concat, distinct_by, empty, ordered_by, row_count, take, taken
from harness.core.columns import Bools, Int8s, Int64s

NUMBERS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=12)


class Reading(Struct, frozen=True):
    """A class of columns."""

    key: Int64s
    value: Int64s
    kind: Int8s
    is_last: Bools


def table(rows: list[tuple[int, int]]) -> Reading:
    """The readings of those keys and values."""
    key, value = np.array(rows, np.int64).reshape(-1, 2).T
    return Reading(key=key, value=value, kind=np.ones(len(rows), np.int8), is_last=value > 0)


def listed(readings: Reading) -> list[tuple[int, ...]]:
    """The rows, as tuples."""
    return list(zip(*(getattr(readings, name).tolist() for name in Reading.__struct_fields__), strict=True))


@given(NUMBERS, st.data())
def test_rows_are_taken_by_number_by_mask_and_by_slice(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    whole = table(rows)
    numbers = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=9)) if rows else []
    assert listed(take(whole, np.array(numbers, np.int64))) == [listed(whole)[each] for each in numbers]
    assert listed(take(whole, whole.value > 0)) == [row for row in listed(whole) if row[1] > 0]
    assert listed(take(whole, slice(1, 5))) == listed(whole)[1:5]


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_tables_are_put_one_after_the_other(parts: list[list[tuple[int, int]]]) -> None:
    whole = concat([table(part) for part in parts])
    assert listed(whole) == [row for part in parts for row in listed(table(part))]
    assert row_count(whole) == sum(map(len, parts))


@given(NUMBERS)
def test_rows_are_ordered_and_made_distinct_by_columns(rows: list[tuple[int, int]]) -> None:
    whole = table(rows)
    assert listed(ordered_by(whole, "value", "key")) == sorted(listed(whole), key=lambda row: (row[1], row[0]))
    firsts = {row[0]: row for row in reversed(listed(whole))}
    assert listed(distinct_by(whole, "key")) == [row for row in listed(whole) if firsts.pop(row[0], None) is not None]
    assert listed(distinct_by(whole)) == list(dict.fromkeys(listed(whole)))


@given(NUMBERS, NUMBERS)
def test_a_join_finds_the_rows_of_each_key(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    ours, theirs = table(left), table(right)
    join = Join((ours.key, ours.value), (theirs.key, theirs.value))
    found = [[place for place, row in enumerate(right) if row == key] for key in left]
    assert join.count.tolist() == [len(places) for places in found]
    assert join.first.tolist() == [places[0] if places else -1 for places in found]
    assert join.last.tolist() == [places[-1] if places else -1 for places in found]
    assert join.only.tolist() == [places[0] if len(places) == 1 else -1 for places in found]
    assert join.right_count.tolist() == [right.count(key) for key in right]
    assert join.is_found.tolist() == [key in left for key in right]


def test_an_empty_table_has_the_types_of_its_fields() -> None:
    nothing = empty(Reading)
    assert row_count(nothing) == 0
    assert [getattr(nothing, name).dtype for name in Reading.__struct_fields__] == [
        np.int64,
        np.int64,
        np.int8,
        np.bool_,
    ]
    assert listed(concat([nothing, table([(1, 2)]), nothing])) == listed(table([(1, 2)]))


@pytest.mark.parametrize("hint", [Int64s, GenericAlias(list, (np.int64,))])
def test_the_numbers_of_an_array_are_known_as_each_version_of_numpy_spells_it(hint: object) -> None:
    # NumPy 2.5 has no dtype between its NDArray and the numbers, and does not run on Python 3.11.
    assert _scalar(hint) is np.int64


def test_a_column_of_one_number_takes_no_memory_before_and_after() -> None:
    column = constant(7, 5)
    for rows in (np.array([4, 0]), np.array([True, False, True, False, False]), slice(3, 9)):
        assert taken(column, rows).tolist() == [7, 7]
        assert taken(column, rows).strides == (0,)
    one = Reading(key=column, value=column, kind=np.ones(5, np.int8), is_last=np.ones(5, np.bool_))
    assert concat([one, one]).key.strides == (0,)
    assert concat([one, table([(8, 8)])]).key.tolist() == [7] * 5 + [8]


def test_columns_of_different_lengths_are_no_table() -> None:
    with pytest.raises(ValueError, match=r"the columns of Reading have \[0, 2\] rows"):
        row_count(Reading(key=np.arange(2), value=np.arange(0), kind=np.ones(2, np.int8), is_last=np.ones(2, np.bool_)))
