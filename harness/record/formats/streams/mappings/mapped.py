"""The reader that a mapping file describes: from a line of a foreign stream to its events."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from harness.core.record import Json
from harness.record.formats.streams.line import (
    DELETED,
    Before,
    Content,
    Place,
    SiteFormat,
    StreamFormat,
    enveloped,
    few,
    inside,
    span_of,
)
from harness.record.formats.streams.mappings.fields import Field, InFile, Spot, bytes_place, field
from harness.record.formats.streams.mappings.mapping import DELETE, REJECTED, SKIP, Mapping

SPACE: Final = 1 << 63  # Hashes of keys are below it.
_NS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MESSAGES: Final = ("topic", "partition", "offset")  # A line with one of these may be an envelope around a message.


def mapped(name: str, mapping: Mapping, key: tuple[str, ...] = ()) -> StreamFormat:
    """The format of that name, as described by such a mapping; `key` names the key's columns in its values."""
    reader = Reader(mapping, key)
    return StreamFormat(
        name,
        mapping.stream,
        reader.read,
        mapping.may_have("open"),
        has_lineage=mapping.may_have("successors"),
        begin=reader.begin,
        sites=None if mapping.fields.site is None else SiteFormat(mapping.conflicts, mapping.at_rest),
    )


class Reader:
    """The reader of a mapping. It counts lines, so that a place in the file can be a position."""

    def __init__(self, mapping: Mapping, key: tuple[str, ...] = ()) -> None:
        self._mapping = mapping
        given = {name: getattr(mapping.fields, name) for name in mapping.fields.__struct_fields__}
        if key and given["value"] is not None:
            names = {"text": list(key)}
            sources = [each for each in (given["value"], given["before"]) if each is not None]
            picked = {"first": [{"pick": names, "from": each} for each in sources]}
            given["key"] = [*given["key"][:-1], picked] if isinstance(given["key"], list) else picked
        self._bytes = _encoding(given["position"])
        if self._bytes is not None:
            given["position"] = given["position"][self._bytes]
        pick = _pick(given["key"])
        self._columns = None if pick is None else field("key", pick["pick"])
        self._fields = {name: field(name, each) for name, each in given.items() if each is not None}
        stars = [star for each in self._fields.values() for star in each.stars]
        self._array = ".".join(stars[0]) if stars else None
        self._number = 0

    def begin(self) -> None:
        """Count from the first line again."""
        self._number = 0

    def read(self, line: Json) -> Iterator[Content]:
        """The events of one line, if any. Raises ValueError."""
        around, message = message_in(line) if self._mapping.envelope else (line, line)
        if message is None:
            return
        if not isinstance(message, dict | list):
            raise ValueError("it is not an object")
        if any(inside(message, name) is True for name in self._mapping.skip):
            return
        elements = 1
        if self._array is not None:
            found = inside(message, self._array)
            elements = max(1, len(found)) if isinstance(found, list) else 1
        for element in range(elements):
            self._number += 1
            yield from self._events(Spot(message, element, around, self._number))

    def _events(self, spot: Spot) -> Iterator[Content]:
        kind = self._kind(spot)
        if kind == SKIP:
            return
        if kind == "successors":
            yield self._declaration(spot)
            return
        is_deletion, kind = kind == DELETE, "row" if kind == DELETE else kind
        is_row = kind in {"row", "backfill", REJECTED}
        key = self._get("key", spot)
        if is_row and (key is None or (isinstance(key, list) and None in key)):
            row = self._get("value", spot) or self._get("before", spot)
            columns = f", such as {few(row)}" if isinstance(row, dict) and row else ""
            how = f": name the key's columns with --key{columns}" if "value" in self._fields else ""
            raise ValueError(f"a {kind} without a key ({self._name('key')}){how}")
        named = "watermark" if kind == "watermark" and "watermark" in self._fields else "position"
        position = self._position(named, spot)
        if position is None and kind in {"row", "watermark"}:
            raise ValueError(f"a {kind} without a position ({self._name(named)})")
        value = self._get("value", spot)
        image = self._image(spot, value, position) if kind == "row" else None
        if is_row and "hash" in self._fields:
            yield self._hash(spot, key)
        is_deletion |= is_row and "value" in self._fields and value is None
        yield Content(
            kind,
            key,
            DELETED if is_deletion else value,
            int(position) if isinstance(position, InFile) else position,
            subscriber=str(self._required("subscriber", spot) or "stream"),
            session=self._required("session", spot) if "session" in self._fields else 0,
            span=self._span(spot),
            ordinal=self._integer("ordinal", spot) if is_row else None,
            unit=self._get("unit", spot) if is_row else None,
            unit_rows=self._integer("unit_rows", spot) if is_row else None,
            epoch=self._integer("epoch", spot),
            time_ns=self._time_ns(spot),
            before=None if image is None else Before(image),
            site=self._site("site", spot),
            origin=self._site("origin", spot),
        )

    def _site(self, name: str, spot: Spot) -> str | None:
        value = self._required(name, spot)
        return None if value is None else str(value)

    def _image(self, spot: Spot, value: Json, position: Json | Place) -> Json:
        """What the row replaced; None if that cannot be compared with the previous row of its key.

        A row whose key changed replaced one of another key. A place in the file does not show which rows come again.
        """
        image = self._get("before", spot)
        if isinstance(position, InFile) and self._mapping.stream.delivery == "at-least-once":
            return None
        if isinstance(image, dict) and isinstance(value, dict) and self._columns is not None:
            names = self._columns.get(spot)
            for name in names if isinstance(names, list) else ():
                if str(name) in image and image[str(name)] != value.get(str(name)):
                    return None
        return image

    def _kind(self, spot: Spot) -> str:
        said = self._get("kind", spot)
        if said is None:
            is_mark = self._get("watermark", spot) is not None
            is_mark &= self._array is None or self._get("key", spot) is None
            return "watermark" if is_mark else "row"
        text = said if isinstance(said, str) else msgspec.json.encode(said).decode()
        kind = self._mapping.kinds.get(text, text if text in self._mapping.own_kinds else None)
        if kind is None:
            raise ValueError(f"{self._name('kind')} {text[:60]!r} is missing from [kinds] in the mapping file: add it")
        return kind

    def _get(self, name: str, spot: Spot) -> Json:
        found = self._fields.get(name)
        value = None if found is None else found.get(spot)
        return int(value) if isinstance(value, InFile) and name != "position" else value

    def _name(self, name: str) -> str:
        found: Field | None = self._fields.get(name)
        return name if found is None else found.text

    def _position(self, name: str, spot: Spot) -> Json | Place:
        value = self._get(name, spot)
        if value is None or name != "position":
            return value
        if self._bytes is not None:
            return bytes_place(str(value), self._bytes)
        return _place_of_parts(value) if isinstance(value, list) else value

    def _span(self, spot: Spot) -> str | None:
        if "partition" in self._fields:
            value = self._get("partition", spot)
            parts = [str(each) for each in (value if isinstance(value, list) else [value]) if each is not None]
            return "/".join(parts) or None
        return span_of(spot.around) if self._mapping.envelope and isinstance(spot.around, dict) else None

    def _declaration(self, spot: Spot) -> Content:
        """The event that declares a log: its name, the logs that it follows, and its keys."""
        log = self._span(spot)
        if log is None:
            raise ValueError(f"a line of kind successors without a log ({self._name('partition')})")
        parents, pairs = self._get("parents", spot), _pairs(self._get("ranges", spot))
        names = parents if isinstance(parents, list) else [] if parents is None else [parents]
        if not all(0 <= low < high <= SPACE for low, high in pairs):
            raise ValueError(
                f"its {self._name('ranges')} is no range [low, high) of integers from 0 to 2^63, and no list of them"
            )
        declared: Json = {"parents": [str(name) for name in names], "ranges": [[*pair] for pair in pairs]}
        return self._beside(spot, Content("successors", value=declared, span=log))

    def _hash(self, spot: Spot, key: Json) -> Content:
        """The event that gives the hash of a row's key."""
        value = self._integer("hash", spot)
        if value is None or not 0 <= value < SPACE:
            raise ValueError(f"its {self._name('hash')} must be a hash, an integer from 0 up to 2^63")
        return self._beside(spot, Content("hash", key, value))

    def _beside(self, spot: Spot, content: Content) -> Content:
        return content._replace(
            subscriber=str(self._required("subscriber", spot) or "stream"),
            session=self._required("session", spot) if "session" in self._fields else 0,
            time_ns=self._time_ns(spot),
        )

    def _time_ns(self, spot: Spot) -> int | None:
        at = self._integer("time", spot)
        return None if at is None else at * _NS[self._mapping.time_unit]

    def _required(self, name: str, spot: Spot) -> Json:
        """The value of a field that every line must have, because the mapping file names it; None if it does not."""
        if name not in self._fields:
            return None
        value = self._get(name, spot)
        if value is None or isinstance(value, list | dict | float | bool):
            problem = f"it has no {name} ({self._name(name)})"
            raise ValueError(problem if value is None else f"its {name} is no text and no integer")
        return value

    def _integer(self, name: str, spot: Spot) -> int | None:
        value = self._get(name, spot)
        if value is not None and type(value) is not int:
            raise ValueError(f"its {self._name(name)} is not an integer")
        return value


