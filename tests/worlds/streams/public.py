"""Legal streams as Debezium, CockroachDB and etcd send them, drawn at random, and one change drawn of sixteen.

A world is a source of transactions in the order of their commits. Debezium's streams stand alone; CockroachDB's and
etcd's stand beside the operations of the source, which tell what was lost.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.core.draw import Draw, Stream

THINGS: Final = ("row", "transaction", "tombstone", "watermark")
DEEDS: Final = ("lost", "doubled", "moved", "torn")
KEYS: Final = 4
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A line of a stream: what it is, its transaction (-1: none), and its content."""

    thing: str  # row, tombstone (a row that deletes), watermark; begin, open, close, snapshot, source
    unit: int
    line: Line


Items = list[Item]


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction: its number, and the new value of each key; None: it was deleted."""

    number: int
    writes: tuple[tuple[int, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How users run a connector. Transaction metadata and tombstones are on."""

    is_once: bool  # Kafka Connect's exactly-once delivery; else a restart sends some again.
    has_images: bool  # Replica identity full, or MySQL's binlog_row_image, which is full unless somebody changes it.
    has_snapshot: bool


def source(draw: Stream) -> list[Commit]:
    """Transactions in the order of their commits. A key that is deleted was there."""
    alive: set[int] = set()
    result = []
    for number in range(1, draw.between(12, 24)):
        writes: list[tuple[int, int | None]] = []
        for key in sorted(draw.sample(range(KEYS), draw.between(1, 3))):
            is_deleted = key in alive and draw.chance(1, 4)
            writes.append((key, None if is_deleted else 100 * number + key))
            alive = alive - {key} if is_deleted else alive | {key}
        result.append(Commit(number, tuple(writes)))
    return result


# Debezium


def postgresql(draw: Stream, *, is_once: bool = False) -> Items:
    """Rows by commits, with their own LSNs, which may fall from one transaction to the next."""

    early = {number for number in range(3, 40) if draw.chance(1, 4)}

    def place(number: int, ordinal: int) -> Line:
        # A transaction may have written before the one that committed before it.
        lsn = 1000 * number + 10 * ordinal - (1500 if number in early else 0)
        return {"connector": "postgresql", "lsn": lsn, "sequence": f'["{1000 * (number - 1) + 900}","{lsn}"]'}

    return _debezium(draw, place, Setup(is_once=is_once, has_images=draw.chance(1, 2), has_snapshot=draw.chance(1, 2)))


def mysql(draw: Stream, *, is_once: bool = False) -> Items:
    """Rows by their places in binary logs, with times that stand still and fall."""

    def place(number: int, ordinal: int) -> Line:
        file, pos = divmod(number * 500, 2000)
        return {"connector": "mysql", "file": f"bin.{file + 9:06}", "pos": pos + 40 * ordinal, "row": 0, "server_id": 7}

    return _debezium(draw, place, Setup(is_once=is_once, has_images=True, has_snapshot=draw.chance(1, 2)))


def _debezium(draw: Stream, place: Callable[[int, int], Line], setup: Setup) -> Items:
    """Transactions with begins and ends, tombstones behind deletions, and a restart that sends some again."""
    commits, state = source(draw), dict[int, int]()
    items: Items = []
    if setup.has_snapshot:
        count = draw.between(1, 3)
        for commit in commits[:count]:
            state = {key: value for key, value in (state | dict(commit.writes)).items() if value is not None}
        commits = commits[count:]
        origin = place(count, 5) | {"snapshot": "true"}
        items = [_change(key, "r", None, value, origin, None) for key, value in sorted(state.items())]
    units = [list(transaction(draw, commit, place, state, setup)) for commit in commits]
    if draw.chance(1, 2) and not setup.is_once:
        cut = draw.between(1, len(units))
        units = [*units[:cut], *units[draw.between(max(0, cut - 3), cut - 1) :]]
    return [*items, *(item for unit in units for item in unit)]


