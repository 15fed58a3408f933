"""Slow, obvious twins of the stream rules: plain loops over events, as the definitions read."""

from collections.abc import Callable

from harness.core.columns import (
    BACKFILL,
    CLOSE,
    COMMIT,
    END,
    ERROR,
    FAIL,
    GAP,
    NEVER,
    OPEN,
    ROW,
    WATERMARK,
)
from harness.core.promises import StreamContract
from tests.worlds.streams.language import Event, Write

Identity = tuple[int, ...]
Group = Callable[[Event], Identity]


class Oracle:
    """The rules about watermarks over a log and its placed source, under one contract. Times are places in the log."""

    def __init__(self, log: list[Event], source: list[Write], contract: StreamContract) -> None:
        self.log, self.source, self.contract = log, source, contract
        self.is_final = contract.unit_rows == "final" and (
            contract.atomic_unit == "epoch" or contract.is_position_unique
        )
        self.owed = self._owed()
        self.used = [t for t, e in enumerate(log) if e.kind == WATERMARK and not self.earlier_and_higher(t)]

    # Words

    def scope(self, event: Event) -> Identity:
        match self.contract.wm_scope:
            case "session":
                return (event.subscriber, event.session)
            case "subscriber":
                return (event.subscriber,)
            case "partition":
                return (event.span,)
            case "global":
                return ()

    def identity(self, event: Event) -> Identity:
        return (self.home(event), *self.named(event))

    def home(self, event: Event) -> int:
        """The partition of which its position is one."""
        return 0 if self.contract.is_position_global else event.span

    def named(self, x: Event | Write) -> Identity:
        """The identity, whatever the partition."""
        if self.contract.identity == "position+key" or self.is_final:
            return (x.position, x.key)
        if self.contract.identity == "position+key+value":
            return (x.position, x.key, x.value)
        return (x.position, x.key, x.ordinal)

    def closes(self, watermark: int, position: int) -> bool:
        return position < watermark or (position == watermark and self.contract.closed == "<=")

    def covers(self, session: Event, key: int, span: int, time: int, position: int) -> bool:
        """Does that event's session cover the key just before `time`, and begin behind `position`?"""
        _, how, start = self.coverage(session, key, span, time)
        return (how == "behind" and position > start) or (how == "at" and position >= start)

    def coverage(self, session: Event, key: int, span: int, time: int) -> tuple[int, str, int]:
        """Since when, how (at, behind, waits or over) and from which position that session covers the key."""
        state = (-1, "waits", 0)
        seen: set[Identity] = set()
        for t, event in enumerate(self.log[:time]):
            if self.session(event) != self.session(session):
                continue
            is_meant = event.key == key if event.key != NEVER else event.span in (-1, span)
            # A loss may be that of a key whose partition nobody knows.
            is_meant |= event.key == NEVER and span == -1 and event.kind not in (OPEN, ROW, BACKFILL)
            if event.kind in (OPEN, GAP, CLOSE, ERROR, END) and is_meant:
                if event.kind == OPEN and event.position != NEVER:
                    state = (t, "at" if self.contract.resume == "at" else "behind", event.position)
                else:
                    state = (t, "waits" if event.kind in (OPEN, GAP) else "over", 0)
            elif event.kind in (ROW, BACKFILL) and event.key == key:
                is_new = not self.is_phantom(event) and self.identity(event) not in seen
                if state[1] == "waits" and (is_new or event.kind == BACKFILL):
                    state = (t, "behind", event.position)
                if not self.is_phantom(event):
                    seen.add(self.identity(event))
        return state

    def is_phantom(self, event: Event) -> bool:
        if not self.source or self.contract.system_events or event.value == NEVER:
            return False
        is_possible = any((w.key, w.value) == (event.key, event.value) and w.outcome != FAIL for w in self.source)
        return not is_possible and self.shown(event) is None

    def shown(self, event: Event) -> Write | None:
        """The owed write that an event shows."""
        claims = [w for w in self.owed if self.named(w) == self.named(event)]
        if len(claims) == 1:
            return claims[0]
        return next((w for w in claims if w.value == event.value), self._of_unit(event))

    def _of_unit(self, event: Event) -> Write | None:
        """The owed write at that position, of that key, in the transaction that the event names."""
        if (self.contract.unit_rows, self.contract.atomic_unit) != ("final", "transaction") or event.unit == NEVER:
            return None
        what = (event.unit, event.key, event.position)
        return next((w for w in self.owed if (self.unit_name(w), w.key, w.position) == what), None)

    def unit_name(self, write: Write) -> int:
        is_shared = any(w.txn == write.txn and w.op != write.op for w in self.source)
        return NEVER if is_shared else write.txn

    def events(self) -> list[int]:
        return [t for t, e in enumerate(self.log) if e.kind in (ROW, BACKFILL) and not self.is_phantom(e)]

    def speaks(self, watermark: Event, span: int) -> bool:
        return watermark.span in (-1, span)

    def _owed(self) -> list[Write]:
        owed = [w for w in self.source if w.outcome != FAIL and w.position != NEVER]
        if not self.contract.has_noop_events:
            owed = [w for w in owed if sum((o.key, o.value) == (w.key, w.value) for o in self.source) == 1]
            owed = [w for w in owed if w.value != NEVER]
        if self.contract.unit_rows == "final":
            last = {}
            for w in sorted(owed, key=lambda w: (w.position, w.ordinal)):
                last[self._epoch(w) if self.contract.atomic_unit == "epoch" else w.op, w.key] = w
            owed = [w for w in owed if any(w is o for o in last.values())]
        distinct: dict[tuple[Identity, int], Write] = {}
        for w in owed:
            distinct.setdefault((self.named(w), w.value), w)
        return list(distinct.values())

    def session(self, event: Event) -> Identity:
        return (event.subscriber, event.session)

    def arrival(self, write: Write, mark: Event, group: Group) -> int:
        """When the write was first delivered in the group to which a watermark belongs; NEVER."""
        times = (t for t in self.events() if group(self.log[t]) == group(mark) and self.shown(self.log[t]) is write)
        return min(times, default=NEVER)

    def superseded(self, version: Event | Write, mark: Event, group: Group, height: int, before: int) -> bool:
        """A newer version of the key came instead, before that time; a watermark of that height closes it."""
        if self.contract.versions == "every":
            return False
        return any(
            event.key == version.key
            and group(event) == group(mark)
            and (self.contract.versions == "latest" or self._epoch(event) == self._epoch(version))
            and self._is_newer(event, version)
            and self.closes(height, event.position)
            for event in (self.log[t] for t in self.events() if t < before)
        )

    def _is_newer(self, event: Event, write: Event | Write) -> bool:
        if event.position == write.position:
            one, other = (self.shown(x) if isinstance(x, Event) else x for x in (event, write))
            ops = [-1 if each is None else each.op for each in (one, other)]
            if not self.contract.is_position_unique and ops[0] != ops[1]:
                ranks = [NEVER if each is None else each.version for each in (one, other)]
                return NEVER in ranks or ranks[0] > ranks[1]
            return event.ordinal != NEVER and event.ordinal > write.ordinal
        return event.position > write.position

    def _epoch(self, x: Event | Write) -> int:
        return x.position if self.contract.position == "epoch" else x.epoch

    # Rules

    def earlier_and_higher(self, time: int) -> bool:
        """S07: is there an earlier watermark of the scope and partition above this one?"""
        mark = self.log[time]
        return any(
            e.kind == WATERMARK
            and (self.scope(e), e.span) == (self.scope(mark), mark.span)
            and e.position > mark.position
            and (self.contract.wm_scope != "partition" or e.subscriber == mark.subscriber or self._has_moved(e, mark))
            for e in self.log[:time]
        )

    def _has_moved(self, earlier: Event, mark: Event) -> bool:
        """Had the earlier reader's session ended before the session of this watermark began?"""
        own = [t for t, e in enumerate(self.log) if self.session(e) == self.session(mark)]
        ends = [
            t
            for t, e in enumerate(self.log)
            if self.session(e) == self.session(earlier)
            and e.kind in (CLOSE, ERROR, END)
            and (e.key, e.span) == (NEVER, -1)
        ]
        return bool(ends) and ends[0] < own[0]

    def regressions(self) -> set[int]:
        return {t for t, e in enumerate(self.log) if e.kind == WATERMARK and self.earlier_and_higher(t)}

    def late(self) -> tuple[dict[int, int], dict[int, int]]:
        """S05 and S06: late event -> the first watermark that it is late for."""
        seen: set[tuple[Identity, Identity]] = set()
        below, equal = {}, {}
        for t in self.events():
            event = self.log[t]
            what = (self.scope(event), self.identity(event))
            if what in seen:
                continue
            seen.add(what)
            if event.kind == BACKFILL:
                continue
            before = [m for m in self.used if m < t and self._may_be_late(self.log[m], m, event)]
            if above := [m for m in before if self.log[m].position > event.position]:
                below[t] = above[0]
            elif at := [m for m in before if self.log[m].position == event.position]:
                equal[t] = at[0]
        return below, equal

    def _may_be_late(self, mark: Event, time: int, event: Event) -> bool:
        return self._is_for(mark, time, event) and not self.superseded(event, mark, self.scope, mark.position, time)

    def missing(self) -> dict[tuple[Identity, Write], int]:
        """S09: (scope, write) -> the first watermark that misses it."""
        result: dict[tuple[Identity, Write], int] = {}
        for m in self.used:
            mark = self.log[m]
            for w in self.owed:
                if not self.closes(mark.position, w.position) or not self._is_required(mark, m, w):
                    continue
                if self.arrival(w, mark, self.scope) == NEVER and not self.superseded(
                    w, mark, self.scope, mark.position, NEVER
                ):
                    result.setdefault((self.scope(mark), w), m)
        return result

    def _is_required(self, mark: Event, time: int, w: Write) -> bool:
        return self.speaks(mark, w.span) and self.covers(mark, w.key, w.span, time, w.position)

    def torn(self) -> dict[tuple[Identity, int | Identity], int]:
        """S10: (scope, unit) -> the first watermark, or end of a batch, that tears it."""
        result: dict[tuple[Identity, int | Identity], int] = {}
        if self.contract.atomic_unit == "none":
            return result
        units: dict[int | Identity, list[Write]] = {}
        for w in self.owed:
            units.setdefault(self.unit(w), []).append(w)
        has_ends = self.contract.atomic_unit in ("batch", "response")
        for m, mark in enumerate(self.log):
            if m in self.used or (mark.kind == COMMIT and has_ends):
                for unit, members in units.items():
                    if self._is_torn(mark, m, members):
                        result.setdefault((self.scope(mark), unit), m)
        return result

    def unit(self, w: Write) -> int | Identity:
        unit = self._epoch(w) if self.contract.atomic_unit == "epoch" else w.op
        return (unit, w.span) if self.contract.unit_scope == "partition" else unit

    def _is_torn(self, mark: Event, time: int, unit: list[Write]) -> bool:
        live = [w for w in unit if self._is_required(mark, time, w)]
        if mark.kind == COMMIT:
            missing = [w for w in live if self.arrival(w, mark, self.session) > time]
            missing = [w for w in missing if not self.superseded(w, mark, self.session, NEVER - 1, time)]
            return bool(missing) and self._has_begun(live, mark, time, self.session)
        missing = [w for w in live if self.arrival(w, mark, self.scope) > time]
        missing = [w for w in missing if not self.superseded(w, mark, self.scope, mark.position, time)]
        is_closed = all(self.closes(mark.position, w.position) for w in unit)
        has_begun = is_closed and self._has_begun(live, mark, time, self.scope)
        if self.contract.cut == "delivery":
            has_begun |= self._has_begun(live, mark, time, self.session)
        return bool(missing) and has_begun

    def _has_begun(self, live: list[Write], mark: Event, time: int, group: Group) -> bool:
        return any(self.arrival(w, mark, group) < time for w in live)

    # Witnesses

    def late_witnesses(self, *, is_wide: bool) -> tuple[int, int]:
        """S05 and S06: first deliveries after a watermark for their key.

        Widely: of their scope. Narrowly: of their session, since which its coverage of the key has not begun anew.
        """
        count, met = 0, 0
        for t in self._firsts():
            event = self.log[t]
            marks = [m for m in self.used if self._is_for(self.log[m], m, event)]
            since, _, _ = self.coverage(event, event.key, event.span, t)
            own = [m for m in marks if since < m and self.session(self.log[m]) == self.session(event)]
            if any(m < t for m in (marks if is_wide else own)):
                count += 1
                met += any(self.log[m].position == event.position for m in marks)
        return count, met if self.contract.closed == "<=" else 0

    def _firsts(self) -> list[int]:
        seen: dict[tuple[Identity, Identity], int] = {}
        for t in self.events():
            seen.setdefault((self.scope(self.log[t]), self.identity(self.log[t])), t)
        return [t for t in seen.values() if self.log[t].kind == ROW]

    def _is_for(self, mark: Event, time: int, event: Event) -> bool:
        is_near = self.scope(mark) == self.scope(event) and self.speaks(mark, event.span)
        return is_near and self.covers(mark, event.key, event.span, time, event.position)

    def regress_witnesses(self) -> int:
        marks = [e for e in self.log if e.kind == WATERMARK]
        return len(marks) - len({(self.scope(e), e.span) for e in marks})

    def lanes(self) -> list[list[int]]:
        """The used watermarks of each session and partition, between two markers of the session."""
        result: dict[tuple[Identity, int, int], list[int]] = {}
        for m in self.used:
            mark = self.log[m]
            before = [e for e in self.log[:m] if self.session(e) == self.session(mark)]
            markers = sum(e.kind in (OPEN, GAP, CLOSE, ERROR, END) for e in before)
            result.setdefault((self.session(mark), mark.span, markers), []).append(m)
        return list(result.values())

    def missing_witnesses(self) -> int:
        """S09: watermarks that newly close an owed write in live coverage."""
        return len({m for lane in self.lanes() for w in self.owed for m in self.newly(lane, w, w.position)})

    def torn_witnesses(self) -> int:
        """S10: watermarks that newly close a unit of which they cover two events."""
        if self.contract.atomic_unit == "none":
            return 0
        units: dict[int | Identity, list[Write]] = {}
        for w in self.owed:
            units.setdefault(self.unit(w), []).append(w)
        result: set[int] = set()
        for lane in self.lanes():
            for unit in units.values():
                top = max(w.position for w in unit)
                live = [w for w in unit if self._is_required(self.log[lane[-1]], lane[-1], w)]
                if len(live) > 1:
                    result.update(m for w in live for m in self.newly(lane, w, top))
        return len(result)

    def newly(self, lane: list[int], w: Write, position: int) -> list[int]:
        """The first watermark of the lane that closes that position and covers that write, if there is one."""
        marks = [m for m in lane if self.closes(self.log[m].position, position)]
        return [m for m in marks if self._is_required(self.log[m], m, w)][:1]
