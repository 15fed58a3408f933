"""Slow, obvious twins of what later rows close: the conditions (a) to (h) of the specification, as they read."""

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, FAIL, GAP, NEVER, OK, OPEN, ROW, WATERMARK
from tests.oracles.stream_events import firsts
from tests.oracles.stream_logs import zombies
from tests.oracles.stream_sessions import TOP, has_snapshot, holes, is_first_open
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.language import Event, Write

Lost = dict[tuple[Identity, int], int]  # (scope, place in `owed`) -> the first event that closes the write.
Lane = tuple[Identity, int, Identity]


def passed(oracle: Oracle) -> Lost:
    """The writes that a later row closes, and that never arrived."""
    contract = oracle.contract
    can_repeat = (contract.delivery, contract.replay) == ("at-least-once", "session")
    if contract.order_key == "none" or contract.delivery == "at-most-once" or can_repeat:  # (a), (g)
        return {}
    result: Lost = {}
    for t in _closing(oracle):
        for place, w in enumerate(oracle.owed):
            if _closes(oracle, t, w) and _is_lost(oracle, oracle.log[t], w):
                result.setdefault((scope(oracle, oracle.log[t]), place), t)
    return result


def lost(oracle: Oracle) -> Lost:
    """S09: what watermarks and rows close, without the holes after resumes and snapshots."""
    blamed = {
        (scope(oracle, oracle.log[t]), oracle.owed.index(w))
        for (_, w), (t, since) in holes(oracle).items()
        if not _is_opening(oracle, t, since, w)
    }
    below: Lost = {}
    for (_, w), t in sorted(oracle.missing().items(), key=lambda each: each[1]):
        below.setdefault((scope(oracle, oracle.log[t]), oracle.owed.index(w)), t)
    return {what: t for what, t in passed(oracle).items() if what not in blamed} | below


def resume_holes(oracle: Oracle) -> dict[tuple[Identity, Write], int]:
    """S13: the holes that it reports."""
    rest = lost(oracle)
    result = {}
    for (session, w), (t, since) in holes(oracle).items():
        if oracle.log[since].kind != OPEN or has_snapshot(oracle, t, since, w):
            continue
        is_reported = (scope(oracle, oracle.log[t]), oracle.owed.index(w)) in rest
        if not (_is_opening(oracle, t, since, w) and is_reported):
            result[session, w] = t
    return result


def joins(oracle: Oracle) -> dict[tuple[int, int], int]:
    """(subscriber, place in `owed`) -> the first `open` above a write that the session before it lacked."""
    if oracle.contract.delivery == "at-most-once":
        return {}
    log = oracle.log
    blamed = {(log[t].subscriber, oracle.owed.index(w)) for (_, w), (t, _) in holes(oracle).items()}
    blamed |= {(log[t].subscriber, place) for (_, place), t in lost(oracle).items()}
    result: dict[tuple[int, int], int] = {}
    for t, event in enumerate(log):
        before = _session_before(oracle, t)
        for place, w in enumerate(oracle.owed if before is not None else ()):
            what = (event.subscriber, place)
            if what not in blamed and _leaves_out(oracle, t, w) and _lacks(oracle, t, before or 0, w):
                result.setdefault(what, t)
    return result


def _session_before(oracle: Oracle, t: int) -> int | None:
    """The last event of the session before the one that opens at t; None if that is not known to join."""
    log, event = oracle.log, oracle.log[t]
    if event.kind != OPEN or event.position == NEVER or (event.span < 0 and not oracle.contract.is_position_global):
        return None
    own = oracle.session(event)
    begin = next(u for u, e in enumerate(log) if oracle.session(e) == own)
    firsts_before = {
        oracle.session(e): u for u, e in reversed([*enumerate(log[:begin])]) if e.subscriber == event.subscriber
    }
    if not firsts_before or any(e.kind == BACKFILL and oracle.session(e) == own for e in log):
        return None
    before = max(firsts_before, key=lambda session: firsts_before[session])
    events = [u for u, e in enumerate(log) if oracle.session(e) == before]
    is_over = any(log[u].kind == END and log[u].key == NEVER and log[u].span < 0 for u in events)
    last = next((u for u in events if _is_close(log[u])), events[-1])
    return None if is_over or last > t else last


def _is_close(event: Event) -> bool:
    return event.kind in (CLOSE, ERROR) and event.key == NEVER and event.span < 0


def _leaves_out(oracle: Oracle, t: int, w: Write) -> bool:
    event = oracle.log[t]
    is_below = w.position < event.position or (w.position == event.position and oracle.contract.resume == "after")
    return is_below and event.key in (NEVER, w.key) and event.span in (-1, w.span)


