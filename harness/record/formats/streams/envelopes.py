"""CockroachDB's changefeed messages.

Sources: its documentation, Changefeed Messages, and Changefeed Message Envelope for the enriched one.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypedDict

import msgspec

from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.jsonl import Shape
from harness.record.formats.streams.line import (
    DELETED,
    Content,
    Fields,
    Partition,
    Plain,
    StreamFormat,
    decoded,
    enveloped,
    inside,
    span_of,
    spans_of,
    text_in,
)

# A row is sent again when a node of the feed restarts, so only first deliveries are ordered, per
# key. Events exactly at a resolved timestamp may still come.
CRDB_CONTRACT: Final = StreamContract(
    closed="<",
    cut="position",
    position="commit-timestamp",
    order_key="key",
    delivery="at-least-once",
    replay="session",
    atomic_unit="none",
    unit_rows="final",
    identity="position+key",
    wm_scope="partition",
    follows_clock=True,
)


class _Message(TypedDict, total=False):
    """The fields of a message and of its envelopes; not those of an enriched message's schema, most of its text."""

    topic: Any
    table: Any
    partition: Any
    offset: Any
    key: Any
    value: "_Message | str | None"
    payload: "_Message | list[_Message] | str | None"
    op: Any
    after: Any
    updated: Any
    resolved: Any
    source: Any


def _is_message(line: Json) -> bool:
    return isinstance(line, dict) and not _NAMES.isdisjoint(line)


_NAMES: Final = frozenset(("after", "resolved", "value", "payload"))
SHAPE: Final = Shape(msgspec.json.Decoder(_Message), _is_message, text_in)


def crdb_lines(line: Json) -> Iterator[Content]:
    """A row, a resolved timestamp, or all messages of a webhook's payload. Raises ValueError for any other line."""
    payload = line.get("payload") if isinstance(line, dict) else None
    if isinstance(payload, list):
        for each in payload:
            yield from crdb_lines(each)
        return
    around, message = enveloped(line)
    span = span_of(around)
    if "resolved" in message:
        yield Content("watermark", position=message["resolved"], span=span)
        return
    at = message["updated"] if "updated" in message else inside(message, "source.ts_hlc")
    if "after" not in message or at is None:
        raise ValueError(
            "it is no changefeed message: it has neither after and updated, nor resolved; create the changefeed WITH "
            "updated, resolved, envelope = wrapped (or enriched, with enriched_properties = source)"
        )
    key = message["key"] if "key" in message else decoded(around.get("key"))
    if key is None:
        raise ValueError(
            "it has no key: create the changefeed WITH key_in_value, or write each line with key and value"
        )
    topic = around.get("topic", around.get("table", message.get("topic")))
    value = DELETED if message["after"] is None else message["after"]
    yield Content("row", [topic, key] if topic is not None else key, value, at, span=span)


class _Wrapped(Partition):
    after: Any = msgspec.UNSET
    updated: str | None = None
    resolved: str | msgspec.UnsetType = msgspec.UNSET
    key: Any = None
    table: msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.UnsetType = msgspec.UNSET


def _columns(lines: Sequence[_Wrapped]) -> Fields | None:
    """Wrapped messages by columns, as `crdb_lines` gives each of them; None if one is no such message."""
    rows = [line for line in lines if line.resolved is msgspec.UNSET]
    if any(line.after is msgspec.UNSET or line.updated is None or line.key is None for line in rows):
        return None
    are_marks = [line.resolved is not msgspec.UNSET for line in lines]
    with_marks = list(zip(are_marks, lines, strict=True))
    return {
        "span": spans_of(lines),
        "kind": ["watermark" if is_mark else "row" for is_mark in are_marks],
        "key": [
            None if is_mark else line.key if line.topic is None else [line.topic, line.key]
            for is_mark, line in with_marks
        ],
        "value": [None if is_mark else DELETED if line.after is None else line.after for is_mark, line in with_marks],
        "position": [line.resolved if is_mark else line.updated for is_mark, line in with_marks],
    }


PLAIN: Final = (Plain(msgspec.json.Decoder(_Wrapped), _columns),)


def crdb() -> StreamFormat:
    """The format of CockroachDB's changefeeds."""
    return StreamFormat("crdb", CRDB_CONTRACT, crdb_lines, shape=SHAPE, plain=PLAIN)
