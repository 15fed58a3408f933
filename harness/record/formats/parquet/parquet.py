"""A history as Parquet files: written from records in order, and read back as the same records in the same order.

Files are written into a temporary folder, synced, counted, and renamed as one. Memory is bounded by one chunk, and by
the operations open at a time. The metadata of ops.parquet hold the number of the schema, the hash of the history, and
the footer, if there was one.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, cast

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.files import passing_writer
from harness.core.columns import GROUP_TEXT_BYTES
from harness.core.errors import HistoryError
from harness.core.record import (
    SCHEMA,
    Complete,
    Fault,
    Footer,
    Header,
    Invoke,
    Json,
    Mark,
    Probe,
    Record,
    State,
    StreamEvent,
)
from harness.record.formats.parquet.arrays import Arrays, with_values
from harness.record.formats.parquet.bulk_names import BulkNames
from harness.record.formats.parquet.limits import require_bounded_table
from harness.record.formats.parquet.names import Names, json_text
from harness.record.formats.parquet.operations import Operations, pieces, text_sizes, without_collector
from harness.record.formats.parquet.rows import records_of
from harness.record.formats.parquet.schema import SCHEMAS, table_of, tables_of
from harness.record.formats.parquet.tables import read_table, reading
from harness.record.journal import HistoryHash
from harness.record.ownership import temporary_name
from harness.record.store import sync_folder

BATCH_ROWS: Final = 100_000
_OUR_KEYS: Final = b"seamark."
_SCHEMA_KEY, _FOOTER_KEY, _HASH_KEY = b"seamark.schema", b"seamark.footer", b"seamark.history_sha256"
# Numbers that rise, or nearly: differences are smaller than a dictionary, and written three times as fast.
_RISING: Final = {
    *("index", "after", "intended_ns", "invoke_ns", "complete_ns", "invoke_seq", "complete_seq"),
    *("op", "seq", "ns", "id"),
}
_UNIQUE: Final = "json"  # Of names, of which each has its own: a dictionary would take time, and save nothing.


class _Table:
    """One file that grows by batches of rows."""

    def __init__(self, folder: Path, name: str, *, is_kept: bool) -> None:
        self._name, self._rows = name, list[tuple[object, ...]]()
        self.path = folder / f"{name}.parquet"
        schema = SCHEMAS[name]
        self._writer = (
            _keeping_writer(self.path, schema) if is_kept else passing_writer(self.path, schema, distinct=_UNIQUE)
        )
        self._text_columns = [place for place, field in enumerate(SCHEMAS[name]) if field.type == pa.string()]
        self._text_size = 0
        self.count = 0

    def add(self, *row: object) -> None:
        """Add one row; cells are in the order of the columns."""
        size = 0
        for place in self._text_columns:
            size += len(cast("str", row[place] or ""))
        if self._text_size + size > GROUP_TEXT_BYTES:
            self._flush()
        self._text_size += size
        self._rows.append(row)
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def add_table(self, table: pa.Table) -> None:
        """Add a row group."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.count += table.num_rows

    def add_large(self, table: pa.Table) -> None:
        """Add a table in row groups, each with at most BATCH_ROWS rows and GROUP_TEXT_BYTES of texts, or one row."""
        ends, begin = np.cumsum(text_sizes(table)), 0
        while begin < len(table):
            most = (int(ends[begin - 1]) if begin else 0) + GROUP_TEXT_BYTES
            end = max(begin + 1, min(begin + BATCH_ROWS, int(np.searchsorted(ends, most, "right"))))
            self.add_table(table.slice(begin, end - begin))
            begin = end

    def annotate(self, metadata: dict[bytes, bytes]) -> None:
        """Add metadata about the whole history."""
        self._writer.add_key_value_metadata(metadata)

    def close(self, change: Callable[[pa.Table], pa.Table] | None = None) -> None:
        """Write the remaining rows, and check that as many can be read back. `change` is applied to each row group."""
        self._flush()
        self._writer.close()
        if change is not None:
            self._rewrite(change, compression="zstd")
        try:
            require_bounded_table(self.path)
        except HistoryError:  # Its rows are so similar that the limits would refuse it.
            self._rewrite(lambda table: table, compression="none")
        sync_folder(self.path)
        found = pq.ParquetFile(self.path, page_checksum_verification=True).metadata.num_rows
        if found != self.count:
            raise HistoryError(f"{self.path}: {self.count} rows were written, {found} can be read")

    def abandon(self) -> None:
        """Close the file, whatever its state."""
        self._writer.close()

    def _rewrite(self, change: Callable[[pa.Table], pa.Table], *, compression: str) -> None:
        """Rewrite the file; without compression, the limits refuse no history that we recorded."""
        plain = self.path.with_suffix(".plain")
        with (
            pq.ParquetFile(self.path, page_checksum_verification=True) as file,
            pq.ParquetWriter(
                plain, file.schema_arrow, compression=compression, use_dictionary=False, write_page_checksum=True
            ) as writer,
        ):
            for group in range(file.num_row_groups):
                table = change(file.read_row_group(group))
                writer.write_table(table, row_group_size=max(1, table.num_rows))
            metadata = file.metadata.metadata or {}
            writer.add_key_value_metadata({key: metadata[key] for key in metadata if key.startswith(_OUR_KEYS)})
        plain.replace(self.path)

    def _flush(self) -> None:
        self._text_size = 0
        if self._rows:
            rows, self._rows = self._rows, []
            self.add_table(tables_of(rows, self._table, lambda row: f"record {row[0]}"))

    def _table(self, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        return table_of(self._name, dict(zip(SCHEMAS[self._name].names, zip(*rows, strict=True), strict=True)))


def _keeping_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a file that is kept: a small one."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[each for field in schema if (each := _path(field)) not in {*_RISING, _UNIQUE}],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in schema.names if name in _RISING},
        write_page_checksum=True,
    )


