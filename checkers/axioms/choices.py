"""The order of pairs of versions as variables of a solver, and the versions sorted by what it chose."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from checkers.axioms.execution import Execution, Pairs
from checkers.axioms.levels import Chains
from checkers.columns.index import ascending
from checkers.columns.runs import first_of_each
from harness.core.columns import Int64s


class Variables:
    """The solver's variables: each is a pair of rows of installs, and true if the lesser row is earlier.

    They are numbered from 1.
    """

    def __init__(self, versions: Int64s) -> None:
        self._versions = versions  # The guess: the place of each row of installs.
        self._number: dict[tuple[int, int], int] = {}
        self._pairs = np.empty((0, 2), np.int64)  # Those of the variables up to the last model,
        self._new: list[tuple[int, int]] = []  # and of those since.
        self.likely: list[int] = []  # The literals that were true last, or else by the guess.

    def __len__(self) -> int:
        return len(self._number)

    def literal(self, earlier: int, later: int) -> int:
        """The literal that is true if the version in row `earlier` comes before that in row `later`."""
        pair = (earlier, later) if earlier < later else (later, earlier)
        number = self._number.get(pair)
        if number is None:
            self._number[pair] = number = len(self._number) + 1
            self._new.append(pair)
            is_so = self._versions.item(pair[0]) < self._versions.item(pair[1])
            self.likely.append(number if is_so else -number)
        return number if earlier < later else -number

    def chosen(self, model: Sequence[int]) -> Pairs:
        """All pairs, each with the version that the model makes earlier as its source."""
        self._pairs = np.concatenate((self._pairs, np.array(self._new, np.int64).reshape(-1, 2)))
        self._new.clear()
        one, other = self._pairs.T
        self.likely = list(model)
        is_so = np.array(model, np.int64) > 0
        return Pairs(np.where(is_so, one, other), np.where(is_so, other, one))


def in_order(execution: Execution, versions: Int64s) -> Chains:
    """The versions of each key in that order: `versions` is the place of each row of installs, by key first."""
    row = ascending(versions)
    return Chains(row, ~first_of_each(execution.installs.key[row]))


def reordered(order: Chains, chosen: Pairs) -> Chains:
    """The versions sorted so that they obey the chosen pairs; where no pair applies they stay as they are.

    The pairs are of rows, and have no cycle. Those with a row below 0 are ignored.
    """
    at = np.empty(len(order.row) + 1, np.int64)
    at[order.row] = np.arange(len(order.row))
    is_here = (chosen.source >= 0) & (chosen.target >= 0)
    earlier, later = at[chosen.source[is_here]], at[chosen.target[is_here]]
    starts, stops = _disordered(earlier, later)
    row = order.row.copy()
    # Most ranges are two versions in the wrong order, which are exchanged without sorting.
    short = starts[stops - starts == 2]
    row[short], row[short + 1] = order.row[short + 1], order.row[short]
    is_long = stops - starts > 2
    for start, stop, pairs in _parted(earlier, later, starts[is_long], stops[is_long]):
        row[start:stop] = order.row[_sorted(range(start, stop), pairs)]
    return Chains(row, order.is_next)


def _disordered(earlier: Int64s, later: Int64s) -> tuple[Int64s, Int64s]:
    """The starts and the stops of the ranges of places that must be sorted, as a pair in them is in the wrong order."""
    is_wrong = earlier > later
    order = np.argsort(later[is_wrong], kind="stable")
    low, high = later[is_wrong][order], np.maximum.accumulate(earlier[is_wrong][order])
    begins = np.flatnonzero(np.append(True, low[1:] > high[:-1])[: len(low)])
    return low[begins], np.append(high[begins[1:] - 1], high[-1:]) + 1


def _parted(
    earlier: Int64s, later: Int64s, starts: Int64s, stops: Int64s
) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """For each of those ranges its start, its stop, and all pairs inside it."""
    run = np.searchsorted(starts, np.minimum(earlier, later), side="right") - 1
    inside = np.flatnonzero((run >= 0) & (np.maximum(earlier, later) < np.append(stops, 0)[run]))
    inside = inside[np.argsort(run[inside], kind="stable")]
    cuts = np.searchsorted(run[inside], np.arange(len(starts) + 1)).tolist()
    pairs = list(zip(earlier[inside].tolist(), later[inside].tolist(), strict=True))
    for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        yield start, stop, pairs[cuts[number] : cuts[number + 1]]


def _sorted(places: Iterable[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The places, sorted so that they obey the pairs, which have no cycle.

    Of the places that may come next the least comes first.
    """
    after: dict[int, list[int]] = {}
    waits = dict.fromkeys(places, 0)
    for one, other in pairs:
        after.setdefault(one, []).append(other)
        waits[other] += 1
    ready = [place for place, count in waits.items() if not count]
    heapify(ready)
    result = []
    while ready:
        place = heappop(ready)
        result.append(place)
        for other in after.get(place, ()):
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, other)
    return result
