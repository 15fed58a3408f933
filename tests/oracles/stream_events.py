"""Slow, obvious twins of the rules about single events: their order, repetition and content."""

from harness.core.columns import BACKFILL, CHECKPOINT, CLOSE, END, ERROR, FAIL, NEVER, OPEN, ROW, WATERMARK
from tests.oracles.stream_logs import count_of
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.language import Event, Write


def firsts(oracle: Oracle, *, is_row: bool = True) -> list[int]:
    """The first delivery of each identity in each session, phantoms left out."""
    seen: set[tuple[Identity, Identity]] = set()
    result = []
    for t in oracle.events():
        event = oracle.log[t]
        what = (oracle.session(event), oracle.identity(event))
        if what not in seen and (event.kind == ROW or not is_row):
            result.append(t)
        seen.add(what)
    return result


# S31


def early(oracle: Oracle) -> dict[int, Write]:
    """Each event that came before its write was invoked; none if all did. Journal positions of events begin at 100."""
    shown = {t: oracle.shown(oracle.log[t]) for t in oracle.events()}
    compared = {t: w for t, w in shown.items() if w is not None and w.value == oracle.log[t].value != NEVER}
    compared = {t: w for t, w in compared.items() if w.invoke_seq != NEVER}
    result = {t: w for t, w in compared.items() if 100 + t < w.invoke_seq}
    return {} if len(result) == len(compared) else result


# S02 and S27


def inversions(oracle: Oracle) -> dict[int, set[int]]:
    """Each event that came in the wrong order, and all that came before it and precede it not."""
    result: dict[int, set[int]] = {}
    for late, early in _compared(oracle):
        if any(below for below in _heights(oracle, late, early) if below[0] < below[1]):
            result.setdefault(late, set()).add(early)
    return result


def inversion_witnesses(oracle: Oracle) -> int:
    """Events that differ in height from the highest comparable one before them."""
    return len({late for late, early in _compared(oracle) if _could_show(oracle, late, early)})


def _could_show(oracle: Oracle, late: int, early: int) -> bool:
    """Is that pair one with the highest before, in one of the ways to compare, at another height?"""
    for way, heights in enumerate(_ways(oracle, late, early)):
        if heights is None:
            continue
        others = [
            both
            for other_late, other in _compared(oracle)
            if other_late == late and (both := _ways(oracle, late, other)[way]) is not None
        ]
        if heights[0] != max(both[1] for both in others):
            return True
    return False


def _compared(oracle: Oracle) -> list[tuple[int, int]]:
    contract = oracle.contract
    if contract.order_key == "none" or (contract.versions != "every" and contract.replay == "session"):
        return []
    times = firsts(oracle)
    return [(late, early) for late in times for early in times if early < late and _is_together(oracle, late, early)]


def _is_together(oracle: Oracle, late: int, early: int) -> bool:
    """Are they of one session, with no marker between that opens it?"""
    session = oracle.session(oracle.log[late])
    opens = [e for e in oracle.log[early:late] if e.kind == OPEN and oracle.session(e) == session]
    return oracle.session(oracle.log[early]) == session and not opens


def _heights(oracle: Oracle, late: int, early: int) -> list[tuple[int, int]]:
    return [both for both in _ways(oracle, late, early) if both is not None]


def _ways(oracle: Oracle, late: int, early: int) -> list[tuple[int, int] | None]:
    """The heights of both by position, by version, and by place in one operation; None where they do not compare."""
    new, old = oracle.log[late], oracle.log[early]
    by_position = (new.position, old.position) if _scope(oracle, new) == _scope(oracle, old) else None
    one, other = oracle.shown(new), oracle.shown(old)
    where = [(event.key, event.position, oracle.home(event)) for event in (new, old)]
    if one is None or other is None or where[0] != where[1]:
        return [by_position, None, None]
    by_version = None if NEVER in (one.version, other.version) else (one.version, other.version)
    by_ordinal = (one.ordinal, other.ordinal) if one.op == other.op else None
    return [by_position, by_version, by_ordinal]


