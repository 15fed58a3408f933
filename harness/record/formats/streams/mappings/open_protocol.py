"""TiCDC's open protocol: messages of one or several events, keys and values apart.

Source: TiDB's documentation, TiCDC Open Protocol. Tools write key and value as objects, or as texts in which
numbers of bytes stand before each object.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Final

from harness.core.promises import StreamContract
from harness.core.record import Json
from harness.record.formats.streams.line import DELETED, Before, Content, StreamFormat, inside, span_of

_ROW: Final = 1
_RESOLVED: Final = 3  # 2 is a change of the schema.
_DECODER: Final = json.JSONDecoder()

# The rows of a key come in order, and again after a fault. A resolved event closes what is below it, in its partition.
CONTRACT: Final = StreamContract(
    closed="<",
    cut="position",
    position="commit-timestamp",
    order_key="key",
    delivery="at-least-once",
    replay="session",
    atomic_unit="none",
    unit_rows="final",
    identity="position+key",
    wm_scope="partition",
    follows_clock=True,
)


def open_protocol(name: str, key: tuple[str, ...] = ()) -> StreamFormat:
    """The format of that name; `key` names the key's columns where a table has no handle."""
    return StreamFormat(name, CONTRACT, partial(_read, key))


def _read(key: tuple[str, ...], line: Json) -> Iterator[Content]:
    """The rows and resolved events of a message; nothing for a change of the schema. Raises ValueError for others."""
    if not isinstance(line, dict) or "key" not in line:
        raise ValueError("it is no message of the open protocol: write each line with the message's key and value")
    values = iter(_objects(line.get("value", line.get("payload"))))
    for event in _objects(line["key"]):
        kind, at = event.get("t"), event.get("ts")
        if type(kind) is not int or at is None:
            raise ValueError('its key is none of the open protocol: it has no "ts" and no "t"')
        if kind == _RESOLVED:
            yield Content("watermark", position=at, span=span_of(line))
            continue
        value = next(values, None)
        if value is None:
            raise ValueError("its key has an event of which its value has nothing")
        if kind == _ROW:
            yield _row(key, event, value)._replace(position=at, span=span_of(line))


def _row(key: tuple[str, ...], event: dict[str, Json], value: dict[str, Json]) -> Content:
    new, old = value.get("u"), value.get("p", value.get("d"))
    row = new if new is not None else old
    if not isinstance(row, dict):
        raise ValueError('its row has neither "u" nor "d"')
    names = key or tuple(name for name, column in row.items() if inside(column, "h") is True)
    values = {name: inside(column, "v") for name, column in row.items()}
    lacking = [name for name in names if values.get(name) is None]
    if not names or lacking:
        what = f"no {lacking[0]}" if lacking else "no column that identifies it"
        raise ValueError(f"its row has {what}: name the key's columns with --key")
    image = {name: inside(column, "v") for name, column in old.items()} if isinstance(old, dict) else None
    is_moved = image is not None and any(name in image and image[name] != values[name] for name in names)
    return Content(
        "row",
        [event.get("scm"), event.get("tbl"), *(values[name] for name in names)],
        DELETED if new is None else values,
        before=None if image is None or is_moved else Before(image),
    )


def _objects(given: Json) -> list[dict[str, Json]]:
    """The objects of a message's key or value."""
    if isinstance(given, dict):
        return [given]
    text, result, place = given if isinstance(given, str) else "", list[dict[str, Json]](), 0
    while (place := text.find("{", place)) >= 0:
        try:
            found, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            if not text.startswith("{{", place):
                raise ValueError("its key or value is cut short, or no JSON") from None
            place += 1  # A number of bytes that looks like a brace.
        else:
            result.append(found)
    return result