def _path(field: pa.Field) -> str:
    """The path of the field's numbers or texts, as Parquet names it."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name


class HistoryWriter:
    """A writer of records in order. `finish` makes the folder appear; `discard` removes an unfinished one.

    With `is_kept` false, the history is for one check, and is written in less time. Without `is_hashed` it does not
    record its hash.
    """

    def __init__(self, folder: Path, *, is_kept: bool = True, is_hashed: bool = True) -> None:
        self._folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = folder.with_name(temporary_name(folder.name))
        self._temporary.mkdir()
        self._tables = {name: _Table(self._temporary, name, is_kept=is_kept) for name in SCHEMAS}
        self.names = Names()
        self._arrays = Arrays()
        self._operations = Operations(self.names, self.add_chunk)
        self._metadata = {_SCHEMA_KEY: b"%d" % SCHEMA}
        self._hash = HistoryHash()
        self._is_hashed = is_hashed
        self._seq = 0

    def add(self, record: Record) -> None:
        """Add the next record; headers and footers are not evidence and are left out. Raises HistoryError."""
        try:
            self._add(self._seq, record)
            self._hash.add(record)
        except ValueError as error:
            raise HistoryError(f"record {self._seq}: {error}; mend what recorded it") from None

    def _add(self, seq: int, record: Record) -> None:
        identify = self.names.id
        match record:
            case Header():
                return
            case Footer():
                self._metadata[_FOOTER_KEY] = msgspec.json.encode(record)
                return
            case Invoke():
                self._operations.invoke(seq, record)
            case Complete():
                self._operations.complete(seq, record)
            case StreamEvent(time_ns, subscriber, session, number, kind, span, key, value):
                named = [None if each is None else identify(each) for each in (key, value)]
                rest = (record.position, record.ordinal, record.epoch, record.unit, record.unit_rows)
                self._tables["events"].add(seq, time_ns, subscriber, session, number, kind, span, *named, *rest)
            case Fault(time_ns, step, phase, kind, targets, effect, note):
                self._tables["faults"].add(seq, time_ns, step, phase, kind, _text([*targets]), effect, note)
            case Probe(time_ns, node, name, value):
                self._tables["probes"].add(seq, time_ns, node, name, value)
            case State(time_ns, node, thing, key, value, position, txn):
                cells = (node, thing, identify(key), _text(value), position, txn)
                self._tables["states"].add(seq, time_ns, *cells)
            case Mark(time_ns, phase, streams, handled, goals, note):
                counts = [_text({**each}) for each in (streams, handled, goals)]
                self._tables["marks"].add(seq, time_ns, phase, *counts, note)
        self._seq += 1

    def add_chunk(self, ops: pa.Table, mops: pa.Table) -> None:
        """Add the next chunk of operations, with ids from `names`. Their hash is added by `add_canonical`."""
        for some_ops, their_mops in pieces(ops, mops):
            self._tables["ops"].add_table(some_ops)
            self._tables["mops"].add_table(their_mops)
            self._arrays.add(their_mops)

    def add_events(self, events: pa.Table) -> None:
        """Add the next events, numbered on from the records before, with ids from `names`; their hash as for chunks."""
        self._tables["events"].add_large(events)
        self._seq += len(events)

    def add_names(self, names: Iterable[pa.Table]) -> None:
        """Add the names of a history whose events, and nothing else, came as tables."""
        for some in names:
            self._tables["names"].add_large(some)

    def add_canonical(self, records: bytes | memoryview) -> None:
        """Add records that come as tables to the history's hash."""
        self._hash.add_canonical(records)

    def finish(self) -> None:
        """Write the rest, check that everything can be read, and rename the folder into place."""
        self._operations.finish()
        self.close()

    def close(self) -> None:
        """Finish a history whose operations came as chunks."""
        keys = self._arrays.keys()
        mops = self._tables.pop("mops")
        mops.close((lambda table: with_values(table, keys, self.names)) if len(keys) else None)
        self.add_names(self.names.tables(BATCH_ROWS))
        if self._is_hashed:
            self._metadata[_HASH_KEY] = self._hash.hexdigest().encode()
        self._tables["ops"].annotate(self._metadata)
        for table in self._tables.values():
            table.close()
        sync_folder(self._temporary)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._temporary.replace(self._folder)
        sync_folder(self._folder.parent)

    def discard(self) -> None:
        """Remove an unfinished history."""
        for table in self._tables.values():
            table.abandon()
        shutil.rmtree(self._temporary, ignore_errors=True)


