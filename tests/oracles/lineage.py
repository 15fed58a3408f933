"""Slow, obvious twins of the check of logs that split and merge: plain loops over the events, without its code.

Keys are looked at one hash after the other, in steps of tests/worlds/lineages.py.
"""

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

from msgspec import convert

from harness.core.record import StreamEvent
from tests.worlds.lineages import STEP, STEPS


def anomalies(events: Sequence[StreamEvent], *, is_group: bool) -> set[str]:
    """The names of all anomalies of such a stream."""
    logs: dict[str, Any] = {}
    found: set[str] = set()
    for event in events:
        if event.kind == "successors" and logs.setdefault(str(event.span), event.value) != event.value:
            found.add("changed-lineage")
    if any(_is_lost(name, logs, events, place) for name in logs for place in range(STEPS)):
        found.add("lost-successor")
    if any(_is_shared(logs, place) for place in range(STEPS)):
        found.add("key-space-overlap")
    if any(_is_inverted(logs, events, is_group, i, j) for i, j in permutations(range(len(events)), 2)):
        found.add("order-inversion")
    rows = _rows(events)
    if any(_is_split(of_log) for of_log in rows.values()):
        found.add("split-unit")
    if _has_cycle(logs, rows):
        found.add("unit-order")
    return found


def _has(log: Any, place: int) -> bool:
    return any(low <= place * STEP < high for low, high in log["ranges"])


def _followers(name: str, logs: dict[str, Any]) -> list[str]:
    return [other for other, log in logs.items() if name in log["parents"]]


def _is_lost(name: str, logs: dict[str, Any], events: Sequence[StreamEvent], place: int) -> bool:
    """A key of a log with declared followers has none of these."""
    followers = _followers(name, logs)
    closed = [
        any(
            event.kind == "successors"
            and event.span == follower
            and event.value == logs[follower]
            and any(
                later.kind not in ("successors", "hash")
                and (later.subscriber, later.session) == (event.subscriber, event.session)
                for later in events[at + 1 :]
            )
            for at, event in enumerate(events)
        )
        for follower in followers
    ]
    sessions = {(event.subscriber, event.session) for event in events}
    is_alone = all(logs[each]["parents"] == [name] for each in followers)
    is_told = any(
        any(event.kind in ("end", "gap") and event.span == name and who == _who(event) for event in events)
        and any(
            event.kind == "successors"
            and name in convert(event.value, dict[str, list[Any]])["parents"]
            and who == _who(event)
            and any(later.kind not in ("successors", "hash") and who == _who(later) for later in events[at + 1 :])
            for at, event in enumerate(events)
        )
        for who in sessions
    )
    is_known = bool(followers) and all(closed) and all(logs[each]["ranges"] for each in followers)
    is_known = is_known and (is_alone or is_told)
    return is_known and _has(logs[name], place) and not any(_has(logs[each], place) for each in followers)


def _who(event: StreamEvent) -> tuple[str, int]:
    return event.subscriber, event.session


def _is_shared(logs: dict[str, Any], place: int) -> bool:
    """A key has two logs that begin together, or a log has a key that its parents did not have."""
    for one, other in combinations(logs, 2):
        if not (_has(logs[one], place) and _has(logs[other], place)):
            continue
        if not logs[one]["parents"] and not logs[other]["parents"]:
            return True
        for parent in logs[one]["parents"]:
            if parent in logs[other]["parents"] and parent in logs and _has(logs[parent], place):
                return True
    for log in logs.values():
        parents = [logs.get(each) for each in log["parents"]]
        is_known = bool(parents) and all(each is not None and each["ranges"] for each in parents)
        if is_known and _has(log, place) and not any(_has(each, place) for each in parents):
            return True
    return False


def _is_before(one: str, other: str, logs: dict[str, Any], left: int = 12) -> bool:
    """The log `one` is an ancestor of the other."""
    if left == 0 or other not in logs:
        return False
    parents = logs[other]["parents"]
    return one in parents or any(_is_before(one, parent, logs, left - 1) for parent in parents)


