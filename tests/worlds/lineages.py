"""Small streams over logs that split and merge: drawn, read by one subscriber or a group, and then spoiled.

Hashes are below 8 steps of 2^60, so that ranges have few edges.
"""

from itertools import pairwise
from random import Random

from harness.core.record import Json, StreamEvent

STEP = 1 << 60
STEPS = 8
KEYS = (0, 3, 5, 7)  # A key's hash is its number of steps.
Ranges = list[list[int]]


class Told:
    """A stream as it is told, event by event."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []

    def _add(self, who: str, session: int, kind: str, span: str | None, key: Json = None, value: Json = None,
             position: int | None = None, unit: int | None = None) -> None:  # fmt: skip
        at = len(self.events)
        self.events.append(StreamEvent(at, who, session, at, kind, span, key, value, position, unit=unit))

    def log(self, name: str, parents: list[str], *ranges: tuple[int, int], who: str = "r", session: int = 0) -> None:
        """A log is declared, with its ranges in steps."""
        value: Json = {"parents": [*parents], "ranges": [[low * STEP, high * STEP] for low, high in ranges]}
        self._add(who, session, "successors", name, None, value)

    def hash(self, key: int, steps: int | None = None, who: str = "r", session: int = 0) -> None:
        """The hash of a key, by default its own number of steps."""
        self._add(who, session, "hash", None, key, (key if steps is None else steps) * STEP)

    def row(self, log: str, position: int, key: int, unit: int | None = None, who: str = "r", session: int = 0) -> None:
        """An event of a key."""
        self._add(who, session, "row", log, key, position, position, unit)

    def mark(self, kind: str, log: str, who: str = "r", session: int = 0, position: int | None = None) -> None:
        """The begin, the end or a gap of a log; a gap may have the position up to which it skips."""
        self._add(who, session, kind, log, position=position)


def drawn(draw: Random) -> list[StreamEvent]:
    """A stream in which all is as it should be: each log is read to its end before those that follow it."""
    told = Told()
    for key in KEYS:
        told.hash(key)
    cut = draw.randint(1, STEPS - 1)
    live: dict[str, tuple[int, int]] = {"a": (0, cut), "b": (cut, STEPS)} if draw.random() < 0.5 else {"a": (0, STEPS)}
    for name, part in live.items():
        told.log(name, [], part)
    names = iter("cdefghijkl")
    offsets: dict[str, int] = {}
    units = 0

    def read(log: str) -> None:
        nonlocal units
        units += 1
        for _ in range(draw.randint(0, 2)):
            keys = [key for key in KEYS if live[log][0] <= key < live[log][1]]
            if keys:
                offsets[log] = offsets.get(log, 0) + 1
                told.row(log, offsets[log], draw.choice(keys), units if draw.random() < 0.8 else None)

    for _ in range(draw.randint(1, 3)):
        for log in list(live):
            told.mark("open", log) if log not in offsets and draw.random() < 0.3 else None
            read(log)
        ended = draw.sample(sorted(live), 1)
        if len(live) > 1 and draw.random() < 0.4:
            ended = sorted(live, key=lambda log: live[log])[:2]
        low, high = min(live[log][0] for log in ended), max(live[log][1] for log in ended)
        for log in ended:
            if draw.random() < 0.8:
                kind = draw.choice(["end", "end", "gap"])
                reached = offsets.get(log, 0)
                told.mark(kind, log, position=reached + 2 if kind == "gap" and reached % 2 else None)
            del live[log]
        edges = sorted({low, high, *(draw.randint(low, high) for _ in range(draw.randint(0, 1)))})
        for begin, end in pairwise(edges):
            name = next(names)
            live[name] = (begin, end)
            told.log(name, ended, (begin, end))
    for log in list(live):
        read(log)
    return told.events


def spoiled(events: list[StreamEvent], draw: Random) -> list[StreamEvent]:
    """The stream with one or two faults: events left out, moved or changed."""
    events = list(events)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(events))
        match draw.randrange(4):
            case 0:
                del events[at]
            case 1:
                events.insert(draw.randrange(len(events)), events.pop(at))
            case 2:
                other = draw.randrange(len(events))
                events[at], events[other] = events[other], events[at]
            case _:
                events[at] = _changed(events[at], draw)
        if not events:
            break
    return events


def _changed(event: StreamEvent, draw: Random) -> StreamEvent:
    """The event with another range, unit or session."""
    fields = {name: getattr(event, name) for name in StreamEvent.__struct_fields__}
    if event.kind == "successors" and isinstance(event.value, dict):
        low, high = sorted(draw.sample(range(STEPS + 1), 2))
        fields["value"] = {**event.value, "ranges": [[low * STEP, high * STEP]]}
    elif event.kind == "row":
        fields["unit"] = draw.randint(1, 4)
    else:
        fields["session"] = 1
    return StreamEvent(**fields)