def message_in(line: Json) -> tuple[dict[str, Json], Json]:
    """The envelope around a message, if there is one, and the message; None for a message without content."""
    if not isinstance(line, dict) or not any(name in line for name in _MESSAGES):
        return {}, line
    if "payload" in line and "value" not in line:
        line = line | {"value": line["payload"]}
    if "value" not in line:
        return {}, line
    around, message = enveloped(line) if line["value"] is not None else (line, None)
    return around, message


def _pick(key: Any) -> dict[str, Any] | None:
    """The first expression inside of a key that picks columns."""
    if isinstance(key, dict) and "pick" in key:
        return key
    inner = key if isinstance(key, list) else key.get("first", []) if isinstance(key, dict) else []
    return next((found for each in inner if (found := _pick(each)) is not None), None)


def _encoding(position: Any) -> str | None:
    """The encoding of a position of bytes."""
    if isinstance(position, dict) and len(position) == 1:
        return next((how for how in ("base64", "hex") if how in position), None)
    return None


def _place_of_parts(values: list[Json]) -> Place:
    """A position of several parts: integers, or texts that end with one, such as mysql-bin.000003."""
    if not values:
        raise ValueError("its position has no parts")
    parts, names = [], []
    for value in values:
        digits = len(str(value)) - len(str(value).rstrip("0123456789"))
        if isinstance(value, bool) or not isinstance(value, int | str) or digits == 0:
            raise ValueError(f"its position has a part {str(value)[:40]!r}, which is no integer and ends with none")
        parts.append(int(str(value)[-digits:]))
        names.append(str(value)[:-digits])
    return Place(f"parts {'/'.join(names)}", tuple(parts), lambda of: ":".join(map(str, of)))


def _pairs(value: Json) -> list[tuple[int, int]]:
    """The ranges of one line: none, one or several. For anything else a range that no log can have."""
    if value is None:
        return []
    for ranges in (value, [value]):
        try:
            return msgspec.convert(ranges, list[tuple[int, int]])
        except msgspec.ValidationError:
            pass
    return [(0, 0)]
