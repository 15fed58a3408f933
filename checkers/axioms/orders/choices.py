"""The order of pairs of versions as variables of a solver, and the versions sorted by what it chose."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from checkers.axioms.execution import Execution, Pairs
from checkers.axioms.levels import Chains
from checkers.columns.index import ascending
from checkers.columns.runs import first_of_each
from checkers.columns.table import concat
from harness.core.columns import Int64s


class Variables:
    """The solver's variables: each is a pair of rows of installs, and true if the lesser row is earlier.

    They are numbered from 1. `versions` is the guess: the place of each row of installs.
    """

    def __init__(self, versions: Int64s) -> None:
        self._versions = versions
        self._number: dict[int, int] = {}  # By the pair, packed into one number.
        self._pairs = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))  # Those of the variables.

    def __len__(self) -> int:
        return len(self._number)

    def literals(self, earlier: Int64s, later: Int64s) -> Int64s:
        """For each pair the literal that is true if the version in its row `earlier` comes before that in `later`."""
        count, before, number = len(self._versions), len(self), self._number
        packed = np.minimum(earlier, later) * count + np.maximum(earlier, later)
        numbers = np.array([number.setdefault(pair, len(number) + 1) for pair in packed.tolist()], np.int64)
        new = np.fromiter(islice(number, before, None), np.int64)
        self._pairs = concat([self._pairs, Pairs(*np.divmod(new, count))])
        return np.where(earlier < later, numbers, -numbers)

    def guessed(self, first: int) -> list[int]:
        """Of the variables behind the first so many, the literals that are true by the guess."""
        is_so = self._versions[self._pairs.source[first:]] < self._versions[self._pairs.target[first:]]
        number = np.arange(first, len(self)) + 1
        literals: list[int] = np.where(is_so, number, -number).tolist()
        return literals

    def chosen(self, model: Sequence[int]) -> Pairs:
        """All pairs, each with the version that the model makes earlier as its source."""
        one, other = self._pairs.source, self._pairs.target
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
