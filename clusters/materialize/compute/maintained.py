"""Maintained views: each is a collection, whose upper follows its inputs.

Theory of operation. At each step a view takes up the updates of its inputs below the lowest of their uppers. For every
timestamp with such updates it computes the keys that have changed, before and after, and adds the difference at that
timestamp.
1. So at any timestamp below its upper a view equals its query over its inputs at that timestamp.
2. The inputs are not compacted beyond what the view has taken up.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from clusters.materialize.collections import Rows, Update, values_of
from clusters.materialize.compute.views import values
from harness.core.promises import View
from harness.core.record import Json


class Maintained:
    """A view that is maintained over these inputs."""

    def __init__(self, view: View, inputs: Mapping[str, Rows]) -> None:
        self.rows = Rows()
        self.inputs = view.inputs
        self._view = view
        self._copies = [inputs[name] for name in view.inputs]
        self._held: dict[Json, Counter[Json]] = {}
        self._changed: dict[int, dict[Json, None]] = {}

    def feed(self, updates: Iterable[Update]) -> None:
        """Note updates of an input, for the next step."""
        for update in updates:
            self._changed.setdefault(update.ts, {})[update.key] = None

    def step(self) -> list[Update]:
        """Take up what all inputs have, and return the updates of the view."""
        upper = min(rows.upper for rows in self._copies)
        if upper <= self.rows.upper:
            return []
        ready = sorted(ts for ts in self._changed if ts < upper)
        new = [update for ts in ready for update in self._differences(ts, self._changed.pop(ts))]
        self.rows.add(new, upper)
        self.rows.compact(max(rows.since for rows in self._copies))
        return new

    def _differences(self, ts: int, keys: Iterable[Json]) -> Iterator[Update]:
        """The changes of these keys of the view at `ts`."""
        for key in keys:
            before = self._held.get(key, Counter())
            after = Counter(values(self._view, [values_of(rows.at(ts, key)) for rows in self._copies]))
            for value in dict.fromkeys((*before, *after)):
                if after[value] != before[value]:
                    yield Update(key, value, 0, ts, after[value] - before[value])
            self._held[key] = after
