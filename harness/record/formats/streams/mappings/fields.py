"""Where a mapping file finds a value in a line of a foreign stream: expressions, compiled to functions of the line.

An expression is one of
- "a.b.c", names joined by dots; a number is a place in an array, and a name behind an array is looked up in all of its
  elements. `*` stands for each element of an array, which is an event of its own: all stars of a line stand for the
  same place. "@.offset" is a field of the envelope around a message, such as Kafka's offset;
- ["a", "b"]: the values of several expressions, such as a key of several columns;
- {first = [...]}: the first of several expressions that has a value;
- {names = "a", values = "b"}: an object, from an array of names and one of values;
- {pick = "a", from = "b"}: the values in the object b of the names that a lists;
- {rest = ["a", "b"]}: the line without those fields, or with of = "c" that object without them;
- {base64 = "a"}, {hex = "a"}: a text in that encoding, decoded; a position of bytes compares as bytes;
- {json = "a"}: JSON in a text;
- {text = "a"}: that text itself;
- {place = "line"}: the number of the event in the file.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from harness.core.errors import ScenarioError
from harness.core.record import Json
from harness.record.formats.streams.line import Place, decoded

STAR: Final = "*"
ENVELOPE: Final = "@"
_CHUNK: Final = 7  # Bytes that are compared at once.
_SHOWN: Final = 24


class Spot(NamedTuple):
    """One event's place: its line, the place of its element in arrays, the envelope, and its number in the file."""

    line: Json
    element: int = 0
    around: Json = None
    number: int = 0


Get = Callable[[Spot], Json]


class InFile(int):
    """A place in the file as a position: an event that comes again has another one."""


class Field(NamedTuple):
    """An expression: its text for messages, its function, and the arrays whose elements are events of their own."""

    text: str
    get: Get
    stars: tuple[tuple[str, ...], ...] = ()


def field(place: str, given: Any) -> Field:
    """A compiled expression. Raises ScenarioError, with the place, for anything else."""
    match given:
        case str() if given:
            return _path(given)
        case list() if given:
            parts = [field(place, each) for each in given]
            return _joined("+".join(part.text for part in parts), parts, _all)
        case dict():
            return _operation(place, given)
        case _:
            raise ScenarioError(f"{place}: it is no name of a field: write a text such as data.id, or a list of them")


def _operation(place: str, given: dict[str, Any]) -> Field:
    match given:
        case {"first": [*each], **rest} if each and not rest:
            parts = [field(place, one) for one in each]
            return _joined(" or ".join(part.text for part in parts), parts, _first)
        case {"names": names, "values": values, **rest} if not rest:
            return _joined(_text(values), [field(place, names), field(place, values)], _zipped)
        case {"pick": names, "from": values, **rest} if not rest:
            picked = field(place, {"text": names}) if isinstance(names, list) else field(place, names)
            return _joined(_text(names), [picked, field(place, values)], _picked)
        case {"rest": [*names], **more} if set(more) <= {"of"}:
            of = field(place, more["of"]) if "of" in more else Field("the line", lambda spot: spot.line)
            left = frozenset(map(str, names))
            return Field(of.text, lambda spot: _without(of.get(spot), left), of.stars)
        case {"base64": inner, **rest} if not rest:
            return _joined(_text(inner), [field(place, inner)], lambda values: _bytes(values[0], _of_base64))
        case {"hex": inner, **rest} if not rest:
            return _joined(_text(inner), [field(place, inner)], lambda values: _bytes(values[0], bytes.fromhex))
        case {"json": inner, **rest} if not rest:
            return _joined(_text(inner), [field(place, inner)], lambda values: decoded(values[0]))
        case {"text": value, **rest} if not rest:
            return Field(str(value), lambda _: value)
        case {"place": "line", **rest} if not rest:
            return Field("place", lambda spot: InFile(spot.number))
        case _:
            raise ScenarioError(
                f"{place}: {given} is not an expression; known are first, names with values, pick with from, rest, "
                "base64, hex, json, text, place"
            )


def _text(given: Any) -> str:
    return given if isinstance(given, str) else str(given)


def _joined(text: str, parts: Sequence[Field], of: Callable[[list[Json]], Json]) -> Field:
    gets = [part.get for part in parts]
    stars = tuple(star for part in parts for star in part.stars)
    return Field(text, lambda spot: of([get(spot) for get in gets]), stars)


def _all(values: list[Json]) -> Json:
    return None if all(value is None for value in values) else values


def _first(values: list[Json]) -> Json:
    return next((value for value in values if value is not None), None)


def _zipped(values: list[Json]) -> Json:
    names, given = values
    if not isinstance(names, list) or not isinstance(given, list):
        return None
    if len(names) != len(given):
        raise ValueError(f"it has {len(names)} names and {len(given)} values")
    return {str(name): value for name, value in zip(names, given, strict=True)}


def _picked(values: list[Json]) -> Json:
    names, given = values
    if not isinstance(names, list) or not names or not isinstance(given, dict):
        return None
    found = [given.get(str(name)) for name in names]
    return found[0] if len(found) == 1 else _all(found)


def _without(value: Json, names: frozenset[str]) -> Json:
    return {name: each for name, each in value.items() if name not in names} if isinstance(value, dict) else value


def _of_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _bytes(value: Json, read: Callable[[str], bytes]) -> Json:
    """The decoded text; bytes that are none become a text of their hexadecimal digits."""
    if value is None:
        return None
    try:
        found = read(str(value))
    except (ValueError, binascii.Error):
        raise ValueError(f"{str(value)[:40]!r} is not in the encoding that the mapping file names") from None
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.hex()


def bytes_place(text: str, how: str) -> Place:
    """A position that compares as bytes do. Raises ValueError if the text is not in that encoding."""
    try:
        found = _of_base64(text) if how == "base64" else bytes.fromhex(text)
    except (ValueError, binascii.Error):
        raise ValueError(f"its position {text[:40]!r} is not in {how}") from None
    chunks = [found[at : at + _CHUNK] for at in range(0, len(found), _CHUNK)]
    # The number of bytes comes last, so that a shorter text is below one that goes on with zeros.
    return Place("bytes", tuple(int.from_bytes(each.ljust(_CHUNK, b"\0")) << 4 | len(each) for each in chunks), _shown)


def _shown(parts: tuple[int, ...]) -> str:
    text = "".join(f"{part >> 4:0{2 * _CHUNK}x}"[: 2 * (part & 15)] for part in parts)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _path(text: str) -> Field:
    names = tuple(text.split("."))
    if names[0] == ENVELOPE:
        return Field(text, lambda spot: _reached(spot.around, names[1:], 0))
    if STAR in names:
        array = names[: names.index(STAR)]
        return Field(text, lambda spot: _reached(spot.line, names, spot.element), (array,))
    if len(names) == 1:
        return Field(text, lambda spot: spot.line.get(text) if isinstance(spot.line, dict) else _at(spot.line, text, 0))
    return Field(text, lambda spot: _reached(spot.line, names, 0))


def _reached(value: Json, names: Sequence[str], element: int) -> Json:
    """The value under those names."""
    for name in names:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list):
            value = _at(value, name, element)
        else:
            return None
    return value


def _at(value: Json, name: str, element: int) -> Json:
    """What an array holds at that place, or under that name in all of its elements."""
    if not isinstance(value, list):
        return None
    if name == STAR or name.isdecimal():
        place = element if name == STAR else int(name)
        return value[place] if place < len(value) else None
    return [each.get(name) if isinstance(each, dict) else None for each in value]
