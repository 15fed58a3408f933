"""The lines of a file with a foreign stream, as JSON, each with its place.

They are JSON Lines, one array, objects over several lines, rows of Parquet or CSV, or text of a tool that is known
(`texts`). A file may be compressed.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa

from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.record.formats.json_array import BadJson
from harness.record.formats.jsonl import (
    LINE_MAX,
    VALUES_MAX,
    Shape,
    json_texts,
    json_value,
    json_values,
    values_of,
)
from harness.record.formats.packed import opened
from harness.record.formats.parquet.limits import stream_batches
from harness.record.formats.parquet.tables import reading
from harness.record.formats.streams.contents import Contents, by_columns
from harness.record.formats.streams.line import Content, Fields, Plain, StreamFormat
from harness.record.formats.streams.texts import Text, text_of

_PARQUET: Final = b"PAR1"
_HEAD: Final = 65536
_CSV: Final = re.compile(r"[A-Za-z_][\w.]*(?:,[A-Za-z_][\w.]*)+\r?")
FIRST: Final = 20
_BATCH: Final = 5_000


def lines_of(path: Path, shape: Shape | None = None) -> Iterator[tuple[str, Json]]:
    """The lines of that file; of JSON Lines, only what their `shape` has (`jsonl.json_value`).

    Raises HistoryError with the file, the line and the problem.
    """
    with _problems_of(path):
        yield from _lines(path, shape)


def contents_of(path: Path, form: StreamFormat) -> Iterator[Contents]:
    """What the lines of that file are in that format, by columns, many lines at a time.

    Raises HistoryError with the file, the line and the problem, after all that came before it.
    """
    with _problems_of(path):
        if not form.plain or not _is_json(_first_line(path)):
            yield from _gathered(path, form, lines_of(path, form.shape))
            return
        for word, first, texts in json_texts(path):
            fields = _read_at_once(texts, form.plain)
            if fields is None:
                yield from _gathered(path, form, values_of(word, first, texts, form.shape))
            else:
                yield Contents(word, range(first, first + len(texts)), fields)


def _read_at_once(texts: Sequence[bytes], forms: Sequence[Plain]) -> Fields | None:
    """The contents of the lines, if they have one of those forms; None if they must be read one by one."""
    if len(max(texts, key=len)) > VALUES_MAX:
        return None
    for plain in forms:
        try:
            first = plain.decoder.decode(texts[0])  # Lines of another form mostly begin with one.
            shortened = plain.shortened(texts)
        except (ValueError, RecursionError):
            continue
        for decoder in (plain.decoder,) if plain.quicker is None else (plain.quicker(first), plain.decoder):
            try:
                return plain.columns(_decoded(decoder, shortened, texts))
            except (ValueError, RecursionError):
                pass
    return None


def _decoded(decoder: msgspec.json.Decoder[Any], shortened: bytes, texts: Sequence[bytes]) -> list[Any]:
    """The values of the lines, one of each. Raises ValueError.

    A line end between braces is in no value: lines that all begin and end with one are decoded at once, in less time.
    """
    if {text[:1] for text in texts} == {b"{"} and {text[-2:] for text in texts[:-1]} <= {b"}\n"}:
        lines: list[Any] = decoder.decode_lines(shortened)
        if len(lines) == len(texts):  # Else some line has two values.
            return lines
    return list(map(decoder.decode, io.BytesIO(shortened)))


def _gathered(path: Path, form: StreamFormat, lines: Iterator[tuple[str, Json]]) -> Iterator[Contents]:
    """The contents of the lines, read one by one."""
    places, contents = list[str](), list[Content]()
    place = ""
    try:
        for place, line in lines:
            for content in form.read(line):
                places.append(place)
                contents.append(content)
            if len(contents) >= _BATCH:
                yield by_columns(places, contents)
                places, contents = [], []
    except (ValueError, OverflowError, BadJson, HistoryError) as error:
        if contents:
            yield by_columns(places, contents)
        if isinstance(error, ValueError | OverflowError):
            raise HistoryError(f"{path}, {place}: {problem_of(error)}") from None
        raise
    if contents:
        yield by_columns(places, contents)


def problem_of(error: ValueError | OverflowError) -> str:
    """The problem of a line, in words."""
    return "one of its numbers does not fit into 64 bits" if isinstance(error, OverflowError) else str(error)


@contextmanager
def _problems_of(path: Path) -> Iterator[None]:
    """Give the errors of the system and of JSON the name of the file."""
    try:
        yield
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


def _lines(path: Path, shape: Shape | None) -> Iterator[tuple[str, Json]]:
    first = _first_line(path)
    if first is None:
        yield from _rows(path)
    elif first.rstrip() == "{":
        yield from _over_lines(path)
    elif _is_json(first):
        yield from json_values(path, shape)
    elif _CSV.fullmatch(first):
        yield from _of_csv(path)
    elif (text := text_of(first)) is not None:
        yield from _of_text(path, text)
    else:
        yield from json_values(path)


def _first_line(path: Path) -> str | None:
    """The first line that is not empty; None for a file of Parquet."""
    with opened(path) as file:
        head = file.read(_HEAD)
    if head.startswith(_PARQUET):
        return None
    return next((line for line in head.decode("utf-8", "replace").lstrip("\ufeff").splitlines() if line.strip()), "")


def _is_json(first: str | None) -> bool:
    """True for JSON Lines and for an array, by the first line."""
    return first is not None and (
        first.strip() in {"", "null"} or (first.lstrip()[0] in "{[" and first.rstrip() != "{")
    )


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
