"""The content of one line of a foreign stream, in our kinds and fields, without numbers yet.

Positions, sessions and units are numbered once the whole file has been read.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.core.promises import StreamContract
from harness.core.record import Json

DELETED = "(deleted)"  # The value of a row that reports its key as deleted.


class Content(NamedTuple):
    """One event, or the end of a unit. `session`, `unit` and `position` are as in the file.

    Kind "unit" ends a transaction, with its number of rows in each collection. It is not an event.
    """

    kind: str
    key: Json = None
    value: Json = None
    position: Json = None
    subscriber: str = "stream"
    session: Json = 0
    span: str | None = None
    ordinal: int | None = None
    unit: Json = None
    unit_rows: int | None = None
    epoch: int | None = None
    time_ns: int | None = None
    collection: str | None = None
    sizes: tuple[tuple[str, int], ...] = ()


class StreamFormat(NamedTuple):
    """The format of a foreign stream: its name, its contract, and the reader of its lines.

    `read` raises ValueError with the problem of a line. `has_opens`: sessions report their start.
    """

    name: str
    contract: StreamContract
    read: Callable[[Json], Iterator[Content]]
    has_opens: bool = False


def inside(value: Json, path: str) -> Json:
    """The value under names joined by dots; None if it is absent."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
