"""The classes of cycles through watermarks: those that a graph has, and a short cycle of each.

A class wider than a found one is not searched for, unless it is forbidden and the found one is legal. The cycle to show
is sought from few edges: the least chains, then the least steps. A timed order of registers' versions is not used.

A forbidden class is absent if no closed path under its rule has an edge that it needs. It is undecided if there are
such paths, but all cycles that make them up are of other classes, or if trying all edges would take too long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from checkers.graph.edges import CHAIN, IN, OUT, PROCESS, REALTIME, RW, WR, WW
from checkers.graph.paths import ANY, MOMENT, Rule, StepGraph, Steps, process_steps, simple_cycles, time_steps
from checkers.watermarks.cycles.steps import (
    FORK,
    INTERMEDIATE,
    NAMES,
    ORDER,
    SEARCHED,
    SPLIT,
    SUFFIXES,
    THROUGH,
    TORN,
    Component,
    Loop,
    Step,
    is_wider,
    name_of,
    needed_by,
)

_TRIES: Final = 12
_WORK: Final = 10_000_000  # Edges tried, times steps of the component, until a forbidden class is undecided.
_SINGLE_CHAINS: Final = 16  # The greatest number of chains that are tried one by one.
_PAIRED: Final = 300  # In components of at most this many nodes, each pair is checked for its order of time.


@dataclass(frozen=True, slots=True)
class Classes:
    """A cycle for each class that a component has, and the forbidden classes of which it is not known."""

    loops: dict[str, Loop]
    undecided: frozenset[str] = frozenset()


def classes(component: Component, forbidden: frozenset[str]) -> Classes:
    """The classes that the component has, except for classes wider than another found one.

    Such a class is searched for all the same if it is forbidden and the other is not.
    """
    found: dict[str, Loop] = {}
    undecided = set[str]()
    for name in NAMES:
        if any(is_wider(name, other) and (other in forbidden or name not in forbidden) for other in found):
            continue
        base, _, suffix = name.partition("-watermark")
        if base in (INTERMEDIATE, TORN, SPLIT):
            sought = _Sought(_of_one(component, name, base))
        else:
            sought = _of_many(component, name, base, suffix, is_forbidden=name in forbidden)
        if sought.loop is not None:
            found[name] = sought.loop
        elif not sought.is_ended and name in forbidden:
            undecided.add(name)
    return Classes(found, frozenset(undecided))


@dataclass(frozen=True, slots=True)
class _Sought:
    """A cycle of one class, or None; without one the class is absent if the search ended."""

    loop: Loop | None
    is_ended: bool = True


def has_client_cycle(component: Component) -> bool:
    """True if the clients' operations of the component have a cycle without watermarks."""
    return bool(_Graph(component, WW | WR | RW | PROCESS | REALTIME).cyclic(WW | WR | RW))


class _Graph:
    """Steps of some kinds, of one chain if `chain` is given, and steps of time if the kinds include it."""

    def __init__(self, component: Component, kinds: int, rule: Rule = ANY, chain: int | None = None) -> None:
        steps = [
            step
            for step in component.steps
            if step.kind & kinds and (chain is None or not step.kind & THROUGH or step.chain == chain)
        ]
        dependencies = sorted((s for s in component.steps if s.kind & (WW | WR)), key=lambda step: -step.kind)
        self._dependencies = {(step.source, step.target): step for step in dependencies}  # If a pair has both, ww.
        named = {pair for pair, step in self._dependencies.items() if not step.kind & kinds}
        if named and len(component.number) <= _PAIRED:
            steps += [step for step in _timed_pairs(component, kinds) if (step.source, step.target) not in named]
        else:
            steps += _timed(component, kinds)
        columns = np.array([(step.source, step.target, step.kind) for step in steps], np.int64).reshape(-1, 3)
        self.steps = steps
        self.graph = StepGraph([Steps(*columns.T)], len(component.number), rule)

    def cyclic(self, kinds: int) -> list[Step]:
        """The steps of those kinds on closed paths. If its rule keeps kinds apart, all or none are of these."""
        rows = np.flatnonzero(self.graph.steps.kind & kinds)
        source, target = self.graph.steps.source[rows], self.graph.steps.target[rows]
        return [self.steps[row] for row in rows[self.graph.on_cycles(source, target, kinds)].tolist()]

    def path(self, start: int, goal: int, *, first: int = MOMENT) -> list[Step] | None:
        """A shortest path that keeps the rule after a step of kind `first`; None if there is none."""
        rows = [] if start == goal else self.graph.path(start, goal, first=first)
        return None if rows is None else [self.steps[row] for row in rows]

    def loops(self, step: Step) -> Iterator[tuple[Step, ...]]:
        """The cycles that make up a shortest closed path through that step, each from its least node on."""
        along = self.path(step.target, step.source, first=step.kind)
        for cycle in simple_cycles([] if along is None else [step, *along]):
            following = [*cycle[1:], cycle[0]]
            ends = [replace(one, target=two.source) for one, two in zip(cycle, following, strict=True)]
            first = min(range(len(ends)), key=lambda at: (ends[at].kind & (OUT | CHAIN) != 0, ends[at].source))
            yield tuple(map(self._renamed, ends[first:] + ends[:first]))

    def _renamed(self, step: Step) -> Step:
        """The step, or if it is one of time the ww or wr between the same nodes, which says more."""
        if step.kind not in (PROCESS, REALTIME):
            return step
        return self._dependencies.get((step.source, step.target), step)