def write_history(records: Iterable[Record], folder: Path) -> None:
    """Write the Parquet files of a history into `folder`, replacing its content.

    Raises HistoryError, and leaves `folder` unchanged, if the records are inconsistent.
    """
    writer = HistoryWriter(folder)
    try:
        with without_collector():
            for record in records:
                writer.add(record)
            writer.finish()
    finally:
        writer.discard()


def write_events(
    events: Iterable[tuple[pa.Table, Iterable[memoryview]]], names: BulkNames, folder: Path, *, is_hashed: bool
) -> None:
    """Write a history of events alone, for one check.

    `events` are tables with ids from `names`, and with the bytes that the history's hash covers: without `is_hashed`
    these are left out, and `hash_of` is None.
    """
    writer = HistoryWriter(folder, is_kept=False, is_hashed=is_hashed)
    try:
        with without_collector():
            writer.add_names(names.tables(BATCH_ROWS))
            for table, records in events:
                writer.add_events(table)
                for some in records if is_hashed else ():
                    writer.add_canonical(some)
            writer.add(Footer(0, "imported"))
            writer.finish()
    finally:
        writer.discard()


def footer_of(folder: Path) -> Footer | None:
    """The footer of that history, with the reason for its end; None if the recording did not complete.

    Raises HistoryError if a newer Seamark wrote it, or the file is damaged.
    """
    path = folder / "ops.parquet"
    with reading(path):
        metadata = pq.read_metadata(path).metadata or {}
        if int(metadata.get(_SCHEMA_KEY, b"1")) > SCHEMA:
            raise HistoryError(f"{path}: is of a newer Seamark than this one, which reads schemas up to {SCHEMA}")
        text = metadata.get(_FOOTER_KEY)
        return None if text is None else msgspec.json.decode(text, type=Footer)


def hash_of(folder: Path) -> str | None:
    """The history's hash, recorded when the files were written; None if it was not."""
    path = folder / "ops.parquet"
    with reading(path):
        text = (pq.read_metadata(path).metadata or {}).get(_HASH_KEY)
        return None if text is None else text.decode()


def is_history(folder: Path) -> bool:
    """True if the folder has the Parquet files of a history."""
    return all((folder / f"{name}.parquet").is_file() for name in ("ops", "mops"))


def _text(value: Json) -> str:
    return json_text(value).decode()


__all__ = ["HistoryWriter", "footer_of", "hash_of", "is_history", "read_table", "records_of", "write_history"]
