"""The lines of a file with a foreign stream, as JSON, each with its place.

They are JSON Lines, one array, objects over several lines, rows of Parquet or CSV, or text of a tool that is known
(`texts`). A file may be compressed.
"""

import csv
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.record.formats.json_array import BadJson
from harness.record.formats.jsonl import LINE_MAX, Shape, json_value, json_values
from harness.record.formats.packed import opened
from harness.record.formats.parquet.limits import stream_batches
from harness.record.formats.parquet.tables import reading
from harness.record.formats.streams.texts import Text, text_of

_PARQUET: Final = b"PAR1"
_HEAD: Final = 65536
_CSV: Final = re.compile(r"[A-Za-z_][\w.]*(?:,[A-Za-z_][\w.]*)+\r?")
FIRST: Final = 20


def lines_of(path: Path, shape: Shape | None = None) -> Iterator[tuple[str, Json]]:
    """The lines of that file; of JSON Lines, only what their `shape` has (`jsonl.json_value`).

    Raises HistoryError with the file, the line and the problem.
    """
    try:
        with opened(path) as file:
            head = file.read(_HEAD)
        yield from _lines(path, head, shape)
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None
    except BadJson as bad:
        raise HistoryError(f"{path}, {bad}") from None


def first_lines(path: Path, count: int = FIRST) -> list[Json]:
    """The first lines of that file, as far as they can be read."""
    found: list[Json] = []
    try:
        for _, line in islice(lines_of(path), count):
            found.append(line)
    except HistoryError:
        pass
    return found


def _lines(path: Path, head: bytes, shape: Shape | None) -> Iterator[tuple[str, Json]]:
    if head.startswith(_PARQUET):
        yield from _rows(path)
        return
    first = next((line for line in head.decode("utf-8", "replace").lstrip("\ufeff").splitlines() if line.strip()), "")
    sign = first.lstrip()[:1]
    if sign == "{" and first.rstrip() in {"{", "{ "}:
        yield from _over_lines(path)
    elif sign in {"{", "["} or not first or first.strip() == "null":
        yield from json_values(path, shape)
    elif _CSV.fullmatch(first):
        yield from _of_csv(path)
    elif (text := text_of(first)) is not None:
        yield from _of_text(path, text)
    else:
        yield from json_values(path)


def _over_lines(path: Path) -> Iterator[tuple[str, Json]]:
    """Objects of which each ends with a brace at the beginning of a line."""
    with opened(path) as file:
        parts: list[bytes] = []
        size, begin = 0, 0
        for number, line in enumerate(iter(lambda: file.readline(LINE_MAX), b""), start=1):
            begin = begin or number
            parts.append(line)
            size += len(line)
            if size > LINE_MAX:
                raise BadJson(f"line {begin}: its object is longer than {LINE_MAX >> 20} MiB, the limit")
            if line.startswith(b"}"):
                yield f"line {begin}", json_value(f"line {begin}", b"".join(parts))
                parts, size, begin = [], 0, 0
        if b"".join(parts).strip():
            raise BadJson(f"line {begin}: its object does not end: the file was cut short")


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    with opened(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(LINE_MAX + 1), b""), start=1):
            if len(line) > LINE_MAX:
                raise BadJson(f"line {number}: it is longer than {LINE_MAX >> 20} MiB, the limit")
            yield number, line.decode("utf-8", "replace").rstrip("\r\n")


def _of_csv(path: Path) -> Iterator[tuple[str, Json]]:
    """The rows under a header, as objects of texts; an empty field and NULL are null."""
    rows = csv.reader((text for _, text in _text_lines(path)), strict=True)
    try:
        header = next(rows)
        for row in rows:
            place = f"line {rows.line_num}"
            if len(row) != len(header):
                raise BadJson(f"{place}: it has {len(row)} fields, and the header has {len(header)}")
            yield (
                place,
                {name: None if value in {"", "NULL"} else value for name, value in zip(header, row, strict=True)},
            )
    except csv.Error as error:
        raise BadJson(f"line {rows.line_num}: {error}") from None


def _of_text(path: Path, text: Text) -> Iterator[tuple[str, Json]]:
    for number, line in _text_lines(path):
        try:
            found = text.read(line)
        except ValueError as error:
            raise BadJson(f"line {number}: {error}") from None
        if found is not None:
            yield f"line {number}", found


def _rows(path: Path) -> Iterator[tuple[str, Json]]:
    number = 0
    with reading(path):
        for batch in stream_batches(path):
            columns = [
                column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.columns
            ]
            for row in pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist():
                number += 1
                yield f"row {number}", _plain(row)


def _plain(value: Any) -> Json:
    """A value of Arrow's as JSON."""
    match value:
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.decode("utf-8", "replace")
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)
