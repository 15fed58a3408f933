"""What one line of a foreign stream tells, in our words, before positions, sessions and units have become numbers."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.core.promises import StreamContract
from harness.core.record import Json

DELETED = "(deleted)"  # The value of a row that says that its key is gone.


class Told(NamedTuple):
    """One event, or what is known of a unit. `session`, `unit` and `position` are as the file has them.

    Of kind "unit" is what ends a transaction: how many rows it has in each collection. It is no event.
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
    """How a foreign stream is read: its name, its contract, and what each line tells.

    `told` raises ValueError that says what is wrong with a line. `has_opens`: sessions say where they begin.
    """

    name: str
    contract: StreamContract
    told: Callable[[Json], Iterator[Told]]
    has_opens: bool = False


def inside(value: Json, path: str) -> Json:
    """What a value holds under names joined by dots; None if it is not there."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
