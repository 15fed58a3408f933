"""Two public envelopes of change streams: CockroachDB's changefeed messages, and Debezium's change events.

A message may come alone, or with its key, topic and partition, as tools that read Kafka print it: {"topic": ...,
"partition": ..., "key": ..., "value": ...}, where key and value may be JSON in a text.
Sources: CockroachDB, Changefeed Messages; Debezium, connectors for PostgreSQL and MySQL, transaction metadata.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.streams.line import DELETED, Content, StreamFormat, inside

_SNAPSHOT: Final = "r"
_CHANGES: Final = ("c", "u", "d", _SNAPSHOT)
_SILENT: Final = ("t", "m")  # A truncated table and a user's own message concern no row.

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
# Transactions are sent as they commit, but positions are those of changes in the log: only each key is in order.
DEBEZIUM_CONTRACT: Final = StreamContract(
    closed="<=",
    cut="delivery",
    position="lsn",
    order_key="key",
    delivery="at-least-once",
    replay="session",
    atomic_unit="batch",
    identity="position+key+value",
)


def crdb_lines(line: Json) -> Iterator[Content]:
    """A row, a resolved timestamp, or all messages of a webhook's payload. Raises ValueError for any other line."""
    payload = inside(line, "payload")
    if isinstance(payload, list):
        for each in payload:
            yield from crdb_lines(each)
        return
    around, message = _message(line)
    span = _span(around)
    if "resolved" in message:
        yield Content("watermark", position=message["resolved"], span=span)
        return
    if "after" not in message or "updated" not in message:
        raise ValueError(
            "it is no changefeed message: it has neither after and updated, nor resolved; create the changefeed WITH "
            "updated, resolved, envelope = wrapped"
        )
    key = message.get("key", _json(around.get("key")))
    if key is None:
        raise ValueError(
            "it has no key: create the changefeed WITH key_in_value, or write each line with key and value"
        )
    topic = around.get("topic", message.get("topic"))
    value = DELETED if message["after"] is None else message["after"]
    yield Content("row", [topic, key] if topic is not None else key, value, message["updated"], span=span)


def debezium_lines(line: Json) -> Iterator[Content]:
    """A change, a row of a snapshot, or the end of a transaction; nothing for a heartbeat or a tombstone.

    Raises ValueError for any other line.
    """
    around, message = _message(line)
    if "status" in message and "id" in message:
        if message["status"] == "END":
            yield Content("unit", unit=message["id"], sizes=tuple(_sizes(message)))
        return
    operation = message.get("op")
    if operation in _SILENT or (operation is None and set(message) <= {"ts_ms", "ts_us", "ts_ns"}):
        return
    if operation not in _CHANGES or not isinstance(message.get("source"), dict):
        raise ValueError('it is no change event: it has no op such as "c", "u", "d", "r" with a source')
    collection = _collection(message)
    value = DELETED if message.get("after") is None else message["after"]
    yield Content(
        "backfill" if operation == _SNAPSHOT else "row",
        [collection, _key(around, message)],
        value,
        _position(message),
        span=_span(around),
        unit=inside(message, "transaction.id"),
        ordinal=_number(inside(message, "transaction.total_order")),
        collection=collection,
    )


def _message(line: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """The envelope around the message, and the message."""
    around = line if isinstance(line, dict) else {}
    value = _json(around["value"]) if "value" in around and not {"op", "after", "resolved"} & set(around) else line
    if value is None and "value" in around:
        return around, {"ts_ms": None}  # A tombstone, which repeats that a key was deleted.
    if isinstance(value, dict) and isinstance(value.get("payload"), dict):
        value = value["payload"]
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return around, value


def _json(value: Json) -> Json:
    """The value, decoded if it is JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        found: Json = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    return found


def _span(around: dict[str, Json]) -> str | None:
    partition = around.get("partition")
    if partition is None:
        return None
    topic = around.get("topic")
    return f"{partition}" if topic is None else f"{topic}/{partition}"


def _collection(message: dict[str, Json]) -> str:
    """The table's name as in the metadata of transactions."""
    schema = inside(message, "source.schema") or inside(message, "source.db")
    return f"{schema}.{inside(message, 'source.table')}"


def _key(around: dict[str, Json], message: dict[str, Json]) -> Json:
    key = _json(around.get("key"))
    if isinstance(key, dict) and "payload" in key:
        key = key["payload"]
    if key is None:
        image = message.get("after") or message.get("before")
        key = image.get("id") if isinstance(image, dict) else None
    if key is None:
        raise ValueError("it has no key: write each line with the message's key and value")
    return key


def _position(message: dict[str, Json]) -> Json:
    """The change's position in the log; without one, its time."""
    lsn = inside(message, "source.lsn")
    return inside(message, "source.ts_ms") if lsn is None else lsn


def _sizes(message: dict[str, Json]) -> Iterator[tuple[str, int]]:
    """The number of a transaction's events in each table."""
    collections = message.get("data_collections")
    for each in collections if isinstance(collections, list) else ():
        name, count = inside(each, "data_collection"), _number(inside(each, "event_count"))
        if isinstance(name, str) and count is not None:
            yield name, count


def _number(value: Json) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None


ENVELOPES: Final = {
    "crdb": StreamFormat("crdb", CRDB_CONTRACT, crdb_lines),
    "debezium": StreamFormat("debezium", DEBEZIUM_CONTRACT, debezium_lines),
}
