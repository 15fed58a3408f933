"""Slow, obvious twins of what later rows close: the conditions (a) to (h) of the specification, as they read."""

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, FAIL, GAP, NEVER, OK, OPEN, ROW
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
