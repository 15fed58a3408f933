"""Random small worlds: a source of each kind with correct streams of it. One seed gives one world.

A stream is *lanes*, one for each partition: units in the order of positions, watermarks between. Under a cut by
position rows may run ahead of them. What a watermark closes was delivered before it, in full, and no operation can come
to stand there any more. `simple` worlds have one session of full coverage and nothing odd: the trials of detection.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec

from harness.core.columns import BACKFILL, CLOSE, GAP, NEVER, OK, OPEN, ROW, WATERMARK
from harness.core.draw import Draw, Stream
from harness.core.promises import StreamContract
from tests.oracles.watermark_source import Read, Transaction, World
from tests.worlds.streams.language import Event, Write
from tests.worlds.streams.sources import TICK, Simulation, Source

KEYS = 3
Cut = Literal["delivery", "position"]
Scope = Literal["session", "subscriber", "partition", "global"]
BY_POSITION = ("timestamps", "skewed", "keys")
BY_KEY = ("keys", "uncut")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a lane must not tear: rows of one position."""

    position: int
    ready: int
    rows: tuple[Write, ...]


@dataclass(kw_only=True)
class Lane:
    """What a session has still to send of one partition."""

    span: int
    left: list[list[Write]]
    is_torn: bool = False  # Is the first unit delivered in part?
    sent: int = -1  # The highest position delivered, or with which the session began.


def contract_of(draw: Stream, kind: str, *, is_simple: bool) -> StreamContract:
    """How streams of a source of that kind are read; what is left open is drawn."""
    cut: Cut = draw.choice(["delivery", "position"])
    cut = "position" if kind in BY_POSITION else "delivery" if kind == "uncut" else cut
    is_spread = not is_simple and kind not in BY_KEY and draw.chance(1, 4)
    scopes: list[Scope] = ["session", "partition"] if kind == "keys" else ["session", "subscriber"]
    scopes += ["partition", "global"] if is_spread else []
    is_skipping = kind not in ("epochs", "uncut") and not is_simple and draw.chance(1, 5)
    common = StreamContract(
        closed=draw.choice(["<", "<="]),
        cut=cut,
        position="commit-timestamp",
        order_key="key" if cut == "position" or is_spread or kind in BY_KEY else "global",
        resume=draw.choice(["after", "at"]),
        replay=draw.choice(["resume", "session"]),
        wm_scope=draw.choice(scopes),
        unit_scope="partition" if is_spread else "global",
        unit_rows=draw.choice(["each", "final"]),
        versions="latest" if is_skipping else "every",
        identity="position+key+ordinal",
        has_gap_marker=True,
        follows_clock=True,
        realtime="none" if kind in ("skewed", "stale", *BY_KEY) else draw.choice(["reads", "none"]),
    )
    if kind in BY_KEY:
        return msgspec.structs.replace(common, is_position_global=False, atomic_unit="none", unit_scope="partition")
    if kind == "epochs":
        return msgspec.structs.replace(
            common,
            position="epoch",
            atomic_unit="epoch",
            unit_rows="final",
            versions="latest-per-epoch",
            identity="position+key+value",
            is_position_unique=False,
        )
    return common


