"""The classes of cycles through watermarks: those that a component has, and a short cycle of each.

A class wider than a found one is not searched for, unless it is forbidden and the found one is legal. The cycle to show
has the least chains, then the least steps of those tried. A timed order of registers' versions is not used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.graph import search
from checkers.graph.classes import CycleClass
from checkers.graph.edges import CHAIN, IN, OUT, PROCESS, REALTIME, RW, WR, WW
from checkers.graph.paths import StepGraph, Steps, process_steps, time_steps
from checkers.graph.search import Sought, has_cycle, seek
from checkers.watermarks.cycles.steps import (
    CLASSES,
    FORK,
    INTERMEDIATE,
    OF_ONE,
    ORDER,
    SPLIT,
    THROUGH,
    Component,
    Loop,
    Step,
    base_of,
    is_wider,
    name_of,
)
from harness.core.columns import Bools, Int64s

_SINGLE_CHAINS: Final = 16  # The greatest number of chains that are tried one by one.
_CLIENTS: Final = WW | WR | RW
_PAIRED: Final = 300  # In components of at most this many nodes, each pair is checked for its order of time.


class Classes(Struct, frozen=True):
    """A cycle for each class that a component has, and the forbidden classes of which it is not known."""

    loops: Mapping[str, Loop]
    undecided: frozenset[str] = frozenset()


def classes(component: Component, forbidden: frozenset[str]) -> Classes:
    """The classes that the component has, except for classes wider than another found one.

    Such a class is searched for all the same if it is forbidden and the other is not.
    """
    graph = _Watched(component)

    def sought(one: CycleClass) -> Sought[Loop]:
        base = base_of(one.name)
        if base in OF_ONE:
            return Sought(_of_one(component, one.name, base))
        return seek(graph, one, is_needed=one.name in forbidden)

    def is_known(name: str, found: Iterable[str]) -> bool:
        return any(is_wider(name, other) and (other in forbidden or name not in forbidden) for other in found)

    found = search.classes(CLASSES, sought, is_known)
    loops = {name: each.cycle for name, each in found.there.items() if each.cycle is not None}
    return Classes(loops, found.undecided & forbidden)


def has_client_cycle(component: Component) -> bool:
    """True if the clients' operations of the component have a cycle without watermarks."""
    every = CycleClass(name="", order=PROCESS | REALTIME, kinds=_CLIENTS, required=_CLIENTS)
    return has_cycle(_Watched(component), every)


class _Watched:
    """A component with watermarks as a graph in which cycles are sought."""

    def __init__(self, component: Component) -> None:
        self._component, self.size = component, len(component.number)
        columns = [(step.source, step.target, step.kind, step.chain) for step in component.steps]
        source, target, kind, self.chain = np.array(columns, np.int64).reshape(-1, 4).T
        self.steps = Steps(source, target, kind)
        # If a pair has both, ww.
        dependencies = sorted((s for s in component.steps if s.kind & (WW | WR)), key=lambda step: -step.kind)
        self._dependencies = {(step.source, step.target): step for step in dependencies}

    def time(self, sought: CycleClass) -> Iterator[Steps]:
        """The orders of time; of pairs with a ww or wr of another class none, as that would name them."""
        component = self._component
        named = {pair for pair, step in self._dependencies.items() if not step.kind & sought.kinds}
        if named and self.size <= _PAIRED:
            pairs = [pair for pair in _timed_pairs(component, sought.order) if pair[:2] not in named]
            yield Steps(*np.array(pairs, np.int64).reshape(-1, 3).T)
            return
        if sought.order & PROCESS:
            yield process_steps(component.number, component.end, component.process)
        if sought.order & REALTIME:
            yield time_steps(component.number, component.end, np.array(component.is_mark))

    def apart(self, sought: CycleClass) -> Iterator[Bools]:
        """The chains one by one: a cycle of one shows that the cut of one subscriber is inconsistent."""
        is_through = self.steps.kind & THROUGH != 0
        chains = np.unique(self.chain[self.steps.kind & (IN | OUT) != 0]).tolist()
        if 1 < len(chains) <= _SINGLE_CHAINS and base_of(sought.name) not in (ORDER, FORK):
            yield from (~is_through | (self.chain == chain) for chain in chains)

    def comes_first(self, rows: Int64s, sought: CycleClass) -> Bools:
        """No step: those that close a cycle with one more step have no watermark, or are of one transaction."""
        return np.zeros(len(rows), np.bool_)

    def cycle(self, steps: Sequence[search.Step]) -> Loop:
        """The cycle from its least operation on."""
        shown = [self._shown(step) for step in steps]
        first = min(range(len(shown)), key=lambda at: (shown[at].kind & (OUT | CHAIN) != 0, shown[at].source))
        turned = tuple(shown[first:] + shown[:first])
        return Loop(name_of(turned) or "", turned)

    def name(self, cycle: Loop) -> str:
        """The class of a cycle; empty for one without watermarks."""
        return cycle.anomaly

    def rank(self, cycle: Loop) -> tuple[int, int, list[tuple[int, int, int]]]:
        """The least chains, then the least steps."""
        return cycle.chains(), len(cycle.steps), cycle.places()

    def _shown(self, step: search.Step) -> Step:
        """The step, or if it is one of time the ww or wr between the same nodes, which says more."""
        if step.row >= 0:
            return self._component.steps[step.row]
        return self._dependencies.get((step.source, step.target), Step(step.source, step.target, step.kind))


