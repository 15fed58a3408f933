"""Random small streams: correct ones under a given contract, and damaged ones. One seed gives one stream."""

from dataclasses import dataclass, field, replace

from harness.core.columns import BACKFILL, CLOSE, COMMIT, END, FAIL, GAP, INFO, NEVER, OK, OPEN, ROW, WATERMARK
from harness.core.draw import Draw, Stream
from harness.core.promises import StreamContract
from tests.worlds.streams.language import Event, Write

KEYS = 3
KINDS = (OPEN, GAP, CLOSE, COMMIT, END, WATERMARK, WATERMARK)
FIRST_EVENT = 100  # Its place in the journal.


def source(draw: Stream, contract: StreamContract) -> list[Write]:
    """Operations in the order of their positions; some failed, some have no position, some share one if they may."""
    result: list[Write] = []
    is_split = draw.chance(1, 2)
    versions = [0] * KEYS
    is_sole = contract.events_at_position == "one"
    shares = not contract.is_position_unique or contract.position == contract.atomic_unit == "epoch"
    shares &= not is_sole
    position, epoch = 0, 1
    for op in range(draw.between(2, 6)):
        if op == 0 or not (shares and draw.chance(1, 2)):
            position += draw.between(1, 2)
            epoch += draw.below(2)
        outcome = draw.choice([OK, OK, OK, OK, INFO, FAIL])
        is_placed = outcome != FAIL and not draw.chance(1, 10)
        # Two transactions may bear one number, which then tells nothing.
        txn = NEVER if draw.chance(1, 6) else 500 if draw.chance(1, 8) else 900 - op
        for ordinal in range(1 if is_sole else draw.between(1, 3)):
            key = draw.below(KEYS)
            is_ranked = outcome != FAIL and not draw.chance(1, 8)
            versions[key] += outcome != FAIL
            write = Write(
                op=op,
                outcome=outcome,
                key=key,
                value=10 * op + ordinal,
                position=position if is_placed else NEVER,
                ordinal=ordinal,
                epoch=epoch,
                span=key % 2 if is_split else -1,
                txn=txn,
                version=versions[key] if is_ranked else NEVER,
            )
            result.append(write)
    return result


def units(writes: list[Write], contract: StreamContract) -> list[list[Write]]:
    """What the stream sends of a source: rows that may not be torn, in the order of positions."""
    owed: dict[int, list[Write]] = {}
    for write in sorted((w for w in writes if w.position != NEVER), key=lambda w: (w.position, w.op, w.ordinal)):
        epoch = write.position if contract.position == "epoch" else write.epoch
        owed.setdefault(epoch if contract.atomic_unit == "epoch" else write.op, []).append(write)
    if contract.unit_rows == "final":
        finals = [{w.key: w for w in unit}.values() for unit in owed.values()]
        return [sorted(unit, key=lambda w: (w.position, w.op, w.ordinal)) for unit in finals]
    return list(owed.values())


