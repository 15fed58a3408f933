"""What the readers of a group deliver, beside the stream at rest: guarantees G1, G9, G18 and G20.

1. `unlike-stream`: a reader delivers what stands at that offset. A witness is a row.
2. `group-lost`: some reader delivers every event of the stream that was not truncated. Judged if an operation
   `drain` succeeded, as the readers' positions were at the end at that time. A witness is an event of the stream.
3. `group-order`: first deliveries of a key are in the order of its stream: a segment follows its predecessors.
   Truncated events are left out, as a reader that skipped them may have been followed by one that still found them. A
   witness is a first delivery from another segment than the one before.
4. `group-repeat`: no event is delivered twice unless one of the sessions ended by its reader's death or removal: then
   its reader has a later session; or unless a restoration lies between them. A witness is a segment that two sessions
   read.
5. `wrong-end`: a segment ends where it was sealed. A witness is an end.

Events that come while nodes show the stream are not judged: they may be newer than the part that a node has shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from clusters.pravega.checks.dumped import Name, Place, Stream, shown, shown_at, stream
from harness.core.columns import OK
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "reader-group"
UNLIKE, LOST, ORDER, REPEAT, END = "unlike-stream", "group-lost", "group-order", "group-repeat", "wrong-end"
ANOMALIES: Final = {
    UNLIKE: "A reader delivered an event that differs from the one at its offset.",
    LOST: "No reader of the group delivered an event that is in the stream.",
    ORDER: "A key's events were first delivered in another order than they stand in.",
    REPEAT: "An event was delivered twice, though no reader died or was removed.",
    END: "A reader saw the end of a segment where it does not end.",
}
Row = Mapping[str, Any]


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all deliveries. Raises HistoryError if they are damaged."""
    found = stream(history, context)
    if found.lacking is not None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, found.lacking))
    names = Dictionary(history)
    columns = ["seq", "ns", "subscriber", "session", "kind", "span", "key", "value", "position"]
    events = [
        row
        for row in rows(history, "events", columns, kind=["open", "row", "gap", "end"])
        if row["ns"] <= found.shown_ns
    ]
    delivered = [row for row in events if row["kind"] == "row"]
    is_drained = any(row["outcome"] == OK for row in rows(history, "ops", ["outcome", "f"], f=["drain"]))
    by_key: dict[Json, list[Row]] = {}
    for row in delivered:
        by_key.setdefault(names.value(row["key"]), []).append(row)
    troubles = [
        *_unlike(found, delivered, names),
        *_repeats(found, delivered, _last_sessions(events)),
        *_ends(found, events),
    ]
    witnesses = dict.fromkeys(ANOMALIES, 0) | {UNLIKE: len(delivered), REPEAT: _shared(delivered)}
    witnesses[END] = sum(row["kind"] == "end" for row in events)
    for key in found.keys():  # noqa: SIM118  A method, not a dictionary.
        places = [(name, offset) for name, offset, _ in found.events(key)]
        first = list(dict.fromkeys((_segment(row), int(row["position"])) for row in by_key.get(key, ())))
        there = [place for place in places if place[1] >= found.segments[place[0]].start]
        if is_drained:
            witnesses[LOST] += len(places)
            troubles += _lost(key, there, first)
        witnesses[ORDER] += sum(one[0] != other[0] for one, other in pairwise(first))
        troubles += _disordered(key, there, first)
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _segment(row: Row) -> Name:
    number, epoch = str(row["span"]).split("/")
    return int(number), int(epoch)


def _unlike(found: Stream, delivered: Sequence[Row], names: Dictionary) -> Iterator[Trouble]:
    """1."""
    for row in delivered:
        name, offset = _segment(row), int(row["position"])
        key, value = names.value(row["key"]), names.value(row["value"])
        held = found.segments.get(name)
        event = held.events[offset] if held is not None and offset < len(held.events) else None
        if event is None or (event.key, event.value) != (key, value):
            stands = "nothing" if event is None else f"value {event.value} of key {event.key}"
            what = f"{row['subscriber']} delivered value {value} of key {key} from {shown_at((name, offset))}"
            sentence = f"{what}, where {stands} stands."
            yield Trouble(UNLIKE, sentence, (*name, offset), events=(row["seq"],))


def _lost(key: Json, places: Sequence[Place], first: Sequence[Place]) -> Iterator[Trouble]:
    """2."""
    came = set(first)
    for place in places:
        if place not in came:
            yield Trouble(LOST, f"No reader delivered what key {key} has at {shown_at(place)}.", (key, *place))


def _disordered(key: Json, places: Sequence[Place], first: Sequence[Place]) -> Iterator[Trouble]:
    """3."""
    rank = {place: at for at, place in enumerate(places)}
    known = [place for place in first if place in rank]
    for one, other in pairwise(known):
        if rank[other] < rank[one]:
            sentence = f"Of key {key} {shown_at(one)} was delivered before {shown_at(other)}, which comes before it."
            yield Trouble(ORDER, sentence, (key, *one, *other))


def _last_sessions(events: Sequence[Row]) -> set[int]:
    last: dict[str, int] = {}
    for row in events:
        last[row["subscriber"]] = max(row["session"], last.get(row["subscriber"], 0))
    return set(last.values())


def _repeats(found: Stream, delivered: Sequence[Row], last: set[int]) -> Iterator[Trouble]:
    """4. `last` are the last sessions of all readers."""
    first: dict[tuple[int, Place], Row] = {}
    for row in delivered:
        place = (_segment(row), int(row["position"]))
        restorations = sum(each.session < row["session"] for each in found.restored)
        before = first.setdefault((restorations, place), row)
        both = {before["session"], row["session"]}
        if before is not row and (len(both) == 1 or both <= last):
            sentence = f"{before['subscriber']} delivered {shown_at(place)}, and then {row['subscriber']} did so again."
            yield Trouble(REPEAT, sentence, (*place,), events=(before["seq"], row["seq"]))


def _shared(delivered: Sequence[Row]) -> int:
    """The number of segments that two sessions read."""
    sessions: dict[Name, set[int]] = {}
    for row in delivered:
        sessions.setdefault(_segment(row), set()).add(row["session"])
    return sum(len(each) > 1 for each in sessions.values())


def _ends(found: Stream, events: Sequence[Row]) -> Iterator[Trouble]:
    """5."""
    reached: dict[tuple[int, Name], int] = {}
    for row in events:
        if row["span"] is None:
            continue
        at = (row["session"], _segment(row))
        if row["kind"] != "end":
            reached[at] = int(row["position"]) + (row["kind"] == "row")
            continue
        held = found.segments.get(at[1])
        if held is None or not held.is_sealed or reached.get(at) != len(held.events):
            sentence = f"{row['subscriber']} saw the end of segment {shown(at[1])} at offset {reached.get(at)}."
            yield Trouble(END, sentence, at, events=(row["seq"],))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
