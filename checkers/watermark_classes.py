"""The classes of cycles through watermarks: which a graph has, and a short cycle of each.

A *step* leads from one node to another: a client's dependency, an order of time, into a watermark, out of one, or along
a chain. Watermarks and chains are passed and not counted; an out edge is one more rw where two in a row are forbidden,
and none where they are counted. The classes, least first, are CLASSES; those of n rw edges of clients stand with the
order of processes and of real time as well. A cycle of one class shows a weaker stream than those behind it, so a class
that follows from a found one is not sought, but for a forbidden class that follows from a legal one.

Whether a class is there is decided by components. Which cycle is shown is sought from few edges: the least chains, then
the least steps. A timed order of registers' versions is not used.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, islice, pairwise
from typing import Final

import numpy as np

from checkers.edges import OPEN_END, PROCESS, REALTIME, RW, WR, WW
from harness.core.columns import Int64s

IN, OUT, CHAIN = 512, 1024, 2048  # Kinds of steps beside those of checkers/edges.py.
READS: Final = -2  # From here on down, the chain of a read that is one with watermarks.
THROUGH: Final = IN | OUT | CHAIN
ORDER, INTERMEDIATE, TORN, SPLIT, FORK = ("order", "intermediate", "torn", "split", "fork")
G0, G1C, SINGLE, NONADJACENT, G2 = ("G0", "G1c", "G-single", "G-nonadjacent", "G2-item")
ALONE: Final = (ORDER, INTERMEDIATE, TORN, SPLIT, FORK)
CLASSES: Final = (*ALONE, G0, G1C, SINGLE, NONADJACENT, G2)
SUFFIXES: Final = ("", "-process", "-realtime")
NAMES: Final = tuple(
    f"{name}-watermark{suffix}" for suffix in SUFFIXES for name in CLASSES if not suffix or name not in ALONE
)
_TRIES: Final = 12
_ALONE_TRIES: Final = 64
_SINGLE_CHAINS: Final = 16  # So many chains are tried alone.
_STEP, _PASS = 1_000, 1  # The weight of a step that counts, and of one that only passes.


@dataclass(frozen=True, slots=True)
class Step:
    """One edge. `chain` is that of a step through watermarks, `key` and `version` of one into or out of one; else -1.

    `marks` are the watermarks that it passes, as members of their nodes: where an in step leads, an out step begins.
    """

    source: int
    target: int
    kind: int
    chain: int = -1
    key: int = -1
    version: int = -1
    row: int = -1
    marks: tuple[int, ...] = ()
    place: int = -1  # of the watermark, in its chain


@dataclass(frozen=True, slots=True)
class Loop:
    """A closed way of steps, with its class."""

    anomaly: str
    steps: tuple[Step, ...]

    def chains(self) -> int:
        """How many chains it passes."""
        return len({step.chain for step in self.steps if step.kind & THROUGH})


@dataclass(frozen=True, slots=True)
class Component:
    """Nodes 0 to n - 1 in the order of their numbers, which reach each other, and the steps between them.

    `number` and `end` are those of checkers/watermark_bounds.py, `process` is -1 for what stands in no process's order.
    """

    number: Int64s
    end: Int64s
    process: Int64s
    is_mark: Sequence[bool]
    steps: tuple[Step, ...]


def level_of(name: str) -> tuple[int, int]:
    """The rank of a class among CLASSES, and of its order of time among SUFFIXES."""
    base, _, suffix = name.partition("-watermark")
    return CLASSES.index(base), SUFFIXES.index(suffix)


def implies(one: str, other: str) -> bool:
    """Does a cycle of the one class say at least as much as one of the other?"""
    (rank, order), (other_rank, other_order) = level_of(one), level_of(other)
    return rank <= other_rank and order <= other_order


def name_of(steps: Sequence[Step]) -> str | None:
    """The class of a cycle; None of one without a watermark, as of reads alone."""
    if not any(step.kind & THROUGH and step.chain > READS for step in steps):
        return None
    clients = [step for step in steps if not step.kind & THROUGH]
    kinds = [step.kind for step in clients]
    suffix = "-realtime" if REALTIME in kinds else "-process" if PROCESS in kinds else ""
    entries = [step for step in steps if step.kind == IN]
    if not entries and not clients:
        return ORDER + "-watermark"
    if not clients:
        return _alone(steps, entries) + "-watermark"
    if RW not in kinds:
        return (G1C if WR in kinds else G0) + "-watermark" + suffix
    is_adjacent = any(one.kind in (RW, OUT) and two.kind in (RW, OUT) for one, two in pairwise([*steps, steps[0]]))
    if is_adjacent:
        return G2 + "-watermark" + suffix
    return (SINGLE if kinds.count(RW) == 1 else NONADJACENT) + "-watermark" + suffix


def _alone(steps: Sequence[Step], entries: Sequence[Step]) -> str:
    if len(entries) > 1:
        return FORK
    last = next(step for step in steps if step.kind == OUT)
    if len({step.chain for step in steps}) > 1:
        return SPLIT
    return INTERMEDIATE if entries[0].key == last.key else TORN


def classes(component: Component, forbidden: frozenset[str]) -> dict[str, Loop]:
    """Every class of the component that follows from no other found one; with those that are forbidden, if any are."""
    found: dict[str, Loop] = {}
    for name in NAMES:
        if any(implies(other, name) and (other in forbidden or name not in forbidden) for other in found):
            continue
        loop = _Seeker(component, name).loop()
        if loop is not None:
            found[name] = loop
    return found


def is_circular(component: Component) -> bool:
    """Do the clients' operations alone have a cycle there?"""
    graph = _Graph(component, WW | WR | RW | PROCESS | REALTIME, None)
    return any(step.kind & (WW | WR | RW) for step in graph.cyclic(G2))


