"""Paths through a graph with watermarks: the steps that lie on a cycle, and a short cycle through one of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, pairwise

import numpy as np

from checkers.graph.edges import OPEN_END, PROCESS, REALTIME, RW, WR, WW
from checkers.watermarks.cycles.steps import (
    CHAIN,
    FORK,
    G2,
    IN,
    NONADJACENT,
    ORDER,
    OUT,
    SINGLE,
    THROUGH,
    Component,
    Loop,
    Step,
)

_PAIRED = 300  # Up to this many nodes, each pair is checked for its order of time, if some pairs have another name.
_STEP, _PASS = 1_000, 1  # The weight of a step that counts, and of one that only passes.


class Graph:
    """Steps of some kinds, of one chain if `chain` is given, and of time if the kinds include it."""

    def __init__(self, component: Component, kinds: int, chain: int | None) -> None:
        self.component = component
        size = len(component.number)
        steps = [
            step
            for step in component.steps
            if step.kind & kinds and (chain is None or not step.kind & THROUGH or step.chain == chain)
        ]
        dependencies = sorted((s for s in component.steps if s.kind & (WW | WR)), key=lambda step: -step.kind)
        self._dependencies = {(step.source, step.target): step for step in dependencies}  # If both, ww.
        named = {pair for pair, step in self._dependencies.items() if not step.kind & kinds}
        if named and size <= _PAIRED:
            steps += [step for step in _of_orders(component, kinds) if (step.source, step.target) not in named]
        else:
            steps += _of_processes(component) if kinds & PROCESS else ()
            steps += _of_time(component) if kinds & REALTIME else ()
        self.steps = steps
        self.size = 2 * size  # After the nodes come the moments of real time, one for each number.
        self.leading: list[list[Step]] = [[] for _ in range(self.size)]
        for step in steps:
            self.leading[step.source].append(step)

    def cyclic(self, base: str) -> list[Step]:
        """The steps on a closed path of the class: without two rw in a row, if the class requires that."""
        from scipy.sparse import coo_array  # noqa: PLC0415  Not needed without a window.
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  Likewise.

        is_layered = base in (SINGLE, NONADJACENT)
        source, target = list[int](), list[int]()
        for step in self.steps:
            is_missed = is_layered and step.kind in (RW, OUT)
            for layer in (0,) if is_missed else (0, 1) if is_layered else (0,):
                source.append(step.source + layer * self.size)
                target.append(step.target + is_missed * self.size)
        total = self.size * (2 if is_layered else 1)
        ones = np.ones(len(source), np.int8)
        _, label = connected_components(
            coo_array((ones, (source, target)), (total, total)).tocsr(), directed=True, connection="strong"
        )
        return [
            step
            for step in self.steps
            if label[step.source] == label[step.target + (is_layered and step.kind in (RW, OUT)) * self.size]
        ]

    def renamed(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """The steps, with an order of time replaced by the ww or wr between the same nodes, which is stronger."""
        return tuple(
            self._dependencies.get((step.source, step.target), step) if step.kind in (PROCESS, REALTIME) else step
            for step in steps
        )

    def along(self, start: int, goal: int) -> tuple[Step, ...] | None:
        """A shortest path of these steps, empty if it begins where it ends; None if there is none."""
        if start == goal:
            return ()
        return next(iter(self._ways(start, goal, first=None, base="")), None)

    def ways(self, step: Step, base: str) -> Iterator[tuple[Step, ...]]:
        """A shortest closed path through that step which may be of the class, if there is one."""
        for way in self._ways(step.target, step.source, first=step, base=base):
            yield (step, *way)

    def _ways(self, start: int, goal: int, *, first: Step | None, base: str) -> Iterator[tuple[Step, ...]]:
        state = _State().after(first, base) if first is not None else _State()
        ticket = count()
        waiting: list[tuple[int, int, int, _State]] = [(0, next(ticket), start, state)]
        came: dict[tuple[int, _State], tuple[tuple[int, _State], Step]] = {}
        costs = {(start, state): 0}
        while waiting:
            cost, _, node, state = heappop(waiting)
            if cost > costs[node, state]:
                continue
            if node == goal and state.is_goal(first, base) and (cost or first is not None):
                yield _traced(came, (node, state))
                return
            for step in self.leading[node]:
                if not state.may(step, base):
                    continue
                reached = (step.target, state.after(step, base))
                further = cost + (_PASS if step.kind in (CHAIN, 0) else _STEP)
                if further < costs.get(reached, further + 1):
                    costs[reached], came[reached] = further, ((node, state), step)
                    heappush(waiting, (further, next(ticket), *reached))


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a path: True if its last step was an rw or out; its number of rw (up to two); watermarks entered."""

    is_missed: bool = False
    rw: int = 0
    into: int = 0

    def may(self, step: Step, base: str) -> bool:
        """True if that step may follow."""
        if step.kind == RW and base == SINGLE and self.rw:
            return False
        is_apart = base in (SINGLE, NONADJACENT)
        return not (is_apart and self.is_missed and step.kind in (RW, OUT))

    def after(self, step: Step, base: str) -> "_State":
        """The state after that step."""
        limit = 2 if base == FORK else 1
        is_missed = base in (SINGLE, NONADJACENT) and step.kind in (RW, OUT)
        rw = min(2, self.rw + (step.kind == RW)) if base in (SINGLE, NONADJACENT, G2) else 0
        return _State(is_missed, rw, min(limit, self.into + (step.kind == IN)))

    def is_goal(self, first: Step | None, base: str) -> bool:
        """True if a path that ends here, before its first step, is of the class."""
        if first is None:
            return True
        if base == ORDER:
            return True
        if base in (SINGLE, NONADJACENT) and self.is_missed and first.kind in (RW, OUT):
            return False
        return self.into >= (2 if base == FORK else 1) and self.rw >= {SINGLE: 1, NONADJACENT: 2, G2: 1}.get(base, 0)


