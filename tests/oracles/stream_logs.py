"""Slow, obvious twins of the rules about logs and their positions: what is issued, by whom, when, and read again."""

from harness.core.columns import BACKFILL, CLOSE, END, ERROR, GAP, INFO, NEVER, OPEN, ROW, WATERMARK
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
    if contract.wm_idle == "moves" or not contract.is_position_global or (step and contract.position == "lsn"):
        return set(), 0
    known = [m for m in oracle.used if _is_known(oracle, FIRST_EVENT + m)]
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
    rows = [e for t in oracle.events() if (e := oracle.log[t]).kind == ROW and e.epoch != NEVER]
    old = [e for e in rows if any(_log(oracle, o) == _log(oracle, e) and _is_before(o, e) for o in rows)]
    first: dict[tuple[Identity, Identity], int] = {}
    for t in oracle.events():
        e = oracle.log[t]
        if e.kind == ROW:
            first.setdefault(((_log(oracle, e), e.position, e.epoch), oracle.identity(e)), t)
    changes = len({(_log(oracle, e), e.epoch) for e in rows}) - len({_log(oracle, e) for e in rows})
    return {first[(_log(oracle, e), e.position, e.epoch), oracle.identity(e)] for e in old}, changes


def _is_before(newer: Event, older: Event) -> bool:
    return newer.position < older.position and newer.epoch > older.epoch


def _log(oracle: Oracle, event: Event) -> int:
    return 0 if oracle.contract.is_position_global else event.span


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
    event = oracle.log[time]
    ends = [e for e in oracle.log[: time + 1] if e.kind == END and e.key == NEVER]
    meant = [e for e in ends if e.span == -1 or oracle.contract.is_position_global or e.span == event.span]
    return (_log(oracle, event), len(meant), event.position)


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
