"""The storage of lists and registers: keys under three prefixes, and their values.

Lists and registers of transactions lie under one prefix, which subscribers watch; cells, which are registers of single
operations, under another. A list is stored whole, so an append replaces it.
"""

from typing import Final

from clusters.servers.values import decoded, encoded
from harness.core.record import Json

STREAMED: Final = b"s/"
STREAMED_END: Final = b"s0"  # The first key behind all with that prefix: "0" follows "/".
_LIST, _REGISTER, _CELL = b"s/l/", b"s/r/", b"c/"


def key_of(key: Json) -> bytes:
    """The stored key of a list, or of a register, whose name is text."""
    return (_REGISTER if isinstance(key, str) else _LIST) + encoded(key)


def cell_of(key: Json) -> bytes:
    """The stored key of a cell."""
    return _CELL + encoded(key)


def lock_of(key: Json) -> bytes:
    """The name of the lock of a list."""
    return b"k/" + encoded(key)


def is_register(key: Json) -> bool:
    """True if that key is a register; else it is a list."""
    return isinstance(key, str)


def shown(stored_key: bytes, stored: bytes) -> tuple[Json, Json]:
    """The key, and the change that its new value shows: the last appended element, or the register's value."""
    is_list = stored_key.startswith(_LIST)
    key = decoded(stored_key.removeprefix(_LIST if is_list else _REGISTER))
    value = decoded(stored)
    if not is_list or not isinstance(value, list):
        return key, value
    return key, value[-1] if value else None
