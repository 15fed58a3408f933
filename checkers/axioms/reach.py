"""The order that causal consistency without sessions implies for chosen reads, by following chains backwards."""

from typing import Final

import numpy as np

from checkers.axioms.execution import INITIAL, Execution
from checkers.axioms.implied import Implied, union, unordered
from checkers.columns.index import ascending
from checkers.columns.runs import first_of_each, spans
from checkers.columns.table import empty, take
from harness.core.columns import Int64s

BUDGET: Final = 3_000_000  # The number of steps backwards.


def by_chains(execution: Execution, rows: Int64s) -> Implied | None:
    """The pairs that those reads (rows of views, ascending) imply; None if the budget ended."""
    views, installs = execution.views, execution.installs
    past = _Past(execution)
    parts = [empty(Implied)]
    order = ascending(installs.key)
    low, high = spans(installs.key[order], views.key[rows])
    for row, start, stop in zip(rows.tolist(), low.tolist(), high.tolist(), strict=True):
        seen = past.of(int(views.reader[row]))
        if seen is None:
            return None
        writes = order[start:stop]
        writes = writes[np.isin(installs.writer[writes], seen)]
        parts.append(unordered(execution, writes, np.full(len(writes), row)))
    return union(parts)


class _Past:
    """The transactions from which chains of reads lead to a given one. The result of the last call is kept."""

    def __init__(self, execution: Execution) -> None:
        views = take(execution.views, execution.views.writer != INITIAL)
        is_first = first_of_each(views.reader) | first_of_each(views.writer)
        self._writers = views.writer[is_first].tolist()
        start, stop = spans(views.reader[is_first], np.arange(len(execution.op)))
        self._start, self._stop = start.tolist(), stop.tolist()
        self._budget = BUDGET
        self._reader = -1
        self._seen = np.empty(0, np.int64)

    def of(self, reader: int) -> Int64s | None:
        """The transactions from which chains of reads lead to `reader`, ascending; None if the budget ended."""
        if reader == self._reader:
            return self._seen
        reached, waiting = set[int](), [reader]
        while waiting and self._budget > 0:
            node = waiting.pop()
            before = self._writers[self._start[node] : self._stop[node]]
            self._budget -= 1 + len(before)
            new = [each for each in before if each not in reached]
            reached.update(new)
            waiting += new
        if waiting:
            return None
        self._reader, self._seen = reader, np.array(sorted(reached), np.int64)
        return self._seen
