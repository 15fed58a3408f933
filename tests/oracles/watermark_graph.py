"""The slow, obvious definition of the watermark graph: each watermark is a reader, with every edge that it implies.

Plain loops over events; times are places in the log. What one watermark contains is a set of versions, and what it
covers a set of keys. Where the definition leaves a choice:

1. A session that resumes at p holds all that came at or below p, whenever it came, and nothing of what came above p:
   those rows come again. Which version of a key it holds is known if a watermark which covered the key had closed p;
   where versions may be skipped, only one at p itself tells it.
2. A repeated row at or below p does not begin coverage: newer ones of before p may be still to come.
3. A watermark contains what those before it in its chain contained.
4. Watermarks of several partitions are one chain only if their scope is global.
5. A position repeated in one chain is one node, under a cut by delivery, if both contain the same.
"""

from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, GAP, NEVER, OPEN, ROW, WATERMARK
from tests.oracles.watermark_source import INITIAL, Chain, Edge, Node, Source, Using, World
from tests.stream_language import Event


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
        self.covered = lru_cache(maxsize=None)(self._covered)
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

    def is_before_start(self, start: int, position: int) -> bool:
        return position < start or (position == start and self.contract.resume == "after")

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
            opening = self.opening(mark, row.key)
            is_near = self.is_shared or row.subscriber == event.subscriber
            is_early = opening is not None and self.is_before_start(self.log[opening].position, row.position)
            if (is_early and is_near) or (t < mark and t in self.session(mark)):
                result.add(version)
        chain = next(marks for marks in self.chains.values() if mark in marks)
        for before in chain[: chain.index(mark)]:
            if before < mark:
                result |= self.contained(before)
        return frozenset(result)

    def _initial(self, opening: int, key: int) -> bool:
        """Is it known what a session holds of a key when it is opened?"""
        event = self.log[opening]
        committed = [w for w in self.world.writes if self.source.is_committed(w.op)]
        if all(w.position != NEVER and not self.is_before_start(event.position, w.position) for w in committed):
            return True
        before = [m for m in self.marks if m < opening and key in self.covered(m)]
        before = [m for m in before if self.is_shared or self.log[m].subscriber == event.subscriber]
        return any(self._tells(self.log[m], event.position) for m in before)

    def _tells(self, mark: Event, start: int) -> bool:
        """Is the state at `start` known from what a watermark contains?"""
        is_after = self.contract.resume == "after"
        skips_in_epoch = (self.contract.versions, self.contract.position) == ("latest-per-epoch", "epoch")
        if self.contract.versions == "every" or skips_in_epoch:
            return self.closes(mark, start) if is_after else start <= mark.position
        return start == mark.position and is_after == (self.contract.closed == "<=")

    def _covered(self, mark: int) -> frozenset[int]:
        return frozenset(key for key in self.keys if self.speaks(mark, key) and self._is_known(mark, key))

    def _is_known(self, mark: int, key: int) -> bool:
        """Is it known what the key held at that watermark?"""
        is_known, is_over, start = False, False, -1
        seen: set[int | None] = set()
        for t in (t for t in self.session(mark) if t < mark):
            event = self.log[t]
            if event.kind in (OPEN, GAP, CLOSE, ERROR, END) and self.is_meant(event, key):
                is_open = event.kind == OPEN and event.position != NEVER
                is_known = is_open and self.initial(t, key)
                is_over = event.kind not in (OPEN, GAP)
                start = event.position if is_open else start
            elif event.kind in (ROW, BACKFILL) and event.key == key:
                version = self.rows[t]
                if self.is_in(self.log[mark], event.position):
                    is_new = version not in seen and not self.is_before_start(start, event.position)
                    is_begin = not is_over and (event.kind == BACKFILL or is_new)
                    is_known = version is not None and (is_known or is_begin)
                seen.add(version)
        return is_known

    def held(self, mark: int, key: int) -> int | None:
        """The newest version of a covered key that a watermark contains, None if its order is not known."""
        mine = [v for v in self.contained(mark) if self.world.writes[v].key == key]
        order = self.source.orders.get(key, [])
        if any(v not in order for v in mine):
            return None
        return max(mine, key=order.index, default=INITIAL)

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
            following = self.source.following(key, held) if held is not None else None
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
                later = [t.index for t in world.transactions if t.invoke > world.received[m]]
                later = [op for op in later if cuts.source.is_committed(op)]
                result += [Edge(source=node, target=cuts.source.node(op), kind="rt", chain=chain) for op in later]
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