@dataclass(kw_only=True)
class Subscriber:
    """Makes the log of one subscriber: what a watermark closes was delivered before, in full, by its own session."""

    number: int
    draw: Stream
    contract: StreamContract
    units: list[list[Write]]
    log: list[Event] = field(default_factory=list)
    session: int = 0
    start: int = 0
    keys: frozenset[int] = frozenset()
    marks: dict[int, int] = field(default_factory=dict)  # The highest watermark of each partition.
    told: dict[int, int] = field(default_factory=dict)  # Those of this session.

    def run(self) -> list[Event]:
        """A log without fault."""
        count = self.draw.between(1, 3)
        for _ in range(count):
            self.session += 1
            if self.contract.wm_scope == "session":
                self.marks.clear()
            self.told.clear()
            self._open()
            self._follow(is_whole=self.contract.tail == "settled" and self.session == count)
            if self.draw.chance(1, 3):
                self._emit(kind=self.draw.choice([CLOSE, CLOSE, END]))
        return self.log

    @property
    def _spans(self) -> list[int]:
        return sorted({w.span for unit in self.units for w in unit})

    def _open(self) -> None:
        self.start, self.keys = max(0, self.draw.between(-4, 4)), frozenset(range(KEYS))
        match self.draw.below(8):
            case 0 if self._spans == [0, 1]:
                self.keys = frozenset(key for key in self.keys if key % 2 == 1)
                self._emit(kind=OPEN, span=1, position=self.start)
                self.told[1] = self.start
            case 1:
                self.keys = frozenset(self.draw.sample(range(KEYS), 2))
                for key in sorted(self.keys):
                    self._emit(kind=OPEN, key=key, position=self.start)
            case 2 if self.session == 1 or self.contract.delivery == "at-least-once":
                self._emit(kind=OPEN)
            case 3 if self.session == 1 or self.contract.delivery == "at-least-once":
                self._emit(kind=OPEN)
                self._snapshot()
            case _:
                self._emit(kind=OPEN, position=self.start)

    def _snapshot(self) -> None:
        """What each key had at some position, with which the session begins."""
        position = self.draw.choice([w.position for unit in self.units for w in unit])
        newest = {w.key: w for unit in self.units for w in unit if w.position <= position}
        for w in newest.values():
            self._emit(kind=BACKFILL, key=w.key, value=w.value, position=position, span=w.span, epoch=w.epoch)
        self.start = position + (self.contract.resume == "at")

    def _follow(self, *, is_whole: bool) -> None:
        """Deliver what lies ahead, watermarks between; a session may end anywhere, unless it is to see everything."""
        ahead = [u for u in self.units if any(self._is_ahead(w) for w in u)]
        ahead = ahead if is_whole else ahead[: self.draw.between(0, len(ahead) + 2)]
        place = 0
        while place < len(ahead):
            window = ahead[place : place + (1 if self.contract.versions == "every" else self.draw.between(1, 2))]
            place += len(window)
            if self.draw.chance(1, 10):
                self._lose(window)
            else:
                self._deliver([w for unit in window for w in unit])
            self._announce(window[-1], self._behind(window[-1]))
            if self._may_repeat and self.draw.chance(1, 6):
                self.log.append(self.draw.choice(self._rows or [self.log[-1]]))

    @property
    def _may_repeat(self) -> bool:
        return (self.contract.delivery, self.contract.replay) == ("at-least-once", "session")

    def _is_ahead(self, w: Write) -> bool:
        return w.position > self.start or (self.contract.resume == "at" and w.position == self.start)

    def _behind(self, unit: list[Write]) -> int:
        """The lowest position of the units behind that one."""
        later = self.units[self.units.index(unit) + 1 :]
        return min((w.position for u in later for w in u), default=self.units[-1][-1].position + 3)

    def _lose(self, window: list[list[Write]]) -> None:
        """What follows is lost, and the stream says so, some streams with its position, and with where they go on."""
        positions = [w.position for unit in window for w in unit]
        # Whatever of that position came before is whole, and is not covered.
        is_known = self.draw.chance(1, 2) and min(positions) > max((e.position for e in self._rows), default=-1)
        self._emit(kind=GAP, **({"position": min(positions)} if is_known else {}))
        # Who says that it goes on behind a position must not deliver another unit of that position.
        is_last = max(positions) < self._behind(window[-1])
        if self.keys == frozenset(range(KEYS)) and self.draw.chance(1, 2) and is_last:
            self._emit(kind=OPEN, position=max(positions) + (self.contract.resume == "at"))

    @property
    def _rows(self) -> list[Event]:
        return [e for e in self.log if e.session == self.session and e.kind == ROW]

    def _deliver(self, rows: list[Write]) -> None:
        for w in rows:
            if w.key not in self.keys or not self._is_ahead(w) or any(self._supersedes(other, w) for other in rows):
                continue
            shown = {"key": w.key, "value": w.value, "position": w.position, "ordinal": w.ordinal, "epoch": w.epoch}
            self._emit(kind=ROW, span=w.span, unit=w.txn, **shown)
        if self.contract.atomic_unit == "response":
            self._emit(kind=COMMIT)

    def _supersedes(self, newer: Write, older: Write) -> bool:
        is_newer = newer.key == older.key and newer.position > older.position
        is_newer |= (newer.op, newer.key) == (older.op, older.key) and newer.ordinal > older.ordinal
        match self.contract.versions:
            case "every":
                return False
            case "latest-per-epoch" if self.contract.position == "epoch":
                return is_newer and newer.position == older.position
            case "latest-per-epoch":
                return is_newer and newer.epoch == older.epoch
            case "latest":
                return is_newer

    def _announce(self, unit: list[Write], following: int) -> None:
        """A watermark above the last one and below what follows; one that closes all that was sent, where it must."""
        is_open = self.contract.closed == "<"
        span = (
            self.draw.choice([-1, *self._spans])
            if self.contract.wm_scope != "partition"
            else self.draw.choice(self._spans)
        )
        low = self.marks.get(span, 0)
        if self.contract.cut == "delivery" or self.contract.versions != "every":
            low = max(low, max(w.position for w in unit) + is_open)
        high = following if is_open else following - 1
        if self.contract.wm_idle == "rests":
            high = min(high, max(w.position for w in unit) + is_open)
        if self.contract.is_whole_least and span == -1:
            high = min([high, *self.told.values()])
        if low <= high and self.draw.chance(2, 3):
            self.marks[span] = self.draw.between(low, high)
            if span != -1:
                self.told[span] = self.marks[span]
            self._emit(kind=WATERMARK, span=span, position=self.marks[span])

    def _emit(self, **what: int) -> None:
        self.log.append(Event(subscriber=self.number, session=self.session, **what))


