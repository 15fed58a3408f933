"""Slow, obvious twins of the rules about what sessions begin and end with: starts, snapshots, tails and ends."""

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, FAIL, GAP, NEVER, OPEN, ROW, WATERMARK
from tests.oracles.stream_events import firsts
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.language import Event, Write

TOP = NEVER - 1  # A height that closes everything.

Hole = tuple[Identity, Write]


# S13, and the holes of S25


def holes(oracle: Oracle) -> dict[Hole, tuple[int, int]]:
    """(session, write) -> what passed a write that was left out first, and with what the key's coverage had begun."""
    if oracle.contract.delivery == "at-most-once":
        return {}
    missing = {(scope, id(w)) for scope, w in oracle.missing()}
    result: dict[Hole, tuple[int, int]] = {}
    for t, event in enumerate(oracle.log):
        for w in oracle.owed:
            since = _start_behind(oracle, t, event, w)
            if since is None or not _has_passed(oracle, t, event, w):
                continue
            if not _is_served(oracle, event, w) and (oracle.scope(event), id(w)) not in missing:
                result.setdefault((oracle.session(event), w), (t, since))
    return result


def hole_witnesses(oracle: Oracle) -> tuple[set[int], set[int], set[int]]:
    """The resumes, first openings, and rows of snapshots, with something that shows whether a later write was sent."""
    result: set[int] = {since for _, since in holes(oracle).values()}
    if oracle.contract.delivery == "at-most-once":
        return set(), set(), set()
    for t, event in enumerate(oracle.log):
        for w in oracle.owed:
            since = _start_behind(oracle, t, event, w)
            if since is not None and _tells(oracle, t, event, w) and _has_earlier(oracle, since, w):
                result.add(since)
    openings = {t for t in result if is_first_open(oracle, t)}
    snapshots = {t for t in result if oracle.log[t].kind == BACKFILL}
    return result - openings - snapshots, openings, snapshots


def _start_behind(oracle: Oracle, time: int, event: Event, w: Write) -> int | None:
    """The start, of those which this rule judges, behind which the write lies for that session at that time."""
    span = event.span if event.kind == ROW else w.span
    since, how, start = oracle.coverage(event, w.key, span, time)
    is_behind = (how == "behind" and w.position > start) or (how == "at" and w.position >= start)
    if not is_behind or oracle.log[since].kind not in (OPEN, BACKFILL) or start == NEVER:
        return None
    # What watermarks close after a first open is left to another rule.
    return None if is_first_open(oracle, since) and event.kind == WATERMARK else since


def is_first_open(oracle: Oracle, time: int) -> bool:
    """Is it an opening of its subscriber's first session?"""
    event = oracle.log[time]
    own = [e.session for e in oracle.log if e.kind == OPEN and e.subscriber == event.subscriber]
    return event.kind == OPEN and own[0] == event.session


def has_snapshot(oracle: Oracle, time: int, since: int, w: Write) -> bool:
    """Did an older snapshot of the key come between the first open and what passed the write?"""
    own = [t for t in range(time) if oracle.session(oracle.log[t]) == oracle.session(oracle.log[time])]
    rows = [t for t in own if oracle.log[t].kind == BACKFILL and oracle.log[t].key == w.key]
    is_older = bool(rows) and rows[-1] > since and oracle.log[rows[-1]].position < w.position
    return is_older and is_first_open(oracle, since)


def _tells(oracle: Oracle, time: int, event: Event, w: Write) -> bool:
    """Is that a watermark that closes the write, or a newer event of its key, where these are in order?"""
    if event.kind == WATERMARK:
        return time in oracle.used and oracle.speaks(event, w.span) and oracle.closes(event.position, w.position)
    contract = oracle.contract
    if contract.order_key == "none" or contract.versions == "latest":
        return False
    if contract.versions != "every" and contract.replay == "session":
        return False
    is_apart = contract.order_key == "partition" or contract.wm_scope == "partition" or not contract.is_position_global
    is_first = event.kind == ROW and time in firsts(oracle)
    return is_first and event.key == w.key and event.position > w.position and (not is_apart or event.span == w.span)


def _has_passed(oracle: Oracle, time: int, event: Event, w: Write) -> bool:
    later = [e.kind for e in oracle.log[time + 1 :] if oracle.session(e) == oracle.session(event)]
    return _tells(oracle, time, event, w) and (event.kind == WATERMARK or GAP not in later)


def _is_served(oracle: Oracle, event: Event, w: Write) -> bool:
    """Did the write come, or something in its place?"""
    group = oracle.session if oracle.contract.wm_scope in ("session", "subscriber") else oracle.scope
    own = [e for e in oracle.log if group(e) == group(event)]
    snapshots = [e for e in own if e.kind == BACKFILL and e.key == w.key]
    if any(NEVER != e.position >= w.position for e in snapshots) or oracle.arrival(w, event, group) != NEVER:
        return True
    height = event.position if event.kind == WATERMARK else TOP
    return oracle.superseded(w, event, group, height, NEVER)


def _has_earlier(oracle: Oracle, since: int, w: Write) -> bool:
    start = oracle.log[since]
    if start.kind == BACKFILL:
        return True
    is_apart = oracle.contract.resume == "at"
    before = [o.position for o in oracle.owed if o.key == w.key]
    return any(p < start.position or (p == start.position and not is_apart) for p in before)


# S25