def _scope(oracle: Oracle, event: Event) -> Identity:
    if oracle.contract.order_key == "key":
        return (event.key, oracle.home(event))
    return (event.span,) if oracle.contract.order_key == "partition" else (oracle.home(event),)


# S03


def duplicates(oracle: Oracle) -> dict[int, int]:
    """Each row that may not have come again, and the last delivery before it, in its session if there is one there."""
    result = {}
    for t in _judged_rows(oracle):
        event = oracle.log[t]
        same = [s for s in _judged_rows(oracle) if s < t and _content(oracle, s) == _content(oracle, t)]
        own = [s for s in same if oracle.session(oracle.log[s]) == oracle.session(event)]
        other = [s for s in same if _joint(oracle, oracle.log[s]) == _joint(oracle, event)]
        before = own or other
        if before and not _is_requested(oracle, t, own[-1] if own else -1):
            result[t] = before[-1]
    return result


def duplicate_witnesses(oracle: Oracle) -> int:
    """First deliveries behind which more came."""
    seen: set[tuple[Identity, Identity]] = set()
    count = 0
    for t in _judged_rows(oracle):
        group = _joint(oracle, oracle.log[t])
        what = (group, _content(oracle, t))
        goes_on = any(_joint(oracle, e) == group and e.kind in (ROW, WATERMARK) for e in oracle.log[t + 1 :])
        count += what not in seen and goes_on
        seen.add(what)
    return count


def _content(oracle: Oracle, time: int) -> Identity:
    return (*oracle.identity(oracle.log[time]), oracle.log[time].value, *count_of(oracle, time))


def _judged_rows(oracle: Oracle) -> list[int]:
    if (oracle.contract.delivery, oracle.contract.replay) == ("at-least-once", "session"):
        return []
    return [t for t in oracle.events() if oracle.log[t].kind == ROW]


def _joint(oracle: Oracle, event: Event) -> Identity:
    is_joint = oracle.contract.delivery != "at-least-once" and oracle.contract.wm_scope != "session"
    return (event.subscriber,) if is_joint else oracle.session(event)


def _is_requested(oracle: Oracle, time: int, previous: int) -> bool:
    """Did the session open below that row's position, behind the row `previous`?"""
    event = oracle.log[time]
    asked = None
    for t, e in enumerate(oracle.log[:time]):
        is_meant = e.key == event.key if e.key != NEVER else e.span in (-1, event.span)
        if e.kind in (OPEN, CLOSE, ERROR, END) and is_meant and oracle.session(e) == oracle.session(event):
            asked = t if e.kind == OPEN and e.position != NEVER else None
    if asked is None or asked <= previous:
        return False
    start = oracle.log[asked].position
    return event.position > start or (oracle.contract.resume == "at" and event.position == start)


def confirmed_again(oracle: Oracle) -> dict[int, int]:
    """Each row that came again in a later session though a checkpoint before that held it, and the delivery before."""
    result = {}
    for t, before in _sent_before(oracle).items():
        own = _places(oracle, oracle.log[t])
        is_first = all(oracle.log[s].kind != ROW or _content(oracle, s) != _content(oracle, t) for s in own if s < t)
        begins = oracle.log[own[0]].kind == OPEN
        if before and is_first and begins and _is_confirmed(oracle, t, own[0]) and not _is_requested(oracle, t, -1):
            result[t] = before[-1]
    return result


def confirmed_witnesses(oracle: Oracle) -> int:
    """First deliveries that a checkpoint held when the last session of the subscriber that received anything began."""
    count = 0
    for t, before in _sent_before(oracle).items():
        heard = [e for e in oracle.log if e.subscriber == oracle.log[t].subscriber and e.kind in (ROW, WATERMARK)]
        begins = {_places(oracle, e)[0] for e in heard}
        last = max((place for place in begins if oracle.log[place].kind == OPEN), default=-1)
        count += not before and t < last and _is_confirmed(oracle, t, last)
    return count