def _lacks(oracle: Oracle, t: int, last: int, w: Write) -> bool:
    """Did the subscriber never receive the write, though the session that ended at `last` covered it?"""
    log, event = oracle.log, oracle.log[t]
    for u, e in enumerate(log):
        is_late = any(_is_close(each) and oracle.session(each) == oracle.session(e) for each in log[:u])
        if e.kind in (ROW, BACKFILL) and e.subscriber == event.subscriber and oracle.shown(e) == w and not is_late:
            return False
    end = last if log[last].kind in (CLOSE, ERROR, END) else last + 1
    if not oracle.covers(log[last], w.key, w.span, end, w.position):
        return False
    return not oracle.superseded(w, event, lambda each: (each.subscriber,), TOP, NEVER)


def skipped(oracle: Oracle) -> set[tuple[Identity, int]]:
    """S30: (subscriber and partition, position) for each position that a session passed, and at which no row came."""
    log, is_global = oracle.log, oracle.contract.is_position_global
    lanes: dict[tuple[Identity, int, int], list[int]] = {}
    for t, event in enumerate(log):
        opens = [e for e in log if e.kind == OPEN and oracle.session(e) == oracle.session(event)]
        is_narrow = any(e.key != NEVER or (is_global and e.span >= 0) for e in opens)
        if is_narrow or event.position == NEVER or (event.span < 0 and not is_global):
            continue
        if event.kind in (OPEN, WATERMARK) or (event.kind == ROW and t in firsts(oracle)):
            lanes.setdefault((*_part(oracle, t), oracle.home(event)), []).append(t)
    result: set[tuple[Identity, int]] = set()
    for (_, _, home), events in lanes.items():
        own = (log[events[0]].subscriber, home)
        passed = set(range(min(done(oracle, t) for t in events) + 1, max(done(oracle, t) for t in events) + 1))
        result |= {(own, p) for p in passed - seen(oracle, own)}
    return result | (_between(oracle, lanes) if oracle.contract.sessions == "joined" else set())


def _between(oracle: Oracle, lanes: dict[tuple[Identity, int, int], list[int]]) -> set[tuple[Identity, int]]:
    """The positions between the highest event of a session and the `open` of the next one."""
    log = oracle.log
    result: set[tuple[Identity, int]] = set()
    for t in [t for events in lanes.values() for t in events if log[t].kind == OPEN]:
        last = _session_before(oracle, t)
        own = (log[t].subscriber, oracle.home(log[t]))
        former = (
            []
            if last is None
            else [each for key, each in lanes.items() if key[::2] == (oracle.session(log[last]), own[1])]
        )
        if former:
            top = max(done(oracle, u) for events in former for u in events)
            result |= {(own, p) for p in {*range(top + 1, done(oracle, t) + 1)} - seen(oracle, own)}
    return result


def _part(oracle: Oracle, t: int) -> tuple[Identity, int]:
    session = oracle.session(oracle.log[t])
    ends = (OPEN, GAP, CLOSE, ERROR, END)
    return session, sum(e.kind in ends and oracle.session(e) == session for e in oracle.log[: t + 1])


def done(oracle: Oracle, t: int) -> int:
    event, contract = oracle.log[t], oracle.contract
    is_short = (event.kind == OPEN and contract.resume == "at") or (event.kind == WATERMARK and contract.closed == "<")
    return event.position - is_short


def seen(oracle: Oracle, own: tuple[int, int]) -> set[int]:
    rows = [oracle.log[t] for t in oracle.events() if oracle.log[t].kind == ROW]
    return {e.position for e in rows if (e.subscriber, oracle.home(e)) == own}


def scope(oracle: Oracle, event: Event) -> Identity:
    return () if oracle.contract.wm_scope == "partition" else oracle.scope(event)


def _is_opening(oracle: Oracle, time: int, since: int, w: Write) -> bool:
    return is_first_open(oracle, since) and not has_snapshot(oracle, time, since, w)


def _closing(oracle: Oracle) -> list[int]:
    """The rows that close something: (d)."""
    seen: set[tuple[Identity, Identity]] = set()
    first = set(firsts(oracle))
    former = set(zombies(oracle)[0]) if oracle.contract.epochs == "owners" else set()
    result: list[int] = []
    for t in oracle.events():
        event = oracle.log[t]
        what = (oracle.scope(event), oracle.identity(event))
        is_new = what not in seen
        seen.add(what)
        later = [e.kind for e in oracle.log[t:] if oracle.session(e) == oracle.session(event)]
        if event.kind != ROW or not is_new or t not in first or t in former or oracle.shown(event) is None:
            continue
        if GAP not in later and _is_placed(oracle, event.span):
            result.append(t)
    heights: dict[Lane, int] = {}
    kept = []
    for t in result:
        lane = _lane(oracle, t)
        if _height(oracle, oracle.log[t]) >= heights.get(lane, -1):
            heights[lane] = _height(oracle, oracle.log[t])
            kept.append(t)
    return kept


