"""Independent on purpose: all edges of watermarks by definition, where sessions begin with the state of the source.

The definition of tests/oracles/watermark_graph.py takes that state from what the subscriber had received. Positions
tell it as well, for any subscriber: the newest version of each key up to there.
"""

from itertools import pairwise

from harness.core.columns import NEVER, WATERMARK
from tests.oracles.watermark_graph import Cuts
from tests.oracles.watermark_source import Using, World

Pairs = set[tuple[int, int]]


class PlacedCuts(Cuts):
    """What each watermark contains and covers, sessions beginning with the state at their position."""

    def state(self, opening: int, key: int) -> list[int] | None:
        """The version that a session begins with, or none; None if nobody knows."""
        mine = [v for v, w in enumerate(self.world.writes) if w.key == key and self.source.is_committed(w.op)]
        order, start = self.source.orders.get(key, []), self.start(opening)
        early = [v for v in mine if self.has(start, self.world.writes[v].position)]
        if any(self.world.writes[v].position == NEVER for v in mine) or any(v not in order for v in early):
            return None
        return sorted(early, key=order.index)[-1:]

    def _initial(self, opening: int, key: int) -> bool:
        return self.state(opening, key) is not None

    def _contained(self, mark: int) -> frozenset[int]:
        result = {v for key in self.keys if self.speaks(mark, key) for v in self._of_key(mark, key)}
        chain = next(marks for marks in self.chains.values() if mark in marks)
        return frozenset(result.union(*(self.contained(before) for before in chain if before < mark)))

    def _of_key(self, mark: int, key: int) -> set[int]:
        opening, begin, event = self.opening(mark, key), self.begin(mark, key), self.log[mark]
        moments = [self.start(opening)] if opening is not None else []
        moments += [begin] if begin is not None else []
        is_begun = opening is not None and (self.contract.cut == "delivery" or self._is_behind(event, moments[0]))
        result = set((self.state(opening, key) if opening is not None and is_begun else None) or ())
        for t, version in self.rows.items():
            row = self.log[t]
            if version is not None and row.key == key and self.is_in(event, row.position):
                is_early = any(self.has(moment, row.position) for moment in moments)
                if (is_early and self._is_near(mark, t)) or (t < mark and t in self.session(mark)):
                    result.add(version)
        return result

    def _is_near(self, mark: int, row: int) -> bool:
        one, other = self.log[mark], self.log[row]
        is_same = one.session == other.session or self.contract.wm_scope != "session"
        return one.subscriber == other.subscriber and is_same


def all_pairs(world: World) -> tuple[Pairs, Pairs, Pairs]:
    """In edges, out edges and chain edges, by the numbers of checkers/watermarks/edges.py."""
    cuts, writes = PlacedCuts(world), world.writes
    base = max((w.op for w in writes), default=-1) + 1
    number = {mark: base + place for place, mark in enumerate(cuts.marks)}
    into = {(writes[v].op, number[m]) for m in cuts.marks for v, _ in cuts.ins(m, Using())}
    out = {(number[m], writes[v].op) for m in cuts.marks for v, _ in cuts.outs(m, Using())}
    chain = {(number[one], number[two]) for marks in cuts.chains.values() for one, two in pairwise(marks)}
    return into, out, chain


def is_plain(world: World) -> bool:
    """Does every session go forward, one after the other? What is said of others is more than need be, or less."""
    marks: dict[tuple[int, ...], int] = {}
    sessions: dict[int, int] = {}
    for event in world.log:
        whose: tuple[int, ...] = (event.subscriber, event.span)
        whose += (event.session,) if world.contract.wm_scope == "session" else ()
        if event.session < sessions.get(event.subscriber, 0):
            return False
        sessions[event.subscriber] = event.session
        if event.kind == WATERMARK and event.position < marks.get(whose, 0):
            return False
        marks[whose] = max(event.position, marks.get(whose, 0)) if event.kind == WATERMARK else marks.get(whose, 0)
    cuts = PlacedCuts(world)
    opened = ((m, o) for m in cuts.marks for key in cuts.keys if (o := cuts.opening(m, key)) is not None)
    return all(cuts._is_behind(cuts.log[m], cuts.start(o)) for m, o in opened)
