"""The models whose axioms speak of visible writes only: monotonic atomic view, read atomic and causal consistency.

For each, with sessions or without: the order that reads, sessions, known versions and the axiom's implications make.
The model holds iff that has no cycle, and so a component of it is the evidence. Near-linear, whatever the history.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from checkers.axioms import clocks, implied, reach
from checkers.axioms.execution import INITIAL, Execution, Pairs, concatenated
from checkers.axioms.implied import Implied
from checkers.axioms.levels import is_ordered
from checkers.columns.table import empty, take
from checkers.graph.edges import PROCESS, WR, WW
from checkers.graph.paths import Rule, StepGraph, Steps, strong_labels
from harness.core.columns import Bools

AXIOM: Final = 4096  # The kind of a step that an axiom implies.
_TRIES: Final = 16  # The number of implied steps that are tried for the shortest cycle through them.


class Axiom(Enum):
    """An axiom, by the name of the anomaly that breaks it."""

    VIEW = "non-monotonic-view"
    ATOMIC = "fractured-read"
    CAUSAL = "causal-violation"


@dataclass(frozen=True, slots=True)
class AxiomStep:
    """`source` commits before `target`, both operations' indexes or INITIAL, because of a dependency `kind`.

    If that is AXIOM, `reader` read `key` from `target`, and sees `source`: `path` leads from `source` to `reader`, each
    the next one's writer or before it in a session.
    """

    source: int
    target: int
    kind: int
    reader: int = -1
    key: int = -1
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken axiom: a shortest cycle found, and the number of implied steps that are on cycles."""

    count: int
    cycle: tuple[AxiomStep, ...]

    @property
    def ops(self) -> tuple[int, ...]:
        """The operations that the cycle and its reasons mention, the cycle's first."""
        around = (op for step in self.cycle for op in (step.source, step.target))
        others = (op for step in self.cycle for op in step.path)
        return tuple(dict.fromkeys(op for op in (*around, *others) if op != INITIAL))


class Undecided(Exception):
    """No answer was found within the budget."""


def breach(execution: Execution, axiom: Axiom, *, has_sessions: bool) -> Breach | None:
    """The evidence that the axiom is broken; None if it holds. Raises Undecided if the budget ends."""
    if axiom is Axiom.CAUSAL and not has_sessions:
        order = _without_sessions(execution)
    else:
        order = _order(execution, axiom, has_sessions=has_sessions)
    if not order.is_broken.any():
        return None
    return Breach(int(np.count_nonzero(order.is_broken)), order.cycle())


def _reads(execution: Execution) -> Pairs:
    """The pairs of reads."""
    views = take(execution.views, execution.views.writer != INITIAL)
    return concatenated([Pairs(views.writer, views.reader)])


def _order(execution: Execution, axiom: Axiom, *, has_sessions: bool) -> "_Order":
    pairs = _reads(execution)
    match axiom:
        case Axiom.VIEW:
            found = implied.by_view(execution)
        case Axiom.ATOMIC:
            parts = [implied.by_reads(execution)]
            found = implied.union([*parts, implied.by_session(execution)] if has_sessions else parts)
        case Axiom.CAUSAL:
            found = clocks.by_causes(execution, concatenated([pairs, execution.sessions]))
    return _Order(execution, pairs, found, has_sessions=has_sessions)


def _without_sessions(execution: Execution) -> "_Order":
    """The order of causal consistency without sessions, as far as it may have a cycle. Raises Undecided.

    It is a part of the one with sessions. So only those reads matter whose writer is on a cycle there, the
    initial one included. If reads and sessions have a cycle already, all matter.
    """
    views = execution.views
    rows = np.arange(len(views.reader))
    if is_ordered(execution, PROCESS):
        whole = _order(execution, Axiom.CAUSAL, has_sessions=True)
        if not whole.is_broken.any():
            return _Order(execution, _reads(execution), implied.nothing(), has_sessions=False)
        has_broken_initial = bool(np.any(whole.implied.target == INITIAL))
        is_initial = views.writer == INITIAL
        rows = rows[np.where(is_initial, has_broken_initial, whole.is_cyclic[views.writer])]
    found = reach.by_chains(execution, rows)
    if found is None:
        raise Undecided
    return _Order(execution, _reads(execution), found, has_sessions=False)


class _Order:
    """The order of commits under an axiom. Node n, after the transactions, stands for the initial versions.

    `is_cyclic`: True for the nodes, and `is_broken` for the implied steps, that lie on a cycle.
    """

    def __init__(self, execution: Execution, reads: Pairs, found: Implied, *, has_sessions: bool) -> None:
        self._execution, self.implied = execution, found
        size = len(execution.op)
        target = np.where(found.target == INITIAL, size, found.target)
        firsts = np.unique(found.source[found.target == INITIAL])
        sessions = execution.sessions if has_sessions else empty(Pairs)
        columns = (
            (found.source, target, AXIOM),
            (reads.source, reads.target, WR),
            (execution.versions.source, execution.versions.target, WW),
            (sessions.source, sessions.target, PROCESS),
            (np.full(len(firsts), size), firsts, WW),
        )
        self._steps = Steps(
            np.concatenate([source for source, _, _ in columns]),
            np.concatenate([each for _, each, _ in columns]),
            np.concatenate([np.full(len(source), kind) for source, _, kind in columns]),
        )
        visible = concatenated([reads, sessions])
        order = np.argsort(visible.target, kind="stable")
        self._visible = visible.source[order], visible.target[order]
        self._label = strong_labels(self._steps.source, self._steps.target, size + 1)
        self.is_cyclic: Bools = np.bincount(self._label)[self._label] > 1
        self.is_broken: Bools = self._label[found.source] == self._label[target]

    def cycle(self) -> tuple[AxiomStep, ...]:
        """A short cycle through an implied step, in the smallest component that has one."""
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
            path = graph.path(int(local.target[row]), int(local.source[row]), rule=Rule())
            assert path is not None, "a step inside a strong component lies on a cycle"
            walks.append([int(rows[each]) for each in (row, *path)])
        return tuple(self._step(row) for row in min(walks, key=lambda walk: (len(walk), walk)))

    def _step(self, row: int) -> AxiomStep:
        op = np.append(self._execution.op, INITIAL)
        source, target = int(op[self._steps.source[row]]), int(op[self._steps.target[row]])
        if self._steps.kind[row] != AXIOM:
            return AxiomStep(source, target, int(self._steps.kind[row]))
        reader, key = int(op[self.implied.reader[row]]), int(self._execution.keys[self.implied.key[row]])
        path = self._path(int(self.implied.source[row]), int(self.implied.reader[row]))
        return AxiomStep(source, target, AXIOM, reader, key, tuple(op[path].tolist()))

    def _path(self, source: int, reader: int) -> list[int]:
        """A shortest path of reads and sessions, breadth first."""
        came, waiting = {reader: reader}, [reader]
        for node in waiting:
            if node == source:
                break
            before = self._visible[0][slice(*np.searchsorted(self._visible[1], (node, node + 1)))]
            waiting += [each for each in before.tolist() if came.setdefault(each, node) == node and each != reader]
        path = [source]
        while path[-1] != reader:
            path.append(came[path[-1]])
        return path
