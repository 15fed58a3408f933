"""Slow, obvious twins of the rules about logs and their positions: what is issued, by whom, when, and read again."""

from dataclasses import replace

from harness.core.columns import BACKFILL, CHECKPOINT, CLOSE, END, ERROR, GAP, INFO, NEVER, OPEN, ROW, WATERMARK
from tests.oracles.streams import Identity, Oracle
from tests.worlds.streams.generator import FIRST_EVENT
from tests.worlds.streams.language import Event, Write

# S08


def from_future(oracle: Oracle) -> tuple[set[int], int]:
    """The watermarks above all that had begun, and how many were compared."""
    contract = oracle.contract
    if contract.follows_clock:
        error_ns = contract.clock_error_ns
        if error_ns is None:
            return set(), 0
        return {m for m in oracle.used if oracle.log[m].position > m * 10**9 + error_ns}, len(oracle.used)
    step = contract.closed == "<"
    if contract.system_events:
        return set(), 0
    if contract.wm_idle == "moves" or not contract.is_position_global or (step and contract.position == "lsn"):
        return set(), 0
    is_early = not step and contract.is_position_unique
    known = [
        m
        for m in oracle.used
        if _is_known(oracle, FIRST_EVENT + m) or (is_early and _is_invoked_later(oracle, FIRST_EVENT + m))
    ]
    return {m for m in known if oracle.log[m].position > _highest(oracle, m) + step}, len(known)


def _highest(oracle: Oracle, time: int) -> int:
    result = [e.position for e in oracle.log[:time] if e.kind in (ROW, BACKFILL, OPEN) and e.position != NEVER]
    begun = [w.position for w in oracle.source if w.position != NEVER and w.invoke_seq < FIRST_EVENT + time]
    return max([-1, *result, *begun])


def _is_known(oracle: Oracle, seq: int) -> bool:
    """Had an operation of known position ended, and is none open that may have a higher one?"""
    placed = [w for w in oracle.source if w.position != NEVER]
    if not any(_end(w) < seq for w in placed):
        return False
    for w in (w for w in oracle.source if w.position == NEVER and w.invoke_seq < seq):
        later = [p for p in placed if _end(w) < p.invoke_seq < seq]
        if not later or oracle.contract.realtime == "none":
            return False
    return True


def _is_invoked_later(oracle: Oracle, seq: int) -> bool:
    """Before the first end: was the operation whose position the watermark has invoked after it?"""
    if any(w.position != NEVER and _end(w) < seq for w in oracle.source):
        return False
    begun = [w.invoke_seq for w in oracle.source if w.position == oracle.log[seq - FIRST_EVENT].position]
    return bool(begun) and min(begun) > seq


def _end(w: Write) -> int:
    return NEVER if w.outcome == INFO else w.complete_seq


# S15


def above_partitions(oracle: Oracle) -> tuple[dict[int, set[int]], int]:
    """Each watermark of the whole above a partition's, with the lowest partitions' rows; and all witnesses."""
    contract = oracle.contract
    found: dict[int, set[int]] = {}
    count = 0
    if not contract.is_whole_least or contract.wm_idle != "moves" or not contract.is_position_global:
        return found, count
    for m in (m for m in oracle.used if oracle.log[m].span == -1):
        levels = _levels(oracle, m)
        least = min(levels.values(), default=NEVER)
        is_above = oracle.log[m].position > least
        count += is_above or len(set(levels.values())) > 1
        if is_above:
            found[m] = {
                t
                for t, e in enumerate(oracle.log[:m])
                if oracle.session(e) == oracle.session(oracle.log[m]) and levels.get(e.span) == least
            }
    return found, count


def _levels(oracle: Oracle, time: int) -> dict[int, int]:
    """How far each partition is that counts, at that watermark of the whole."""
    levels: dict[int, int] = {}
    over: set[int] = set()
    for e in oracle.log[:time]:
        if oracle.session(e) != oracle.session(oracle.log[time]) or e.key != NEVER:
            continue
        is_marker = e.kind in (OPEN, GAP, CLOSE, ERROR, END)
        if is_marker and e.span == -1:
            levels.clear()
            over.clear()
        elif is_marker:
            levels.pop(e.span, None)
            over = over | {e.span} if e.kind in (CLOSE, ERROR, END) else over - {e.span}
            if e.kind == OPEN and e.position != NEVER:
                levels[e.span] = e.position
        elif e.kind == WATERMARK and e.span != -1 and e.span not in over:
            levels[e.span] = max(e.position, levels.get(e.span, -1))
    return levels


# S17


