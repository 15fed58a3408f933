"""The storage of lists and registers: keys under three prefixes, and their values as JSON.

Lists and registers of transactions lie under one prefix, which subscribers watch; cells, which are registers of single
operations, under another. A list is stored whole, so an append replaces it.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from harness.core.record import Json

STREAMED: Final = b"s/"
STREAMED_END: Final = b"s0"  # The first key behind all with that prefix: "0" follows "/".
_LIST, _REGISTER, _CELL = b"s/l/", b"s/r/", b"c/"


def key_of(key: Json) -> bytes:
    """The stored key of a list, or of a register, whose name is text."""
    return (_REGISTER if isinstance(key, str) else _LIST) + msgspec.json.encode(key)


def cell_of(key: Json) -> bytes:
    """The stored key of a cell."""
    return _CELL + msgspec.json.encode(key)


def is_register(key: Json) -> bool:
    """True if that key is a register; else it is a list."""
    return isinstance(key, str)


def encoded(value: Json) -> bytes:
    """The stored form of a value."""
    return msgspec.json.encode(value)


def decoded(stored: bytes) -> Json:
    """The value of a stored form."""
    value: Json = msgspec.json.decode(stored)
    return value


def elements(stored: bytes | None) -> list[Json]:
    """The list in a stored value; None is a list without appends."""
    found = [] if stored is None else decoded(stored)
    assert isinstance(found, list)
    return found


def held(stored: bytes | None) -> Json:
    """The register's value in a stored value; None is a register never written."""
    return None if stored is None else decoded(stored)


def shown(stored_key: bytes, stored: bytes) -> tuple[Json, Json]:
    """The key, and the change that its new value shows: the last appended element, or the register's value."""
    is_list = stored_key.startswith(_LIST)
    key = decoded(stored_key.removeprefix(_LIST if is_list else _REGISTER))
    value = decoded(stored)
    if not is_list:
        return key, value
    appended: Sequence[Json] = value if isinstance(value, list) else ()
    return key, appended[-1] if appended else None
