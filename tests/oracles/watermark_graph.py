"""Independent on purpose: the watermark graph by definition. Each watermark is a reader with all edges that follow.

Plain loops over events; times are places in the log. What one watermark contains is a set of versions, and what it
covers a set of keys. Where the definition leaves a choice:

1. A session that resumes at p holds all that came at or below p, whenever it came, and nothing of what came above p:
   those rows come again. Which version of a key it holds is known if a watermark which covered the key had closed p;
   where versions may be skipped, only one at p itself tells it. So it is with the row with which coverage begins.
2. A repeated row at or below p does not begin coverage: newer ones of before p may be still to come. Nor does a
   watermark below p cover anything, under a cut by position.
3. A watermark contains what those before it in its chain contained.
4. Watermarks of several partitions are one chain only if their scope is global.
5. A position repeated in one chain is one node, under a cut by delivery, if both contain the same.
"""

from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, GAP, NEVER, OPEN, ROW, WATERMARK
from tests.oracles.watermark_source import INITIAL, Chain, Edge, Node, Source, Using, World, behind
from tests.worlds.streams.language import Event

Moment = tuple[int, bool]  # The state at a position: does it hold what has that position?


class Cuts:
    """What each watermark contains and covers, and how they are chained."""

    def __init__(self, world: World) -> None:
        self.world, self.log, self.contract = world, world.log, world.contract
        self.source = Source(world)
        self.marks = [t for t, e in enumerate(self.log) if e.kind == WATERMARK and self.contract.cut != "unknown"]
        self.rows = {t: self.source.shown(e) for t, e in enumerate(self.log) if e.kind in (ROW, BACKFILL)}
        named = [(w.key, w.span) for w in world.writes] + [(e.key, e.span) for e in self.log if e.key != NEVER]
        self.span = {key: max(s for k, s in named if k == key) for key, _ in named}
        self.keys = sorted(self.span)
        self.is_shared = self.contract.wm_scope in ("partition", "global")  # Who goes on where another one was?
        self.contained = lru_cache(maxsize=None)(self._contained)
        self.begin = lru_cache(maxsize=None)(self._begin)
        self.initial = lru_cache(maxsize=None)(self._initial)

    # Chains

    def scope(self, event: Event, span: int) -> Chain:
        match self.contract.wm_scope:
            case "session":
                return (event.subscriber, event.session, span)
            case "subscriber":
                return (event.subscriber, span)
            case "partition":
                return (span,)
            case "global":
                return ()

    def piece(self, scope: Chain, time: int) -> int:
        """How often watermarks of that scope went back before that time, and at it: each time a new chain begins."""
        pieces, highest = 0, dict[int, int]()
        for m in (m for m in self.marks if m <= time and self.scope(self.log[m], self.log[m].span) == scope):
            mark = self.log[m]
            if mark.position < highest.get(mark.span, mark.position):
                pieces, highest = pieces + 1, {}
            highest[mark.span] = mark.position
        return pieces

    @cached_property
    def chains(self) -> dict[Chain, list[int]]:
        """The watermarks of each chain in order."""
        result: dict[Chain, list[int]] = {}
        for m in self.marks:
            scope = self.scope(self.log[m], self.log[m].span)
            result.setdefault((*scope, self.piece(scope, m)), []).append(m)
        if self.contract.wm_scope == "global":
            result = {c: sorted(marks, key=lambda m: (self.log[m].position, m)) for c, marks in result.items()}
        return result

    def rows_of(self, chain: Chain) -> list[int]:
        """The rows that were delivered in a chain."""
        *scope, piece = chain
        spans = {self.log[m].span for m in self.chains[chain]}
        return [
            t
            for t in self.rows
            if any(
                self.scope(self.log[t], span) == tuple(scope) and span in (-1, self.span[self.log[t].key])
                for span in spans
            )
            and self.piece(tuple(scope), t) == piece
        ]

    # What a watermark contains

    def closes(self, mark: Event, position: int) -> bool:
        return position < mark.position or (position == mark.position and self.contract.closed == "<=")

    def is_in(self, mark: Event, position: int) -> bool:
        """May a watermark contain what has that position?"""
        return self.contract.cut == "delivery" or self.closes(mark, position)

    def has(self, moment: Moment, position: int) -> bool:
        """Does the state at that moment hold what has that position?"""
        return position < moment[0] or (position == moment[0] and moment[1])

    def start(self, opening: int) -> Moment:
        return (self.log[opening].position, self.contract.resume == "after")

    def session(self, time: int) -> list[int]:
        """The times of all events of the same session."""
        of = (self.log[time].subscriber, self.log[time].session)
        return [t for t, e in enumerate(self.log) if (e.subscriber, e.session) == of]

    def speaks(self, mark: int, key: int) -> bool:
        return self.log[mark].span in (-1, self.span[key])

    def is_meant(self, event: Event, key: int) -> bool:
        return event.key == key if event.key != NEVER else event.span in (-1, self.span[key])

    def opening(self, mark: int, key: int) -> int | None:
        """When the session was last opened for the key, with a position."""
        opens = [t for t in self.session(mark) if t < mark and self.log[t].kind == OPEN]
        opens = [t for t in opens if self.is_meant(self.log[t], key)]
        return opens[-1] if opens and self.log[opens[-1]].position != NEVER else None

    def _contained(self, mark: int) -> frozenset[int]:
        event, result = self.log[mark], set[int]()
        for t, version in self.rows.items():
            row = self.log[t]
            if version is None or not self.speaks(mark, row.key) or not self.is_in(event, row.position):
                continue
            opening, begin = self.opening(mark, row.key), self.begin(mark, row.key)
            moments = [self.start(opening)] if opening is not None else []
            moments += [begin] if begin is not None else []
            is_early = any(self.has(moment, row.position) for moment in moments)
            is_near = self.is_shared or row.subscriber == event.subscriber
            if (is_early and is_near) or (t < mark and t in self.session(mark)):
                result.add(version)
        chain = next(marks for marks in self.chains.values() if mark in marks)
        for before in chain[: chain.index(mark)]:
            if before < mark:
                result |= self.contained(before)
        return frozenset(result)

    def _initial(self, opening: int, key: int) -> bool:
        """Is it known what a session holds of a key when it is opened?"""
        start = self.start(opening)
        committed = [w for w in self.world.writes if self.source.is_committed(w.op)]
        if all(w.position != NEVER and not self.has(start, w.position) for w in committed):
            return True
        before = [m for m in self.marks if m < opening and self.speaks(m, key)]
        before = [m for m in before if self.is_shared or self.log[m].subscriber == self.log[opening].subscriber]
        begins = [self.begin(m, key) for m in before if self._tells(self.log[m], start)]
        # From the row on with which coverage began; so the state at that position is known only with all of it.
        return any(begin is not None and (begin[0], True) <= start for begin in begins)

    def _tells(self, mark: Event, start: Moment) -> bool:
        """Does what a watermark contains tell the state at `start`?"""
        skips_in_epoch = (self.contract.versions, self.contract.position) == ("latest-per-epoch", "epoch")
        if self.contract.versions == "every" or skips_in_epoch:
            return self._is_behind(mark, start)
        return start == (mark.position, self.contract.closed == "<=")

    def _is_behind(self, mark: Event, moment: Moment) -> bool:
        """Does a watermark close all that was there at that moment?"""
        return self.closes(mark, moment[0]) if moment[1] else moment[0] <= mark.position

    def covered(self, mark: int) -> list[int]:
        """The keys of which it is known what they held at that watermark."""
        return [key for key in self.keys if self.speaks(mark, key) and self.begin(mark, key) is not None]

    def _begin(self, mark: int, key: int) -> Moment | None:
        """The moment since which all of a key is known at that watermark, None if the key is not covered there."""
        begin: Moment | None = None
        is_over, start = False, (-1, False)
        seen: set[int | None] = set()
        for t in (t for t in self.session(mark) if t < mark):
            event = self.log[t]
            if event.kind in (OPEN, GAP, CLOSE, ERROR, END) and self.is_meant(event, key):
                is_open = event.kind == OPEN and event.position != NEVER
                start = self.start(t) if is_open else start
                begin = start if is_open and self.initial(t, key) else None
                is_over = event.kind not in (OPEN, GAP)
            elif event.kind in (ROW, BACKFILL) and event.key == key:
                version = self.rows[t]
                if self.is_in(self.log[mark], event.position):
                    is_new = version not in seen and not self.has(start, event.position)
                    if version is None:
                        begin = None
                    elif begin is None and not is_over and (is_new or event.kind == BACKFILL):
                        begin = (event.position, False)
                seen.add(version)
        is_below = begin is not None and not self._is_behind(self.log[mark], begin)
        return None if self.contract.cut == "position" and is_below else begin

    def held(self, mark: int, key: int) -> int | None:
        """The newest version of a covered key that a watermark contains, None if its order is not known."""
        mine = [v for v in self.contained(mark) if self.world.writes[v].key == key]
        order = self.order(mark, key)
        if any(v not in order for v in mine):
            return None
        return max(mine, key=order.index, default=INITIAL)

    def order(self, mark: int, key: int) -> list[int]:
        """The versions of a key, as far as anybody may tell that watermark's subscriber."""
        return self.source.orders.get(key, []) or self.source.told_elsewhere(key, self.log[mark].subscriber)

    # Edges

    def ins(self, mark: int, using: Using) -> set[tuple[int, int]]:
        """(version, key) whose writer a watermark contains."""
        if using.delivery:
            return {(v, self.world.writes[v].key) for v in self.contained(mark)}
        held = {(self.held(mark, key), key) for key in self.covered(mark)}
        return {(version, key) for version, key in held if version is not None and version != INITIAL}

    def outs(self, mark: int, using: Using) -> set[tuple[int, int]]:
        """(version, key) whose writer a watermark does not contain."""
        result = set()
        for key in self.covered(mark) if using.versions else ():
            held = self.held(mark, key)
            following = behind(self.order(mark, key), held) if held is not None else None
            if following is not None:
                result.add((following, key))
        if using.delivery and self.contract.versions == "every":
            chain = next(c for c, marks in self.chains.items() if mark in marks)
            for t in self.rows_of(chain):
                version, key = self.rows[t], self.log[t].key
                is_late = self.log[t].kind == ROW and version is not None and version not in self.contained(mark)
                if is_late and version is not None and key in self.covered(mark):
                    result.add((version, key))
        return result

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The node of each watermark: those that are one have one."""
        result: dict[int, Node] = {m: ("w", m) for m in self.marks}
        if not self.contract.is_position_global:
            return result
        for position in sorted({self.log[m].position for m in self.marks}):
            one: Node | None = None
            for marks in self.chains.values():
                same = [m for m in marks if self.log[m].position == position]
                for m in same:
                    if self.contract.cut == "position" or self.contained(m) == self.contained(same[0]):
                        one = one or result[m]
                        result[m] = one
        return result


def edges(world: World, using: Using | None = None) -> list[Edge]:
    """All edges of the graph of a world, merged nodes contracted."""
    using = using or Using()
    cuts = Cuts(world)
    result = list(cuts.source.edges(using))
    for chain, marks in cuts.chains.items():
        for m in marks:
            node = cuts.nodes[m]
            for version, key in sorted(cuts.ins(m, using)):
                writer = cuts.source.node(world.writes[version].op)
                result.append(Edge(source=writer, target=node, kind="in", chain=chain, key=key))
            for version, key in sorted(cuts.outs(m, using)):
                writer = cuts.source.node(world.writes[version].op)
                result.append(Edge(source=node, target=writer, kind="out", chain=chain, key=key))
            if using.realtime and world.contract.realtime == "reads":
                later = [cuts.source.node(t.index) for t in cuts.source.committed if t.invoke > world.received[m]]
                later = [target for target in later if target[0] == "t"]  # Not what read as of a position.
                result += [Edge(source=node, target=target, kind="rt", chain=chain) for target in later]
        pairs = [(cuts.nodes[one], cuts.nodes[two]) for one, two in pairwise(marks)]
        result += [Edge(source=one, target=two, kind="chain", chain=chain) for one, two in pairs]
    merged = _reads(world, cuts)
    result = [replace(e, source=merged.get(e.source, e.source), target=merged.get(e.target, e.target)) for e in result]
    return [e for e in dict.fromkeys(result) if e.source != e.target]


def _reads(world: World, cuts: Cuts) -> dict[Node, Node]:
    """The nodes of as-of reads that are those of watermarks: a read at r contains r, so the watermark must as well."""
    at = {cuts.log[m].position: node for m, node in reversed(cuts.nodes.items())}
    if world.contract.closed == "<" or not world.contract.is_position_global:
        return {}
    return {("r", t.index): at[t.as_of] for t in world.transactions if t.as_of in at}
