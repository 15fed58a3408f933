"""Debezium's change events, rows of snapshots, and the begins and ends of transactions.

Sources: Debezium, the connectors' sections on data change events, and on transaction metadata.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, Literal, TypedDict, TypeVar

import msgspec

from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.alike import decoder_of, type_like
from harness.record.formats.jsonl import Shape
from harness.record.formats.streams.line import (
    DELETED,
    Before,
    Content,
    Fields,
    Partition,
    Plain,
    StreamFormat,
    decoded,
    enveloped,
    few,
    inside,
    is_first_of_all,
    span_of,
    spans_of,
    text_in,
)
from harness.record.formats.streams.mappings.names import DEBEZIUM
from harness.record.formats.streams.sources import PlainSource, PostgreSQLSource, Source, place_in, places_in

S = TypeVar("S", PostgreSQLSource, PlainSource)
R = TypeVar("R")  # Of rows, and
K = TypeVar("K")  # of keys.
_SNAPSHOT: Final = "r"
_POSTGRESQL_ID: Final = re.compile(r"(\d{1,20}):\d{1,20}")
_POSTGRESQL_IDS: Final = re.compile(r"^([0-9]{1,20}):[0-9]{1,20}$", re.MULTILINE)  # One on each line.
_CHANGES: Final = ("c", "u", "d", _SNAPSHOT)
_REPLACING: Final = frozenset(("u", "d"))
# Their snapshots may show later changes than their position.
_INEXACT: Final = frozenset(("mongodb", "sqlserver", "informix"))
_NO_IMAGE: Final = Before()
_SILENT: Final = ("t", "m")  # A truncated table and a user's own message concern no row.


# A task that restarts sends again what it had sent. The order is that of a partition; without partitions, of a key.
CONTRACT: Final = StreamContract(
    closed="<=",
    cut="delivery",
    position="lsn",
    order_key="key",
    delivery="at-least-once",
    replay="session",
    atomic_unit="batch",
    identity="position+key+value",
)


class _Source(TypedDict, total=False):
    connector: Any
    snapshot: Any
    db: Any
    schema: Any
    table: Any
    collection: Any
    lsn: Any
    sequence: Any
    file: Any
    pos: Any
    row: Any
    server_id: Any
    commit_lsn: Any
    change_lsn: Any
    event_serial_no: Any
    scn: Any
    commit_scn: Any
    ts_ms: Any
    ord: Any
    rs: Any
    replica_set: Any


class _Block(TypedDict, total=False):
    id: Any
    total_order: Any
    data_collection_order: Any


class _Message(TypedDict, total=False):
    """The fields of a change event and of its envelopes; not the schemas, most of the text of a line."""

    topic: Any
    partition: Any
    offset: Any
    key: Any
    value: "_Message | str | None"
    payload: "_Message | str | None"
    status: Any
    id: Any
    data_collections: Any
    op: Any
    before: Any
    after: Any
    source: _Source | None
    transaction: _Block | None
    tombstone: Any
    resolved: Any


def _is_change(line: Json) -> bool:
    """True for a change event, in whatever envelopes."""
    try:
        return "op" in enveloped(line)[1]
    except ValueError:
        return False


SHAPE: Final = Shape(msgspec.json.Decoder(_Message), _is_change, text_in)


def debezium(key: Sequence[str] = ()) -> StreamFormat:
    """The format; `key` names the columns of the key where lines come without the message's key."""
    plain = () if key else PLAIN
    return StreamFormat(DEBEZIUM, CONTRACT, partial(_read, tuple(key)), is_by_source=True, shape=SHAPE, plain=plain)


