"""The classes of cycles through watermarks: those that a graph has, and a short cycle of each.

A class that a found one implies is not sought, unless it is forbidden and the found one is legal. Components decide if
a class is present. The cycle to show is sought from few edges: the least chains, then the least steps. A timed order of
registers' versions is not used.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from checkers.graph.edges import PROCESS, REALTIME, RW, WR, WW
from checkers.watermarks.cycles.paths import Graph, places_of, simple
from checkers.watermarks.cycles.steps import (
    CHAIN,
    FORK,
    G0,
    G1C,
    G2,
    IN,
    INTERMEDIATE,
    NAMES,
    NONADJACENT,
    ORDER,
    OUT,
    SINGLE,
    SPLIT,
    SUFFIXES,
    THROUGH,
    TORN,
    Component,
    Loop,
    Step,
    implies,
    name_of,
)

_TRIES: Final = 12
_ALONE_TRIES: Final = 64
_SINGLE_CHAINS: Final = 16  # Up to this many chains are tried alone.


def classes(component: Component, forbidden: frozenset[str]) -> dict[str, Loop]:
    """Every class of the component that no other found one implies; and the forbidden ones, if any."""
    found: dict[str, Loop] = {}
    for name in NAMES:
        if any(implies(other, name) and (other in forbidden or name not in forbidden) for other in found):
            continue
        loop = _Seeker(component, name).loop()
        if loop is not None:
            found[name] = loop
    return found


def is_circular(component: Component) -> bool:
    """True if the clients' operations alone have a cycle there."""
    graph = Graph(component, WW | WR | RW | PROCESS | REALTIME, None)
    return any(step.kind & (WW | WR | RW) for step in graph.cyclic(G2))


class _Seeker:
    """Search for a cycle of one class in a component."""

    def __init__(self, component: Component, name: str) -> None:
        self.component, self.name = component, name
        self.base, self.order = name.partition("-watermark")[0], SUFFIXES.index(name.partition("-watermark")[2])
        kinds = {ORDER: CHAIN, G0: WW, G1C: WW | WR, SINGLE: WW | WR | RW, NONADJACENT: WW | WR | RW, G2: WW | WR | RW}
        self.kinds = kinds.get(self.base, 0) | (THROUGH if self.base != ORDER else CHAIN)
        self.kinds |= (0, PROCESS, PROCESS | REALTIME)[self.order]

    def loop(self) -> Loop | None:
        """The cycle with the least chains, then the least steps, of those that were tried."""
        if self.base in (INTERMEDIATE, TORN, SPLIT):
            return self._of_one()
        graph = Graph(self.component, self.kinds, None)
        starts = [step for step in graph.cyclic(self.base) if step.kind & self._required()]
        if not starts:
            return None
        starts = self._nearest(starts)
        chains = sorted({step.chain for step in self.component.steps if step.kind & (IN | OUT)})
        if 1 < len(chains) <= _SINGLE_CHAINS and self.base not in (ORDER, FORK):
            for chain in chains:
                alone = Graph(self.component, self.kinds, chain)
                inside = set(alone.cyclic(self.base))
                if loop := self._best(alone, [step for step in starts if step in inside]):
                    return loop
        return self._best(graph, starts)

    def _required(self) -> int:
        """The kinds of steps of which every cycle of the class has at least one."""
        if self.base == ORDER:
            return CHAIN
        if self.base in (SINGLE, NONADJACENT, G2):
            return RW
        return IN | (self.kinds & (WW | WR))

    def _nearest(self, starts: list[Step]) -> list[Step]:
        return sorted(starts, key=lambda step: (abs(step.target - step.source), step.source, step.target))

    def _best(self, graph: "Graph", starts: Sequence[Step]) -> Loop | None:
        loops = []
        for step in starts[:_TRIES]:
            for way in graph.ways(step, self.base):
                parts = (graph.renamed(part) for part in simple(way))
                loops += [Loop(self.name, part) for part in parts if name_of(part) == self.name]
        return min(loops, key=lambda loop: (loop.chains(), len(loop.steps), places_of(loop)), default=None)

    def _of_one(self) -> Loop | None:
        """A cycle of one transaction: in one chain by places, over merged nodes by a path along chains."""
        entries: dict[int, list[Step]] = {}
        for step in self.component.steps:
            if step.kind == IN:
                entries.setdefault(step.source, []).append(step)
        pairs = [
            (entry, last)
            for last in self.component.steps
            if last.kind == OUT
            for entry in entries.get(last.target, ())
            if _is_one_chain(entry, last) == (self.base != SPLIT)
        ]
        pairs.sort(key=lambda pair: (pair[0].target != pair[1].source, abs(pair[0].place - pair[1].place)))
        loops = (self._closed(entry, last) for entry, last in pairs if self._may_be(entry, last))
        return next((loop for loop in islice(loops, _ALONE_TRIES) if loop is not None), None)

    def _may_be(self, entry: Step, last: Step) -> bool:
        """True if the keys of both are equal, or different, as the class requires."""
        return self.base == SPLIT or (entry.key == last.key) == (self.base == INTERMEDIATE)

    def _closed(self, entry: Step, last: Step) -> Loop | None:
        chain = None if self.base == SPLIT else entry.chain
        along = Graph(self.component, CHAIN, chain).along(entry.target, last.source)
        steps = None if along is None else (entry, *along, last)
        return Loop(self.name, steps) if steps is not None and name_of(steps) == self.name else None


def _is_one_chain(entry: Step, last: Step) -> bool:
    """True if both are of one chain, which leads from the target of `entry` to the source of `last`."""
    is_along = entry.place <= last.place or entry.target == last.source
    return entry.chain == last.chain and is_along
