"""The records of the catalog, which is one fenced log. The token of the log's writer is the epoch of the leader."""

from typing import Final

from msgspec import Struct, msgpack

from clusters.materialize.shape import WALL

LOG: Final = "catalog"


class Bound(Struct, frozen=True, tag=True):
    """No timestamp of the timeline at or above `ts` is handed out before a higher bound is written."""

    epoch: int
    ts: int
    timeline: str = WALL


class Created(Struct, frozen=True, tag=True):
    """A table was created."""

    epoch: int
    table: str


class Dropped(Struct, frozen=True, tag=True):
    """A table was dropped."""

    epoch: int
    table: str


Record = Bound | Created | Dropped
_decoder: Final[msgpack.Decoder[Record]] = msgpack.Decoder(Record)
encoded: Final = msgpack.Encoder().encode


def decoded(records: tuple[bytes, ...]) -> list[Record]:
    """The records in order."""
    return [_decoder.decode(record) for record in records]


def bound_of(records: list[Record], timeline: str) -> int:
    """The bound of a timeline that was written last; 0 for a new cluster."""
    bounds = (record for record in reversed(records) if isinstance(record, Bound) and record.timeline == timeline)
    return next((bound.ts for bound in bounds), 0)


def tables_of(records: list[Record]) -> list[str]:
    """The tables that were created and not dropped, in order of creation."""
    found: dict[str, None] = {}
    for record in records:
        if isinstance(record, Created):
            found[record.table] = None
        elif isinstance(record, Dropped):
            found.pop(record.table, None)
    return [*found]


def names_of(records: list[Record]) -> set[str]:
    """The names of all tables that were ever created; the catalog gives no name twice."""
    return {record.table for record in records if isinstance(record, Created)}