def _timed_pairs(component: Component, kinds: int) -> Iterator[tuple[int, int, int]]:
    """A step for every pair that time orders, as an order of a process if it is one: its two ends and its kind."""
    due = np.searchsorted(component.number, component.end)
    for one in range(len(component.number)):
        for two in range(int(due[one]), len(component.number)):
            is_of_process = component.is_ordered(one) and component.process[one] == component.process[two]
            if is_of_process and kinds & PROCESS:
                yield one, two, PROCESS
            elif kinds & REALTIME and not component.is_mark[two]:
                yield one, two, REALTIME


def _of_one(component: Component, name: str, base: str) -> Loop | None:
    """A cycle of one transaction: inside one chain by places, over merged nodes by a path along chains."""
    reached = _reached(component) if base == SPLIT else []
    entries: dict[int, list[Step]] = {}
    for step in component.steps:
        if step.kind == IN:
            entries.setdefault(step.source, []).append(step)
    pairs = [
        (entry, last)
        for place, last in enumerate(component.steps)
        if last.kind == OUT
        for entry in entries.get(last.target, ())
        if _is_one_chain(entry, last) == (base != SPLIT)
        and (reached[entry.target] >> place & 1 if base == SPLIT else (entry.key == last.key) == (base == INTERMEDIATE))
    ]
    pairs.sort(key=lambda pair: (pair[0].target != pair[1].source, abs(pair[0].place - pair[1].place)))
    along = cache(lambda chain: _Chains(component, chain))
    loops = (_closed(along(None if base == SPLIT else pair[0].chain), name, *pair) for pair in pairs)
    return next((loop for loop in loops if loop is not None), None)


def _reached(component: Component) -> list[int]:
    """For each node the out steps to which chains lead from it, as bits: each by its place among the steps."""
    reached = [0] * len(component.number)
    for place, step in enumerate(component.steps):
        if step.kind == OUT:
            reached[step.source] |= 1 << place
    # Numbers ascend along chains, except among equal ones: one pass is nearly always enough.
    along = sorted(((step.source, step.target) for step in component.steps if step.kind == CHAIN), reverse=True)
    is_settled = False
    while not is_settled:
        is_settled = True
        for source, target in along:
            both = reached[source] | reached[target]
            is_settled, reached[source] = is_settled and both == reached[source], both
    return reached


def _closed(chains: "_Chains", name: str, entry: Step, last: Step) -> Loop | None:
    along = chains.path(entry.target, last.source)
    steps = None if along is None else (entry, *along, last)
    return Loop(name, steps) if steps is not None and name_of(steps) == name else None


def _is_one_chain(entry: Step, last: Step) -> bool:
    """True if both steps are of one chain, which leads from the target of `entry` to the source of `last`."""
    is_along = entry.place <= last.place or entry.target == last.source
    return entry.chain == last.chain and is_along


class _Chains:
    """The steps along chains, of one chain or of all."""

    def __init__(self, component: Component, chain: int | None) -> None:
        self._steps = [step for step in component.steps if step.kind == CHAIN and chain in (None, step.chain)]
        columns = [(step.source, step.target, step.kind) for step in self._steps]
        self._paths = StepGraph([Steps(*np.array(columns, np.int64).reshape(-1, 3).T)], len(component.number))

    def path(self, start: int, goal: int) -> list[Step] | None:
        """A shortest path; None if there is none."""
        rows = self._paths.path(start, goal)
        return None if rows is None else [self._steps[row] for row in rows]