def zombies(oracle: Oracle) -> tuple[set[int], int]:
    """Rows that stand in their log behind one of a newer owner; and how often a log changed its owner."""
    contract = oracle.contract
    if contract.epochs != "owners" or contract.position == "epoch":
        return set(), 0
    times = [t for t in oracle.events() if oracle.log[t].kind == ROW and oracle.log[t].epoch != NEVER]
    rows = [(_log(oracle, t), oracle.log[t], t) for t in times]
    first: dict[tuple[Identity, Identity], int] = {}
    for log, e, t in rows:
        first.setdefault(((*log, e.position, e.epoch), oracle.identity(e)), t)
    old = [(log, e) for log, e, _ in rows if any(other == log and _is_before(o, e) for other, o, _ in rows)]
    changes = len({(log, e.epoch) for log, e, _ in rows}) - len({log for log, _, _ in rows})
    return {first[(*log, e.position, e.epoch), oracle.identity(e)] for log, e in old}, changes


def _is_before(newer: Event, older: Event) -> bool:
    return newer.position < older.position and newer.epoch > older.epoch


# S24


def rewritten(oracle: Oracle) -> tuple[dict[int, int], int]:
    """Rows at a position that had shown another event, and this; and the positions that could have shown that."""
    if oracle.contract.events_at_position != "one":
        return {}, 0
    found: dict[int, int] = {}
    seen: dict[Identity, int] = {}
    again: set[Identity] = set()
    for t in oracle.events():
        event = oracle.log[t]
        if event.kind != ROW or event.value == NEVER:
            continue
        first = seen.setdefault(_place(oracle, t), t)
        one = oracle.log[first]
        is_other = one.key != event.key
        if oracle.contract.identity == "position+key+value":
            is_other = (one.key, one.value) != (event.key, event.value)
        if is_other:
            found[t] = first
        if is_other or oracle.session(one) != oracle.session(event):
            again.add(_place(oracle, t))
    return found, len(again)


def _place(oracle: Oracle, time: int) -> Identity:
    return (*_log(oracle, time), oracle.log[time].position)


def _log(oracle: Oracle, time: int) -> Identity:
    """The log of that row, which is read again by its name after an end; of one session, where ends are in doubt."""
    event = oracle.log[time]
    mine = [t for t in range(time + 1) if _is_reading(oracle, t, event)]
    is_doubtful = any(_ends(oracle, t) < _most_ends(oracle, t) for t in mine)
    return (oracle.home(event), _ends(oracle, time), *(oracle.session(event) if is_doubtful else ()))


def count_of(oracle: Oracle, time: int) -> Identity:
    """The count of which that row's position is one. Where positions are global, partitions that end do not end it."""
    if not oracle.contract.is_position_global:
        return _log(oracle, time)
    log = [replace(e, kind=CHECKPOINT) if e.kind == END and e.span != -1 else e for e in oracle.log]
    return _log(Oracle(log, oracle.source, oracle.contract), time)


def _is_reading(oracle: Oracle, time: int, event: Event) -> bool:
    """Is that a row of the same subscriber, of the same partition?"""
    other = oracle.log[time]
    return other.kind == ROW and other.subscriber == event.subscriber and oracle.home(other) == oracle.home(event)


def _ends(oracle: Oracle, time: int) -> int:
    """The ends of that row's log that its subscriber had received."""
    return sum(len(ends) for ends in _ends_by_kind(oracle, time, oracle.log[time].subscriber))


def _most_ends(oracle: Oracle, time: int) -> int:
    """The most ends of the whole stream that any subscriber had received, and the most of that row's partition."""
    subscribers = {event.subscriber for event in oracle.log}
    return sum(max(len(_ends_by_kind(oracle, time, who)[kind]) for who in subscribers) for kind in range(2))


def _ends_by_kind(oracle: Oracle, time: int, who: int) -> tuple[list[Event], list[Event]]:
    ends = [e for e in oracle.log[: time + 1] if e.kind == END and e.key == NEVER and e.subscriber == who]
    of_one = [e for e in ends if e.span != -1 and oracle.home(e) == oracle.home(oracle.log[time])]
    return [e for e in ends if e.span == -1], of_one


# S23


def reversals(source: list[Write], *, is_sole: bool) -> dict[int, set[int]]:
    """Operations whose position is not above those of operations that had ended before; and which these are."""
    placed = {w.op: w for w in source if w.position != NEVER}
    result: dict[int, set[int]] = {}
    for w in placed.values():
        before = [o for o in placed.values() if _end(o) < w.invoke_seq]
        wrong = {o.op for o in before if w.position < o.position or (is_sole and w.position == o.position)}
        if wrong:
            result[w.op] = wrong
    return result
