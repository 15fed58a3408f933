"""The storage of lists and registers, the entries of the stream, and positions.

An element of a Redis list is an element of a list here. Each transaction that writes adds one entry to the stream, with
all its writes, in order. An entry's ID is milliseconds and a number; its position is one integer made of both.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from clusters.servers.values import decoded, encoded
from harness.core.machine import Delivery
from harness.core.record import Json, MicroOp

STREAM: Final = b"seamark"
FIELD: Final = b"writes"
NUMBER_BITS: Final = 20  # Of a position, for the number of an ID: more than entries in one millisecond.
_LIST, _REGISTER, _CELL = b"l:", b"r:", b"c:"


def key_of(key: Json) -> bytes:
    """The stored key of a list, or of a register, whose name is text."""
    return (_REGISTER if is_register(key) else _LIST) + encoded(key)


def cell_of(key: Json) -> bytes:
    """The stored key of a cell: a register of single operations, which the stream does not show."""
    return _CELL + encoded(key)


def is_register(key: Json) -> bool:
    """True if that key is a register; else it is a list."""
    return isinstance(key, str)


def position_of(identity: bytes) -> int:
    """The position of the stream entry with that ID."""
    milliseconds, _, number = identity.partition(b"-")
    return (int(milliseconds) << NUMBER_BITS) + int(number)


def entry(mops: Sequence[MicroOp]) -> bytes:
    """The content of the entry for the writes of a transaction."""
    return encoded([[mop.key, mop.value] for mop in mops if mop.f != "r"])


def deliveries(identity: bytes, fields: Sequence[bytes]) -> Iterator[Delivery]:
    """The rows of an entry, numbered as the writes of its transaction."""
    position, content = position_of(identity), decoded(fields[1] if len(fields) > 1 else b"")
    writes = content if isinstance(content, list) else [content]
    for ordinal, write in enumerate(writes):
        key, value = write if isinstance(write, list) and len(write) == 2 else (f"damaged: {write}", None)
        yield Delivery(
            session=0,
            kind="row",
            key=key,
            value=value,
            position=position,
            ordinal=ordinal,
            unit=position,
            unit_rows=len(writes),
        )
