"""Orders of versions that hold whatever is guessed, and the proof that no order is left, for a part of a history.

Theory of operation. The graph is that of `levels`, but with those ww and rw steps only that each order of versions has.
1. If a path leads from b to a read of what a wrote, and b wrote that key too, then b's version comes before a's: else
   an rw step to b would close a cycle. So a ww step leads from b to a.
2. If a path leads from a to b, and both wrote a key, then a's version comes before b's. So rw steps lead to b from
   those who read a's version. Parallel snapshot isolation has no such steps, as none of its paths takes an rw step.
3. If an rw step leads from r to b, and both wrote some key, then r's version of that comes before b's: of two such
   transactions the later one sees the earlier. Serializability and prefix consistency do not have this rule.
4. New steps make new paths: all rules are repeated until nothing new follows. If the graph has a cycle, no order of
   versions explains the part, nor the whole. The evidence is that cycle, and for each order of two versions that it
   assumes the cycle which the other order would close; and so on for what these assume.
For update atomic b must be seen by one step in rule 1: r reads from it, or both wrote some key.
Each round numbers the transactions along the steps, and the ones before each node are the bits of one integer. Of the
bits that a rule finds only the nearest are needed: the others follow.

The rules are incomplete: a part that they leave open may still have no order. Time: n squared / 64 for each round.

Source: the saturation of Biswas and Enea, OOPSLA 2019, for each level's own paths.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Final, NamedTuple

import numpy as np

from checkers.axioms.execution import INITIAL, UNRANKED, Execution, part
from checkers.axioms.levels import CALM, LAYERED, Layers, Level, base, chains, layers
from checkers.axioms.orders.cycles import Contradiction, Cycle, Evidence, Paths, short_cycles
from checkers.graph.edges import RW, WR, WW
from checkers.graph.paths import Steps
from checkers.graph.strong import strong_labels
from harness.core.columns import Int64s

FIRST: Final = 500  # The number of transactions that are looked at first. It doubles
MOST: Final = 16_000  # up to this one.
_SHOWN: Final = 16  # The number of cycles of which the shortest becomes the evidence.


def decided(execution: Execution, level: Level, order: int, nodes: Int64s) -> Contradiction | Int64s:
    """The proof that no order of versions satisfies the level, or if the rules find none a guess of commits.

    They look at growing parts of `nodes`, which ascend: a store that keeps only a weaker model breaks this one early.
    The guess is the place of each transaction of the last part in an order of commits that keeps what is forced.
    """
    size = FIRST
    while True:
        inside, _ = part(execution, nodes[:size])
        found = _Forced(inside, level, order).decided()
        if isinstance(found, Contradiction) or size >= min(len(nodes), MOST):
            return found
        size = min(2 * size, MOST)


class _Step(NamedTuple):
    """A row of `Layers`: `earlier` and `later` are the rows of installs whose order it assumes, or -1."""

    source: int
    target: int
    kind: int
    earlier: int
    later: int


class _Reason(NamedTuple):
    """The reason for an order of two versions: the other order adds the first of `steps`, which closes a cycle.

    Those of its other steps that are not given are among the first `stop` steps of the graph.
    """

    steps: tuple[_Step, ...]
    stop: int


class _Forced:
    """The steps that hold in every order of versions."""

    def __init__(self, execution: Execution, level: Level, order: int) -> None:
        self._execution, self._level = execution, level
        self._size = len(execution.op)
        self._begin = self._size if level in LAYERED else 0  # From a transaction to the node where it reads,
        self._entry = self._size if level is Level.SNAPSHOT else 0  # and to the one that ww steps enter.
        views, installs = execution.views, execution.installs
        read = views.install
        columns = (views.reader, views.key, views.writer, read)
        self._reads = list(zip(*(column.tolist() for column in columns), strict=True))
        self._readers: dict[int, list[int]] = {}  # Of each row of installs.
        self._sources: dict[int, list[int]] = {}
        for reader, _, source, row in self._reads:
            self._readers.setdefault(row, []).append(reader)
            if source != INITIAL:
                self._sources.setdefault(reader, []).append(source)
        self._writers: list[list[int]] = [[] for _ in execution.keys]
        self._keys: dict[int, list[int]] = {}  # Of each transaction those that it wrote.
        self._row: dict[tuple[int, int], int] = {}
        for row, (writer, key) in enumerate(zip(installs.writer.tolist(), installs.key.tolist(), strict=True)):
            self._writers[key].append(writer)
            self._keys.setdefault(writer, []).append(key)
            self._row[writer, key] = row
        self._rank: list[int] = installs.rank.tolist()
        self._steps = self._known(order)
        self._ends = {step[:2] for step in self._steps}
        self._reasons: dict[tuple[int, ...], _Reason] = {}  # By rows of installs, the earlier version first.

    def decided(self) -> Contradiction | Int64s:
        """The proof that no order of versions is left, or an order of commits that keeps what is forced."""
        while True:
            stop = len(self._steps)
            steps = _layers(self._steps, self._size).steps
            label = strong_labels(steps.source, steps.target, 3 * self._size)
            if int(label.max(initial=-1)) + 1 < 3 * self._size:
                walks, _ = short_cycles(steps, label, most=_SHOWN)
                return self._proof(self._shortest(walks.each()))
            place = int(label.max(initial=0)) - label  # Ascends along the steps.
            reach = _Reach(steps, place, self._size)
            masks = [reach.mask(writers) for writers in self._writers]
            broken = self._add_seen(reach, masks, stop)
            if broken is not None:
                return self._proof(self._closed(broken))
            if self._level not in CALM:
                self._add_missed(reach, masks, stop)
            if self._level in CALM or self._level is Level.SNAPSHOT:
                self._add_overwritten(reach, masks, stop)
            if len(self._steps) == stop:
                return place[: self._size]

    def _known(self, order: int) -> list[_Step]:
        """The steps of reads, of that order of time, and of versions whose order is known."""
        history, installs = self._execution, self._execution.installs
        graph = layers(
            history, base(history, order, self._level), chains(history, history.op[installs.writer]), self._level
        )
        rank = np.append(installs.rank, UNRANKED)
        is_known = (graph.earlier < 0) | (rank[graph.earlier] != rank[graph.later])
        if self._level in CALM:
            is_known &= graph.steps.kind != RW
        columns = (graph.steps.source, graph.steps.target, graph.steps.kind, graph.earlier, graph.later)
        steps = [_Step(*row) for row in zip(*(column[is_known].tolist() for column in columns), strict=True)]
        # The chains lead from the initial version to the first of a guess, but all others are later, too.
        firsts = self._reads if self._level not in CALM else ()
        return steps + [
            _Step(reader + self._begin, writer, RW, -1, self._row[writer, key])
            for reader, key, source, _ in firsts
            if source == INITIAL
            for writer in self._writers[key]
            if writer != reader
        ]

    def _add_seen(self, reach: "_Reach", masks: Sequence[int], stop: int) -> _Reason | None:
        """Add the steps of rule 1. The result is the reason for an order that is known to be wrong, if there is one."""
        for reader, key, source, read in self._reads:
            seen = reach.before(reader + self._begin) & masks[key] & ~reach.bit(reader)
            if source != INITIAL:
                seen &= ~reach.before(source)
            if self._level is Level.UPDATE and seen:
                seen &= self._rivals(reader, masks) | reach.mask(self._sources.get(reader, ()))
            while seen:
                writer = reach.last(seen)
                seen &= ~reach.before(writer)
                row = self._row[writer, key]
                reason = _Reason(
                    (_Step(reader + self._begin, writer, RW, read, row), *self._sight(writer, reader, stop)), stop
                )
                if source == INITIAL or self._rank[read] != self._rank[row]:
                    return reason
                self._reasons.setdefault((row, read), reason)
                self._add(_Step(writer, source + self._entry, WW, row, read))
        return None

    def _sight(self, writer: int, reader: int, stop: int) -> tuple[_Step, ...]:
        """The one step by which the reader sees the writer, for update atomic; of other models a path shows it."""
        if self._level is not Level.UPDATE:
            return ()
        if writer in self._sources.get(reader, ()):
            return (_Step(writer, reader, WR, -1, -1),)
        return (
            self._follows(writer, reader, next(key for key in self._keys[reader] if (writer, key) in self._row), stop),
        )

    def _follows(self, source: int, target: int, key: int, stop: int) -> _Step:
        """The ww step between two writers of that key of which the first comes before the other, as a path shows."""
        one, other = self._row[source, key], self._row[target, key]
        if self._rank[one] == self._rank[other]:
            closing = _Step(target, source + self._entry, WW, other, one)
            self._reasons.setdefault((one, other), _Reason((closing,), stop))
        return _Step(source, target + self._entry, WW, one, other)

    def _add_missed(self, reach: "_Reach", masks: Sequence[int], stop: int) -> None:
        """Add the steps of rule 2."""
        for key, writers in enumerate(self._writers):
            for writer in writers:
                before = reach.before(writer) & masks[key] & ~reach.bit(writer)
                while before:
                    source = reach.last(before)
                    before &= ~reach.before(source)
                    step = self._follows(source, writer, key, stop)
                    if self._level is Level.SNAPSHOT:
                        self._add(step)
                    for reader in self._readers.get(step.earlier, ()):
                        if reader != writer:
                            self._add(_Step(reader + self._begin, writer, RW, step.earlier, step.later))

    def _add_overwritten(self, reach: "_Reach", masks: Sequence[int], stop: int) -> None:
        """Add the steps of rule 3."""
        for reader, key, source, read in self._reads:
            later = self._rivals(reader, masks) & masks[key] & ~reach.before(reader) & ~reach.after(reader)
            if source != INITIAL and later:
                later &= reach.after(source) & ~reach.bit(source)
            while later:
                writer = reach.first(later)
                later &= ~reach.after(writer)
                if source != INITIAL:
                    self._follows(source, writer, key, stop)
                shared = next(each for each in self._keys[reader] if (writer, each) in self._row)
                one, other = self._row[reader, shared], self._row[writer, shared]
                back = _Step(writer, reader + self._entry, WW, other, one)
                miss = _Step(reader + self._begin, writer, RW, read, self._row[writer, key])
                self._reasons.setdefault((one, other), _Reason((back, miss), stop))
                self._add(_Step(reader, writer + self._entry, WW, one, other))

    def _rivals(self, node: int, masks: Sequence[int]) -> int:
        """The bits of all that wrote some key which that transaction wrote, itself included."""
        return reduce(or_, (masks[key] for key in self._keys.get(node, ())), 0)

    def _add(self, step: _Step) -> None:
        if step[:2] not in self._ends:
            self._ends.add(step[:2])
            self._steps.append(step)

    def _proof(self, cycle: list[_Step]) -> Contradiction:
        """That cycle, and for each order of versions that it assumes the cycle which the other order would close."""
        wanted = self._assumed(cycle)
        both = next((pair for pair in wanted if pair[::-1] in wanted), None)
        # If both orders of two versions are forced, then their reasons are the proof.
        cycles, wanted = ([], [both, both[::-1]]) if both else ([cycle], wanted)
        for pair in wanted:
            cycles.append(self._closed(self._reasons[pair]))
            wanted += [each for each in self._assumed(cycles[-1][1:]) if each not in wanted]
        graph = _layers([step for each in cycles for step in each], self._size)
        stops = np.cumsum([len(each) for each in cycles]).tolist()
        evidence = Evidence(self._execution, graph, np.arange(stops[-1]))
        spans = zip([0, *stops], stops, strict=False)
        return Contradiction(tuple(Cycle(evidence, start, stop).steps() for start, stop in spans))

    def _assumed(self, steps: Sequence[_Step]) -> list[tuple[int, ...]]:
        """The forced orders of two versions that those steps assume, each once."""
        return [pair for pair in dict.fromkeys(step[3:] for step in steps) if pair in self._reasons]

    def _closed(self, reason: _Reason) -> list[_Step]:
        """The steps of a shortest cycle that the reason's steps close."""
        start, goal = reason.steps[-1].target, reason.steps[0].source
        if start == goal:
            return [*reason.steps]
        steps = _layers(self._steps[: reason.stop], self._size).steps
        path, _ = Paths(steps.source, steps.target).path(start, goal)
        return [*reason.steps, *(self._steps[row] for row in path)]

    def _shortest(self, cycles: list[Int64s]) -> list[_Step]:
        """The steps of the shortest of the cycles that assume the fewest orders."""
        every = [[self._steps[row] for row in cycle.tolist()] for cycle in cycles]
        return min(every, key=lambda cycle: (len(self._assumed(cycle)), len(cycle)))