def _closes(oracle: Oracle, time: int, w: Write) -> bool:
    """(a) to (c), (e): is the write in the row's order, below it, and in live coverage?"""
    event = oracle.log[time]
    lane = _lane(oracle, time)
    if _order(oracle, event) != _order(oracle, w) or not _is_placed(oracle, w.span):
        return False
    first = next(t for t in _closing(oracle) if _lane(oracle, t) == lane)
    own = [e for e in oracle.log[:first] if oracle.session(e) == oracle.session(event)]
    snapshot = max((e.position for e in own if e.kind == BACKFILL and e.position != NEVER), default=-1)
    is_below = snapshot < w.position < _height(oracle, event)
    return is_below and oracle.covers(event, w.key, w.span, time, w.position)


def _is_lost(oracle: Oracle, event: Event, w: Write) -> bool:
    """(f): must it be sent, and did neither it nor anything in its place come?"""
    contract = oracle.contract

    def group(e: Event) -> Identity:
        return scope(oracle, e)

    if oracle.arrival(w, event, group) != NEVER or oracle.superseded(w, event, group, TOP, NEVER):
        return False
    snapshots = [e for e in oracle.log if e.kind == BACKFILL and e.key == w.key and group(e) == group(event)]
    if any(NEVER != e.position >= w.position for e in snapshots):
        return False
    if contract.versions == "every":
        return True
    others = [o for o in oracle.source if o.key == w.key and o.outcome != FAIL and o is not w]
    if any(o.position == NEVER for o in others) or (contract.versions == "latest" and w.value == NEVER):
        return False
    if contract.versions == "latest-per-epoch":
        others = [o for o in others if oracle._epoch(o) == oracle._epoch(w)]
    return all(o.position < w.position for o in others)


def _lane(oracle: Oracle, time: int) -> Lane:
    event = oracle.log[time]
    before = [e for e in oracle.log[:time] if oracle.session(e) == oracle.session(event)]
    markers = sum(e.kind in (OPEN, GAP, CLOSE, ERROR, END) for e in before)
    return (oracle.session(event), markers, _order(oracle, event))


def _order(oracle: Oracle, x: Event | Write) -> Identity:
    by_key = oracle.contract.order_key == "key"
    return (x.key if by_key else 0, x.span if _is_by_partition(oracle) else 0)


def _is_by_partition(oracle: Oracle) -> bool:
    contract = oracle.contract
    is_apart = contract.order_key == "key" and contract.wm_scope == "partition"
    return contract.order_key == "partition" or not contract.is_position_global or is_apart


def _is_placed(oracle: Oracle, span: int) -> bool:
    return not _is_by_partition(oracle) or span >= 0 or all(e.span < 0 for e in oracle.log)


def _height(oracle: Oracle, event: Event) -> int:
    """(c): a row of a unit of several positions closes what lies below the unit."""
    if oracle.contract.atomic_unit != "epoch" or oracle.contract.position == "epoch":
        return event.position
    write = oracle.shown(event)
    assert write is not None
    return min(event.position, *(o.position for o in oracle.owed if oracle._epoch(o) == oracle._epoch(write)))


# S14


def tails(oracle: Oracle, settled_seq: int, healed_seq: int) -> tuple[set[tuple[int, Write]], int]:
    """(subscriber, write) that never met, and how many subscribers could have shown that."""
    is_settled = oracle.contract.tail == "settled"
    if oracle.contract.delivery == "at-most-once" or not (is_settled or settled_seq >= 0):
        return set(), 0
    result: set[tuple[int, Write]] = set()
    witnesses: set[int] = set()
    missing = [(oracle.log[t].subscriber, id(oracle.owed[place])) for (_, place), t in lost(oracle).items()]
    for last in _live(oracle):
        for w in oracle.owed:
            is_due = is_settled or (w.outcome == OK and w.complete_seq < settled_seq)
            if not is_due or not oracle.covers(last, w.key, w.span, len(oracle.log), w.position):
                continue
            if w.outcome == OK and w.invoke_seq > healed_seq:
                witnesses.add(last.subscriber)
            has_come = oracle.arrival(w, last, _subscriber) != NEVER
            has_come |= oracle.superseded(w, last, _subscriber, TOP, NEVER)
            if not has_come and (last.subscriber, id(w)) not in missing:
                result.add((last.subscriber, w))
    return result, len(witnesses | {subscriber for subscriber, _ in result})


def _subscriber(event: Event) -> Identity:
    return (event.subscriber,)


def _live(oracle: Oracle) -> list[Event]:
    """The last event of each subscriber. Where its session has ended, that covers nothing."""
    who = sorted({e.subscriber for e in oracle.log})
    return [[e for e in oracle.log if e.subscriber == subscriber][-1] for subscriber in who]
