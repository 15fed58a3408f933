"""The models whose axioms constrain visible writes only: monotonic atomic view, read atomic and causal consistency.

Each is decided without an order of time, with sessions, or with real time. It holds iff the order made of reads, time,
known versions and what its axiom implies has no cycle; a cycle is the evidence. The time is near-linear for every
history.
"""

from enum import Enum
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.axioms import clocks, implied, reach, realtime
from checkers.axioms.execution import INITIAL, Execution, Pairs, concatenated
from checkers.axioms.implied import Implied
from checkers.axioms.levels import is_ordered
from checkers.columns.runs import distinct
from checkers.columns.table import concat, empty, take
from checkers.graph import edges
from checkers.graph.edges import OPEN_END, PROCESS, REALTIME, WR, WW
from checkers.graph.paths import MOMENT, StepGraph, Steps, cycle_labels, time_steps
from harness.core.columns import Bools

AXIOM: Final = 4096  # The kind of a step that an axiom implies.
_TRIES: Final = 16  # The number of implied steps that are tried for the shortest cycle through them.


class Axiom(Enum):
    """A model defined by an axiom. The value names the anomaly that breaks it."""

    VIEW = "non-monotonic-view"
    ATOMIC = "fractured-read"
    CAUSAL = "causal-violation"


class AxiomStep(Struct, frozen=True):
    """A step of a cycle: the operation `source` commits before `target` (indexes, or INITIAL), by a dependency `kind`.

    If the kind is AXIOM, then `reader` read `key` from `target`, and sees `source`. `path` shows how it sees that: it
    leads from `source` to `reader`, each one read by the next, or before it in time.
    """

    source: int
    target: int
    kind: int
    reader: int = -1
    key: int = -1
    path: tuple[int, ...] = ()


class Breach(Struct, frozen=True):
    """The evidence for a broken axiom: a short cycle, and the number of implied steps that lie on cycles."""

    count: int
    cycle: tuple[AxiomStep, ...]

    @property
    def ops(self) -> tuple[int, ...]:
        """The operations of the cycle, then those that its reasons mention."""
        around = (op for step in self.cycle for op in (step.source, step.target))
        others = (op for step in self.cycle for op in step.path)
        return tuple(dict.fromkeys(op for op in (*around, *others) if op != INITIAL))


class Undecided(Exception):
    """Raised when the budget ends before there is an answer."""


def breach(execution: Execution, axiom: Axiom, order: int) -> Breach | None:
    """The evidence that the axiom is broken; None if it holds. Raises Undecided if the budget ends.

    `order`: 0, PROCESS or REALTIME. Reads and that order of time must have no cycle (`is_ordered`).
    """
    is_plain = axiom is Axiom.CAUSAL and not order
    found = _without_sessions(execution) if is_plain else _order(execution, axiom, order)
    broken = np.flatnonzero(found.is_broken)
    if not len(broken):
        return None
    if axiom is Axiom.CAUSAL and order == PROCESS:
        found.implied = clocks.with_reasons(execution, _seen(execution), found.implied, broken)
    return Breach(len(broken), found.cycle())


def _reads(execution: Execution) -> Pairs:
    """The pairs of each writer and its readers."""
    views = take(execution.views, execution.views.writer != INITIAL)
    return concatenated([Pairs(views.writer, views.reader)])


def _seen(execution: Execution) -> Pairs:
    """The pairs of each writer and its readers, and of each transaction and the next of its session."""
    return concatenated([_reads(execution), execution.sessions])


def _order(execution: Execution, axiom: Axiom, order: int) -> "_Order":
    pairs = _reads(execution)
    found: Implied | None
    match axiom, order:
        case Axiom.VIEW, _:
            found = implied.by_view(execution)
        case Axiom.ATOMIC, 0:
            found = implied.by_reads(execution)
        case Axiom.ATOMIC, edges.PROCESS:
            found = implied.union([implied.by_reads(execution), implied.by_session(execution)])
        case Axiom.ATOMIC, _:
            found = realtime.by_ends(execution)
        case Axiom.CAUSAL, edges.REALTIME:
            found = realtime.by_causes(execution, pairs)
        case Axiom.CAUSAL, _:
            found = clocks.by_causes(execution, _seen(execution))
    if found is None:
        raise Undecided
    return _Order(execution, pairs, found, order)


def _without_sessions(execution: Execution) -> "_Order":
    """The part of the order of causal consistency without sessions that may have a cycle. Raises Undecided.

    The order without sessions is a part of that with them. So only those reads matter whose writer, or the initial
    version, is on a cycle with sessions. If reads and sessions have a cycle by themselves, all reads matter.
    """
    views = execution.views
    rows = np.arange(len(views.reader))
    if is_ordered(execution, PROCESS):
        whole = _order(execution, Axiom.CAUSAL, PROCESS)
        if not whole.is_broken.any():
            return _Order(execution, _reads(execution), empty(Implied), 0)
        has_broken_initial = bool(np.any(whole.implied.target == INITIAL))
        is_initial = views.writer == INITIAL
        rows = rows[np.where(is_initial, has_broken_initial, whole.is_cyclic[views.writer])]
    found = reach.by_chains(execution, rows)
    if found is None:
        raise Undecided
    return _Order(execution, _reads(execution), found, 0)


