"""The records of a trace that decide a finding: the row that came too late or never, and the announced watermark."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from harness.core.record import Json
from harness.core.trace import TraceRecord
from harness.report.evidence import Slice, event_text, key_text
from harness.report.pictures.moments import EventName, Moment, Moments, event_of
from harness.report.pictures.scale import duration, short

WRITES: Final = ("append", "w")


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that an operation of the evidence wrote, with the numbers by which messages name its transaction."""

    key: Json
    value: Json
    names: frozenset[int]


@dataclass(slots=True)
class _Carried:
    """A message that carries such a value to a subscriber. Times in ns; None: it did not happen in the trace."""

    subscriber: str
    value: _Value
    arrived_ns: int | None = None
    is_lost: bool = False


@dataclass(slots=True)
class Decisive:
    """The labels of the decisive messages, by their number, and of the decisive events."""

    messages: dict[int, str] = field(default_factory=dict)
    events: dict[EventName, str] = field(default_factory=dict)

    def mark(self, found: Moments) -> None:
        """Label these messages and events in `found`."""
        for number in self.messages.keys() & found.messages.keys():
            found.messages[number].label = self.messages[number]
        found.watermarks = [self._marked(each) for each in found.watermarks]
        found.rows = [self._marked(each) for each in found.rows]

    def _marked(self, moment: Moment) -> Moment:
        label = self.events.get(moment.event) if moment.event is not None else None
        return moment if label is None else replace(moment, label=label)


def decisive(records: Sequence[TraceRecord], found: Slice) -> Decisive:
    """The decisive messages and events of a finding in the trace of its run.

    These are the events of the evidence, and the messages which brought them; the messages that carry a written value
    of the evidence to a subscriber, unless it was delivered before the subscriber's watermark; and without events the
    answers to the clients.
    """
    marked = [event for seq, event in found.events if f"event {seq}" in found.numbers]
    result, marks = Decisive(), dict[str, int]()
    for event in marked:
        if event.kind == "watermark":
            marks[event.subscriber] = max(event.time_ns, marks.get(event.subscriber, 0))
    for event in marked:
        late = "" if event.kind == "watermark" else _after(event.time_ns, marks.get(event.subscriber))
        named = "watermark: " if event.kind == "watermark" else ""
        result.events[event.subscriber, event.session, event.number] = f"{named}{event_text(event, found.forms)}{late}"
    subscribers = {event.subscriber for event in marked}
    for number, each in _carried(records, subscribers, list(_written(found))).items():
        label = _label(each, marks.get(each.subscriber), _delivered(records, each), found)
        if label is not None:
            result.messages[number] = label
    answers = set() if marked else {index for index, _ in _evidence(found)}
    for number, label in _causes(records, result.events, answers):
        result.messages.setdefault(number, label)
    return result


def _evidence(found: Slice) -> Iterator[tuple[int, frozenset[int]]]:
    """The operations of the evidence, by index, with the numbers that name their transactions."""
    for invoke, complete in found.operations:
        if f"op {invoke.index}" in found.numbers:
            names = () if complete is None else (complete.txn, complete.commit_ts)
            yield invoke.index, frozenset(each for each in names if each is not None)


def _written(found: Slice) -> Iterator[_Value]:
    names = dict(_evidence(found))
    for invoke, complete in found.operations:
        if invoke.index in names:
            for mop in (complete.mops if complete is not None else None) or invoke.mops or ():
                if mop.f in WRITES:
                    yield _Value(mop.key, mop.value, names[invoke.index])


def _carried(records: Iterable[TraceRecord], subscribers: set[str], values: Sequence[_Value]) -> dict[int, _Carried]:
    """The messages to these subscribers that carry one of the values, by number, with their ends."""
    found: dict[int, _Carried] = {}
    for record in records:
        if record.number is None:
            continue
        if record.what == "send" and record.peer in subscribers:
            value = next((each for each in values if _carries(record.fields, each)), None)
            if value is not None:
                found[record.number] = _Carried(record.peer, value)
        elif record.number in found and record.what == "deliver":
            found[record.number].arrived_ns = record.ns
        elif record.number in found and record.what == "lost":
            found[record.number].is_lost = True
    return found


def _carries(fields: Json, value: _Value) -> bool:
    """True if a message with that content has an object with the key and the value, and names the transaction."""
    has_pair = any(_is_pair(each, value) for each in _objects(fields))
    return has_pair and (not value.names or not value.names.isdisjoint(numbers_in(fields)))


def _is_pair(content: dict[str, Json], value: _Value) -> bool:
    keys = {name for name, each in content.items() if each == value.key}
    values = {name for name, each in content.items() if each == value.value}
    return bool(keys and values and len(keys | values) > 1)


def _objects(value: Json) -> Iterator[dict[str, Json]]:
    """All objects inside a value, itself included."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _objects(each)


def numbers_in(value: Json) -> Iterator[int]:
    """All whole numbers inside a value."""
    if type(value) is int:
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(each)


def _delivered(records: Iterable[TraceRecord], carried: _Carried) -> int | None:
    """The time at which the subscriber delivered the value as a row."""
    for record in records:
        if record.what == "event" and record.type == "row" and record.node == carried.subscriber:
            fields = record.fields if isinstance(record.fields, dict) else {}
            if (fields.get("key"), fields.get("value")) == (carried.value.key, carried.value.value):
                return record.ns
    return None


def _label(carried: _Carried, mark_ns: int | None, delivered_ns: int | None, found: Slice) -> str | None:
    """The label of a message; None if its value was delivered in time."""
    if delivered_ns is not None and (mark_ns is None or delivered_ns <= mark_ns):
        return None
    value = f"row {key_text(carried.value.key, found.forms)} = {short(carried.value.value, 24)}"
    if carried.arrived_ns is None:
        return f"{value}: {'lost' if carried.is_lost else 'still under way'}"
    end = ", not delivered" if delivered_ns is None else ", delivered too late"
    return f"{value}: arrived{_after(carried.arrived_ns, mark_ns)}{end}"


def _after(ns: int, mark_ns: int | None) -> str:
    """The time from the watermark to that moment, in words."""
    if mark_ns is None:
        return ""
    return f" {duration(abs(ns - mark_ns))} {'after' if ns > mark_ns else 'before'} the watermark"


def _causes(
    records: Iterable[TraceRecord], events: dict[EventName, str], answers: set[int]
) -> Iterator[tuple[int, str]]:
    """The messages whose arrival made an event or an answer, with its label: the last one to that end, at that time."""
    last: dict[str, TraceRecord] = {}
    for record in records:
        if record.what in ("deliver", "handle"):
            last[str(record.node)] = record
        elif (event := event_of(record)) is not None:
            cause, label = last.get(event[0]), events.get(event)
            if label is not None and cause is not None and cause.ns == record.ns and cause.number is not None:
                yield cause.number, label
        elif record.what == "complete" and isinstance(record.fields, dict) and record.fields.get("index") in answers:
            cause = next((each for each in last.values() if each.ns == record.ns and each.peer == record.peer), None)
            if cause is not None and cause.number is not None:
                yield cause.number, f"answer to T{record.fields['index']}"
