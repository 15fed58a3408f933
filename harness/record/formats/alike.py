"""Types for JSON objects that are alike: structs are decoded and encoded in half of the time of dictionaries."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from harness.core.record import Json

_MOST: Final = 64  # Names: those of a larger object are found no faster than in a dictionary.
_ANY: Final = msgspec.json.Decoder(Any)


def decoded_lines(content: bytes | memoryview, first: Json) -> list[Any]:
    """The values of those lines of JSON. If the other values are like the `first`, its objects are structs.

    Their fields are in the order of their names, so no encoder has to sort them.
    """
    try:
        return decoder_of(type_like(first)).decode_lines(content)
    except msgspec.ValidationError:
        return _ANY.decode_lines(content)


def type_like(value: Json) -> Any:
    """The type of values that are like that one in the names of their objects; Any if there is none."""
    match value:
        case {}:
            return _record(tuple(sorted(value)))
        case [one, other]:  # As keys with their tables are.
            return tuple[type_like(one), type_like(other)]  # type: ignore[misc]  # Known only now.
        case _:
            return Any


@lru_cache(maxsize=256)
def _record(names: tuple[str, ...]) -> Any:
    """The type of an object with those names, or of a text or null in its place; Any if no type can have them."""
    if len(names) > _MOST:
        return Any
    fields = {f"f{place}": name for place, name in enumerate(names)}
    typed = [(field, Any) for field in fields]
    try:
        record = msgspec.defstruct("Record", typed, rename=fields, forbid_unknown_fields=True, gc=False)
    except ValueError:  # Some name has a quote or a control character.
        return Any
    return record | str | None


@lru_cache(maxsize=256)
def decoder_of(shape: Any) -> msgspec.json.Decoder[Any]:
    """The decoder for values of that type."""
    return msgspec.json.Decoder(shape)
