"""Which streams Debezium, CockroachDB and etcd may send, by their documentation, in plain loops.

A stream that was changed and is still one of these is its own legal twin, of the same bytes: no check can decide it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from tests.worlds.streams.public import Item, Items, Line

Event = tuple[Any, ...]


def is_legal(kind: str, items: Items, *, is_once: bool) -> bool:
    """True if the system may have sent that stream, beside that source if it has one.

    `is_once`: no event twice; and of Debezium each deletion with its tombstone, and everything up to the end.
    """
    if is_once and kind in ("postgresql", "mysql") and not _is_complete([item.line for item in items]):
        return False
    return _LEGAL[kind](items) and not (is_once and _repeats(kind, items))


def is_permitted(kind: str, thing: str, deed: str, *, is_once: bool) -> bool:
    """True if the documentation permits that deed to any such thing: then it breaks no promise.

    Whatever comes at least once may come twice. Resolved timestamps and progress notifications have no number that is
    promised: each may come again, or not come.
    """
    if thing == "watermark" and kind in ("cockroachdb", "etcd"):
        return deed in ("doubled", "lost")
    return deed == "doubled" and not is_once


def _repeats(kind: str, items: Items) -> bool:
    """Does an event, or a begin or end of a transaction, come twice?"""
    things = ("row", "tombstone") if kind in ("cockroachdb", "etcd") else ("begin", "row", "tombstone", "watermark")
    lines = [item.line for item in items if item.thing in things]
    if kind in ("postgresql", "mysql"):
        tables = _with_deletions([line for line in lines if line["topic"] == "t"])
        lines = [*tables, *(line for line in lines if line["topic"] != "t")]
    return any(line in lines[:place] for place, line in enumerate(lines))


# Debezium: two topics, each in its own order, from their first messages on, as their offsets show.


def _debezium(items: Items) -> bool:
    lines = [item.line for item in items]
    ends = _base([line["value"] for line in lines if line["topic"] == "transaction"])
    rows = _base(_with_deletions([line for line in lines if line["topic"] == "t"]))
    if ends is None or rows is None:
        return False
    names = list(dict.fromkeys(_unit(end) for end in ends))
    both = [f"{name} {status}" for name in names for status in ("BEGIN", "END")]
    are_pairs = [f"{_unit(end)} {end['status']}" for end in ends] == both[: len(ends)]
    return are_pairs and _are_whole(rows, ends) and _is_one_history(rows) and _have_tombstones(rows)


def _with_deletions(lines: Sequence[Line]) -> list[Line]:
    """The lines of a table; each tombstone names the last deletion of its key, as nothing else tells two apart."""
    deletions: dict[int, Line] = {}
    result = []
    for line in lines:
        key = line["key"]["id"]
        result.append(line if line["value"] is not None else line | {"of": deletions.get(key)})
        if line["value"] is not None and line["value"]["op"] == "d":
            deletions[key] = line
    return result


def _base(lines: Sequence[Line]) -> list[Line] | None:
    """What was sent, each line once, if a task that may restart sent it: it goes on, or back, and skips nothing."""
    base: list[Line] = []
    place = -1
    for line in lines:
        known = base.index(line) if line in base else len(base)
        if known > place + 1:
            return None
        if known == len(base):
            base.append(line)
        place = known
    return base


def _are_whole(rows: list[Line], ends: list[Line]) -> bool:
    """Is each transaction there with all its rows, in one order of commits, up to the end of either topic?"""
    changes = [row["value"] for row in rows if row["value"] is not None and row["value"]["op"] != "r"]
    places = [_place(change["source"]) for change in changes]
    names = list(dict.fromkeys(_unit(change["transaction"]) for change in changes))
    known = list(dict.fromkeys(_unit(end) for end in ends))
    if places != sorted(set(places)) or names[: len(known)] != known[: len(names)]:
        return False
    for name in names:
        orders = [change["transaction"]["total_order"] for change in changes if _unit(change["transaction"]) == name]
        counts = [end["event_count"] for end in ends if (_unit(end), end["status"]) == (name, "END")]
        size = len(orders) if name == names[-1] and counts and len(orders) <= counts[0] else (*counts, len(orders))[0]
        if orders != list(range(1, size + 1)):
            return False
    return True


def _is_complete(lines: list[Line]) -> bool:
    """Has each transaction that began ended with all its rows, and each deletion its tombstone?"""
    rows = [line["value"] for line in lines if line["topic"] == "t"]
    marks = [line["value"] for line in lines if line["topic"] == "transaction"]
    begun = {_unit(mark) for mark in marks if mark["status"] == "BEGIN"}
    sizes = {_unit(mark): mark["event_count"] for mark in marks if mark["status"] == "END"}
    count: dict[str, int] = {}
    for row in rows:
        if row is not None and row["transaction"] is not None:
            count[_unit(row["transaction"])] = count.get(_unit(row["transaction"]), 0) + 1
    following = [*rows[1:], {}]
    return (
        count == sizes
        and begun == sizes.keys()
        and all(
            after is None for row, after in zip(rows, following, strict=True) if row is not None and row["op"] == "d"
        )
    )


def _unit(about: Line) -> str:
    """The name of a transaction; behind PostgreSQL's stands the LSN of the operation."""
    whole = str(about["id"])
    name = whole.partition(":")[0]
    return name if name.isdecimal() else whole


