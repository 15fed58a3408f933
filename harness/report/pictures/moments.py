"""The content of a trace by kind: messages with both ends, spans of time, and moments.

There are two passes over the file. The first keeps no content, so that a trace of any length fits into memory; the
second reads the content of the messages to draw.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from checkers.history.names import Forms
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.core.trace import MESSAGES, TraceRecord
from harness.report.evidence import key_text
from harness.report.pictures.members import PLAIN

_SPANS: Final = {"crash": ("start", "down"), "pause": ("resume", "paused")}
EventName = tuple[str, int, int]  # The subscriber, its session, and the number of the event in that session.
_QUIET: Final = ("tick",)  # Marks that only serve to compare runs.


@dataclass(slots=True)
class Message:
    """A message as recorded in the trace. It may arrive more than once, or never."""

    sent_ns: int
    source: str
    target: str
    type: str
    arrivals_ns: list[int] = field(default_factory=list)
    handled_ns: list[int] = field(default_factory=list)
    lost_ns: int | None = None
    content: str = ""
    label: str = ""  # Not empty: it decides a finding.


@dataclass(slots=True)
class Span:
    """A span of time at a node or, without one, of the run. None as an end: it began before, or continued after."""

    kind: str
    node: str | None
    begin_ns: int | None
    end_ns: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment. `group` links related ones: the same watermark, the same view. With a `label` it decides a finding."""

    ns: int
    node: str | None
    kind: str
    text: str
    group: str | None = None
    event: EventName | None = None
    label: str = ""


@dataclass(slots=True)
class Moments:
    """The content of a whole trace."""

    nodes: list[str] = field(default_factory=list)
    messages: dict[int, Message] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    watermarks: list[Moment] = field(default_factory=list)
    rows: list[Moment] = field(default_factory=list)
    timers: list[Moment] = field(default_factory=list)
    views: list[Moment] = field(default_factory=list)
    phases: list[Moment] = field(default_factory=list)
    notable: list[Moment] = field(default_factory=list)  # For the list next to the drawing.
    counts: Counter[str] = field(default_factory=Counter)


def event_of(record: TraceRecord) -> EventName | None:
    """The name of the event that a line shows; None if it shows something else."""
    fields = record.fields if record.what == "event" and isinstance(record.fields, dict) else {}
    session, number = fields.get("session"), fields.get("number")
    return (str(record.node), session, number) if isinstance(session, int) and isinstance(number, int) else None


def read_trace(path: Path) -> Iterator[TraceRecord]:
    """The lines of a trace. Raises HistoryError if one cannot be read."""
    decode = msgspec.json.Decoder(TraceRecord).decode
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise HistoryError(f"{path}, line {number}: {error}") from None


def gather(records: Iterator[TraceRecord], forms: Forms = PLAIN) -> Moments:
    """The first pass: all messages, spans and moments, without content."""
    found = Moments()
    nodes: dict[str, None] = {}
    lasting: dict[tuple[str, str], Span] = {}
    for record in records:
        found.counts[record.what] += 1
        if record.node is not None:
            nodes.setdefault(record.node)
        if record.what in MESSAGES:
            _message(found, record)
        elif record.what in ("sync", "durable"):
            _disk(found, lasting, record)
        else:
            _moment(found, record, forms)
            _span(found, lasting, record)
    found.nodes = list(nodes)
    return found


def read_contents(records: Iterator[TraceRecord], messages: Mapping[int, Message], *, most: int) -> None:
    """The second pass: fill in the content of these messages, at most `most` characters each."""
    for record in records:
        message = messages.get(record.number) if record.what == "send" and record.number is not None else None
        if message is not None:
            text = msgspec.json.encode(record.fields).decode(errors="replace")
            message.content = text if len(text) <= most else f"{text[:most]} …"


def _message(found: Moments, record: TraceRecord) -> None:
    if record.number is None:
        return
    if record.what == "send":
        found.messages[record.number] = Message(record.ns, str(record.node), str(record.peer), str(record.type))
        return
    message = found.messages[record.number]
    if record.what == "deliver":
        message.arrivals_ns.append(record.ns)
    elif record.what == "handle":
        message.handled_ns.append(record.ns)
    else:
        message.lost_ns = record.ns


