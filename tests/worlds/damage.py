"""Damage to the files of a history."""

from pathlib import Path

import pyarrow.parquet as pq


def flip_bit(path: Path, name: str) -> None:
    """Flip a bit in the last page of that column of a Parquet file."""
    group = pq.read_metadata(path).row_group(0)
    columns = map(group.column, range(group.num_columns))
    chunk = next(column for column in columns if column.path_in_schema == name)
    content = bytearray(path.read_bytes())
    begin = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
    content[begin + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
