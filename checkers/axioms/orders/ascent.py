"""Which transactions may lie on a cycle after the order of some versions changed: those among which a step descends.

Theory of operation. Transactions have places which no step of a graph descends; only those of one cycle share a place.
Then some pairs of versions get another order, so some ww and rw steps are new. A cycle of the new graph either stays at
one place, or descends by new steps; then all its places lie between the ends of new steps that descend. These ranges of
places are *disturbed*. A search for cycles in them alone gives their transactions new places, each range within itself.
"""

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.axioms.execution import INITIAL, Execution, Pairs
from checkers.axioms.levels import LAYERED, Level, layers
from checkers.axioms.orders.choices import in_order, reordered
from checkers.columns.index import Places, ascending
from checkers.columns.runs import first_of_each
from checkers.columns.table import empty, take
from checkers.graph.paths import Steps
from checkers.graph.strong import strong_labels
from harness.core.columns import Bools, Int64s


class Disturbed(NamedTuple):
    """The transactions that may lie on a cycle, ascending; and True for each place in a range that is disturbed.

    `versions` is the order of versions that disturbs them, as in `Ascent`.
    """

    nodes: Int64s
    places: Bools
    versions: Int64s


class Ascent(Struct, frozen=True):
    """The places of transactions, and of their entrances if the level has two layers: how many stand before each.

    `versions` is the order of versions in that graph: the place of each row of installs.
    """

    level: Level
    place: Int64s
    versions: Int64s

    def disturbed(self, execution: Execution, chosen: Pairs) -> Disturbed:
        """The transactions that may lie on a cycle if the pairs in `chosen` have that order."""
        place = self.place
        steps, versions = self._new_steps(execution, chosen)
        disturbed = _descents(place, steps)
        disturbed |= np.bincount(place, minlength=len(place)) > 1
        return _among(execution, place, disturbed, versions)

    def _new_steps(self, execution: Execution, chosen: Pairs) -> tuple[Steps, Int64s]:
        """All ww and rw steps of those keys whose versions are in another order now; and the order of all versions."""
        views, installs = execution.views, execution.installs
        is_wrong = self.versions[chosen.source] > self.versions[chosen.target]
        is_new = np.zeros(len(execution.keys), np.bool_)
        is_new[installs.key[chosen.source[is_wrong]]] = True
        rows = np.flatnonzero(is_new[installs.key])
        there, seen = Places(rows), take(views, is_new[views.key])
        seen = replace(seen, install=there.of(seen.install))
        part = replace(execution, views=seen, installs=take(installs, rows))
        before = in_order(part, self.versions[rows])
        order = reordered(before, Pairs(there.of(chosen.source), there.of(chosen.target)))
        versions = self.versions.copy()
        versions[rows[order.row]] = self.versions[rows[before.row]]
        return layers(part, empty(Steps), order, self.level).steps, versions

    def mended(self, found: Disturbed, label: Int64s) -> "Ascent":
        """The places in the new order of versions; `label` is `along` the graph of what is disturbed."""
        node = np.append(found.nodes, found.nodes + len(self.place) // 2)[: len(found.nodes) * _layers_of(self.level)]
        label = label[: len(node)]
        inside = np.flatnonzero(found.places[self.place[node]])
        node, label = node[inside], label[inside]
        # Each range keeps its places: they begin at its first one.
        first_of_range = _last_true(found.places & first_of_each(found.places))
        begin = first_of_range[self.place[node]]
        order = ascending(begin, label)
        is_first = first_of_each(begin[order])
        position = begin[order] + np.arange(len(order)) - _last_true(is_first)
        is_first |= first_of_each(label[order])
        place = self.place.copy()
        place[node[order]] = position[_last_true(is_first)]
        return Ascent(self.level, place, found.versions)


def by_moments(
    execution: Execution, commit: Int64s, level: Level, steps: Steps, versions: Int64s, *, is_timed: bool
) -> tuple[Ascent, Disturbed]:
    """The places in the order of those moments of commit, and the transactions that may lie on a cycle.

    If there are none of these, the graph has no cycle. Its `steps` are all but those of real time, which it has if it
    `is_timed`. If the moments contradict real time, each transaction may lie on a cycle.
    """
    size = len(execution.op)
    nodes = ascending(commit)
    place = np.empty(size, np.int64)
    place[nodes] = np.arange(size)
    if level in LAYERED:
        place = np.append(2 * place + 1, 2 * place)  # The entrance of a transaction comes right before it.
    # Real time is kept if no transaction began after the end of one with a later place.
    is_kept = not is_timed or np.all(np.maximum.accumulate(execution.op[nodes]) < execution.end[nodes])
    disturbed = _descents(place, steps) if is_kept else np.ones(len(place), np.bool_)
    return Ascent(level, place, versions), _among(execution, place, disturbed, versions)


def _descents(place: Int64s, steps: Steps) -> Bools:
    """For each place True if it lies between the ends of a step that descends, or is one of them."""
    first, last = place[steps.source], place[steps.target]
    descends = first > last
    spans = np.bincount(last[descends], minlength=len(place) + 1)
    spans -= np.bincount(first[descends] + 1, minlength=len(place) + 1)
    result: Bools = np.cumsum(spans)[:-1] > 0
    return result


def _among(execution: Execution, place: Int64s, disturbed: Bools, versions: Int64s) -> Disturbed:
    """The transactions at the places that are disturbed, with the writers of what they read."""
    size = len(execution.op)
    result: Bools = np.any(disturbed[place].reshape(len(place) // max(1, size), size), axis=0)
    # A read leads to the next version of what it shows, which is known only beside the writer.
    writers = execution.views.writer[result[execution.views.reader]]
    result[writers[writers != INITIAL]] = True
    return Disturbed(np.flatnonzero(result), disturbed, versions)


def along(steps: Steps, size: int) -> Int64s:
    """For each node a number that ascends along the steps, and stays equal along those of a cycle."""
    label = strong_labels(steps.source, steps.target, size)
    result: Int64s = label.max(initial=0) - label
    assert np.all(result[steps.source] <= result[steps.target]), "strong components descend along the steps"
    return result


def _layers_of(level: Level) -> int:
    return 2 if level in LAYERED else 1


def _last_true(flag: Bools) -> Int64s:
    """For each row the last one up to it that is True; 0 before the first."""
    result: Int64s = np.maximum.accumulate(np.where(flag, np.arange(len(flag)), 0))
    return result