def _disk(found: Moments, lasting: dict[tuple[str, str], Span], record: TraceRecord) -> None:
    """Add a sync's span, which lasts until its writes are durable."""
    key = ("sync", f"{record.node}/{record.number}")
    if record.what == "sync":
        lasting[key] = Span("sync", record.node, record.ns, None, f"writes up to number {record.number} on their way")
        found.spans.append(lasting[key])
    elif key in lasting:
        lasting.pop(key).end_ns = record.ns


def _span(found: Moments, lasting: dict[tuple[str, str], Span], record: TraceRecord) -> None:
    node = str(record.node)
    if record.what == "fault":
        key = ("fault", str(record.number))
        if record.note == "begin":
            lasting[key] = Span("fault", None, record.ns, None, _fault_text(record))
            found.spans.append(lasting[key])
        elif record.note == "end" and key in lasting:
            lasting.pop(key).end_ns = record.ns
        return
    if record.what == "crash" and ("paused", node) in lasting:
        lasting.pop(("paused", node)).end_ns = record.ns
    if record.what in _SPANS:
        _, kind = _SPANS[record.what]
        lasting[kind, node] = Span(kind, node, record.ns, None, record.note or "")
        found.spans.append(lasting[kind, node])
    for end, kind in _SPANS.values():
        if record.what == end and (kind, node) in lasting:
            lasting.pop((kind, node)).end_ns = record.ns


def _moment(found: Moments, record: TraceRecord, forms: Forms) -> None:
    fields = record.fields if isinstance(record.fields, dict) else {}
    where = fields.get("position")
    match record.what:
        case "timer":
            found.timers.append(Moment(record.ns, record.node, "timer", f"timer {record.type}"))
        case "event" if record.type == "watermark":
            mark = forms.watermark(where) if isinstance(where, int) else f"watermark {where}"
            text = f"{mark} (session {fields.get('session')})"
            found.watermarks.append(Moment(record.ns, record.node, "watermark", text, str(where), event_of(record)))
        case "event" if record.type == "row":
            text = f"row {key_text(fields.get('key'), forms)}: {fields.get('value')}{_place(where, forms)}"
            found.rows.append(Moment(record.ns, record.node, "row", text, event=event_of(record)))
        case "state" if record.type == "view":
            text = f"view {fields.get('key')}: {fields.get('value')}"
            found.views.append(Moment(record.ns, record.node, "view", text, str(fields.get("key"))))
            found.notable.append(Moment(record.ns, record.node, "view", text))
        case "mark" if record.type not in _QUIET:
            found.phases.append(Moment(record.ns, None, "phase", str(record.type)))
            found.notable.append(Moment(record.ns, None, "phase", str(record.type)))
        case "fault":
            found.notable.append(Moment(record.ns, None, f"fault {record.note}", _fault_text(record)))
        case "crash" | "start" | "pause" | "resume" | "closed":
            text = f"connection with {record.peer} ended" if record.what == "closed" else record.note or ""
            found.notable.append(Moment(record.ns, record.node, record.what, text))
        case "event":
            text = f"session {fields.get('session')}: {record.type}{_place(where, forms)}"
            found.notable.append(Moment(record.ns, record.node, "stream", text))


def _place(position: Json, forms: Forms) -> str:
    """The place of an event: " at epoch 10/10"; empty without a position."""
    if position is None:
        return ""
    return f" at {forms.position(position)}" if isinstance(position, int) else f" at position {position}"


def _fault_text(record: TraceRecord) -> str:
    fields = record.fields if isinstance(record.fields, dict) else {}
    targets = fields.get("targets")
    named = ", ".join(map(str, targets)) if isinstance(targets, list) else ""
    effect = f" ({fields['note']})" if "note" in fields else ""
    return f"{record.type}: {named}{effect}"