class _Order:
    """The order of commits under an axiom, as a graph of transactions, moments, and one node for the initial versions.

    `is_cyclic` is True for the nodes, and `is_broken` for the implied steps, that lie on a cycle.
    """

    def __init__(self, execution: Execution, reads: Pairs, found: Implied, order: int) -> None:
        self._execution, self._order, self.implied = execution, order, found
        first = 2 * len(execution.op)
        target = np.where(found.target == INITIAL, first, found.target)
        firsts = distinct(found.source[found.target == INITIAL])
        sessions = execution.sessions if order == PROCESS else empty(Pairs)
        end = np.minimum(execution.end, OPEN_END)
        self._time = time_steps(execution.op, end) if order == REALTIME else empty(Steps)
        self._columns = (
            (found.source, target, AXIOM),
            (reads.source, reads.target, WR),
            (execution.versions.source, execution.versions.target, WW),
            (sessions.source, sessions.target, PROCESS),
            (np.full(len(firsts), first), firsts, WW),
        )
        self._reads, self._sessions = reads, sessions
        sources, targets = ([columns[end] for columns in self._columns] for end in (0, 1))
        self._label = cycle_labels(
            np.concatenate([*sources, self._time.source]), np.concatenate([*targets, self._time.target]), first + 1
        )
        self.is_cyclic: Bools = np.bincount(self._label)[self._label] > 1
        self.is_broken: Bools = self._label[found.source] == self._label[target]

    @cached_property
    def _steps(self) -> Steps:
        plain = [Steps(source, each, np.full(len(source), kind)) for source, each, kind in self._columns]
        return concat([*plain, self._time])

    @cached_property
    def _visible(self) -> StepGraph:
        """The steps by which a transaction sees others."""
        pairs = ((self._reads, WR), (self._sessions, PROCESS))
        parts = [Steps(each.source, each.target, np.full(len(each.source), kind)) for each, kind in pairs]
        return StepGraph([*parts, self._time], len(self._execution.op))

    def cycle(self) -> tuple[AxiomStep, ...]:
        """The steps of a short cycle through an implied step, in the smallest component that has such a step."""
        broken = np.flatnonzero(self.is_broken)
        label = self._label[self._steps.source[broken]]
        sizes = np.bincount(self._label)
        least = label[np.lexsort((label, sizes[label]))[0]]
        inside = (self._label[self._steps.source] == least) & (self._label[self._steps.target] == least)
        nodes = np.flatnonzero(self._label == least)
        rows = np.flatnonzero(inside)
        steps = take(self._steps, rows)
        local = Steps(np.searchsorted(nodes, steps.source), np.searchsorted(nodes, steps.target), steps.kind)
        graph = StepGraph([local], len(nodes))
        tried = np.flatnonzero(local.kind == AXIOM)
        tried = tried[np.argsort(np.abs(local.target - local.source)[tried], kind="stable")][:_TRIES]
        walks = []
        for row in tried.tolist():
            path = graph.path(int(local.target[row]), int(local.source[row]))
            assert path is not None, "a step inside a strong component lies on a cycle"
            walk = [int(rows[each]) for each in (row, *path)]
            walks.append([each for each in walk if self._steps.kind[each] != MOMENT])
        shortest = min(walks, key=lambda walk: (len(walk), walk))
        return tuple(map(self._step, shortest, (*shortest[1:], shortest[0])))

    def _step(self, row: int, following: int) -> AxiomStep:
        """The step in `row` as it is shown.

        Its target is the source of step `following`, so that moments are skipped.
        """
        op = np.append(self._execution.op, INITIAL)
        source, target = (int(op[min(self._steps.source[each], len(op) - 1)]) for each in (row, following))
        if self._steps.kind[row] != AXIOM:
            return AxiomStep(source, target, int(self._steps.kind[row]))
        reader, key = int(op[self.implied.reader[row]]), int(self._execution.keys[self.implied.key[row]])
        path = self._path(int(self.implied.source[row]), int(self.implied.reader[row]))
        return AxiomStep(source, target, AXIOM, reader, key, tuple(op[path].tolist()))

    def _path(self, source: int, reader: int) -> list[int]:
        """The nodes of a short path from `source` to `reader` over reads, sessions and real time."""
        rows = self._visible.path(source, reader)
        assert rows is not None, "a reader sees what an axiom implies"
        after = self._visible.steps.target[rows].tolist()
        return [source, *(node for node in after if node < self._visible.size)]
