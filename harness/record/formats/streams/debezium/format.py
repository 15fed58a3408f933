"""The format of a stream from Debezium: its contract, and how its lines are read."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypedDict

import msgspec

from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.jsonl import Shape
from harness.record.formats.streams.debezium.columns import PLAIN
from harness.record.formats.streams.debezium.messages import read
from harness.record.formats.streams.debezium.sources import PlainSource
from harness.record.formats.streams.line import StreamFormat, enveloped, text_in
from harness.record.formats.streams.mappings.names import DEBEZIUM

# A task that restarts sends its events again. Events of a partition are in order; without partitions, those of a key.
_CONTRACT: Final = StreamContract(
    closed="<=",
    cut="delivery",
    position="lsn",
    order_key="key",
    delivery="at-least-once",
    replay="session",
    atomic_unit="batch",
    identity="position+key+value",
)


# The fields of `PlainSource` as a dictionary, of which any may be missing.
_Source = TypedDict("_Source", dict.fromkeys(PlainSource.__struct_fields__, Any), total=False)  # type: ignore[misc]


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
    updateDescription: Any
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


_SHAPE: Final = Shape(msgspec.json.Decoder(_Message), _is_change, text_in)


def debezium(key: Sequence[str] = ()) -> StreamFormat:
    """The format; `key` names the columns of the key where lines come without the message's key."""
    plain = () if key else PLAIN
    return StreamFormat(DEBEZIUM, _CONTRACT, partial(read, tuple(key)), is_by_source=True, shape=_SHAPE, plain=plain)