def correct(seed: int, contract: StreamContract) -> tuple[list[Event], list[Write]]:
    """A log that keeps every promise of the contract, and its source."""
    draw = Draw(seed).stream("stream")
    writes = source(draw, contract)
    sent = units(writes, contract)
    if not sent:
        return [], writes
    # Only watermarks that no other subscriber's bind may be received in any interleaving.
    count = draw.between(1, 2) if contract.wm_scope in ("session", "subscriber") else 1
    logs = [Subscriber(number=n, draw=draw, contract=contract, units=sent).run() for n in range(count)]
    log = []
    while any(logs):
        log.append(draw.choice([each for each in logs if each]).pop(0))
    return log, timed(draw, log, writes)


def timed(draw: Stream, log: list[Event], writes: list[Write]) -> list[Write]:
    """The writes with times: each operation began before anything showed its position, and ended some time later.

    A watermark shows the first position that is not below it, for it does not speak of what has yet to begin.
    """
    times: dict[int, tuple[int, int]] = {}
    for w in writes:
        before = max((o.position for o in writes if o.position < w.position), default=-1)
        lowest = {WATERMARK: before + 1}
        shown = [t for t, e in enumerate(log) if NEVER != e.position >= lowest.get(e.kind, w.position)]
        moment = FIRST_EVENT + min(shown, default=len(log))
        times.setdefault(w.op, (moment - draw.between(1, 4), moment + draw.below(4)))
    return [replace(w, invoke_seq=times[w.op][0], complete_seq=times[w.op][1]) for w in writes]


def damaged(seed: int, contract: StreamContract) -> tuple[list[Event], list[Write]]:
    """A correct stream with up to three changes: lost, moved, repeated and changed events, markers where none were."""
    log, writes = correct(seed, contract)
    draw = Draw(seed).stream("damage")
    for _ in range(draw.between(1, 3)):
        if not log:
            break
        place, other = draw.below(len(log)), draw.below(len(log) + 1)
        match draw.below(10):
            case 0:
                del log[place]
            case 9:
                writes = _elsewhen(draw, writes)
            case 6:
                writes = _reordered(draw, writes)
            case 7 if any(write.outcome == FAIL for write in writes):
                write = draw.choice([write for write in writes if write.outcome == FAIL])
                like, shown = log[place], {"key": write.key, "value": write.value, "span": write.span}
                log.insert(other, replace(like, kind=ROW, position=draw.below(8), ordinal=0, **shown))
            case 8:
                rows = [t for t, event in enumerate(log) if event.kind == ROW and event.key == log[place].key]
                if len(rows) > 1:
                    one, two = draw.sample(rows, 2)
                    log[one], log[two] = log[two], log[one]
            case 1 | 2:
                log.insert(other, log.pop(place))
            case 3:
                log.insert(other, log[place])
            case 4:
                log[place] = _changed(draw, log[place])
            case _:
                span, key = draw.between(-1, 1), draw.choice([NEVER, NEVER, 0, 1])
                like, kind, position = log[place], draw.choice(KINDS), draw.below(8)
                log.insert(other, replace(like, kind=kind, span=span, key=key, value=NEVER, position=position))
    return log, writes


def _elsewhen(draw: Stream, writes: list[Write]) -> list[Write]:
    """The source with one operation at another time."""
    op, later = draw.choice(writes).op, draw.between(-12, 12)
    return [
        replace(w, invoke_seq=w.invoke_seq + later, complete_seq=w.complete_seq + later) if w.op == op else w
        for w in writes
    ]


def _reordered(draw: Stream, writes: list[Write]) -> list[Write]:
    """The source with two versions of one key in another order than their positions."""
    key = draw.below(KEYS)
    places = [place for place, write in enumerate(writes) if write.key == key]
    if len(places) < 2:
        return writes
    one, two = draw.sample(places, 2)
    result = list(writes)
    result[one] = replace(writes[one], version=writes[two].version)
    result[two] = replace(writes[two], version=writes[one].version)
    return result


def _changed(draw: Stream, event: Event) -> Event:
    match draw.below(11):
        case 5 if event.kind == ROW:
            return replace(event, unit=900 - draw.below(5))
        case 8 if event.kind in (ROW, BACKFILL):
            return replace(event, kind=BACKFILL + ROW - event.kind)
        case 9 if event.kind == ROW:
            return replace(event, key=draw.below(KEYS))
        case 10 if event.kind == ROW:
            return replace(event, epoch=draw.between(1, 4))
        case 0 | 1 if event.position != NEVER:
            return replace(event, position=max(0, event.position + draw.choice([-2, -1, 1, 2])))
        case 2 | 6 | 7 if event.kind == ROW:
            return replace(event, value=draw.choice([NEVER, 0, 1, 10, 11, 20, 999]))
        case 3 if event.kind == ROW:
            return replace(event, ordinal=draw.below(3))
        case _:
            return replace(event, session=draw.between(1, 2))
