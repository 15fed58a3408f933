"""Tables: structs whose fields are columns, arrays of one length. Row i is element i of every column.

All functions accept any such class, and return the class that they were given. A constant column that takes no memory
(`constant`) stays one. Rows are joined by keys; a key is one or more columns of integers.
"""

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from checkers.columns.index import ascending, first_places, first_rows, joint_codes, last_places
from checkers.columns.runs import Scalar, is_ascending
from harness.core.columns import Bools, Int64s

Columns: TypeAlias = Struct  # Whose fields are all columns.
T = TypeVar("T", bound=Columns)


def row_count(table: Columns) -> int:
    """The number of rows. Raises ValueError if columns differ in length, or if there are none."""
    counts = {len(column) for column in _columns(table).values()}
    if len(counts) != 1:
        raise ValueError(f"the columns of {type(table).__name__} have {sorted(counts)} rows")
    return counts.pop()


def take(table: T, rows: Bools | Int64s | slice) -> T:
    """A table of those rows: in the order of the row numbers, or for a mask or slice in their original order."""
    if not isinstance(rows, slice) and rows.dtype == np.bool_:
        if rows.all():
            return table
        rows = np.flatnonzero(rows)  # Once for all columns.
    return type(table)(**{name: taken(column, rows) for name, column in _columns(table).items()})


def concat(tables: Sequence[T]) -> T:
    """The rows of all tables, one table after the other. There must be at least one."""
    parts = [_columns(table) for table in tables]
    return type(tables[0])(**{name: _joined([part[name] for part in parts]) for name in parts[0]})


def empty(kind: type[T]) -> T:
    """A table without rows. The dtypes of its columns are those of its fields."""
    return kind(**{name: np.empty(0, dtype) for name, dtype in _dtypes(kind).items()})


def ordered_by(table: T, *names: str) -> T:
    """The rows in the lexical order of those columns; equal ones keep their order. O(n log n)."""
    columns = _columns(table)
    order = ascending(*(columns[name] for name in names))
    return table if is_ascending(order) else take(table, order)


def distinct_by(table: T, *names: str) -> T:
    """The first row of each distinct value of those columns (without names: of all columns), in the original order."""
    columns = _columns(table)
    return take(table, first_rows(*(columns[name] for name in names or columns)))


def taken(column: NDArray[Scalar], rows: Bools | Int64s | slice) -> NDArray[Scalar]:
    """Those rows of one column. The rows of a constant column are a constant column, without memory."""
    if column.strides != (0,) or not len(column):
        if isinstance(rows, slice) or rows.dtype == np.bool_:
            return column[rows]
        return column.take(rows)  # In half the time of an index.
    if isinstance(rows, slice):
        count = len(range(len(column))[rows])
    else:
        count = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
    return np.broadcast_to(column[0], count)


class Join:
    """For each row of `left` the rows of `right` with the same key.

    Each side is a sequence of key columns, as many on both sides and in the same order: l rows left, r rows right.
    Results are row numbers of `right`, shape (l,), with -1 for none. O(n log n), or O(n) if the keys are close
    together.
    """

    def __init__(self, left: Sequence[Int64s], right: Sequence[Int64s]) -> None:
        self._left, self._right = joint_codes(left, right)
        self._keys = int(max(self._left.max(initial=-1), self._right.max(initial=-1))) + 1

    @cached_property
    def count(self) -> Int64s:
        """The number of right rows with the key."""
        result: Int64s = np.bincount(self._right, minlength=self._keys)[self._left]
        return result

    @cached_property
    def first(self) -> Int64s:
        """The first right row with the key."""
        return first_places(self._right, self._keys)[self._left]

    @cached_property
    def last(self) -> Int64s:
        """The last right row with the key."""
        return last_places(self._right, self._keys)[self._left]

    @cached_property
    def right_count(self) -> Int64s:
        """For each right row the number of right rows with its key, shape (r,)."""
        result: Int64s = np.bincount(self._right, minlength=self._keys)[self._right]
        return result

    @cached_property
    def is_found(self) -> Bools:
        """True for the right rows whose key some left row has, shape (r,)."""
        is_left = np.zeros(self._keys, np.bool_)
        is_left[self._left] = True
        return is_left[self._right]

    @cached_property
    def only(self) -> Int64s:
        """The right row with the key, if there is exactly one."""
        return np.where(self.count == 1, self.last, -1)


def _columns(table: Columns) -> dict[str, NDArray[Any]]:
    return {name: getattr(table, name) for name in table.__struct_fields__}


def _joined(parts: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
    """The columns, one after the other. Equal constant columns give a constant column."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    if filled and all(part.strides == (0,) and part[0] == filled[0][0] for part in filled):
        return np.broadcast_to(filled[0][0], sum(map(len, filled)))
    return np.concatenate(parts)


@cache  # A history of a few rows has dozens of empty tables.
def _dtypes(kind: type[Columns]) -> Mapping[str, np.dtype[Any]]:
    """The dtype of each field, which is annotated as an array: int64 for Int64s, which is NDArray[np.int64]."""
    hints = get_type_hints(kind)
    return {name: np.dtype(_scalar(hints[name])) for name in kind.__struct_fields__}


def _scalar(hint: Any) -> Any:
    """The type of the numbers in such an array: the innermost argument, however NumPy spells its NDArray."""
    while arguments := get_args(hint):
        hint = arguments[-1]
    return hint
