"""The rows of a view, one group of rows of its inputs at a time, kept up to date while updates come.

A group is the rows of the inputs with one key. Each class has the rows that the view must have for that key: `add`
takes an update in time that does not depend on the number of updates before it (for the greatest value: amortized,
with the logarithm of the number of rows), and `rows` gives all legal answers.
"""

from collections import Counter
from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol

from harness.core.promises import View

Row = Hashable  # A row's value; lists are tuples.


class Group(Protocol):
    """The rows of a view that come from one key of its inputs."""

    def add(self, place: int, row: Row, diff: int) -> None:
        """Take up an update of the input at that place."""

    def is_right(self, shown: Counter[Row]) -> bool:
        """True if the view may show exactly these rows for this key."""

    def due(self) -> Counter[Row]:
        """Rows that the view may show for this key."""


def column(row: Any, place: int | None) -> Any:
    """A column of a row's value; without a place the whole value."""
    return row if place is None else row[place]


class _Exact:
    """A group with one legal answer."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._due: Counter[Row] = Counter()

    def due(self) -> Counter[Row]:
        return self._due

    def is_right(self, shown: Counter[Row]) -> bool:
        return shown == self.due()

    def _put(self, row: Row, diff: int) -> None:
        self._due[row] += diff
        if not self._due[row]:
            del self._due[row]


class Rows(_Exact):
    """The rows themselves."""

    def add(self, place: int, row: Row, diff: int) -> None:
        self._put(row, diff)


class Sum(_Exact):
    """One row, the sum; none if no rows are left."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._total = self._count = 0

    def add(self, place: int, row: Row, diff: int) -> None:
        self._total += diff * column(row, self._view.value)
        self._count += diff

    def due(self) -> Counter[Row]:
        return Counter({self._total: 1}) if self._count else Counter()


class Distinct(_Exact):
    """Each value that some row has, once."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._held: Counter[Row] = Counter()

    def add(self, place: int, row: Row, diff: int) -> None:
        value = column(row, self._view.value)
        before = self._held[value] > 0
        self._held[value] += diff
        after = self._held[value] > 0
        if before != after:
            self._put(value, 1 if after else -1)
        if not self._held[value]:
            del self._held[value]


class Join(_Exact):
    """The pairs of the values in both inputs."""

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._sides: tuple[Counter[Row], Counter[Row]] = (Counter(), Counter())

    def add(self, place: int, row: Row, diff: int) -> None:
        value = column(row, self._view.value)
        for other, count in self._sides[1 - place].items():
            self._put((other, value) if place else (value, other), diff * count)
        side = self._sides[place]
        side[value] += diff
        if not side[value]:
            del side[value]


class Top:
    """The row with the greatest value; of rows that share it any, if no order is declared."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._held: dict[Any, Counter[Row]] = {}  # By the value that decides.
        self._heap: list[_Greatest] = []

    def add(self, place: int, row: Row, diff: int) -> None:
        rank = column(row, self._view.value)
        rank = rank if self._view.order is None else (rank, column(row, self._view.order))
        if rank not in self._held:
            self._held[rank] = Counter()
            heappush(self._heap, _Greatest(rank))
        held = self._held[rank]
        held[row] += diff
        if not held[row]:
            del held[row]

    def _tied(self) -> Counter[Row]:
        while self._heap and not any(count > 0 for count in self._held[self._heap[0].rank].values()):
            rank = heappop(self._heap).rank
            if self._held[rank]:
                self._heap.append(_Greatest(rank))  # Rows that are there less than never: they may come yet.
                heapify(self._heap)
                return Counter()
            del self._held[rank]
        return self._held[self._heap[0].rank] if self._heap else Counter()

    def due(self) -> Counter[Row]:
        tied = self._tied()
        return Counter({next(iter(tied)): 1}) if tied else Counter()

    def is_right(self, shown: Counter[Row]) -> bool:
        tied = self._tied()
        return shown.total() == 1 and tied[next(iter(shown))] > 0 if tied else not shown


class _Greatest:
    """An entry of a heap whose greatest value comes first."""

    __slots__ = ("rank",)

    def __init__(self, rank: Any) -> None:
        self.rank = rank

    def __lt__(self, other: "_Greatest") -> bool:
        return bool(other.rank < self.rank)


GROUPS: Final[dict[str, type[Rows] | type[Sum] | type[Distinct] | type[Join] | type[Top]]] = {
    "rows": Rows,
    "sum": Sum,
    "distinct": Distinct,
    "join": Join,
    "top-1": Top,
}


def group(view: View) -> Group:
    """A new group of that view, without rows."""
    return GROUPS[view.operator](view)