def _traced(
    came: dict[tuple[int, _State], tuple[tuple[int, _State], Step]], at: tuple[int, _State]
) -> tuple[Step, ...]:
    steps = []
    while at in came:
        at, step = came[at]
        steps.append(step)
    return tuple(reversed(steps))


def simple(way: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The cycles of which a closed path consists, each with its orders of time as one step."""
    stack: list[Step] = []
    places: dict[int, int] = {}
    for step in way:
        places[step.source] = len(stack)
        stack.append(step)
        if step.target in places:
            begin = places[step.target]
            yield _merged(stack[begin:])
            for gone in stack[begin + 1 :]:
                places.pop(gone.source, None)
            del stack[begin:]


def _merged(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The cycle without moments: the steps over them are one step of real time; the least node comes first."""
    turned = next((at for at, step in enumerate(steps) if step.kind != 0), 0)
    result: list[Step] = []
    for step in [*steps[turned:], *steps[:turned]]:
        last = result.pop() if step.kind == 0 else None
        result.append(step if last is None else Step(last.source, step.target, last.kind))
    first = min(range(len(result)), key=lambda at: (result[at].kind & (OUT | CHAIN) != 0, result[at].source))
    return tuple(result[first:] + result[:first])


def places_of(loop: Loop) -> list[tuple[int, int, int]]:
    """The sort key that distinguishes cycles of the same length."""
    return [(step.source, step.target, step.kind) for step in loop.steps]


def _of_orders(component: Component, kinds: int) -> Iterator[Step]:
    """Every pair that is ordered by time, as an order of a process if it is one."""
    due = np.searchsorted(component.number, component.end)
    for one in range(len(component.number)):
        for two in range(int(due[one]), len(component.number)):
            is_of_process = 0 <= component.process[one] == component.process[two]
            if is_of_process and kinds & PROCESS:
                yield Step(one, two, PROCESS)
            elif kinds & REALTIME and not component.is_mark[two]:
                yield Step(one, two, REALTIME)


def _of_processes(component: Component) -> Iterable[Step]:
    order = sorted(
        (node for node in range(len(component.number)) if component.process[node] >= 0),
        key=lambda node: (int(component.process[node]), node),
    )
    for one, two in pairwise(order):
        if component.process[one] == component.process[two] and component.end[one] <= component.number[two]:
            yield Step(one, two, PROCESS)


def _of_time(component: Component) -> Iterable[Step]:
    """Steps from each node that ends to a moment, from moment to moment, and to the nodes that begin then."""
    size = len(component.number)
    due = np.searchsorted(component.number, component.end)
    for node in range(size):
        if due[node] < size and component.end[node] != OPEN_END:
            yield Step(node, size + int(due[node]), REALTIME)
        if node + 1 < size:
            yield Step(size + node, size + node + 1, 0)
        if not component.is_mark[node]:
            yield Step(size + node, node, 0)