class _Seeker:
    """Looks for a cycle of one class in a component."""

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
        graph = _Graph(self.component, self.kinds, None)
        starts = [step for step in graph.cyclic(self.base) if step.kind & self._required()]
        if not starts:
            return None
        starts = self._nearest(starts)
        chains = sorted({step.chain for step in self.component.steps if step.kind & (IN | OUT)})
        if 1 < len(chains) <= _SINGLE_CHAINS and self.base not in (ORDER, FORK):
            for chain in chains:
                alone = _Graph(self.component, self.kinds, chain)
                inside = set(alone.cyclic(self.base))
                if loop := self._best(alone, [step for step in starts if step in inside]):
                    return loop
        return self._best(graph, starts)

    def _required(self) -> int:
        """The kinds of steps of which every cycle of the class has one."""
        if self.base == ORDER:
            return CHAIN
        if self.base in (SINGLE, NONADJACENT, G2):
            return RW
        return OUT | (self.kinds & (WW | WR))

    def _nearest(self, starts: list[Step]) -> list[Step]:
        return sorted(starts, key=lambda step: (abs(step.target - step.source), step.source, step.target))

    def _best(self, graph: "_Graph", starts: Sequence[Step]) -> Loop | None:
        loops = []
        for step in starts[:_TRIES]:
            for way in graph.ways(step, self.base):
                parts = (graph.renamed(part) for part in _simple(way))
                loops += [Loop(self.name, part) for part in parts if name_of(part) == self.name]
        return min(loops, key=lambda loop: (loop.chains(), len(loop.steps), _places(loop)), default=None)

    def _of_one(self) -> Loop | None:
        """A cycle of one transaction: in one chain by places, over merged nodes by a way along chains."""
        entries: dict[int, list[Step]] = {}
        for step in self.component.steps:
            if step.kind == IN:
                entries.setdefault(step.source, []).append(step)
        pairs = [
            (entry, last)
            for last in self.component.steps
            if last.kind == OUT
            for entry in entries.get(last.target, ())
            if (entry.chain == last.chain and entry.place <= last.place) == (self.base != SPLIT)
        ]
        pairs.sort(key=lambda pair: (pair[0].target != pair[1].source, abs(pair[0].place - pair[1].place)))
        loops = (self._closed(entry, last) for entry, last in pairs if self._may_be(entry, last))
        return next((loop for loop in islice(loops, _ALONE_TRIES) if loop is not None), None)

    def _may_be(self, entry: Step, last: Step) -> bool:
        """Is the key the same in both, or not, as the class says?"""
        return self.base == SPLIT or (entry.key == last.key) == (self.base == INTERMEDIATE)

    def _closed(self, entry: Step, last: Step) -> Loop | None:
        chain = None if self.base == SPLIT else entry.chain
        along = _Graph(self.component, CHAIN, chain).along(entry.target, last.source)
        steps = None if along is None else (entry, *along, last)
        return Loop(self.name, steps) if steps is not None and name_of(steps) == self.name else None


