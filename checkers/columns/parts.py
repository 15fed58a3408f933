"""Columns of one table that are filled part by part, in any order, and by several threads at once."""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.core.columns import Int8s, Int64s


def constant(number: int, count: int) -> Int64s:
    """A column with one number in all rows. It takes no memory and is read-only."""
    return np.broadcast_to(np.int64(number), count)


class Columns:
    """Columns with those names and `count` rows. A column takes no memory while all its parts hold the same number."""

    def __init__(self, names: Iterable[str], count: int) -> None:
        self._columns = {name: _Column(count) for name in names}

    def put(self, begin: int, parts: Mapping[str, Int64s | Int8s]) -> None:
        """Fill the rows of each column from `begin` on. The parts are copied at once and not kept."""
        for name, part in parts.items():
            self._columns[name].put(begin, part)

    def whole(self) -> dict[str, NDArray[Any]]:
        """All columns by name, once all parts have been put."""
        return {name: column.whole() for name, column in self._columns.items()}


class _Column:
    def __init__(self, count: int) -> None:
        self._count = count
        self._constants: list[tuple[int, Int64s | Int8s]] = []
        self._rows: NDArray[Any] | None = None
        self._lock = Lock()

    def put(self, begin: int, part: Int64s | Int8s) -> None:
        if not len(part):
            return
        if part.strides == (0,):
            self._constants.append((begin, part))
        else:
            self._filled(part.dtype)[begin : begin + len(part)] = part

    def whole(self) -> NDArray[Any]:
        numbers = {int(part[0]) for _, part in self._constants}
        if self._rows is None and len(numbers) <= 1:
            return constant(next(iter(numbers), 0), self._count)
        for begin, part in self._constants:
            self._filled(part.dtype)[begin : begin + len(part)] = part
        return self._filled(np.dtype(np.int64))

    def _filled(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The array of the column, allocated at the first part that needs it."""
        with self._lock:
            if self._rows is None:
                self._rows = np.empty(self._count, dtype)
            return self._rows
