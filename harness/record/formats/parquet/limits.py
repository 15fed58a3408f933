"""Limits on Parquet files, checked against the footer and the page headers before pages are decoded.

A small file can be huge in memory: pages are compressed, a text in a dictionary can be repeated a million times in a
few bytes, and so can rows. There are four limits, and an error names the limit and the file that exceeds it:

1. A text takes at most TEXT_MAX bytes in a journal's record, with at most OBJECTS_MAX values in it.
2. A table has at most ROWS_FREE rows, or ROWS_PER_BYTE for each byte of its file.
3. The texts of a table, and each page, have at most EXPANDED_FREE bytes, or EXPANSION for each byte of the file. The
   values of operations and the lists read are many and similar, so they are counted per row group.
4. A foreign change stream is read in batches: there a text may have LINE_MAX bytes, as in a line of JSON, and all texts
   together STREAM_EXPANSION bytes for each byte of the file.

Bounds come from the page headers. Only if a bound exceeds a limit are texts decoded, as dictionaries, to find their
true size. Limits that depend on the file's size accept every file written without compression. Not covered: memory for
the footer itself, which is not compressed, and a decoder's memory beyond its result.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.core.errors import HistoryError
from harness.record.formats.jsonl import LINE_MAX
from harness.record.formats.parquet.pages import DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, DICTIONARY, Page, pages_of
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.formats.parquet.tables import reading
from harness.record.journal import OBJECTS_MAX, RECORD_MAX

TEXT_MAX: Final = RECORD_MAX
ROWS_FREE: Final = 4_000_000
ROWS_PER_BYTE: Final = 8
EXPANDED_FREE: Final = 256 << 20
EXPANSION: Final = 1_000
STREAM_EXPANSION: Final = 10_000
BATCH_ROWS: Final = 1 << 16
_BATCH_BYTES: Final = 64 << 20
_JSON_GROWTH: Final = 6  # The most bytes of JSON per byte of msgpack: a control character, or a `false` and its comma.
_LEVELS_BYTES: Final = 1 << 20  # The most bytes of a page besides its texts.
_JSON_COLUMNS: Final = {"json", "value", "invoke_value", "targets", "streams", "handled", "goals"}
_BY_GROUP: Final = {("ops", "value"), ("ops", "invoke_value")}  # Checks read them one row group at a time.
_NUMBER_BYTES: Final = 16
_WIDTHS: Final = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_LESS: Final = "write it with weaker compression"


class _Chunk(NamedTuple):
    """A column in one row group. `longest` and `expanded` bound the bytes of one value and of all values.

    `is_exact`: `expanded` is at most the size of the pages themselves. `has_deltas`: some pages store texts as deltas.
    """

    group: int
    column: str
    is_text: bool
    is_repeated: bool
    longest: int
    expanded: int
    is_exact: bool
    has_deltas: bool

    @property
    def name(self) -> str:
        return self.column.split(".")[0]

    @property
    def is_counted(self) -> bool:
        """True if the column can be large although it has few rows."""
        return self.is_text or self.is_repeated or self.longest > _NUMBER_BYTES


class _File(NamedTuple):
    """An open file, and the limits that follow from its size and its origin."""

    path: Path
    file: pq.ParquetFile
    content: mmap
    is_stream: bool
    most: int | None  # The most bytes of its values that the caller takes.

    @property
    def expansion(self) -> int:
        return STREAM_EXPANSION if self.is_stream else EXPANSION

    @property
    def expanded_max(self) -> int:
        return max(EXPANDED_FREE, self.expansion * len(self.content)) if self.most is None else self.most

    @property
    def text_max(self) -> int:
        return LINE_MAX if self.is_stream else TEXT_MAX

    @property
    def written_max(self) -> int:
        """The most bytes of a text as written. Its size in a journal is checked later, text by text."""
        return LINE_MAX if self.is_stream else _JSON_GROWTH * TEXT_MAX

    def refused(self, what: str, limit: str, remedy: str = _LESS) -> HistoryError:
        return HistoryError(f"{self.path}: {what}; the limit is {limit}; {remedy}")

    def too_large(self, what: str) -> HistoryError:
        if self.most is not None:
            return self.refused(what, f"{self.most:,} bytes here", "use seamark export")
        return self.refused(what, f"{EXPANDED_FREE >> 20} MiB, or {self.expansion:,} bytes for each of the file")

    def too_long(self, column: str, said: str) -> HistoryError:
        limit = f"{self.text_max >> 20} MiB for one text"
        return self.refused(f"column {column!r} has a text that is too long ({said})", limit, "shorten it")


def require_bounded(folder: Path) -> None:
    """Raise HistoryError, naming file and limit, unless the tables of a history respect the limits."""
    for name in SCHEMAS:
        require_bounded_table(folder / f"{name}.parquet")


def require_bounded_table(path: Path) -> None:
    """Raise HistoryError, naming file and limit, unless that table of a history respects the limits."""
    with reading(path), _opened(path, is_stream=False) as opened:
        parts = defaultdict[int | None, list[_Chunk]](list)
        for chunk in _chunks(opened):
            if chunk.is_counted:
                is_alone = chunk.is_repeated or (path.stem, chunk.name) in _BY_GROUP
                parts[chunk.group if is_alone else None].append(chunk)
        for chunks in parts.values():
            _size_together(opened, chunks)


def values_size(path: Path, most: int) -> int:
    """The bytes that all values of a table of a history take in memory.

    Raises HistoryError, before more is decoded, if that table or one of its pages takes more than `most` bytes.
    """
    with reading(path), _opened(path, is_stream=False, most=most) as opened:
        return _size_together(opened, list(_chunks(opened)))


def stream_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a foreign Parquet file, in batches bounded in bytes. Raises HistoryError if a limit is exceeded."""
    with reading(path), _opened(path, is_stream=True) as opened:
        for group, rows in enumerate(_stream_batch_rows(opened)):
            yield from opened.file.iter_batches(rows, row_groups=[group], use_threads=False)