@dataclass(kw_only=True)
class Feed:
    """Makes the log of one subscriber."""

    subscriber: int
    draw: Stream
    contract: StreamContract
    units: list[Unit]
    spans: dict[int, int]  # The partition of each key, -1 for all where there are none.
    is_simple: bool
    is_dense: bool  # Does a watermark follow whenever there is something new to promise?
    is_whole: bool  # Are watermarks of all lanes together?
    log: list[tuple[int, Event]] = field(default_factory=list)
    time: int = 0
    session: int = 0
    start: int = 0
    keys: frozenset[int] = frozenset(range(KEYS))
    marks: dict[int, int] = field(default_factory=dict)  # The highest watermark of each lane in its scope.

    def run(self) -> list[tuple[int, Event]]:
        """A log without fault."""
        for _ in range(1 if self.is_simple else self.draw.choice([1, 1, 2, 3])):
            self.session += 1
            if self.contract.wm_scope == "session":
                self.marks.clear()
            self._open()
            self._follow()
            if self.draw.chance(1, 3) and not self.is_simple:
                self._emit(kind=CLOSE)
        return self.log

    @property
    def _lanes(self) -> list[int]:
        return sorted(set(self.spans.values()))

    def _open(self) -> None:
        self.start, self.keys = self._begin(), frozenset(range(KEYS))
        choice = 9 if self.is_simple else self.draw.below(9)
        if choice == 0 and self._lanes == [0, 1]:
            self.keys = frozenset(key for key, span in self.spans.items() if span == 1)
            self._emit(kind=OPEN, span=1, position=self.start)
        elif choice == 1:
            self.keys = frozenset(self.draw.sample(range(KEYS), 2))
            for key in sorted(self.keys):
                self._emit(kind=OPEN, key=key, position=self.start)
        elif choice == 2 and self.session == 1 and self.start == 0:
            self._emit(kind=OPEN)
        else:
            self._emit(kind=OPEN, position=self.start)
        if self.start and self.draw.chance(1, 3):
            self._fill()
        before = [e for _, e in self.log if e.kind == ROW and not self._is_ahead(e.position)]
        distinct = list({(e.position, e.key, e.ordinal): replace(e, session=self.session) for e in before}.values())
        if distinct and self.draw.chance(1, 4):  # At least once: the end of what came before comes again.
            ordered = sorted(distinct, key=lambda e: (e.position, e.ordinal))[-self.draw.between(1, 3) :]
            for e in ordered:
                if e.key in self.keys:
                    self._stamp(e)

    def _fill(self) -> None:
        """A snapshot of what the session begins with."""
        begun = [u for u in self.units if not self._is_ahead(u.position)]
        self.time = max([self.time, *(u.ready for u in begun)])
        newest = {w.key: w for u in begun for w in u.rows if w.key in self.keys}
        for w in newest.values():
            if w.value != NEVER:
                self._emit(kind=BACKFILL, span=self.spans[w.key], unit=w.txn, **_shown(w))

    def _begin(self) -> int:
        """Where a session starts: most often behind the last watermark, but it may start anywhere."""
        top = self.units[-1].position if self.units else 0
        if self.session == 1:
            return 0 if self.is_simple or self.draw.chance(4, 5) else self.draw.between(0, top)
        last = max((e.position for _, e in self.log if e.kind == WATERMARK), default=0)
        return max(0, last - self.draw.choice([0, 0, 0, 1, 2, -1]))

    def _is_ahead(self, position: int) -> bool:
        return position > self.start or (position == self.start and self.contract.resume == "at")

    def _follow(self) -> None:
        """Deliver what lies ahead; the session may end anywhere."""
        lanes = [self._lane(span) for span in self._lanes if any(self.spans[key] == span for key in self.keys)]
        budget = NEVER if self.is_simple else self.draw.choice([NEVER, NEVER, self.draw.between(0, 8)])
        for lane in lanes:
            self._announce(lanes if self.is_whole else [lane], chance=4)
        while budget > 0 and any(lane.left for lane in lanes):
            budget -= 1
            lane = self.draw.choice([each for each in lanes if each.left])
            if not lane.is_torn and not self.is_simple and self.draw.chance(1, 20) and self.contract.cut == "delivery":
                self._lose(lane)
            else:
                self._deliver(lane)
            self._announce(lanes if self.is_whole else [lane], chance=2)
            rows = [e for _, e in self.log if e.kind == ROW and e.session == self.session]
            if rows and self.contract.replay == "session" and not self.is_simple and self.draw.chance(1, 6):
                self._stamp(self.draw.choice(rows))

    def _lane(self, span: int) -> Lane:
        keys = [key for key in self.keys if self.spans[key] == span]
        units = [u for u in self.units if self._is_ahead(u.position)]
        parts = [[w for w in u.rows if w.key in keys] for u in units]
        begun = self.start if self.contract.resume == "after" else self.start - 1
        return Lane(span=span, left=[part for part in parts if part], sent=begun)

    def _deliver(self, lane: Lane) -> None:
        """One row; of the first unit, or of one behind it if rows may run ahead."""
        if self.contract.versions == "latest":
            self._deliver_latest(lane)
            return
        reach = min(3, len(lane.left)) if self.contract.cut == "position" else 1
        place = self.draw.choice([0, 0, self.draw.below(reach)])
        before = {w.key for part in lane.left[:place] for w in part}
        part = lane.left[place] if lane.left[place][0].key not in before else lane.left[0]
        self._send(part.pop(0))
        lane.is_torn = bool(part)
        lane.sent = max(lane.sent, self.log[-1][1].position)
        lane.left = [each for each in lane.left if each]

    def _deliver_latest(self, lane: Lane) -> None:
        """The newest versions of a window of units."""
        window = [lane.left.pop(0) for _ in range(min(len(lane.left), self.draw.between(1, 3)))]
        newest = {w.key: w for part in window for w in part}
        for w in sorted(newest.values(), key=lambda w: (w.position, w.ordinal)):
            self._send(w)
        lane.sent = max(w.position for part in window for w in part)

    def _lose(self, lane: Lane) -> None:
        """What follows in a lane is lost, and the stream says so."""
        self._emit(kind=GAP, span=lane.span)
        for _ in range(self.draw.between(1, 2)):
            if lane.left:
                lane.sent = lane.left.pop(0)[0].position

    def _send(self, w: Write) -> None:
        self.time = max(self.time, next(u.ready for u in self.units if w in u.rows))
        self._emit(kind=ROW, span=self.spans[w.key], unit=w.txn, **_shown(w))

    def _announce(self, lanes: list[Lane], *, chance: int) -> None:
        """A watermark below all that is left in these lanes; and above all that was sent, if all that is contained."""
        if not self.is_dense and not self.draw.chance(1, chance):
            return
        is_open = self.contract.closed == "<"
        span = -1 if self.is_whole else lanes[0].span
        low = max(1, self.marks.get(span, 1))
        if self.contract.cut == "delivery" or self.contract.versions == "latest":
            if any(lane.is_torn for lane in lanes):
                return
            low = low if self.is_whole else max(low, lanes[0].sent + is_open)
        top = self.units[-1].position + 2 if self.units else 2
        high = min((part[0].position - 1 + is_open for lane in lanes for part in lane.left), default=top)
        if low > high:
            return
        position = high if self.is_dense else low if self.draw.chance(1, 3) else self.draw.between(low, high)
        closed = [u.ready for u in self.units if u.position < position or (not is_open and u.position == position)]
        self.time = max([self.time, *closed])
        self.marks[span] = position
        self._emit(kind=WATERMARK, span=span, position=position)

    def _emit(self, **what: int) -> None:
        self._stamp(Event(subscriber=self.subscriber, session=self.session, **what))

    def _stamp(self, event: Event) -> None:
        self.time += self.draw.choice([1, 1, 2, TICK])
        self.log.append((self.time, event))