class _Graph:
    """Steps of some kinds, of one chain if `chain` says which, and of time where the kinds have it."""

    def __init__(self, component: Component, kinds: int, chain: int | None) -> None:
        self.component = component
        size = len(component.number)
        steps = [
            step
            for step in component.steps
            if step.kind & kinds and (chain is None or not step.kind & THROUGH or step.chain == chain)
        ]
        if kinds & PROCESS:
            steps += _of_processes(component)
        if kinds & REALTIME:
            steps += _of_time(component)
        self.steps = steps
        dependencies = (step for step in component.steps if step.kind & (WW | WR))
        self._dependencies = {(step.source, step.target): step for step in dependencies}
        self.size = 2 * size  # Behind the nodes stand the moments of real time, one for each number.
        self.leading: list[list[Step]] = [[] for _ in range(self.size)]
        for step in steps:
            self.leading[step.source].append(step)

    def cyclic(self, base: str) -> list[Step]:
        """The steps that lie on a closed way of the class: not two rw in a row, if that is what it says."""
        from scipy.sparse import coo_array  # noqa: PLC0415  Who finds no window does without it.
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
        """The steps, those of an order of time as the ww or wr between the same nodes, which says more."""
        return tuple(
            self._dependencies.get((step.source, step.target), step) if step.kind in (PROCESS, REALTIME) else step
            for step in steps
        )

    def along(self, start: int, goal: int) -> tuple[Step, ...] | None:
        """A shortest way of these steps, none if it begins where it ends; None if there is none."""
        if start == goal:
            return ()
        return next(iter(self._ways(start, goal, first=None, base="")), None)

    def ways(self, step: Step, base: str) -> Iterator[tuple[Step, ...]]:
        """A shortest closed way through that step which may be of the class."""
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
    """What counts of a way so far: was its last step an rw or out, its rw (up to two), and watermarks left behind."""

    is_missed: bool = False
    rw: int = 0
    out: int = 0

    def may(self, step: Step, base: str) -> bool:
        """May that step follow?"""
        if step.kind == RW and base == SINGLE and self.rw:
            return False
        is_apart = base in (SINGLE, NONADJACENT)
        return not (is_apart and self.is_missed and step.kind in (RW, OUT))

    def after(self, step: Step, base: str) -> "_State":
        """What counts behind that step."""
        limit = 2 if base == FORK else 1
        is_missed = base in (SINGLE, NONADJACENT) and step.kind in (RW, OUT)
        rw = min(2, self.rw + (step.kind == RW)) if base in (SINGLE, NONADJACENT, G2) else 0
        return _State(is_missed, rw, min(limit, self.out + (step.kind == OUT)))

    def is_goal(self, first: Step | None, base: str) -> bool:
        """Is a way that ends here, before its first step, of the class?"""
        if first is None:
            return True
        if base == ORDER:
            return True
        if base in (SINGLE, NONADJACENT) and self.is_missed and first.kind in (RW, OUT):
            return False
        return self.out >= (2 if base == FORK else 1) and self.rw >= {SINGLE: 1, NONADJACENT: 2, G2: 1}.get(base, 0)


def _traced(
    came: dict[tuple[int, _State], tuple[tuple[int, _State], Step]], at: tuple[int, _State]
) -> tuple[Step, ...]:
    steps = []
    while at in came:
        at, step = came[at]
        steps.append(step)
    return tuple(reversed(steps))


def _simple(way: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The cycles of which a closed way consists, each with its orders of time as one step."""
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
    """The cycle without moments: what leads over them is one step of real time; the least node comes first."""
    turned = next((at for at, step in enumerate(steps) if step.kind != 0), 0)
    result: list[Step] = []
    for step in [*steps[turned:], *steps[:turned]]:
        last = result.pop() if step.kind == 0 else None
        result.append(step if last is None else Step(last.source, step.target, last.kind))
    first = min(range(len(result)), key=lambda at: (result[at].kind & (OUT | CHAIN) != 0, result[at].source))
    return tuple(result[first:] + result[:first])


def _places(loop: Loop) -> list[tuple[int, int, int]]:
    return [(step.source, step.target, step.kind) for step in loop.steps]


def _of_processes(component: Component) -> Iterable[Step]:
    order = sorted(
        (node for node in range(len(component.number)) if component.process[node] >= 0),
        key=lambda node: (int(component.process[node]), node),
    )
    for one, two in pairwise(order):
        if component.process[one] == component.process[two] and component.end[one] <= component.number[two]:
            yield Step(one, two, PROCESS)


def _of_time(component: Component) -> Iterable[Step]:
    """From each node that ends to a moment, from moment to moment, and from there to what begins then."""
    size = len(component.number)
    due = np.searchsorted(component.number, component.end)
    for node in range(size):
        if due[node] < size and component.end[node] != OPEN_END:
            yield Step(node, size + int(due[node]), REALTIME)
        if node + 1 < size:
            yield Step(size + node, size + node + 1, 0)
        if not component.is_mark[node]:
            yield Step(size + node, node, 0)
