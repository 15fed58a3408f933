"""CockroachDB's changefeed messages.

Sources: its documentation, Changefeed Messages, and Changefeed Message Envelope for the enriched one.
"""

from collections.abc import Iterator
from typing import Final

from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.streams.line import DELETED, Content, StreamFormat, decoded, enveloped, inside, span_of

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


def crdb_lines(line: Json) -> Iterator[Content]:
    """A row, a resolved timestamp, or all messages of a webhook's payload. Raises ValueError for any other line."""
    payload = inside(line, "payload")
    if isinstance(payload, list):
        for each in payload:
            yield from crdb_lines(each)
        return
    around, message = enveloped(line)
    span = span_of(around)
    if "resolved" in message:
        yield Content("watermark", position=message["resolved"], span=span)
        return
    at = message.get("updated", inside(message, "source.ts_hlc"))
    if "after" not in message or at is None:
        raise ValueError(
            "it is no changefeed message: it has neither after and updated, nor resolved; create the changefeed WITH "
            "updated, resolved, envelope = wrapped (or enriched, with enriched_properties = source)"
        )
    key = message.get("key", decoded(around.get("key")))
    if key is None:
        raise ValueError(
            "it has no key: create the changefeed WITH key_in_value, or write each line with key and value"
        )
    topic = around.get("topic", around.get("table", message.get("topic")))
    value = DELETED if message["after"] is None else message["after"]
    yield Content("row", [topic, key] if topic is not None else key, value, at, span=span)


def crdb() -> StreamFormat:
    """The format of CockroachDB's changefeeds."""
    return StreamFormat("crdb", CRDB_CONTRACT, crdb_lines)