def transaction(
    draw: Stream, commit: Commit, place: Callable[[int, int], Line], state: dict[int, int], setup: Setup
) -> Iterator[Item]:
    def name(ordinal: int) -> str:
        # PostgreSQL's has the LSN of each operation: that of the begin is the first row's, that of the end its own.
        origin = place(commit.number, ordinal)
        return f"{700 + commit.number}:{origin['lsn']}" if "lsn" in origin else f"3e11fa47-71ca:{commit.number}"

    begin = {"status": "BEGIN", "id": name(1)}
    yield Item(thing="begin", unit=commit.number, line=_on("transaction", None, begin))
    for ordinal, (key, value) in enumerate(commit.writes, 1):
        origin = place(commit.number, ordinal) | {"ts_ms": 1_000_000 + draw.between(-500, 500)}
        about = {"id": name(ordinal), "total_order": ordinal, "data_collection_order": ordinal}
        before: Line | None = None if (known := state.get(key)) is None else {"id": key, "v": known}
        op = "d" if value is None else "c" if before is None else "u"
        if before is not None and not setup.has_images:
            before = {"id": key, "v": None} if op == "d" else None
        yield _change(key, op, before, value, origin, about, commit.number)
        if value is None:
            del state[key]
            yield Item(thing="tombstone", unit=commit.number, line=_on("t", key, None))
        else:
            state[key] = value
    count = len(commit.writes)
    sizes = [{"data_collection": "s.t", "event_count": count}]
    end = {"status": "END", "id": name(count + 1), "event_count": count, "data_collections": sizes}
    yield Item(thing="watermark", unit=commit.number, line=_on("transaction", None, end))


def _change(
    key: int, op: str, before: Line | None, value: int | None, origin: Line, about: Line | None, unit: int = -1
) -> Item:
    message = {
        "before": before,
        "after": None if value is None else {"id": key, "v": value},
        "source": origin | {"db": "d", "schema": "s", "table": "t"},
        "op": op,
        "transaction": about,
    }
    return Item(thing="snapshot" if op == "r" else "row", unit=unit, line=_on("t", key, message))


def _on(topic: str, key: int | None, value: Line | None) -> Line:
    return {"topic": topic, "partition": 0, "key": None if key is None else {"id": key}, "value": value}


# Beside their sources


def cockroachdb(draw: Stream, *, is_once: bool = False) -> Items:
    """Rows on two partitions, each with resolved timestamps of its own; a node's restart sends rows again."""
    items = [event("open", 0, position=0)]
    rows: list[Item] = []
    for commit in source(draw):
        items.append(operation(commit))
        for ordinal, (key, value) in enumerate(commit.writes):
            rows.append(row(commit, key, value, ordinal, span=f"p{key % 2}"))
            items.append(rows[-1])
        if draw.chance(1, 5) and not is_once:
            items.append(replace(draw.choice(rows)))
        spans = [span for span in ("p0", "p1") if draw.chance(1, 2)]
        items += [event("watermark", 0, position=commit.number + 1, span=span) for span in spans]
    last = max(item.unit for item in items) + 1
    return [*items, *(event("watermark", 0, position=last, span=span) for span in ("p0", "p1"))]


def etcd(draw: Stream, *, is_once: bool = True) -> Items:
    """A watch of all keys in the order of revisions, with progress notifications; it breaks, and resumes."""
    assert is_once, "a watch sends each event once"
    session, items = 0, [event("open", 0, position=0)]
    for commit in source(draw):
        items.append(operation(commit))
        for ordinal, (key, value) in enumerate(commit.writes):
            items.append(row(commit, key, value, ordinal, session=session))
        if draw.chance(1, 3):
            items.append(event("watermark", session, position=commit.number))
        if draw.chance(1, 6):
            items.append(event("close", session))
            session += 1
            items.append(event("open", session, position=commit.number))
    return [*items, event("watermark", session, position=max(item.unit for item in items))]


def operation(commit: Commit) -> Item:
    steps = [["w", f"k{key}", "gone" if value is None else value] for key, value in commit.writes]
    return Item(thing="source", unit=commit.number, line={"mops": steps, "commit_ts": commit.number})


def row(
    commit: Commit, key: int, value: int | None, ordinal: int, *, session: int = 0, span: str | None = None
) -> Item:
    line = {"kind": "row", "session": session, "key": f"k{key}", "value": "gone" if value is None else value}
    line |= {"position": commit.number, "ordinal": ordinal} | ({} if span is None else {"span": span})
    return Item(thing="tombstone" if value is None else "row", unit=commit.number, line=line)