def _read(key: tuple[str, ...], line: Json) -> Iterator[Content]:
    """A change, a row of a snapshot, a tombstone, or the begin or end of a transaction; nothing for a heartbeat.

    Raises ValueError for any other line.
    """
    if line is None:
        yield Content("tombstone")  # Without its key.
        return
    around, message = enveloped(line)
    if "status" in message and "id" in message:
        kind = {"BEGIN": "begun", "END": "unit"}.get(str(message["status"]))
        if kind is not None:
            yield Content(
                kind,
                unit=_transaction(message["id"]),
                sizes=tuple(_sizes(message)),
                span=span_of(around),
                is_first=is_first_of_all(around),
            )
        return
    if message.get("tombstone"):
        yield Content("tombstone", _own_key(around), span=span_of(around))
        return
    operation, source = message.get("op"), message.get("source")
    if operation in _SILENT or (operation is None and set(message) <= {"ts_ms", "ts_us", "ts_ns", "tombstone"}):
        return
    if operation not in _CHANGES or not isinstance(source, dict):
        raise ValueError('it is no change event: it has no op such as "c", "u", "d", "r" with a source')
    collection = _collection(source)
    found, image = _key(around, message, key), message.get("after") or message.get("before")
    if found is None and image is None:
        raise ValueError("it has no key and no row: write each line with the message's key and value")
    value = DELETED if message.get("after") is None else message["after"]
    about = message.get("transaction")
    transaction = about if isinstance(about, dict) else {}
    yield Content(
        "backfill" if operation == _SNAPSHOT else "row",
        [collection, image if found is None else found],
        value,
        None if operation == _SNAPSHOT and source.get("connector") in _INEXACT else place_in(source),
        span=span_of(around),
        unit=_transaction(transaction.get("id")),
        ordinal=_number(transaction.get("total_order")),
        table_ordinal=_number(transaction.get("data_collection_order")),
        is_first=is_first_of_all(around),
        collection=collection,
        has_key=found is not None,
        before=_before(message.get("before"), source) if operation in _REPLACING else None,
    )


def _before(image: Any, source: Source) -> Before:
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


def _collection(source: Source) -> str:
    """The table's name as in the metadata of transactions."""
    schema = source.get("schema") or source.get("db")
    return f"{schema}.{source.get('table') or source.get('collection')}"


class _Transaction(msgspec.Struct, gc=False):
    id: str | None = None
    total_order: int | None = None
    data_collection_order: int | None = None


class _PlainChange(msgspec.Struct, Generic[S, R], gc=False):
    op: Literal["c", "u", "d", "r"]
    source: S
    before: R | None = None
    after: R | None = None
    transaction: _Transaction | None = None
    tombstone: None = None
    status: msgspec.UnsetType = msgspec.UNSET


class _PlainPayload(msgspec.Struct, Generic[S, R], gc=False):
    payload: _PlainChange[S, R]


class _PlainKey(msgspec.Struct, Generic[K], gc=False):
    payload: K


class _Around(Partition):
    offset: int | None = None
    key: Any = None
    op: msgspec.UnsetType = msgspec.UNSET
    after: msgspec.UnsetType = msgspec.UNSET
    resolved: msgspec.UnsetType = msgspec.UNSET


class _Enveloped(_Around, Generic[S, R, K], kw_only=True):
    value: _PlainChange[S, R]


class _EnvelopedPayload(_Around, Generic[S, R, K], kw_only=True):
    value: _PlainPayload[S, R]


class _KeyedPayload(_Around, Generic[S, R, K], kw_only=True):
    key: _PlainKey[K]
    value: _PlainPayload[S, R]


_NO_TRANSACTION: Final = _Transaction()
_NAMES_IN: Final = attrgetter("schema", "db", "table", "collection")


def _columns(
    change_in: Callable[[Any], _PlainChange[Any, Any]], key_in: Callable[[Any], Json], lines: Sequence[_Around]
) -> Fields | None:
    """The changes by columns, as `_read` gives each of them; None if some have no key."""
    changes = list(map(change_in, lines))
    sources, ops = [each.source for each in changes], [each.op for each in changes]
    if _SNAPSHOT in ops and not _INEXACT.isdisjoint(each.connector for each in sources):
        return None
    keys = list(map(key_in, lines))
    if None in keys:
        return None
    names = list(map(_NAMES_IN, sources))
    tables = {each: _collection(source) for each, source in dict(zip(names, sources, strict=True)).items()}
    collections = [tables[each] for each in names] if len(tables) > 1 else [*tables.values()] * len(names)
    fields: Fields = {
        "span": spans_of(lines),
        "is_first": [line.offset == 0 for line in lines],
        "kind": ["backfill" if op == _SNAPSHOT else "row" for op in ops],
        "key": list(map(list, zip(collections, keys, strict=True))),
        "value": [DELETED if each.after is None else each.after for each in changes],
        "position": places_in(sources),
        "collection": collections,
    }
    if not _REPLACING.isdisjoint(ops):
        fields["before"] = [_before(each.before, each.source) if each.op in _REPLACING else None for each in changes]
    transactions = [each.transaction or _NO_TRANSACTION for each in changes]
    if any(each is not _NO_TRANSACTION for each in transactions):
        fields["unit"] = _transactions([each.id for each in transactions])
        fields["ordinal"] = [each.total_order for each in transactions]
        fields["table_ordinal"] = [each.data_collection_order for each in transactions]
    return fields


