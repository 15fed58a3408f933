"""The stream as nodes show it at rest: its epochs, the content of segments, and the changes of its records."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from checkers.engine.protocol import Context
from checkers.history.names import Dictionary
from checkers.history.tables import State, states
from clusters.pravega.shape import key_hash
from harness.core.errors import HistoryError
from harness.core.record import Json

Name = tuple[int, int]  # A segment: its number, and the epoch in which it was created.
Place = tuple[Name, int]  # An offset of a segment.


class Event(NamedTuple):
    """An event of a segment. `number` counts the plain events of its writer; `txn` is 0 for these."""

    key: Json
    value: Json
    txn: int
    writer: str
    number: int


class Span(NamedTuple):
    """A segment with its keys."""

    low: int
    high: int
    number: int
    epoch: int

    @property
    def name(self) -> Name:
        """The segment."""
        return self.number, self.epoch


class Epoch(NamedTuple):
    """An epoch: what it refers to, and its segments."""

    reference: int
    spans: tuple[Span, ...]


class Held(NamedTuple):
    """The content of a segment. Readers do not see what is before `start`: it was truncated."""

    is_sealed: bool
    events: tuple[Event, ...]
    start: int


class Change(NamedTuple):
    """A change of the stream's records, as clusters/pravega/metadata/changes.py shows it: what, and its values."""

    what: str
    values: tuple[Any, ...]


class Restored(NamedTuple):
    """A restoration: sessions above `session` began at these offsets, those of a checkpoint."""

    session: int
    checkpoint: int
    offsets: dict[Name, int]


class Stream(NamedTuple):
    """The epochs by number, the segments, the status of each transaction, and all changes in order.

    `lacking`: why that is not the whole stream; None if it is. `shown_ns`: when the first node showed its part. In
    containers scales go on meanwhile.
    """

    epochs: tuple[Epoch, ...]
    segments: dict[Name, Held]
    lacking: str | None
    statuses: dict[int, str]
    changes: tuple[Change, ...]
    restored: tuple[Restored, ...]  # By session.
    shown_ns: int

    def path(self, key: Json) -> list[Name]:
        """The segments of a key, in the order of its stream."""
        place = key_hash(key)
        names = (span.name for epoch in self.epochs for span in epoch.spans if span.low <= place < span.high)
        return list(dict.fromkeys(names))

    def keys(self) -> list[Json]:
        """All keys with events."""
        return list(dict.fromkeys(event.key for held in self.segments.values() for event in held.events))

    def events(self, key: Json) -> list[tuple[Name, int, Event]]:
        """The events of a key in the order of its stream, each with its segment and offset."""
        found = []
        for name in self.path(key):
            for offset, event in enumerate(self.segments[name].events):
                if event.key == key:
                    found.append((name, offset, event))
        return found


def stream(history: Path, context: Context) -> Stream:
    """The stream that this history shows, read once for all checks. Raises HistoryError if it is damaged."""
    return context.facts.of((context.home(history), "pravega-stream"), partial(_read, context.home(history)))


def _read(history: Path) -> Stream:
    found = states(history, Dictionary(history), "epoch", "segment", "txn", "change", "restored")
    try:
        epochs = tuple(msgspec.convert(state.value, Epoch) for state in found["epoch"])
        own = [state for state in found["segment"] if str(state.key).count("/") == 1]  # Others are of transactions.
        held = {_name(str(state.key)): msgspec.convert(state.value, Held) for state in own}
        statuses = {msgspec.convert(state.key, int): str(state.value) for state in found["txn"]}
        cuts = [_restored(state) for state in found["restored"]]
        changed = [msgspec.convert(state.value, list[Any]) for state in found["change"]]
    except (msgspec.ValidationError, ValueError) as error:
        raise HistoryError(f"{history}: a dumped segment or epoch is not of this cluster ({error})") from None
    names = dict.fromkeys(span.name for epoch in epochs for span in epoch.spans)
    missing = [name for name in names if name not in held]
    lacking = None
    if not epochs:
        lacking = "no epochs were shown at rest"
    elif missing:
        lacking = f"segment {shown(missing[0])} was not shown at rest, and {len(missing) - 1} others"
    changes = tuple(Change(str(what), tuple(values)) for what, *values in changed)
    segments = {name: held[name] for name in names if name in held}
    shown_ns = min((state.ns for state in (*found["epoch"], *found["segment"])), default=0)
    return Stream(epochs, segments, lacking, statuses, changes, tuple(sorted(cuts)), shown_ns)


def _restored(state: State) -> Restored:
    checkpoint, offsets = msgspec.convert(state.value, tuple[int, list[tuple[int, int, int]]])
    session = msgspec.convert(state.key, int)
    return Restored(session, checkpoint, {(number, epoch): offset for number, epoch, offset in offsets})


def _name(text: str) -> Name:
    number, epoch = text.split("/")
    return int(number), int(epoch)


def shown_at(place: Place) -> str:
    """A place, as people call it."""
    return f"offset {place[1]} of segment {shown(place[0])}"


def shown(name: Name) -> str:
    """A segment, as people call it."""
    return f"{name[0]}/{name[1]}"
