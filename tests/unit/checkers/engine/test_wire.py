"""What travels between tasks comes out as it went in, column by column and type by type, and in fewer bytes."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from checkers.engine.wire import blob_of, narrow
from checkers.graph.edges import OPEN_END, Edges
from checkers.history.transactions import to_transactions
from checkers.transactions.list_rows import rows_by_key
from checkers.watermarks.blocks import Pairs
from tests.bench import generated
from tests.worlds import histories
from tests.worlds.drawn_transactions import randomness

OPS = st.integers(0, OPEN_END - 2)
ENDS = st.one_of(st.integers(0, OPEN_END - 1), st.just(OPEN_END))
EDGES = st.lists(st.tuples(OPS, OPS, ENDS, ENDS, st.integers(1, 127)), max_size=20)


def same(one: object, other: object) -> bool:
    """Are they alike, to the type of each number?"""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, Struct):
        return all(same(getattr(one, name), getattr(other, name)) for name in one.__struct_fields__)
    return one == other


def travelled(message: object) -> object:
    """What whoever gets the blob has."""
    return pickle.loads(blob_of(message))  # noqa: S301  Our own.


@given(EDGES)
@example([(5, 7, 4, 9, 1)])  # By what follows it, an operation may have to end just before it began.
def test_edges_keep_their_ends_also_early_ones_and_those_without(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, np.int32).reshape(-1, 5).T
    edges = Edges(columns[0], columns[1], columns[2], columns[3], columns[4].astype(np.int8))
    assert same(travelled(edges), edges)


@given(st.lists(st.tuples(OPS, OPS), max_size=20))
@example([(0, OPEN_END - 2), (OPEN_END - 2, 0)])
def test_pairs_of_operations_and_watermarks_come_out_as_they_went_in(rows: list[tuple[int, int]]) -> None:
    columns = np.array(rows, np.int32).reshape(-1, 2).T
    assert same(travelled(Pairs(columns[0], columns[1])), Pairs(columns[0], columns[1]))


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_keys_come_out_as_they_went_in(seed: int) -> None:
    draw = randomness(seed)
    operations = histories.spoiled(draw, histories.stale(draw, count=60, processes=6))
    for _, rows in rows_by_key(to_transactions(operations), partitions=3):
        assert same(travelled(rows), rows)


def test_rows_of_keys_far_apart_come_out_as_they_went_in() -> None:
    operations = histories.spoiled(randomness(1), histories.stale(randomness(1), count=60, processes=6))
    whole = to_transactions(operations)
    far = {name: getattr(whole, name) * (1 << 40) for name in ("key", "value", "elements")}
    moved = type(whole)(**{name: far.get(name, getattr(whole, name)) for name in whole.__struct_fields__})
    for _, rows in rows_by_key(moved, partitions=2):
        assert same(travelled(rows), rows)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (127, np.int8),
        (128, np.int16),
        (-128, np.int8),
        (-129, np.int16),
        (1 << 15, np.int32),
        (1 << 31, np.int64),
        (-(1 << 63), np.int64),
    ],
)
def test_a_column_is_as_wide_as_its_widest_number(number: int, kind: type) -> None:
    narrowed = narrow(np.array([0, number], np.int64))
    assert narrowed.dtype == kind
    assert narrowed.tolist() == [0, number]


def test_what_travels_most_takes_a_third_of_its_bytes() -> None:
    rows = [rows for _, rows in rows_by_key(generated.transactions(5_000, seed=3), partitions=1)]
    assert len(blob_of(rows)) * 3 < len(pickle.dumps(rows, 5))
