"""Lines of tools that print no JSON, as objects: Kafka's console consumer, PostgreSQL's test_decoding, and Flink.

Sources: Kafka, `kafka-console-consumer.sh` with the properties print.timestamp, print.partition, print.offset,
print.headers and print.key; PostgreSQL's manual, test_decoding and Logical Decoding Examples; Flink, Print SQL
Connector and SQL Client.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from harness.core.record import Json

_MOST: Final = 1 << 20  # Characters of a line of test_decoding.
_CONSUMED: Final = re.compile(r"(?:CreateTime|LogAppendTime|NoTimestamp):|Partition:\d+\t|Offset:\d+\t")
_PART: Final = re.compile(r"(CreateTime|LogAppendTime|NoTimestamp|Partition|Offset):(-?\d*)")
_DECODED: Final = re.compile(r"(?:BEGIN|COMMIT)\b|table \S+: ")
_ROW: Final = re.compile(r"table (.{1,500}?): (INSERT|UPDATE|DELETE|TRUNCATE): ?(.*)", re.DOTALL)
_MARK: Final = re.compile(r"(BEGIN|COMMIT)(?: (\d+))?(?: .*)?")
_PSQL: Final = re.compile(r"\s*([0-9A-F]{1,8}/[0-9A-F]{1,8})\s*\|\s*(\d+)\s*\|\s?(.*?)\s*")
_FRAME: Final = re.compile(r"\s*|\s*lsn\s*\|.*|[-+ ]+|\(\d+ rows?\)")
_COLUMN: Final = re.compile(r'\s*("(?:[^"]|"")*"|[^\s\[]+)\[(.*?)\]:(\'(?:[^\']|\'\')*\'|\S+)')
_PRINTED: Final = re.compile(r"(?:[^\[\]]{0,200}> )?([+-][IUD])\[(.*)\]", re.DOTALL)  # Behind the name of the sink.
_IN_TABLE: Final = re.compile(r"\| +([+-][IUD]) +\|(.*)\|", re.DOTALL)
_TABLE_FRAME: Final = re.compile(r"[-+]*|\| +op +\|.*|Received a total of .*")
_NUMBERS: Final = ("smallint", "integer", "bigint")


class Text(NamedTuple):
    """A form of text lines: how a first line looks, and the reader of a line.

    `read` gives an object; None for a line without an event. It raises ValueError for any other.
    """

    is_first: Callable[[str], bool]
    read: Callable[[str], Json]


def text_of(first: str) -> Text | None:
    """The form of a file with that first line; None if it is not known."""
    return next((text for text in _TEXTS if text.is_first(first)), None)


def _consumed(line: str) -> Json:
    """A message as the console consumer prints it: its key, if any, and value are the last fields."""
    if not line.strip():
        return None
    parts = line.split("\t")
    result: dict[str, Json] = {}
    while parts and (found := _PART.fullmatch(parts[0])):
        name, number = found[1].lower(), found[2]
        result["time" if "time" in name else name] = int(number) if number not in {"", "-"} else None
        parts = parts[1:]
    if not parts or "offset" not in result:
        raise ValueError("it is no message of the console consumer with print.partition, print.offset and print.key")
    *others, value = parts
    if others:
        result["key"] = None if others[-1] == "null" else others[-1]
    result["value"] = None if value == "null" else value
    return result


def _decoded(line: str) -> Json:
    """A line of test_decoding, alone or in psql's table with its position and transaction."""
    if len(line) > _MOST:
        raise ValueError(f"it is longer than {_MOST:,} characters, the limit")
    found, result = _PSQL.fullmatch(line), dict[str, Json]()
    if found:
        result, line = {"lsn": found[1], "xid": int(found[2])}, found[3]
    elif _FRAME.fullmatch(line):
        return None
    if mark := _MARK.fullmatch(line):
        return result | {"kind": mark[1]} | ({"xid": int(mark[2])} if mark[2] else {})
    row = _ROW.fullmatch(line)
    if row is None:
        raise ValueError("it is no line of test_decoding: neither BEGIN nor COMMIT nor a table's change")
    old, new = _images(row[3])
    return result | {"kind": row[2], "table": row[1], "columns": new, "old": old}


def _images(text: str) -> tuple[Json, Json]:
    """The old key of a row, and its columns; None for what is not there."""
    if text.startswith("old-key: "):
        old, _, new = text.removeprefix("old-key: ").partition(" new-tuple: ")
        return _columns(old), _columns(new)
    return None, None if text == "(no-tuple-data)" else _columns(text)


def _columns(text: str) -> dict[str, Json]:
    result: dict[str, Json] = {}
    place = 0
    while text[place:].strip():
        found = _COLUMN.match(text, place)
        if found is None:
            raise ValueError(f"its column {text[place:].strip()[:40]!r} is not as test_decoding writes it")
        result[found[1].strip('"')] = _value(found[2], found[3])
        place = found.end()
    return result


def _value(kind: str, text: str) -> Json:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text == "null":
        return None
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if kind in _NUMBERS and re.fullmatch(r"-?\d{1,18}", text) else text


def _changed(line: str) -> Json:
    """A row of Flink's changelog; a -U or -D takes back what it shows. Columns are f0, f1, ..., as rows name none."""
    line = line.strip()
    if len(line) > _MOST:
        raise ValueError(f"it is longer than {_MOST:,} characters, the limit")
    if printed := _PRINTED.fullmatch(line):
        op, parts = printed[1], list(_outer(printed[2]))
    elif found := _IN_TABLE.fullmatch(line):
        op, parts = found[1], [part.strip() for part in found[2].split("|")]
    elif _TABLE_FRAME.fullmatch(line):
        return None
    else:
        raise ValueError("it is no row of Flink's changelog, such as +I[1, a]")
    columns: dict[str, Json] = {f"f{place}": part for place, part in enumerate(parts)}
    return {"op": op, "columns": columns, "old": columns if op in {"-U", "-D"} else None}


def _outer(text: str) -> Iterator[str]:
    """The parts between commas that stand in no brackets."""
    depth = begin = 0
    for place, sign in enumerate(text):
        depth += (sign in "[{(") - (sign in "]})")
        if depth <= 0 and text.startswith(", ", place):
            yield text[begin:place]
            begin = place + 2
    yield text[begin:]


_TEXTS: Final = (
    Text(lambda first: _CONSUMED.match(first) is not None, _consumed),
    Text(
        lambda first: bool(_DECODED.match(first) or re.fullmatch(r"\s*lsn\s*\|.*", first) or _PSQL.fullmatch(first)),
        _decoded,
    ),
    Text(lambda first: bool(_PRINTED.fullmatch(first.strip()) or re.match(r"\+-{4}\+|\| op \|", first)), _changed),
)
