"""The search for cycles by their classes: the one driver for graphs with watermarks and without.

The strongly connected components of the layers of a class (checkers/graph/paths.py) say which steps lie on closed
paths. That is the acyclicity test of the models that prohibit the class, and a class without such a step is absent. A
class with exactly one step of some kinds needs a path back for each of them. The rest only finds a cycle to show: of
the shortest closed paths through the first few steps the best cycle of that class.

A class that must not be missed is sought through all its steps. Without a cycle it is absent if no step that it needs
lies on a closed path under its rule. It is undecided if there are such paths, but all cycles that make them up are of
other classes, or if trying all steps would take too long. Source: Adya 1999; Elle, VLDB 2020, section 5.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from checkers.columns.runs import first_of_each
from checkers.columns.table import take
from checkers.graph.classes import CycleClass
from checkers.graph.edges import RW
from checkers.graph.paths import StepGraph, Steps, simple_cycles
from harness.core.columns import Bools, Int64s

_TRIES: Final = 16  # The number of steps of a class that are tried for the shortest cycle through them.
_WORK: Final = 10_000_000  # Steps tried, times those of the graph, until a class that must not be missed is undecided.
_REACH_BUDGET: Final = 300_000_000  # Limit of nodes and steps visited for the paths back of a class with a single step.


class Step(NamedTuple):
    """A step of a cycle. `row` is its place among the steps of the searched graph; -1 for a step of time."""

    source: int
    target: int
    kind: int
    row: int


C = TypeVar("C")


class Searched(Protocol[C]):
    """A graph in which cycles are sought: nodes 0 to `size` - 1 in the order of time, and steps between them.

    The steps ascend by source, then target; of several between two nodes the first is the one to show. `chain`: for
    each step the chain of watermarks that it belongs to; equal for all others.
    """

    @property
    def size(self) -> int: ...
    @property
    def steps(self) -> Steps: ...
    @property
    def chain(self) -> Int64s: ...

    def time(self, sought: CycleClass) -> Iterable[Steps]:
        """The steps of time that cycles of the class may have."""

    def apart(self, sought: CycleClass) -> Iterable[Bools]:
        """Parts of the steps, as masks: a cycle inside one of them is better than any other."""

    def comes_first(self, rows: Int64s, sought: CycleClass) -> Bools:
        """True for steps that probably lie on the shortest cycles."""

    def cycle(self, steps: Sequence[Step]) -> C:
        """The cycle of those steps, in its normal form."""

    def name(self, cycle: C) -> str:
        """The class of the cycle."""

    def rank(self, cycle: C) -> Any:
        """A sort key: the best cycle to show comes first."""


class Sought(Struct, Generic[C], frozen=True):
    """A cycle of a class, or None: then the class is absent if the search ended.

    `count`: for a class with a single rw, at least the number of operations whose own rw closes such a cycle; else 1.
    """

    cycle: C | None
    is_ended: bool = True
    count: int = 1


class Found(Struct, Generic[C], frozen=True):
    """What was found of each class, and the classes of which it is not known whether they are there."""

    there: Mapping[str, Sought[C]]
    undecided: frozenset[str]


def classes(
    every: Iterable[CycleClass],
    seek: Callable[[CycleClass], Sought[C]],
    is_known: Callable[[str, Iterable[str]], bool],
) -> Found[C]:
    """The classes that `seek` finds, in that order; it passes over those that follow from what was found before."""
    there: dict[str, Sought[C]] = {}
    undecided = set[str]()
    for sought in every:
        if is_known(sought.name, there):
            continue
        result = seek(sought)
        if result.cycle is not None:
            there[sought.name] = result
        elif not result.is_ended:
            undecided.add(sought.name)
    return Found(there, frozenset(undecided))


def seek(graph: Searched[C], sought: CycleClass, *, is_needed: bool = False) -> Sought[C]:
    """The best cycle of those tried. A class that `is_needed` is sought until it is found, absent or undecided."""
    if not np.any(graph.steps.kind & sought.required):  # Saves computing the components.
        return Sought(None)
    whole = _Graph(graph, sought)
    starts = whole.starts()
    is_ended, count = True, 1
    if sought.rule.once:
        starts, is_ended = whole.closed(starts)
        count = max(1, len(np.unique(whole.steps.source[starts[whole.steps.kind[starts] == RW]])))
    if not len(starts):
        return Sought(None, is_ended)
    for mask in graph.apart(sought):
        part = _Graph(graph, sought, mask)
        cycle = part.best(part.also(whole.kept[starts])[:_TRIES])
        if cycle is not None:
            return Sought(cycle, count=count)
    tries = max(_TRIES, _WORK // len(whole.steps.source)) if is_needed else _TRIES
    cycle = whole.best(starts[:tries])
    is_ended = is_ended and (cycle is not None or not is_needed or whole.is_absent(tries))
    return Sought(cycle, is_ended, count)


def has_cycle(graph: Searched[C], sought: CycleClass) -> bool:
    """True if a closed path has a step that the class requires; of its rule, only kinds that are kept apart count."""
    return len(_Graph(graph, sought).starts()) > 0


class _Graph(Generic[C]):
    """The steps of a graph that cycles of a class may have, of those in `mask` if it is given. Rows are their places.

    `kept`: for each row, the step of the searched graph; steps of time, which follow, are not among these.
    """

    def __init__(self, graph: Searched[C], sought: CycleClass, mask: Bools | None = None) -> None:
        is_kept = graph.steps.kind & sought.kinds != 0
        self._graph, self._sought = graph, sought
        self.kept = np.flatnonzero(is_kept if mask is None else is_kept & mask)
        self._paths = StepGraph([take(graph.steps, self.kept), *graph.time(sought)], graph.size, sought.rule)
        self.steps = self._paths.steps

    def starts(self) -> Int64s:
        """The rows of required steps on closed paths, in the order in which they are tried. Of equal ones the first."""
        steps, chain = take(self.steps, np.arange(len(self.kept))), self._graph.chain[self.kept]
        rows = np.flatnonzero(steps.kind & self._sought.required)
        columns = (steps.source[rows], steps.target[rows], chain[rows])
        rows = rows[np.any([first_of_each(column) for column in columns], axis=0)]
        rows = rows[self._paths.on_cycles(steps.source[rows], steps.target[rows], self._sought.required)]
        source, target = steps.source[rows], steps.target[rows]
        is_later = ~self._graph.comes_first(self.kept[rows], self._sought)
        return rows[np.lexsort((target, source, np.abs(target - source), is_later))]

    def also(self, kept: Int64s) -> Int64s:
        """The rows of those steps of the searched graph, in that order, that lie on closed paths here, too."""
        here = set(self.kept[self.starts()].tolist())
        return np.searchsorted(self.kept, np.array([each for each in kept.tolist() if each in here], np.int64))

    def closed(self, starts: Int64s) -> tuple[Int64s, bool]:
        """The rows from whose target a path under the rule leads back to their source; False if some were not tried.

        It tries as many as it can afford, and at least a few.
        """
        affordable = starts[: max(_TRIES, _REACH_BUDGET // (len(self.steps.source) + 2 * self._graph.size))]
        hits = affordable[[self._is_closed(row) for row in affordable.tolist()]]
        return hits, len(hits) > 0 or len(affordable) == len(starts)

    def best(self, starts: Int64s) -> C | None:
        """The best cycle through the first few of those rows that give any."""
        for begin in range(0, len(starts), _TRIES):
            cycles = [cycle for row in starts[begin : begin + _TRIES].tolist() for cycle in self._through(row)]
            named = [cycle for cycle in cycles if self._graph.name(cycle) == self._sought.name]
            if named:
                return min(named, key=self._graph.rank)
        return None

    def is_absent(self, tries: int) -> bool:
        """True if no closed path under the rule has a step that every cycle of the class has."""
        steps, needed = self.steps, self._sought.needed
        rows = np.flatnonzero(steps.kind & needed)
        rows = rows[self._paths.on_cycles(steps.source[rows], steps.target[rows], needed)]
        return len(rows) <= tries and not any(map(self._is_closed, rows.tolist()))

    def _step(self, row: int) -> Step:
        steps, kept = self.steps, int(self.kept[row]) if row < len(self.kept) else -1
        return Step(int(steps.source[row]), int(steps.target[row]), int(steps.kind[row]), kept)

    def _is_closed(self, row: int) -> bool:
        step = self._step(row)
        return self._paths.is_closed(step.source, step.target, step.kind)

    def _through(self, row: int) -> Iterator[C]:
        """The cycles that make up a shortest closed path through that step."""
        first = self._step(row)
        rows = self._paths.path(first.target, first.source, first=first.kind)
        for cycle in simple_cycles([] if rows is None else [first, *map(self._step, rows)]):
            following = [*cycle[1:], cycle[0]]
            # Steps from moments are omitted: the step before them leads to where they lead.
            yield self._graph.cycle(
                [one._replace(target=two.source) for one, two in zip(cycle, following, strict=True)]
            )