def _sent_before(oracle: Oracle) -> dict[int, list[int]]:
    """Each row that stands where repetitions may be confirmed ones, and its earlier deliveries to that subscriber."""
    if oracle.contract.delivery != "at-least-once" or not oracle.contract.resumes_behind_checkpoint:
        return {}
    rows = [t for t in oracle.events() if oracle.log[t].kind == ROW]
    return {
        t: [
            s
            for s in rows
            if s < t
            and oracle.log[s].subscriber == oracle.log[t].subscriber
            and _content(oracle, s) == _content(oracle, t)
        ]
        for t in rows
    }


def _places(oracle: Oracle, event: Event) -> list[int]:
    """Where the events of that event's session stand."""
    return [t for t, e in enumerate(oracle.log) if oracle.session(e) == oracle.session(event)]


def _is_confirmed(oracle: Oracle, row: int, time: int) -> bool:
    event, contract = oracle.log[row], oracle.contract
    spans = (event.span, -1) if contract.is_position_global else (event.span,)
    return any(
        event.position < e.position or (event.position == e.position and contract.resume == "after")
        for e in oracle.log[:time]
        if (e.kind, e.key, e.subscriber) == (CHECKPOINT, NEVER, event.subscriber)
        and e.position != NEVER
        and e.span in spans
    )


# S11 and S12


def phantoms(oracle: Oracle) -> dict[int, set[int]]:
    """Each event that nobody wrote, and the failed operations that wrote its value."""
    return {
        t: {w.op for w in oracle.source if (w.key, w.value) == (e.key, e.value) and w.outcome == FAIL}
        for t, e in enumerate(oracle.log)
        if e.kind in (ROW, BACKFILL) and oracle.is_phantom(e)
    }


def phantom_witnesses(oracle: Oracle) -> int:
    failed = {w.key for w in oracle.source if w.outcome == FAIL}
    seen: set[tuple[Identity, Identity]] = set()
    for t in oracle.events():
        event = oracle.log[t]
        if event.key in failed and not oracle.contract.system_events:
            seen.add((oracle.scope(event), oracle.identity(event)))
    return len(seen) + len(phantoms(oracle))


def wrong_values(oracle: Oracle) -> tuple[set[int], int]:
    """Rows with another value than their write has, and how many were compared."""
    wrong, count = set(), 0
    for t in oracle.events():
        event = oracle.log[t]
        if event.kind == ROW and event.value != NEVER and oracle.source and not oracle.contract.system_events:
            is_right = _is_right(oracle, event)
            count += is_right is not None
            wrong |= {t} if is_right is False else set()
    return wrong, count


def _is_right(oracle: Oracle, event: Event) -> bool | None:
    """Does the row show what its write wrote? None where that cannot be wrong, or is not known."""
    possible = [w for w in oracle.source if w.outcome != FAIL]
    finals = [w for w in possible if oracle.contract.unit_rows == "each" or _is_final(w, possible)]
    if oracle.contract.atomic_unit == "transaction" and event.unit != NEVER:
        unit = [w for w in possible if oracle.unit_name(w) == event.unit]
        if unit:
            return any(w in finals and (w.key, w.value) == (event.key, event.value) for w in unit)
    alike = [w for w in possible if (w.key, w.value) == (event.key, event.value)]
    if oracle.contract.identity != "position+key+value":
        write = oracle.shown(event)
        there = [w for w in alike if w in finals and w.position in (event.position, NEVER)]
        if oracle.contract.identity == "position+key+ordinal" and not oracle.is_final:
            there = [w for w in there if w.ordinal == event.ordinal]
        return None if write is None else write.value == event.value or bool(there)
    if len(alike) != 1 or alike[0].position != event.position or oracle.contract.unit_rows == "each":
        return None
    is_only = sum((w.op, w.key) == (alike[0].op, alike[0].key) for w in possible) == 1
    return None if is_only else _is_final(alike[0], possible)


def _is_final(write: Write, possible: list[Write]) -> bool:
    return not any((w.op, w.key) == (write.op, write.key) and w.ordinal > write.ordinal for w in possible)