class _ValueSchema(msgspec.Struct):
    schema: msgspec.Raw


class _LineSchema(msgspec.Struct):
    value: _ValueSchema


_SCHEMA: Final = msgspec.json.Decoder(_LineSchema)
_VALUE: Final = b'"value"'


def _without_schema(texts: Sequence[bytes]) -> bytes:
    """The lines without their value's schema: Kafka Connect's converter repeats it, two thirds of a line, in each."""
    first = texts[0]
    schema = bytes(_SCHEMA.decode(first).value.schema)
    at = first.index(_VALUE)
    repeated = first[at : first.index(schema, at) + len(schema)]
    begin, end = len(repeated) - len(schema), len(repeated)
    parts = list[bytes]()
    for text in texts:
        if not text.startswith(repeated, at):  # Where it begins in the line before.
            at = text.find(_VALUE)
            if not text.startswith(repeated, at):
                parts.append(text)
                continue
        parts += (text[: at + begin], b"0", text[at + end :])
    return b"".join(parts)


def _key_around(line: _Around) -> Json:
    return _own_key({"key": line.key})


_VALUE_IN: Final = attrgetter("value")
_PAYLOAD_IN: Final = attrgetter("value.payload")


def _plain(
    form: Any, change_in: Callable[[Any], _PlainChange[Any, Any]], *, has_schema: bool = True
) -> Iterator[Plain]:
    """The short ways for lines of that form: for PostgreSQL, which most come from, and for all sources."""
    key_in = attrgetter("key.payload") if form is _KeyedPayload else _key_around
    shortened = _without_schema if has_schema else Plain._field_defaults["shortened"]

    def quicker(source: type, line: Any) -> msgspec.json.Decoder[Any]:
        change = change_in(line)
        return decoder_of(form[source, type_like(change.after or change.before), type_like(key_in(line))])

    for source in (PostgreSQLSource, PlainSource):
        decoder = decoder_of(form[source, Any, Any])
        yield Plain(decoder, partial(_columns, change_in, key_in), shortened, partial(quicker, source))


PLAIN: Final = (
    *_plain(_KeyedPayload, _PAYLOAD_IN),
    *_plain(_EnvelopedPayload, _PAYLOAD_IN),
    *_plain(_Enveloped, _VALUE_IN, has_schema=False),
)


def _key(around: dict[str, Json], message: dict[str, Json], columns: tuple[str, ...]) -> Json:
    """The message's key, or the named columns of its row; None if neither is known. A column is never guessed."""
    key = _own_key(around)
    if key is not None or not columns:
        return key
    for image in (message.get("after"), message.get("before")):
        if isinstance(image, dict):
            lacking = [column for column in columns if image.get(column) is None]
            if lacking:
                raise ValueError(f"its row has no {lacking[0]}, which --key names: its columns are {few(image)}")
            return {column: image[column] for column in columns}
    return None


def _own_key(around: dict[str, Json]) -> Json:
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


def _transaction(name: Json) -> Json:
    """The name of a transaction: PostgreSQL's has the LSN of each single operation behind the transaction's own id."""
    found = _POSTGRESQL_ID.fullmatch(name) if isinstance(name, str) else None
    return found[1] if found else name


def _transactions(names: list[str | None]) -> Sequence[str | None]:
    """The names of transactions, as `_transaction` gives each."""
    if None not in names:
        found: list[str] = _POSTGRESQL_IDS.findall(texts := "\n".join(map(str, names)))
        if len(found) == len(names) == texts.count("\n") + 1:
            return found
    return [None if name is None else str(_transaction(name)) for name in names]


def _number(value: Json) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else None