def _place(source: Line) -> tuple[Any, ...]:
    if source["connector"] == "mysql":
        return source["file"], source["pos"]
    return tuple(int(part) for part in source["sequence"].strip("[]").replace('"', "").split(","))


def _is_one_history(rows: list[Line]) -> bool:
    """Does each change replace what was there? A table may be truncated, which is not sent, before an insertion."""
    state: dict[int, Line | None] = {}
    for row in rows:
        key, change = row["key"]["id"], row["value"]
        if change is None:
            continue
        known = state.get(key, change["before"])
        if change["op"] in ("u", "d"):
            before = change["before"]
            is_partial = before is None or before["v"] is None
            if key in state and (known is None or (not is_partial and before != known)):
                return False
        state[key] = change["after"]
    return True


def _have_tombstones(rows: list[Line]) -> bool:
    """Does a tombstone follow each deletion, and nothing else?

    They may be switched on or off once. Before any key came twice, compaction may have removed their deletions.
    """
    following = [*rows[1:], None]
    has = [
        next_row["value"] is None and next_row["key"] == row["key"]
        for row, next_row in zip(rows, following, strict=True)
        if row["value"] is not None and row["value"]["op"] == "d" and next_row is not None
    ]
    switches = sum(one != other for one, other in pairwise(has))
    before = [None, *rows[:-1]]
    alone = [
        row
        for row, last in zip(rows, before, strict=True)
        if row["value"] is None and (last is None or last["value"] is None or last["value"]["op"] != "d")
    ]
    keys = [row["key"]["id"] for row in rows]
    whole = next((place for place, key in enumerate(keys) if key in keys[:place]), len(rows))
    return switches <= 1 and all(row["of"] is None and rows.index(row) <= whole for row in alone)


# CockroachDB and etcd: beside their sources.


def _cockroachdb(items: Items) -> bool:
    came: list[Event] = []
    marks: dict[str, int] = {}
    for place, item in enumerate(items):
        line = item.line
        if item.thing in ("row", "tombstone"):
            event = (line["position"], line["key"], line["value"])
            of_key = [other[0] for other in came if other[1] == line["key"]]
            if event not in _written(items[:place]) or (
                event not in came and line["position"] < max(of_key, default=0)
            ):
                return False
            came.append(event)
        elif item.thing == "watermark":
            below = [
                event
                for event in _written(items)
                if event[0] < line["position"] and f"p{int(event[1][1:]) % 2}" == line["span"]
            ]
            if line["position"] < marks.get(line["span"], 0) or any(event not in came for event in below):
                return False
            marks[line["span"]] = line["position"]
    return True


def _etcd(items: Items) -> bool:
    came: list[Event] = []
    marks: dict[int, int] = {}  # By session. What was on its way comes after its close.
    for place, item in enumerate(items):
        line = item.line
        written = _written(items[:place])
        if item.thing in ("row", "tombstone"):
            event = (line["position"], line["key"], line["value"])
            if event in came or event not in written or line["position"] < max((e[0] for e in came), default=0):
                return False
            came.append(event)
            # What precedes it has come, and cannot come any more.
            if any(e not in came for e in _written(items) if e[0] < line["position"]):
                return False
        elif item.thing in ("watermark", "open"):
            position, session = line["position"], line["session"]
            if any(e not in came for e in _written(items) if e[0] <= position) or position < marks.get(session, 0):
                return False
            if position > max((e[0] for e in written), default=0):
                return False
            marks[session] = position
    return True


def _written(items: Sequence[Item]) -> list[Event]:
    """What the operations of the source wrote: position, key and value."""
    operations = [item.line for item in items if item.thing == "source"]
    return [(each["commit_ts"], key, value) for each in operations for _, key, value in each["mops"]]


_LEGAL: Final[dict[str, Callable[[Items], bool]]] = {
    "postgresql": _debezium,
    "mysql": _debezium,
    "cockroachdb": _cockroachdb,
    "etcd": _etcd,
}