def _size_together(opened: _File, chunks: list[_Chunk]) -> int:
    """The bytes of the values of these chunks: exactly, if the caller has a limit; else a bound within the limits.

    Looks at the texts themselves where a bound does not suffice, and at those that may be too long.
    """
    is_passed = opened.most is not None or sum(chunk.expanded for chunk in chunks) > opened.expanded_max
    total = 0
    for chunk in sorted(chunks, key=lambda each: not each.is_exact):
        if chunk.is_text and (chunk.longest > OBJECTS_MAX or (is_passed and not chunk.is_exact)):
            total += _looked_at(opened, chunk, opened.expanded_max - total)[0]
        else:
            total += chunk.expanded
        if total > opened.expanded_max:
            raise _expanded(opened, chunk)
    return total


def _expanded(opened: _File, chunk: _Chunk) -> HistoryError:
    taken = f"take more than {opened.expanded_max:,} bytes when they are read"
    return opened.too_large(f"the values up to row group {chunk.group}, column {chunk.name!r}, {taken}")


def _stream_batch_rows(opened: _File) -> list[int]:
    """The number of rows per batch, for each row group. Raises HistoryError if no batch size is small enough."""
    widths = [0] * opened.file.num_row_groups
    total = 0
    for chunk in _chunks(opened):
        is_small = chunk.expanded <= _BATCH_BYTES and chunk.longest <= OBJECTS_MAX
        size, longest = chunk.expanded if chunk.is_counted else 0, chunk.longest
        if chunk.is_text and not is_small:
            size, longest = _looked_at(opened, chunk, opened.expanded_max - total)
        total += size
        if total > opened.expanded_max:
            raise _expanded(opened, chunk)
        widths[chunk.group] += 0 if is_small else longest
    return [max(1, min(BATCH_ROWS, _BATCH_BYTES // max(1, width))) for width in widths]


@contextmanager
def _opened(path: Path, *, is_stream: bool, most: int | None = None) -> Iterator[_File]:
    """The open file, if it respects the limit on rows."""
    with (
        pq.ParquetFile(path, page_checksum_verification=True) as file,
        path.open("rb") as raw,
        mmap(raw.fileno(), 0, access=ACCESS_READ) as content,
    ):
        opened, size, rows = _File(path, file, content, is_stream, most), len(content), file.metadata.num_rows
        if rows > max(ROWS_FREE, ROWS_PER_BYTE * size):
            what = f"it declares {rows:,} rows in {size:,} bytes"
            raise opened.refused(what, f"{ROWS_FREE:,} rows, or {ROWS_PER_BYTE} for each byte of the file")
        yield opened


def _chunks(opened: _File) -> Iterator[_Chunk]:
    """The column chunks as their pages describe them.

    Raises HistoryError, or ValueError if the footer contradicts them.
    """
    footer, schema = opened.file.metadata, opened.file.schema
    columns = [schema.column(place) for place in range(len(footer.schema))]
    left = footer.num_rows
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        left -= row_group.num_rows
        for place, column in enumerate(columns):
            chunk = row_group.column(place)
            is_repeated = column.max_repetition_level > 0
            if not is_repeated and chunk.num_values != row_group.num_rows:
                raise ValueError(f"row group {group} has not as many values as rows")
            width = _WIDTHS.get(column.physical_type, max(0, column.length))
            yield _chunk(opened, group, column.path, chunk, width=width, is_repeated=is_repeated)
    if left:
        raise ValueError("the rows of its row groups do not add up to its row count")


def _chunk(
    opened: _File, group: int, column: str, chunk: pq.ColumnChunkMetaData, *, width: int, is_repeated: bool
) -> _Chunk:
    """One column chunk. A width of 0 means texts."""
    dictionary = read = expanded = longest = 0
    has_deltas = False
    for page in pages_of(opened.content, chunk):
        _require_page(opened, column, page, is_text=not width)
        if width:
            continue
        has_deltas |= page.encoding in {DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY}
        if page.kind == DICTIONARY:
            dictionary = page.size
        elif page.is_coded:
            expanded += page.values * dictionary
            longest = max(longest, dictionary)
        else:  # With deltas, each text may begin with the whole previous one.
            read += page.size
            expanded += page.size * (page.values if page.encoding == DELTA_BYTE_ARRAY else 1)
            longest = max(longest, page.size)
    if width:
        longest, expanded, read = width, chunk.num_values * width, chunk.num_values * width
    is_exact = expanded <= max(read, dictionary)
    return _Chunk(group, column, not width, is_repeated, longest, expanded, is_exact, has_deltas)


def _require_page(opened: _File, column: str, page: Page, *, is_text: bool) -> None:
    if is_text and not page.is_coded and page.size > page.values * opened.written_max + _LEVELS_BYTES:
        raise opened.too_long(column, f"its file declares {page.size:,} bytes for {page.values:,}")
    if page.size > opened.expanded_max:
        raise opened.too_large(f"a page of column {column!r} declares {page.size >> 20:,} MiB")


def _looked_at(opened: _File, chunk: _Chunk, left: int) -> tuple[int, int]:
    """The true size of all texts of a chunk, and that of the longest.

    Stops once it has counted more than `left` bytes.
    """
    is_coded = "." not in chunk.column and not chunk.has_deltas  # Arrow reads no other columns as dictionaries.
    rows = BATCH_ROWS if is_coded else max(1, min(BATCH_ROWS, _BATCH_BYTES // chunk.longest))
    coded = [chunk.column] if is_coded else None
    total = longest = 0
    with pq.ParquetFile(opened.path, read_dictionary=coded, page_checksum_verification=True) as file:
        for batch in file.iter_batches(rows, row_groups=[chunk.group], columns=[chunk.column], use_threads=False):
            for leaf in _leaves(batch.column(0)):
                texts = leaf.dictionary if isinstance(leaf, pa.DictionaryArray) else leaf
                lengths = _lengths(texts)
                _require_texts(opened, chunk, texts, lengths)
                used = lengths.take(leaf.indices) if isinstance(leaf, pa.DictionaryArray) else lengths
                total += pc.sum(used, min_count=0).as_py()
                longest = max(longest, pc.max(used).as_py() or 0)
            if total > left:
                break
    return total, longest


def _is_large(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _lengths(texts: pa.Array) -> pa.Array:
    """The length of each text in bytes. Parquet's texts can be numbers in Arrow; those are short."""
    kind = texts.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return pc.binary_length(texts.cast(pa.large_binary()))
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or _is_large(kind):
        return pc.binary_length(texts)
    return pa.array([_NUMBER_BYTES] * len(texts), pa.int32())


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    if isinstance(array, pa.StructArray):
        for part in array.flatten():
            yield from _leaves(part)
    elif isinstance(array, pa.MapArray):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        yield from _leaves(array.flatten())
    elif isinstance(array, pa.ExtensionArray):
        yield from _leaves(array.storage)
    else:
        yield array


def _require_texts(opened: _File, chunk: _Chunk, texts: pa.Array, lengths: pa.Array) -> None:
    """Raise HistoryError if one of these texts is too long, or has too many values."""
    if (pc.max(lengths).as_py() or 0) <= OBJECTS_MAX:
        return
    for place in pc.indices_nonzero(pc.greater(lengths, OBJECTS_MAX)).to_pylist():
        text = memoryview(texts[place].as_buffer())
        is_json = chunk.name in _JSON_COLUMNS and not opened.is_stream
        if len(text) > (opened.written_max if is_json else opened.text_max):
            raise opened.too_long(chunk.column, f"{len(text):,} bytes")
        if is_json:
            _require_json(opened, chunk.column, bytes(text))


def _require_json(opened: _File, column: str, text: bytes) -> None:
    """Raise HistoryError if no journal could hold that value in one record."""
    has_many = text.count(b"[") + text.count(b"{") + text.count(b'"') // 2 > OBJECTS_MAX
    if not has_many and len(text) <= TEXT_MAX:
        return
    outside = _STRING.sub(b'"', text)
    if outside.count(b"[") + outside.count(b"{") + outside.count(b'"') > OBJECTS_MAX:
        raise opened.refused(f"column {column!r} has a text with too many values", f"{OBJECTS_MAX:,} values in a text")
    if len(text) > TEXT_MAX and (outside.count(b",") > TEXT_MAX or _journal_size(text) > TEXT_MAX):
        raise opened.too_long(column, f"{len(text):,} bytes")


def _journal_size(text: bytes) -> int:
    """The bytes that a journal needs for that value; if it is not JSON, its own length."""
    try:
        return len(msgspec.msgpack.encode(msgspec.json.decode(text)))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError):
        return len(text)