def hand_over(oracle: Oracle) -> dict[tuple[Identity, int], tuple[int, str]]:
    """(session, key) -> the first event that shows a fault of its snapshot, and which one."""
    found: list[tuple[int, int, str]] = []
    for (_, w), (t, since) in holes(oracle).items():
        if oracle.log[since].kind == BACKFILL or has_snapshot(oracle, t, since, w):
            found.append((t, w.key, "hole"))
    for t in _snapshots(oracle):
        if _is_stale(oracle, oracle.log[t]):
            found.append((t, oracle.log[t].key, "stale"))
        if _overwrites(oracle, t):
            found.append((t, oracle.log[t].key, "overwritten"))
    found += [(t, key, "lacking") for t, key in lacking(oracle)[0]]
    result: dict[tuple[Identity, int], tuple[int, str]] = {}
    for t, key, what in sorted(found, key=lambda each: each[0]):
        result.setdefault((oracle.session(oracle.log[t]), key), (t, what))
    return result


def hand_over_witnesses(oracle: Oracle) -> int:
    written = {
        (oracle.session(oracle.log[t]), oracle.log[t].key)
        for t in _snapshots(oracle)
        for w in oracle.owed
        if w.key == oracle.log[t].key and w.position > oracle.log[t].position
    }
    return len(written) + lacking(oracle)[1]


def _snapshots(oracle: Oracle) -> list[int]:
    return [t for t in oracle.events() if oracle.log[t].kind == BACKFILL and oracle.log[t].position != NEVER]


def _newest(oracle: Oracle, key: int, position: int) -> Write | None:
    """The newest write of the key that a snapshot at that position holds."""
    is_closed = oracle.contract.closed == "<="
    held = [w for w in oracle.owed if w.key == key and w.position < position + is_closed]
    return max(held, key=lambda w: w.position, default=None)


def _is_stale(oracle: Oracle, event: Event) -> bool:
    writers = [w for w in oracle.source if (w.key, w.value) == (event.key, event.value) and w.outcome != FAIL]
    newest = _newest(oracle, event.key, event.position)
    if len(writers) != 1 or writers[0].position == NEVER or event.value == NEVER or newest is None:
        return False
    return newest.position > writers[0].position


def _overwrites(oracle: Oracle, time: int) -> bool:
    """Is it new, and older than the last event of its key since the session's last marker?"""
    event = oracle.log[time]
    before = [t for t in range(time) if oracle.session(oracle.log[t]) == oracle.session(event)]
    same = [t for t in before if t in _snapshots(oracle) and _what(oracle, oracle.log[t]) == _what(oracle, event)]
    since = max((t for t in before if oracle.log[t].kind in (OPEN, GAP)), default=-1)
    rows = [t for t in before if t > since and t in oracle.events() and oracle.log[t].kind == ROW]
    last = [oracle.log[t] for t in rows if oracle.log[t].key == event.key][-1:]
    is_older = any(e.position > event.position and e.value != event.value for e in last)
    return oracle.contract.order_key != "none" and is_older and not same


def _what(oracle: Oracle, event: Event) -> Identity:
    return (*oracle.identity(event), event.value)


def lacking(oracle: Oracle) -> tuple[list[tuple[int, int]], int]:
    """(watermark, key) for each key that a whole snapshot lacks; and how many keys were asked for."""
    result, asked = [], 0
    for part in _parts(oracle) if oracle.contract.backfill == "whole" else []:
        rows = [t for t in part if t in _snapshots(oracle)]
        positions = {oracle.log[t].position for t in rows}
        first = oracle.log[part[0]]
        if len(positions) != 1 or (first.kind, first.key, first.span) != (OPEN, NEVER, -1):
            continue
        position = positions.pop()
        marks = [t for t in part if t in oracle.used and oracle.log[t].span == -1]
        closing = [t for t in marks if oracle.closes(oracle.log[t].position, position)][:1]
        for m in (t for t in closing if t > rows[-1]):
            had = {oracle.log[t].key for t in part if t < m and oracle.log[t].kind in (ROW, BACKFILL)}
            for key in sorted({w.key for w in oracle.owed}):
                unknown = [w for w in oracle.source if w.key == key and w.outcome != FAIL and w.position == NEVER]
                newest = _newest(oracle, key, position)
                if newest is not None and newest.value != NEVER and not unknown:
                    asked += 1
                    result += [(m, key)] if key not in had else []
    return result, asked


def _parts(oracle: Oracle) -> list[list[int]]:
    """The times of each session from one of its markers of everything to the next."""
    parts: dict[Identity, list[list[int]]] = {}
    for t, event in enumerate(oracle.log):
        own = parts.setdefault(oracle.session(event), [[]])
        if event.kind in (OPEN, GAP, CLOSE, ERROR, END) and event.key == NEVER and event.span == -1:
            own.append([])
        own[-1].append(t)
    return [part for own in parts.values() for part in own if part]


# S28


def after_end(oracle: Oracle) -> dict[int, int]:
    """Each row and watermark behind the end of what it belongs to, and that end."""
    result = {}
    for t, event in enumerate(oracle.log):
        if event.kind not in (ROW, BACKFILL, WATERMARK) or oracle.is_phantom(event):
            continue
        own = [s for s in range(t) if oracle.session(oracle.log[s]) == oracle.session(event)]
        marks = [s for s in own if oracle.log[s].kind in (OPEN, END) and _names(oracle.log[s], event)]
        if marks and oracle.log[marks[-1]].kind == END:
            result[t] = marks[-1]
    return result


def _names(marker: Event, event: Event) -> bool:
    if marker.key != NEVER:
        return marker.key == event.key
    if marker.kind == OPEN and event.span < 0:
        return True  # The event may be of any partition.
    return marker.span in (-1, event.span)