class _Reach:
    """For each node of a graph without cycles the transactions before and after it, as the bits of an integer.

    The bits ascend along the steps, and so does `place`. A transaction is among its own.
    """

    def __init__(self, steps: Steps, place: Int64s, size: int) -> None:
        order = np.argsort(place[:size])
        bit = np.empty(size, np.int64)
        bit[order] = np.arange(size)
        self._place: list[int] = place.tolist()
        self._bit: list[int] = bit.tolist()
        self._by_bit: list[int] = order.tolist()
        self._source, self._target = place[steps.source], place[steps.target]

    def before(self, node: int) -> int:
        """The bits of all from which paths lead to that node."""
        return self._before[self._place[node]]

    def after(self, node: int) -> int:
        """The bits of all to which paths lead from that node."""
        return self._after[self._place[node]]

    def bit(self, node: int) -> int:
        """The bit of that transaction."""
        return 1 << self._bit[node]

    def mask(self, nodes: Iterable[int]) -> int:
        """The bits of those transactions."""
        return reduce(or_, map(self.bit, nodes), 0)

    def first(self, bits: int) -> int:
        """The first of those transactions along the steps."""
        return self.last(bits & -bits)

    def last(self, bits: int) -> int:
        """The last of those transactions along the steps."""
        return self._by_bit[bits.bit_length() - 1]

    @cached_property
    def _before(self) -> list[int]:
        return self._spread(self._source, self._target, np.argsort(self._target))

    @cached_property
    def _after(self) -> list[int]:
        return self._spread(self._target, self._source, np.argsort(-self._source))

    def _spread(self, source: Int64s, target: Int64s, rows: Int64s) -> list[int]:
        """For each place the bits of all places from which steps lead to it, which are taken in the order of `rows`."""
        result = [0] * len(self._place)
        for node in range(len(self._bit)):
            result[self._place[node]] = self.bit(node)
        for one, other in zip(source[rows].tolist(), target[rows].tolist(), strict=True):
            result[other] |= result[one]
        return result


def _layers(steps: Sequence[_Step], size: int) -> Layers:
    columns = np.array(steps, np.int64).reshape(-1, 5).T
    return Layers(Steps(columns[0], columns[1], columns[2]), columns[3], columns[4], size)
