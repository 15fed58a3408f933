"""Units of foreign streams: the holes in them are those that a plain loop finds."""

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from harness.core.columns import NEVER, ROW
from harness.record.formats.streams.units import holes
from tests.amount import count
from tests.oracles.holes import Row
from tests.oracles.holes import holes as oracle

SOME = st.none() | st.integers(0, 1)
ROWS = st.builds(Row, unit=SOME, table=SOME, span=SOME, key=st.integers(0, 3), number=st.none() | st.integers(1, 4))
# In the second transaction a row is missing, behind a key that came twice.
JUMP = [Row(1, 0, 0, 5, 1), Row(1, 0, 0, 5, 2), Row(0, 0, 0, 6, 1), Row(0, 0, 0, 6, 3)]


def found(rows: list[Row]) -> list[int]:
    cells = np.array([[NEVER if each is None else each for each in row] for row in rows], np.int64).reshape(-1, 5)
    columns = dict(zip(("unit", "table", "span", "key", "table_ordinal"), cells.T, strict=True))
    return holes(columns | {"kind": np.full(len(rows), ROW)})


@settings(max_examples=count(60))
@given(st.lists(ROWS))
@example(JUMP)
def test_holes_are_those_of_the_oracle(rows: list[Row]) -> None:
    event(f"{len(oracle(rows))} holes")
    assert found(rows) == oracle(rows)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (JUMP, [3]),
        (JUMP[1:], []),  # No key came twice before: earlier rows of keys may be gone.
        ([*JUMP, Row(None, 0, 1, 7, None)], []),  # The table has two partitions.
    ],
)
def test_a_jump_is_a_hole_where_nothing_was_compacted(rows: list[Row], expected: list[int]) -> None:
    assert found(rows) == oracle(rows) == expected
