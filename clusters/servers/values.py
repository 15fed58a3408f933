"""The stored form of values, which is JSON; and what the steps of a transaction see of lists and registers."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from harness.core.record import Json, MicroOp

_SHOWN: Final = 40  # Bytes of a damaged value.


def encoded(value: Json) -> bytes:
    """The stored form of a value. It has no line break."""
    return msgspec.json.encode(value)


def decoded(stored: bytes) -> Json:
    """The value of a stored form. Bytes that no client stored become a text that no client wrote: an observation."""
    try:
        value: Json = msgspec.json.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"damaged: {stored[:_SHOWN].hex()}"
    return value


def elements(stored: bytes | None) -> list[Json]:
    """The list in a stored value; None is a list without appends. A damaged value is a list of one element."""
    found = [] if stored is None else decoded(stored)
    return found if isinstance(found, list) else [found]


def held(stored: bytes | None) -> Json:
    """The register's value in a stored value; None is a register never written."""
    return None if stored is None else decoded(stored)


def appended(
    mops: Iterable[MicroOp], before: Mapping[Json, list[Json]]
) -> tuple[tuple[MicroOp, ...], dict[Json, list[Json]]]:
    """The steps of a transaction with what its reads see, and the lists after it."""
    lists, done = {key: list(elements) for key, elements in before.items()}, []
    for mop in mops:
        if mop.f == "append":
            lists[mop.key].append(mop.value)
            done.append(mop)
        else:
            done.append(msgspec.structs.replace(mop, value=list(lists[mop.key])))
    return tuple(done), lists


def overwritten(mops: Iterable[MicroOp], before: Mapping[Json, Json]) -> tuple[MicroOp, ...]:
    """The steps of a transaction with what its reads see: its own last write, or what was there before."""
    values, done = dict(before), []
    for mop in mops:
        if mop.f == "w":
            values[mop.key] = mop.value
            done.append(mop)
        else:
            done.append(msgspec.structs.replace(mop, value=values[mop.key]))
    return tuple(done)
