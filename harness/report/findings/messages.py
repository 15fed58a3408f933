"""A few messages around the moment of a finding, from the trace that a replay left in the run's folder."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.core.errors import HistoryError
from harness.core.record import Complete
from harness.core.trace import TraceRecord, Window
from harness.report.evidence import Slice, first_moment
from harness.report.findings.decisive import decisive, numbers_in
from harness.report.model import Report, moment_window
from harness.report.pictures.diagram import Diagram, diagram, is_quiet, lane
from harness.report.pictures.moments import Message, Moments, gather, read_contents, read_trace
from harness.report.series import read_series

TRACE_FILE: Final = "trace.jsonl"
TRACE_PAGE: Final = "trace.html"
SHOWN_MAX: Final = 40
LANE_PX: Final = 38
CONTENT_MAX: Final = 200  # The most characters of a message in its title.
BYTES_MAX: Final = 64 << 20  # A longer trace has a page of its own.


def window_of_first(report: Report, history: Path) -> Window | None:
    """The time around the first finding of a simulated run that broke a promise. Raises HistoryError."""
    if report.runtime != "sim" or not report.findings or report.findings[0].promise is None:
        return None
    seen_ns = first_moment(read_series(history, None), report.findings[0])
    return None if seen_ns is None else moment_window(seen_ns)


def moment_messages(run: Path, found: Slice, subscribers: Sequence[str], around: Window) -> Diagram | None:
    """A drawing of the messages about the evidence in a window: those of its transactions, and with its subscribers.

    None if there is no trace of that window, or if the trace is of another run with other events.
    """
    path = run / TRACE_FILE
    try:
        if not path.is_file() or path.stat().st_size > BYTES_MAX:
            return None
        records = list(read_trace(path))
    except (HistoryError, OSError):
        return None
    if not records or not _is_of(records, found, around):
        return None
    moments = gather(iter(records), found.forms)
    decisive(records, found).mark(moments)
    chosen = _chosen(records, moments, found, around)
    if not chosen:
        return None
    read_contents(iter(records), chosen, most=CONTENT_MAX)
    fitted = _fitted(chosen.values(), found, around)
    return diagram(_only(moments, chosen), chosen, fitted, subscribers, lane_px=LANE_PX, found_ns=found.last_ns)


def _fitted(chosen: Collection[Message], found: Slice, around: Window) -> Window:
    """The part of the window that has those messages and the moment of the finding."""
    ends = [ns for each in chosen for ns in (*each.handled_ns, *each.arrivals_ns, each.lost_ns) if ns is not None]
    moments = [*ends, *(each.sent_ns for each in chosen), found.last_ns]
    within = [ns for ns in moments if around.from_ns <= ns <= around.to_ns]
    low_ns, high_ns = min(within), max(within)
    margin_ns = (high_ns - low_ns) // 20 + 1
    return Window(from_ns=max(around.from_ns, low_ns - margin_ns), to_ns=min(around.to_ns, high_ns + margin_ns))


def _is_of(records: Sequence[TraceRecord], found: Slice, around: Window) -> bool:
    """True if the trace covers the window, and every event of the finding in it is in the trace."""
    if records[0].ns > found.last_ns or records[-1].ns < found.last_ns:
        return False
    marked = [event for seq, event in found.events if f"event {seq}" in found.numbers]
    wanted = {(each.time_ns, each.subscriber) for each in marked if around.from_ns <= each.time_ns <= around.to_ns}
    answered = {complete.time_ns for complete in _answers(found) if around.from_ns <= complete.time_ns <= around.to_ns}
    traced = {(record.ns, record.node) for record in records if record.what == "event"}
    completed = {record.ns for record in records if record.what == "complete"}
    return bool(wanted or answered) and wanted <= traced and answered <= completed


def _chosen(records: Sequence[TraceRecord], moments: Moments, found: Slice, around: Window) -> dict[int, Message]:
    """The decisive messages, those that name a transaction of the evidence, and those to or from its subscribers.

    Of too many the nearest are chosen; heartbeats are left out.
    """
    names = {event.subscriber for seq, event in found.events if f"event {seq}" in found.numbers}
    txns = {complete.txn for complete in _answers(found) if complete.txn is not None}
    telling = {
        record.number
        for record in records
        if record.what == "send"
        and not is_quiet(record.type or "")
        and (txns & set(numbers_in(record.fields)) or {record.node, record.peer} & names)
    }
    within = {
        number: message
        for number, message in moments.messages.items()
        if (number in telling and around.from_ns <= message.sent_ns <= around.to_ns) or message.label
    }

    def place(number: int) -> tuple[bool, int]:
        return not within[number].label, abs(within[number].sent_ns - found.last_ns)

    nearest = sorted(within, key=place)[:SHOWN_MAX]
    return {number: within[number] for number in sorted(nearest)}


def _answers(found: Slice) -> Iterator[Complete]:
    for invoke, complete in found.operations:
        if complete is not None and f"op {invoke.index}" in found.numbers:
            yield complete


def _only(moments: Moments, chosen: dict[int, Message]) -> Moments:
    """The part of the trace about the nodes between which those messages go."""
    nodes = {end for message in chosen.values() for end in (message.source, message.target)}
    lanes = {lane(name) for name in nodes}
    return Moments(
        nodes=[name for name in moments.nodes if lane(name) in lanes],
        messages=chosen,
        spans=[span for span in moments.spans if span.kind in ("down", "paused") and lane(str(span.node)) in lanes],
        watermarks=[each for each in moments.watermarks if each.node in nodes],
        rows=[each for each in moments.rows if each.node in nodes],
    )
