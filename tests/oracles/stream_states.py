"""Slow, obvious twins of the rules about states: whether sessions agree, what was lost in silence, what was built."""

from collections import Counter

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, GAP, NEVER, OPEN
from tests.oracles.stream_events import firsts
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.language import Event, Write

MARKERS = (OPEN, GAP, CLOSE, ERROR, END)
TOP = 40  # Above all positions of small streams.

Session = tuple[int, int]

# S20


def splits(oracle: Oracle) -> tuple[dict[tuple[int, int], tuple[int, int]], int]:
    """By two subscribers at how many positions their sessions differ, and at which first; and how many two completed.

    Of the sessions that completed a position all are compared with the least one.
    """
    if oracle.contract.versions != "every" or not oracle.contract.is_position_global:
        return {}, 0
    sessions = sorted({(e.subscriber, e.session) for e in oracle.log})
    done = {s: [p for p in range(-1, TOP) if _is_completed(oracle, s, p)] for s in sessions}
    rows = [oracle.log[t] for t in firsts(oracle) if done[oracle.log[t].subscriber, oracle.log[t].session]]
    found: dict[tuple[int, int], tuple[int, int]] = {}
    count = 0
    for position in sorted({e.position for e in rows}):
        who = [s for s in sessions if position in done[s]]
        count += len(who) > 1
        seen = {s: [e for e in rows if (e.subscriber, e.session, e.position) == (*s, position)] for s in who}
        for s in who[1:]:
            if _differ(oracle, seen[who[0]], seen[s]):
                number, first = found.get((who[0][0], s[0]), (0, position))
                found[who[0][0], s[0]] = (number + 1, first)
    return found, count


def _differ(oracle: Oracle, one: list[Event], other: list[Event]) -> bool:
    if Counter((e.key, e.value) for e in one) != Counter((e.key, e.value) for e in other):
        return True
    by_key = [{e.key: [o.value for o in side if o.key == e.key] for e in side} for side in (one, other)]
    return oracle.contract.order_key != "none" and by_key[0] != by_key[1]


def _is_completed(oracle: Oracle, session: Session, position: int) -> bool:
    """Did a watermark close that position for a session that then followed the whole stream from below it?"""
    own = [t for t, e in enumerate(oracle.log) if (e.subscriber, e.session) == session]
    if any(oracle.log[t].kind == BACKFILL for t in own):
        return False
    for m in (t for t in own if t in oracle.used and oracle.log[t].span == -1):
        before = [oracle.log[t] for t in own if t < m and oracle.log[t].kind in MARKERS]
        behind = [oracle.log[t] for t in own if t > m and oracle.log[t].kind in MARKERS]
        is_lost = bool(behind) and behind[0].kind == GAP and position >= behind[0].position
        is_live = bool(before) and _opens_below(oracle, before[-1], position) and not is_lost
        if is_live and oracle.closes(oracle.log[m].position, position):
            return True
    return False


def _opens_below(oracle: Oracle, marker: Event, position: int) -> bool:
    if (marker.kind, marker.key, marker.span) != (OPEN, NEVER, -1) or marker.position == NEVER:
        return False
    return position > marker.position or (oracle.contract.resume == "at" and position == marker.position)


# S22


def silent_gaps(oracle: Oracle) -> tuple[dict[tuple[Identity, int], int], int]:
    """The positions that each session lost in silence, with the first watermark that closes them; and all witnesses."""
    if not oracle.contract.has_gap_marker:
        return {}, 0
    lost = [(m, w) for (_, w), m in oracle.missing().items()]
    lost += [
        (m, w) for t, e in enumerate(oracle.log) if e.kind == GAP for w in oracle.owed if (m := _jump(oracle, t, w))
    ]
    result: dict[tuple[Identity, int], int] = {}
    for m, w in sorted(lost, key=lambda pair: pair[0]):
        result.setdefault((oracle.session(oracle.log[m]), w.position), m)
    return result, len(result) + sum(e.kind == GAP for e in oracle.log)


def _jump(oracle: Oracle, gap: int, w: Write) -> int | None:
    """The watermark that closes a write which neither one before the gap closed nor the gap names, if it is lost."""
    marker = oracle.log[gap]
    if marker.key != NEVER or marker.span != -1 or marker.position == NEVER or w.position >= marker.position:
        return None
    marks = [
        m for m in oracle.used if oracle.session(oracle.log[m]) == oracle.session(marker) and oracle.log[m].span == -1
    ]
    closing = [m for m in marks if oracle.closes(oracle.log[m].position, w.position)]
    if not oracle.covers(marker, w.key, w.span, gap, w.position) or any(m < gap for m in closing):
        return None
    if not closing or oracle.arrival(w, marker, oracle.scope) != NEVER:
        return None
    mark = oracle.log[closing[0]]
    return None if oracle.superseded(w, mark, oracle.scope, mark.position, NEVER) else closing[0]


# S19


def mismatches(oracle: Oracle) -> tuple[dict[tuple[Identity, int], int], int]:
    """The keys of which a session built an old version, with the first watermark that shows it; and all witnesses."""
    found: dict[tuple[Identity, int], int] = {}
    witnesses: set[int] = set()
    for lane in oracle.lanes():
        for key in sorted({w.key for w in oracle.owed}):
            places = {w: oracle.newly(lane, w, w.position) for w in oracle.owed if w.key == key}
            closed = {w: marks[0] for w, marks in places.items() if marks}
            mark = oracle.log[lane[0]]
            if any(oracle.arrival(w, mark, oracle.scope) > m for w, m in closed.items()):
                continue
            if any(_are_of_two_sessions(oracle, one, other, mark) for one in closed for other in closed):
                continue
            for m in sorted(set(closed.values())):
                is_stale, is_witness = _judged(oracle, [w for w in closed if closed[w] <= m], mark)
                witnesses |= {m} if is_witness else set()
                if is_stale:
                    what = (oracle.session(mark), key)
                    found[what] = min(m, found.get(what, m))
    return found, len(witnesses)


def _are_of_two_sessions(oracle: Oracle, one: Write, other: Write, mark: Event) -> bool:
    """Did two versions at one position first come in two sessions?"""
    came = [oracle.log[oracle.arrival(each, mark, oracle.scope)] for each in (one, other)]
    return one.position == other.position and oracle.session(came[0]) != oracle.session(came[1])


def _judged(oracle: Oracle, versions: list[Write], mark: Event) -> tuple[bool, bool]:
    """Is the one that was delivered as the newest older than another; and could that be told of all?"""
    built = max(versions, key=lambda w: (w.position, oracle.arrival(w, mark, oracle.scope)))
    known = [w.version for w in versions if w.version != NEVER]
    is_stale = built.version != NEVER and built.version < max(known)
    return is_stale, len(known) == len(versions) > 1
