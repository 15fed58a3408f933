"""The change events on lines of one common form, all at once by columns: as `messages.read` gives each of them."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from harness.core.record import Json
from harness.record.formats.alike import decoder_of, type_like
from harness.record.formats.streams.debezium.messages import (
    INEXACT,
    REPLACING,
    SNAPSHOT,
    before_of,
    collection_of,
    own_key,
    transaction_of,
)
from harness.record.formats.streams.debezium.sources import PlainSource, PostgreSQLSource, places_in
from harness.record.formats.streams.line import DELETED, Fields, Partition, Plain, of_rows, spans_of

S = TypeVar("S", PostgreSQLSource, PlainSource)
R = TypeVar("R")  # Of rows, and
K = TypeVar("K")  # of keys.
_POSTGRESQL_IDS: Final = re.compile(r"^([0-9]{1,20}):[0-9]{1,20}$", re.MULTILINE)  # One on each line.


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
    description: None = msgspec.field(default=None, name="updateDescription")  # Only MongoDB's updates have one.
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
_NAMES: Final = frozenset(("schema", "db", "table", "collection"))


def _columns(
    change_in: Callable[[Any], _PlainChange[Any, Any]], key_in: Callable[[Any], Json], lines: Sequence[_Around]
) -> Fields | None:
    """The changes by columns, as `read` gives each of them; None if some have no key."""
    changes = list(map(change_in, lines))
    sources, ops = [each.source for each in changes], [each.op for each in changes]
    if SNAPSHOT in ops and not INEXACT.isdisjoint(each.connector for each in sources):
        return None
    keys = list(map(key_in, lines))
    if None in keys:
        return None
    collections = _collections(sources)
    fields: Fields = {
        "span": spans_of(lines),
        "is_first": [line.offset == 0 for line in lines],
        "kind": ["backfill" if op == SNAPSHOT else "row" for op in ops],
        "key": list(zip(collections, keys, strict=True)),
        "value": [DELETED if each.after is None else each.after for each in changes],
        "position": places_in(sources),
        "collection": collections,
    }
    if not REPLACING.isdisjoint(ops):
        fields["before"] = [before_of(each.before, each.source) if each.op in REPLACING else None for each in changes]
    transactions = [each.transaction or _NO_TRANSACTION for each in changes]
    if any(each is not _NO_TRANSACTION for each in transactions):
        fields["unit"] = _transactions([each.id for each in transactions])
        fields["ordinal"] = [each.total_order for each in transactions]
        fields["table_ordinal"] = [each.data_collection_order for each in transactions]
    return fields


def _collections(sources: Sequence[PlainSource | PostgreSQLSource]) -> list[str]:
    names = [name for name in sources[0].__struct_fields__ if name in _NAMES]
    columns = [list(map(attrgetter(name), sources)) for name in names]
    return of_rows(columns, lambda *cells: collection_of(dict(zip(names, cells, strict=True))))


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
    return own_key({"key": line.key})


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


def _transactions(names: list[str | None]) -> Sequence[str | None]:
    """The names of transactions, as `transaction_of` gives each."""
    if None not in names:
        found: list[str] = _POSTGRESQL_IDS.findall(texts := "\n".join(map(str, names)))
        if len(found) == len(names) == texts.count("\n") + 1:
            return found
    return [None if name is None else str(transaction_of(name)) for name in names]
