"""Parquet files of a history. Readers compare checksums; damage raises a HistoryError that names the file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers.columns.arrow import flags
from harness.core.columns import Bools, Int64s
from harness.core.errors import HistoryError

DAMAGE: Final = (OSError, KeyError, pa.ArrowException)


def damaged(path: Path | str, problem: Exception) -> HistoryError:
    """A HistoryError that says that `path` cannot be read, and why."""
    line = (str(problem).splitlines() or [type(problem).__name__])[0]
    return HistoryError(f"{path}: cannot be read ({line}); if its run has a journal, remove it and check again")


@contextmanager
def reading(path: Path | str, *also: type[Exception]) -> Iterator[None]:
    """Turn errors from a damaged file or folder into a HistoryError.

    `also` are further errors that its values can cause.
    """
    try:
        yield
    except (*DAMAGE, *also) as problem:
        raise damaged(path, problem) from problem


@contextmanager
def opened(path: Path, *, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """The file, open. Columns in `texts` are read as dictionaries. Raises HistoryError if it is damaged."""
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True, read_dictionary=[*texts]) as file:
        yield file


@contextmanager
def opened_operations(history: Path) -> Iterator[tuple[pq.ParquetFile, pq.ParquetFile]]:
    """ops.parquet and mops.parquet, open: row group i of both is chunk i. Raises HistoryError if one is damaged."""
    ops, mops = (history / f"{name}.parquet" for name in ("ops", "mops"))
    with (
        reading(history),
        pq.ParquetFile(ops, page_checksum_verification=True) as op_file,
        pq.ParquetFile(mops, page_checksum_verification=True) as mop_file,
    ):
        yield op_file, mop_file


def footer(path: Path) -> pq.FileMetaData:
    """The description of the file. Raises HistoryError if it is damaged."""
    with reading(path):
        return pq.read_metadata(path)


def read_columns(
    path: Path, columns: Sequence[str], *, texts: Sequence[str] = (), **chosen: Sequence[str | int] | Int64s
) -> pa.Table:
    """Those columns of a file; with `chosen`, only rows in which each named column has one of the given values.

    Columns in `texts` come as dictionaries. All texts that have one in the file are read so, which takes a fifth of the
    time (three times as long for the others), and of a row group that has no row to choose nothing else is read.
    Raises HistoryError if the file is damaged. `pyarrow.parquet.read_table` would import pandas.
    """
    with opened(path, texts=_texts(path, [*columns, *chosen], texts)) as file:
        if not chosen:
            return _plain(file.read([*columns], use_threads=False).select([*columns]), texts)
        parts = [file.schema_arrow.empty_table().select([*columns])]
        for number in range(file.num_row_groups):
            is_meant = _are_among(file.read_row_group(number, [*chosen], use_threads=False), chosen)
            if is_meant.any():
                table = file.read_row_group(number, [*columns], use_threads=False)
                parts.append(table.select([*columns]).filter(pa.array(is_meant)))
        return _plain(pa.concat_tables(parts), texts)


def read_group(path: Path, number: int, columns: Sequence[str]) -> pa.Table:
    """Those columns of that row group. Raises HistoryError, which names both, if it is damaged."""
    with reading(f"{path}, row group {number}"), pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read_row_group(number, columns=[*columns], use_threads=False).select([*columns])


def passing_writer(path: Path, schema: pa.Schema, *, distinct: str = "") -> pq.ParquetWriter:
    """A writer of a file that is read in the same check and then removed: a third of the time of one that is kept.

    Checksums, statistics and dictionaries of numbers take longer than they save; texts are read as dictionaries again.
    The column `distinct` gets no dictionary: no two of its texts are equal.
    """
    coded = [each.name for each in schema if pa.types.is_string(each.type) or pa.types.is_dictionary(each.type)]
    texts = [name for name in coded if name != distinct]
    return pq.ParquetWriter(path, schema, compression="LZ4", use_dictionary=texts, write_statistics=False)


def _texts(path: Path, columns: Sequence[str], coded: Sequence[str]) -> list[str]:
    """The columns of texts to read as dictionaries: those in `coded`, and those that have a dictionary in the file."""
    with reading(path):
        metadata = pq.read_metadata(path)
        kinds = metadata.schema.to_arrow_schema()
        wanted = [each.name for each in kinds if each.name in columns and pa.types.is_string(each.type)]
        return [name for name in wanted if name in coded or _has_dictionary(metadata, name)]


def _has_dictionary(metadata: pq.FileMetaData, name: str) -> bool:
    """True unless the first row group has the values of that column one by one."""
    if not metadata.num_row_groups:
        return True
    group = metadata.row_group(0)
    chunks = (group.column(place) for place in range(metadata.num_columns))
    return any(chunk.has_dictionary_page for chunk in chunks if chunk.path_in_schema == name)


def _are_among(table: pa.Table, chosen: dict[str, Sequence[str | int] | Int64s]) -> Bools:
    """True for rows in which each column has one of its values."""
    plain = _plain(table, ())
    columns = (pc.is_in(plain[name], value_set=pa.array(values, plain[name].type)) for name, values in chosen.items())
    result: Bools = np.logical_and.reduce([flags(each) for each in columns])
    return result


def _plain(table: pa.Table, coded: Sequence[str]) -> pa.Table:
    """The same columns, with texts that are no dictionaries, except for those in `coded`."""
    fields = [
        each.with_type(each.type.value_type) if pa.types.is_dictionary(each.type) and each.name not in coded else each
        for each in table.schema
    ]
    return table.cast(pa.schema(fields))
