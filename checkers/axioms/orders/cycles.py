"""Short cycles in a graph whose steps assume an order of versions, and the form in which findings show them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from checkers.axioms.execution import Execution
from checkers.axioms.levels import Layers
from checkers.columns.runs import first_of_each
from checkers.graph.edges import RW, WW
from checkers.graph.paths import MOMENT, Steps
from harness.core.columns import Bools, Int64s

CYCLES: Final = 40_000  # The number of cycles that are taken from one graph, unless it has more strong components;
LOOKED: Final = 2_000_000  # the number of steps of one graph that are looked at for them, but for one cycle.
_BLOCK: Final = 2_048  # The number of pairs that are looked for at once.
_TRIES: Final = 2  # The least number of cycles that is taken from each strong component, if it has so many.


class ChosenStep(NamedTuple):
    """A step from operation to operation (indexes). For ww and rw: the later version is that of `target` in `key`."""

    source: int
    target: int
    kind: int
    key: int = -1


class Contradiction(NamedTuple):
    """Cycles of which at least one exists, whatever the order of versions. If it is one cycle, it assumes no order."""

    cycles: tuple[tuple[ChosenStep, ...], ...]

    @property
    def ops(self) -> tuple[int, ...]:
        """The operations of all cycles, each once, in the order of the steps."""
        return tuple(dict.fromkeys(step.source for cycle in self.cycles for step in cycle))


class Evidence:
    """The steps of several cycles as columns, one cycle after the other. Only reported ones become objects."""

    def __init__(self, execution: Execution, graph: Layers, rows: Int64s) -> None:
        installs, later = execution.installs, graph.later[rows]
        nodes = graph.steps.source[rows]
        self.op = np.where(nodes < 2 * graph.size, np.append(execution.op, execution.op)[nodes % (2 * graph.size)], -1)
        self.kind = graph.steps.kind[rows]
        keys = np.append(execution.keys[installs.key], -1)
        self.key = np.where((self.kind == WW) | (self.kind == RW), keys[later], -1)


class Cycle(NamedTuple):
    """One cycle: the rows of `evidence` from `start` to `stop`."""

    evidence: Evidence
    start: int
    stop: int

    def steps(self) -> tuple[ChosenStep, ...]:
        """The steps of the cycle as a finding shows them: those through moments of real time are merged."""
        columns = (self.evidence.op, self.evidence.kind, self.evidence.key)
        rows = zip(*(column[self.start : self.stop].tolist() for column in columns), strict=True)
        shown = [(op, kind, key) for op, kind, key in rows if kind != MOMENT]
        targets = (op for op, _, _ in (*shown[1:], *shown[:1]))
        return tuple(ChosenStep(op, target, kind, key) for (op, kind, key), target in zip(shown, targets, strict=True))


class Walks(NamedTuple):
    """Closed walks: the rows of their steps, one walk after the other, and the number of steps of each."""

    rows: Int64s
    lengths: Int64s

    def each(self) -> list[Int64s]:
        """The rows of each walk."""
        return np.split(self.rows, np.cumsum(self.lengths)[:-1])


def short_cycles(steps: Steps, label: Int64s, *, most: int = CYCLES) -> tuple[Walks, int]:
    """Some short cycles of each strong component, about `most` in all; and the number of steps looked at.

    `label` is, for each node, the number of its component.
    """
    inside = np.flatnonzero(label[steps.source] == label[steps.target])
    if not len(inside):
        return Walks(inside, inside), 0
    source, target = steps.source[inside], steps.target[inside]
    graph = Paths(source, target)
    inside_of = label[source]
    order = np.argsort(inside_of, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(inside_of[order])) + 1)
    each = max(_TRIES, most // len(groups))
    first = np.concatenate([group[:: -(-len(group) // each)] for group in groups])
    ends = zip(first.tolist(), target[first].tolist(), source[first].tolist(), strict=True)
    # All in one list of rows: most cycles have two or three steps, and an array for each would cost more than its path.
    rows, lengths, cost = list[int](), list[int](), 0
    is_taken = [False] * len(inside)  # Steps of a cycle that was found: most would only find the same one again.
    for row, start, goal in ends:
        if is_taken[row]:
            continue
        path, looked = graph.path(start, goal)
        for each in path:
            is_taken[each] = True
        cost += looked
        rows += (row, *path)
        lengths.append(1 + len(path))
        if cost > LOOKED:
            break
    return Walks(inside[np.array(rows)], np.array(lengths)), cost


def connected(steps: Steps, place: Int64s, pairs: Steps, *, most: int) -> tuple[Bools, int]:
    """True for each pair if a path leads from its source to its target; and the number of steps looked at.

    `place` gives each node a number of its own, which ascends along the steps. Pairs are taken in blocks of about the
    same range of places, and each is a bit of the integers that go along the steps in that range. After about `most`
    steps it ends, and the other pairs stay False.
    """
    source, target = place[steps.source], place[steps.target]
    rows = np.argsort(target, kind="stable")
    source, target = source[rows], target[rows]
    first, last = place[pairs.source], place[pairs.target]
    result, cost = np.zeros(len(first), np.bool_), 0
    possible = np.flatnonzero(first < last)
    width = np.frexp((last - first)[possible])[1]
    possible = possible[np.lexsort((first[possible], width))]
    for block in np.split(possible, np.arange(_BLOCK, len(possible), _BLOCK)):
        if not len(block) or cost > most:
            break
        low, high = int(first[block].min()), int(last[block].max())
        start, stop = np.searchsorted(target, (low, high + 1)).tolist()
        inside = start + np.flatnonzero(source[start:stop] >= low)
        reached = [0] * (high - low + 1)
        for bit, node in enumerate((first[block] - low).tolist()):
            reached[node] |= 1 << bit
        for one, other in zip((source[inside] - low).tolist(), (target[inside] - low).tolist(), strict=True):
            reached[other] |= reached[one]
        goals = enumerate((last[block] - low).tolist())
        result[block] = [reached[node] >> bit & 1 for bit, node in goals]
        cost += len(block) + stop - start
    return result, cost


class Paths:
    """A breadth-first search for shortest paths, as rows of steps. It is plain Python, as most graphs are tiny.

    In a graph without cycles, `place` may give each node a number that ascends along the steps: no path to a node leads
    over one that is placed behind it.
    """

    def __init__(self, source: Int64s, target: Int64s, place: Sequence[int] | None = None) -> None:
        order = np.argsort(source, kind="stable")
        ordered = source[order]
        starts = np.flatnonzero(first_of_each(ordered))
        runs = zip(starts.tolist(), [*starts[1:].tolist(), len(ordered)], strict=False)  # Without steps no start.
        self._run = dict(zip(ordered[starts].tolist(), runs, strict=True))
        self._target: list[int] = target[order].tolist()
        self._row: list[int] = order.tolist()
        self._place = place

    def path(self, start: int, goal: int) -> tuple[list[int], int]:
        """The rows of a shortest path of at least one step, none without a path; and the number of steps looked at."""
        came: dict[int, tuple[int, int]] = {}
        waiting, looked, place = [start], 0, self._place
        for node in waiting:
            low, high = self._run.get(node, (0, 0))
            looked += high - low
            for row in range(low, high):
                reached = self._target[row]
                if reached not in came and (place is None or place[reached] <= place[goal]):
                    came[reached] = (node, row)
                    waiting.append(reached)
            if goal in came:
                break
        rows, at = list[int](), goal
        while goal in came and (not rows or at != start):
            at, row = came[at]
            rows.append(self._row[row])
        return rows[::-1], looked
