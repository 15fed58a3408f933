"""Debezium's change events, rows of snapshots, and the begins and ends of transactions.

Sources: Debezium, the connectors' sections on data change events, and on transaction metadata.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from harness.core.record import Json
from harness.record.formats.streams.debezium.sources import Source, place_in
from harness.record.formats.streams.line import (
    DELETED,
    Before,
    Content,
    decoded,
    enveloped,
    few,
    inside,
    is_first_of_all,
    span_of,
)

SNAPSHOT: Final = "r"
_TRANSACTION_ID: Final = re.compile(r"(\d{1,20}):\d{1,20}")
_CHANGES: Final = ("c", "u", "d", SNAPSHOT)
REPLACING: Final = frozenset(("u", "d"))
# Their snapshots may show later changes than their position.
INEXACT: Final = frozenset(("mongodb", "sqlserver", "informix"))
_NO_IMAGE: Final = Before()
_SILENT: Final = ("t", "m")  # A truncated table and a user's own message concern no row.


def read(key: tuple[str, ...], line: Json) -> Iterator[Content]:
    """A change, a row of a snapshot, a tombstone, or the begin or end of a transaction; nothing for a heartbeat.

    Raises ValueError for any other line.
    """
    if line is None:
        yield Content("tombstone")  # Without its key.
        return
    around, message = enveloped(line)
    if "status" in message and "id" in message:
        kind, span = {"BEGIN": "begun", "END": "unit"}.get(str(message["status"])), span_of(around)
        # Topics have no order among them, and without partitions it is not known how far each topic came.
        if kind is not None and (span is not None or around.get("topic") is None):
            yield Content(
                kind,
                unit=transaction_of(message["id"]),
                sizes=tuple(_sizes(message)),
                span=span,
                is_first=is_first_of_all(around),
            )
        return
    if message.get("tombstone"):
        yield Content("tombstone", own_key(around), span=span_of(around))
        return
    operation, source = message.get("op"), message.get("source")
    if operation in _SILENT or (operation is None and set(message) <= {"ts_ms", "ts_us", "ts_ns", "tombstone"}):
        return
    if operation not in _CHANGES or not isinstance(source, dict):
        raise ValueError('it is no change event: it has no op such as "c", "u", "d", "r" with a source')
    collection = collection_of(source)
    found, image = _key(around, message, key), message.get("after") or message.get("before")
    has_key = found is not None  # Else rows with equal columns count as one key, which have no row before them.
    if not has_key and image is None:
        raise ValueError("it has no key and no row: write each line with the message's key and value")
    about = message.get("transaction")
    transaction = about if isinstance(about, dict) else {}
    yield Content(
        "backfill" if operation == SNAPSHOT else "row",
        [collection, found if has_key else image],
        _value(message),
        None if operation == SNAPSHOT and source.get("connector") in INEXACT else place_in(source),
        span=span_of(around),
        unit=transaction_of(transaction.get("id")),
        ordinal=_number(transaction.get("total_order")),
        table_ordinal=_number(transaction.get("data_collection_order")),
        is_first=is_first_of_all(around),
        collection=collection,
        has_key=has_key,
        before=before_of(message.get("before"), source) if has_key and operation in REPLACING else None,
    )


def _value(message: dict[str, Json]) -> Json:
    """The row after a change, and of an update in MongoDB its description: the document is looked up later, if ever."""
    for name in ("updateDescription", "after"):
        if message.get(name) is not None:
            return message[name]
    return DELETED


def before_of(image: Any, source: Source) -> Before:
    """What an update or a deletion replaced. An insertion tells nothing: a table may have been truncated before it.

    A null may stand for a column that the log does not have, and so may the blank of its type from PostgreSQL, which
    logs the columns of the key alone unless the table's replica identity is full.
    """
    if isinstance(image, msgspec.Struct):
        if all(msgspec.structs.astuple(image)):
            return Before(image)
        image = msgspec.to_builtins(image)
    if not isinstance(image, dict):
        return _NO_IMAGE
    if all(image.values()):
        return Before(image)
    blanks = (None, "", 0, False) if source.get("connector") == "postgresql" else (None,)
    return Before({name: value for name, value in image.items() if value or value not in blanks})


def collection_of(source: Source) -> str:
    """The table's name as in the metadata of transactions."""
    schema = source.get("schema") or source.get("db")
    return f"{schema}.{source.get('table') or source.get('collection')}"


def _key(around: dict[str, Json], message: dict[str, Json], columns: tuple[str, ...]) -> Json:
    """The message's key, or the named columns of its row; None if neither is known. A column is never guessed."""
    key = own_key(around)
    if key is not None or not columns:
        return key
    for image in (message.get("after"), message.get("before")):
        if isinstance(image, dict):
            lacking = [column for column in columns if image.get(column) is None]
            if lacking:
                raise ValueError(f"its row has no {lacking[0]}, which --key names: its columns are {few(image)}")
            return {column: image[column] for column in columns}
    return None


def own_key(around: dict[str, Json]) -> Json:
    """The message's key; a converter may have put a schema beside it."""
    key = decoded(around.get("key"))
    return key["payload"] if isinstance(key, dict) and "payload" in key else key


def _sizes(message: dict[str, Json]) -> Iterator[tuple[str, int]]:
    """The number of a transaction's events in each table."""
    collections = message.get("data_collections")
    for each in collections if isinstance(collections, list) else ():
        name, count = inside(each, "data_collection"), _number(inside(each, "event_count"))
        if isinstance(name, str) and count is not None:
            yield name, count


def transaction_of(name: Json) -> Json:
    """The name of a transaction: PostgreSQL's has the LSN of each single operation behind the transaction's own id."""
    found = _TRANSACTION_ID.fullmatch(name) if isinstance(name, str) else None
    return found[1] if found else name


def _number(value: Json) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None
