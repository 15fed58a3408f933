"""Slow, obvious twins of the rules about what a session asked for, where keys belong, and what repetitions show."""

from harness.core.columns import CLOSE, END, ERROR, INFO, NEVER, OPEN, ROW
from tests.oracles.stream_logs import count_of
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.language import Event, Write


def rows(oracle: Oracle) -> list[int]:
    return [t for t in oracle.events() if oracle.log[t].kind == ROW]


def _earlier(oracle: Oracle, time: int) -> list[Event]:
    """What the session of that event had received before it."""
    session = oracle.session(oracle.log[time])
    return [event for event in oracle.log[:time] if oracle.session(event) == session]


# S01


def outside(oracle: Oracle) -> set[int]:
    return {t for t in rows(oracle) if _is_unasked(oracle, t) or _is_below(oracle, t)}


def _is_unasked(oracle: Oracle, time: int) -> bool:
    return any(event.kind == OPEN for event in _earlier(oracle, time)) and not _has_asked(oracle, time, time)


def _has_asked(oracle: Oracle, time: int, until: int) -> bool:
    """Had the session of the row at `time` asked for it before `until`?"""
    row = oracle.log[time]
    for event in oracle.log[:until]:
        if event.kind != OPEN or oracle.session(event) != oracle.session(row):
            continue
        if event.key == row.key if event.key != NEVER else event.span in (row.span, -1):
            return True
        if event.key == NEVER and row.span < 0:
            return True  # Its partition may be the one that was asked for.
    return False


def _is_below(oracle: Oracle, time: int) -> bool:
    row = oracle.log[time]
    since, how, start = oracle.coverage(row, row.key, row.span, time)
    if since < 0 or oracle.log[since].kind != OPEN or how not in {"at", "behind"}:
        return False
    if _has_asked(oracle, time, since):
        return False
    came: set[tuple[int, Identity]] = {
        (oracle.log[t].subscriber, oracle.identity(oracle.log[t])) for t in oracle.events() if t < time
    }
    is_first = (row.subscriber, oracle.identity(row)) not in came
    return is_first and (row.position < start if how == "at" else row.position <= start)


# S26


def moved(oracle: Oracle) -> dict[int, int]:
    """Each row of a key that moved, and the row before it."""
    return {t: before for t, before in _pairs(oracle) if _is_move(oracle, before, t)}


def moved_witnesses(oracle: Oracle) -> int:
    result = 0
    for t, _ in _pairs(oracle):
        session = oracle.session(oracle.log[t])
        spans = {oracle.log[other].span for other in rows(oracle) if oracle.session(oracle.log[other]) == session}
        result += len(spans - {-1}) > 1
    return result


def _pairs(oracle: Oracle) -> list[tuple[int, int]]:
    """Rows with a partition, repetitions aside, and the one before of the same key and session."""
    result = []
    last: dict[tuple[Identity, int], int] = {}
    seen: set[tuple[Identity, Identity, int]] = set()
    for t in rows(oracle):
        event = oracle.log[t]
        what = (oracle.session(event), oracle.identity(event), event.span)
        if event.span >= 0 and what not in seen:
            seen.add(what)
            where = (oracle.session(event), event.key)
            if where in last:
                result.append((t, last[where]))
            last[where] = t
    return result


def _is_move(oracle: Oracle, before: int, time: int) -> bool:
    one, other = oracle.log[before], oracle.log[time]
    between = [e for e in oracle.log[before:time] if oracle.session(e) == oracle.session(other) and e.key == NEVER]
    marks = [e for e in between if e.kind in (OPEN, CLOSE, END, ERROR) and e.span in (-1, one.span, other.span)]
    return one.span != other.span and not marks


# S04


def divergent(oracle: Oracle) -> dict[int, int]:
    """Each row with another value than the first one of its identity, and that first one."""
    result: dict[int, int] = {}
    if not oracle.source and not oracle.contract.is_position_unique:
        return result
    what = {t: (*oracle.identity(oracle.log[t]), *count_of(oracle, t)) for t in rows(oracle)}
    for identity in set(what.values()):
        same = [t for t in rows(oracle) if what[t] == identity and oracle.log[t].value != NEVER]
        for t in same[1:]:
            shown = [oracle.shown(oracle.log[each]) for each in (same[0], t)]
            known = [w for w in shown if w is not None]
            are_two = len(known) == 2 and known[0] != known[1]
            if (
                are_two
                and oracle.contract.is_position_unique
                and unit_of(oracle, known[0]) != unit_of(oracle, known[1])
            ):
                are_two = all(w.outcome != INFO for w in known)
            if oracle.log[t].value != oracle.log[same[0]].value and not are_two:
                result[t] = same[0]
    return result


def unit_of(oracle: Oracle, w: Write) -> int:
    """The unit to which a position belongs."""
    return oracle._epoch(w) if oracle.contract.atomic_unit == "epoch" else w.op