def _shown(w: Write) -> dict[str, int]:
    return {"key": w.key, "value": w.value, "position": w.position, "ordinal": w.ordinal, "epoch": w.epoch}


def units_of(source: Source, contract: StreamContract, draw: Stream) -> list[Unit]:
    """What a stream sends of a source, in the order of positions."""
    found: dict[int, list[Write]] = {}
    for w in sorted(
        (w for w in source.writes if w.position != NEVER), key=lambda w: (w.position, w.version, w.ordinal)
    ):
        found.setdefault(w.position, []).append(w)
    result = []
    for position, rows in found.items():
        sent = list({w.key: w for w in rows}.values()) if contract.unit_rows == "final" else rows
        if contract.atomic_unit == "transaction":
            sent = sorted(sent, key=lambda w: w.ordinal)
        ready = max(source.ready[w.op] for w in rows)
        result.append(Unit(position=position, ready=ready, rows=tuple(sent)))
    return result


def stale_reads(source: Source, units: list[Unit], draw: Stream) -> Source:
    """The source with up to two reads as of a position, when all was over."""
    top = units[-1].position if units else 0
    end = max([0, *(t.invoke for t in source.transactions), *(u.ready for u in units)])
    end = max([end, *(t.complete for t in source.transactions if t.complete != NEVER)])
    result = list(source.transactions)
    for _ in range(draw.below(3)):
        as_of, index, end = draw.between(0, top), len(result), end + TICK
        values = {w.key: w.value for u in units if u.position <= as_of for w in u.rows}
        keys = draw.sample(range(KEYS), draw.between(1, KEYS))
        reads = tuple(Read(key=key, value=values.get(key, NEVER)) for key in keys)
        result.append(
            Transaction(
                index=index, process=90 + index, invoke=end, complete=end + 1, outcome=OK, reads=reads, as_of=as_of
            )
        )
    return replace(source, transactions=tuple(result))


def world(
    seed: int, kind: str, *, is_simple: bool = False, is_dense: bool = False, subscribers: int | None = None
) -> World:
    """A source of that kind with one or two correct streams; `is_dense`: with all the watermarks that they may send."""
    draw = Draw(seed).stream("world")
    contract = contract_of(draw, kind, is_simple=is_simple)
    is_split = kind in BY_KEY or contract.unit_scope == "partition"
    spans = {key: key % 2 if is_split else -1 for key in range(KEYS)}
    count = draw.between(5, 6)
    source = Simulation(draw=draw, kind=kind, count=count, keys=KEYS, has_oddities=not is_simple).run()
    source = replace(source, writes=tuple(replace(w, span=spans[w.key]) for w in source.writes))
    sent = units_of(source, contract, draw)
    if not is_simple and contract.is_position_global:
        source = stale_reads(source, sent, draw)
    feeds = draw.between(1, 2) if contract.wm_scope in ("session", "subscriber") else 1
    log: list[tuple[int, Event]] = []
    for n in range(subscribers or feeds):
        feed = Feed(
            subscriber=n + 1,
            draw=draw,
            contract=contract,
            units=sent,
            spans=spans,
            is_simple=is_simple,
            is_dense=is_dense,
            is_whole=kind == "uncut",
        )
        log += feed.run()
    log.sort(key=lambda each: each[0])
    return World(
        transactions=source.transactions,
        writes=source.writes,
        log=tuple(event for _, event in log),
        received=tuple(time for time, _ in log),
        contract=contract,
    )
