"""Columns that are put together from parts: what takes no memory, and that parts come in any order."""

import numpy as np

from checkers.columns.parts import Columns, constant
from harness.core.columns import Int64s


def numbers(*values: int) -> Int64s:
    return np.array(values, np.int64)


def column(count: int, *parts: tuple[int, Int64s]) -> Int64s:
    """The column of those parts, each with the row it begins at."""
    columns = Columns(["x"], count)
    for begin, part in parts:
        columns.put(begin, {"x": part})
    whole: Int64s = columns.whole()["x"]
    return whole


def test_a_column_of_one_number_takes_no_memory() -> None:
    found = column(5, (2, constant(7, 3)), (0, constant(7, 2)))
    assert (found.tolist(), found.strides) == ([7] * 5, (0,))


def test_parts_come_in_any_order() -> None:
    assert column(5, (3, numbers(4, 5)), (0, numbers(1, 2, 3))).tolist() == [1, 2, 3, 4, 5]


def test_parts_of_one_number_each_are_filled_in_where_others_differ() -> None:
    assert column(4, (0, constant(7, 2)), (2, constant(8, 2))).tolist() == [7, 7, 8, 8]
    for parts in ([(2, numbers(1, 2)), (0, constant(7, 2))], [(0, constant(7, 2)), (2, numbers(1, 2))]):
        assert column(4, *parts).tolist() == [7, 7, 1, 2]


def test_an_empty_part_says_nothing() -> None:
    found = column(2, (0, numbers()), (0, constant(9, 0)), (0, constant(7, 2)))
    assert (found.tolist(), found.strides) == ([7, 7], (0,))
    assert column(0).tolist() == []


def test_parts_keep_their_type() -> None:
    columns = Columns(["kind"], 2)
    columns.put(0, {"kind": np.array([3, 4], np.int8)})
    assert columns.whole()["kind"].dtype == np.int8