def _timed(component: Component, kinds: int) -> Iterator[Step]:
    number, end = component.number, component.end
    parts = [process_steps(number, end, component.process)] if kinds & PROCESS else []
    parts += [time_steps(number, end, np.array(component.is_mark))] if kinds & REALTIME else []
    for part in parts:
        yield from map(Step, part.source.tolist(), part.target.tolist(), part.kind.tolist())


def _timed_pairs(component: Component, kinds: int) -> Iterator[Step]:
    """A step for every pair that time orders, as an order of a process if it is one."""
    due = np.searchsorted(component.number, component.end)
    for one in range(len(component.number)):
        for two in range(int(due[one]), len(component.number)):
            is_of_process = component.is_ordered(one) and component.process[one] == component.process[two]
            if is_of_process and kinds & PROCESS:
                yield Step(one, two, PROCESS)
            elif kinds & REALTIME and not component.is_mark[two]:
                yield Step(one, two, REALTIME)


def _of_many(component: Component, name: str, base: str, suffix: str, *, is_forbidden: bool) -> _Sought:
    """Of the cycles tried the one with the least chains, then the least steps."""
    sought = SEARCHED[base]
    kinds = sought.kinds | (0, PROCESS, PROCESS | REALTIME)[SUFFIXES.index(suffix)]
    graph = _Graph(component, kinds, sought.rule)
    starts = graph.cyclic(sought.required)
    if not starts:
        return _Sought(None)
    starts.sort(key=lambda step: (abs(step.target - step.source), step.source, step.target))
    chains = sorted({step.chain for step in component.steps if step.kind & (IN | OUT)})
    if 1 < len(chains) <= _SINGLE_CHAINS and base not in (ORDER, FORK):
        for chain in chains:
            alone = _Graph(component, kinds, sought.rule, chain)
            inside = set(alone.cyclic(sought.required))
            if loop := _best(alone, [step for step in starts if step in inside][:_TRIES], name):
                return _Sought(loop)
    tries = max(_TRIES, _WORK // len(graph.steps)) if is_forbidden else _TRIES
    loop = _best(graph, starts[:tries], name)
    return _Sought(loop, loop is not None or not is_forbidden or _is_absent(graph, name, tries))


def _best(graph: _Graph, starts: Sequence[Step], name: str) -> Loop | None:
    """The best cycle through the first of those starts that give any."""
    for begin in range(0, len(starts), _TRIES):
        cycles = (cycle for step in starts[begin : begin + _TRIES] for cycle in graph.loops(step))
        loops = [Loop(name, cycle) for cycle in cycles if name_of(cycle) == name]
        if loops:
            return min(loops, key=lambda loop: (loop.chains(), len(loop.steps), loop.places()))
    return None


def _is_absent(graph: _Graph, name: str, tries: int) -> bool:
    """True if no closed path under the rule has an edge that every cycle of that class has."""
    starts = graph.cyclic(needed_by(name))
    is_closed = graph.graph.is_closed
    return len(starts) <= tries and not any(is_closed(step.source, step.target, step.kind) for step in starts)


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
    along = cache(lambda chain: _Graph(component, CHAIN, chain=chain))
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


def _closed(chains: _Graph, name: str, entry: Step, last: Step) -> Loop | None:
    along = chains.path(entry.target, last.source)
    steps = None if along is None else (entry, *along, last)
    return Loop(name, steps) if steps is not None and name_of(steps) == name else None


def _is_one_chain(entry: Step, last: Step) -> bool:
    """True if both steps are of one chain, which leads from the target of `entry` to the source of `last`."""
    is_along = entry.place <= last.place or entry.target == last.source
    return entry.chain == last.chain and is_along