def event(kind: str, session: int, **fields: object) -> Item:
    return Item(thing=kind, unit=-1, line={"kind": kind, "session": session, **fields})


def lines(items: Items) -> list[Line]:
    """The lines of a stream beside its source, as our own records."""
    result: list[Line] = []
    index, time, numbers = 0, 0, dict[int, int]()
    for item in items:
        time += 2
        if item.thing == "source":
            same = {"index": index, "process": 0}
            invoked = {"type": "invoke", "time_ns": time, "intended_ns": time, "f": "txn", "mops": item.line["mops"]}
            result += [
                same | invoked,
                {"type": "complete", "index": index, "time_ns": time + 1, "outcome": "ok"} | item.line,
            ]
            index += 1
        else:
            number = numbers.get(item.line["session"], 0)
            numbers[item.line["session"]] = number + 1
            result.append({"type": "event", "time_ns": time, "subscriber": "s", "number": number} | item.line)
    return result


def logs(kind: str, items: Items) -> list[list[Line]]:
    """What a user gets: of Debezium two topics, which have no order between them, of others one stream."""
    topics = ("t", "transaction") if kind in ("postgresql", "mysql") else (None,)
    return [[item.line for item in items if topic in (None, item.line.get("topic"))] for topic in topics]


# One change


def changed(draw: Stream, items: Items, thing: str, deed: str) -> Items | None:
    """The stream with one thing lost, doubled, moved or torn; None if it has no such thing that was sent once."""
    wanted = "row" if thing == "transaction" else thing
    sent = [item.line for item in items]
    places = [p for p, item in enumerate(items) if item.thing == wanted and sent.count(item.line) == 1]
    if not places:
        return None
    place = draw.choice(places)
    unit = items[place].unit
    parts = [place]
    if thing == "transaction":
        parts = [p for p in range(len(items)) if items[p].unit == unit and items[p].thing != "source"]
    match deed:
        case "lost":
            return [item for p, item in enumerate(items) if p not in parts]
        case "doubled":
            return [*items[: parts[-1] + 1], *(items[p] for p in parts), *items[parts[-1] + 1 :]]
        case "moved":
            rest = [item for p, item in enumerate(items) if p not in parts]
            target = draw.below(len(rest) + 1)
            return [*rest[:target], *(items[p] for p in parts), *rest[target:]]
        case _:
            return _torn(items, thing, parts)


def _torn(items: Items, thing: str, parts: list[int]) -> Items | None:
    """A transaction without its last row; a row or tombstone with another value; a watermark that claims more."""
    if thing == "transaction":
        rows = [p for p in parts if items[p].thing in ("row", "tombstone")]
        return [item for p, item in enumerate(items) if p != rows[-1]] if len(rows) > 1 else None
    [place] = parts
    line, result = items[place].line, list(items)
    if "kind" in line:
        new = line | ({"position": line["position"] + 2} if thing == "watermark" else {"value": 31})
    elif thing == "row":
        after = line["value"]["after"]
        if after is None:
            return None
        new = line | {"value": line["value"] | {"after": after | {"v": 31}}}
    elif thing == "watermark":
        sizes = [{"data_collection": "s.t", "event_count": 9}]
        new = line | {"value": line["value"] | {"event_count": 9, "data_collections": sizes}}
    else:
        return None
    result[place] = replace(items[place], line=new)
    return result


STREAMS: Final[dict[str, Callable[..., Items]]] = {
    "postgresql": postgresql,
    "mysql": mysql,
    "cockroachdb": cockroachdb,
    "etcd": etcd,
}


def drawn(kind: str, seed: int) -> tuple[Items, Stream, bool]:
    """A legal stream of that kind, what draws a change of it, and whether its user declares that each event comes once.

    A watch of etcd promises that itself. All others promise each event at least once, unless declared otherwise.
    """
    draw = Draw(seed)
    is_once = kind == "etcd" or draw.stream("promise").chance(1, 2)
    return STREAMS[kind](draw.stream(kind), is_once=is_once), draw.stream("change"), is_once