def _is_inverted(logs: dict[str, Any], events: Sequence[StreamEvent], is_group: bool, i: int, j: int) -> bool:
    """Event i is of a log, and event j, later, of one before it: of the same key, or the end of a parent."""
    one, other = events[i], events[j]
    if i > j or one.kind != "row" or not _are_of_one(one, other, is_group) or not _is_first(events, i, is_group):
        return False
    if _is_covered(events, i, is_group) or _is_covered(events, j, is_group):
        return False
    parent, child = str(other.span), str(one.span)
    begun = next(
        at for at, event in enumerate(events)
        if event.span == parent and event.kind in ("open", "row", "gap", "end") and _are_of_one(event, one, is_group)
    ) if other.kind in ("row", "end", "gap") else 0  # fmt: skip
    first = events[begun]
    if not (begun < i or (first.subscriber, first.session) == (one.subscriber, one.session)):
        return False
    if other.kind == "row":
        is_before = _is_before(parent, child, logs) and parent != child
        return is_before and one.key == other.key and _is_first(events, j, is_group)
    if j != _end(events, parent, one, is_group) or parent not in logs or child not in logs:
        return False
    places = [event.value for event in events if event.kind == "hash" and event.key == one.key]
    if parent not in logs[child]["parents"]:
        return False
    if not places:
        return len(logs[child]["parents"]) == 1
    return any(low <= places[-1] < high for low, high in logs[parent]["ranges"])


def _are_of_one(one: StreamEvent, other: StreamEvent, is_group: bool) -> bool:
    return is_group or one.subscriber == other.subscriber


def _is_covered(events: Sequence[StreamEvent], at: int, is_group: bool) -> bool:
    """A gap of the log, before, has skipped the row."""
    row = events[at]
    return row.kind == "row" and any(
        event.kind == "gap" and event.span == row.span and _are_of_one(event, row, is_group)
        and event.position is not None and row.position is not None and row.position < event.position
        for event in events[:at]
    )  # fmt: skip


def _is_first(events: Sequence[StreamEvent], at: int, is_group: bool) -> bool:
    """Nothing the same came before, unless a gap had skipped that."""
    row = events[at]
    return not any(
        event.kind == "row"
        and not _is_covered(events, before, is_group)
        and (event.span, event.position, event.key) == (row.span, row.position, row.key)
        and _are_of_one(event, row, is_group)
        for before, event in enumerate(events[:at])
    )


def _end(events: Sequence[StreamEvent], log: str, reader: StreamEvent, is_group: bool) -> int | None:
    """Where the reader came to the end of a log: at its first end, or at its last gap if no row follows that."""
    own = [(at, e) for at, e in enumerate(events) if e.span == log and _are_of_one(e, reader, is_group)]
    ends = [at for at, event in own if event.kind == "end"][:1]
    gaps = [at for at, event in own if event.kind == "gap"][-1:]
    if gaps and not any(e.kind == "row" and at > gaps[0] and not _is_covered(events, at, is_group) for at, e in own):
        ends += gaps
    return min(ends, default=None)


def _rows(events: Sequence[StreamEvent]) -> dict[str, list[StreamEvent]]:
    """The rows of each log by position, each once."""
    logs: dict[str, dict[Any, tuple[int, StreamEvent]]] = {}
    for at, event in enumerate(events):
        if event.kind == "row":
            logs.setdefault(str(event.span), {}).setdefault((event.position, event.key), (at, event))
    return {
        name: [event for _, event in sorted(rows.values(), key=lambda each: (each[1].position or 0, each[0]))]
        for name, rows in logs.items()
    }


def _is_split(rows: list[StreamEvent]) -> bool:
    return any(
        one.unit is not None and one.unit == last.unit and one.unit != between.unit
        for one, between, last in combinations(rows, 3)
    )


def _has_cycle(logs: dict[str, Any], rows: dict[str, list[StreamEvent]]) -> bool:
    """Two units come before each other, through any number of steps."""
    before: set[tuple[Any, Any]] = set()
    for name, of_log in rows.items():
        units = [row.unit for row in of_log if row.unit is not None]
        before |= {(one, other) for one, other in combinations(units, 2) if one != other}
        for parent in logs.get(name, {"parents": []})["parents"]:
            earlier = [row.unit for row in rows.get(parent, []) if row.unit is not None]
            before |= {(one, other) for one in earlier[-1:] for other in units[:1] if one != other}
    grown = True
    while grown:
        more = {(a, d) for a, b in before for c, d in before if b == c} - before
        grown = bool(more)
        before |= more
    return any(one == other for one, other in before)
