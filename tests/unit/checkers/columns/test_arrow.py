"""Columns of Arrow as arrays, against Arrow's own way through Python."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.columns import arrow

small = st.one_of(st.none(), st.integers(-100, 100))


@settings(max_examples=100)
@given(values=st.lists(small), cut=st.integers(0, 3), width=st.sampled_from(["int8", "int32", "int64"]))
def test_integers_and_their_validity_survive_nulls_slices_and_widths(
    values: list[int | None], cut: int, width: str
) -> None:
    column = pa.array(values, width)[cut:]
    assert arrow.integers(column, 7).tolist() == [7 if value is None else value for value in values[cut:]]
    assert arrow.validity(column).tolist() == [value is not None for value in values[cut:]]
    halves = pa.chunked_array([pa.array(values[:cut], width), column])
    assert arrow.integers(halves, 7).tolist() == [7 if value is None else value for value in values]


@settings(max_examples=100)
@given(values=st.lists(st.one_of(st.none(), st.booleans())), cut=st.integers(0, 9))
def test_flags_are_false_for_null(values: list[bool | None], cut: int) -> None:
    assert arrow.flags(pa.array(values, pa.bool_())[cut:]).tolist() == [bool(value) for value in values[cut:]]


@settings(max_examples=100)
@given(rows=st.lists(st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=4))), cut=st.integers(0, 3))
def test_lists_are_cut_at_their_starts(rows: list[list[int] | None], cut: int) -> None:
    starts, elements, is_known = arrow.lists(pa.array(rows, pa.list_(pa.int64()))[cut:])
    found = [elements[low:high].tolist() for low, high in pairwise(starts)]
    assert found == [row or [] for row in rows[cut:]]
    assert is_known.tolist() == [row is not None for row in rows[cut:]]
    assert len(elements) == starts[-1]


def test_what_lies_below_a_null_is_no_element() -> None:
    hidden = pa.ListArray.from_arrays(pa.array([0, 2, 3, 5], pa.int32()), pa.array([1, 2, 3, 4, 5]))
    masked = pa.Array.from_buffers(
        hidden.type, 3, [pa.py_buffer(bytes([0b101])), hidden.buffers()[1]], children=[hidden.values]
    )
    starts, elements, is_known = arrow.lists(masked)
    assert (starts.tolist(), elements.tolist(), is_known.tolist()) == ([0, 2, 2, 4], [1, 2, 4, 5], [True, False, True])


def test_text_is_no_integer() -> None:
    with pytest.raises(ValueError, match="width"):
        arrow.integers(pa.array(["a"]))


def test_integers_of_nothing_are_nothing() -> None:
    assert arrow.integers(pa.chunked_array([], pa.int64())).dtype == np.int64
