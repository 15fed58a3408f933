"""Page headers as we read them agree with what the writer says in its footer, whatever it was asked to write."""

from itertools import product
from mmap import ACCESS_READ, mmap
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.record.formats.parquet.pages import DICTIONARY, pages_of

HEADER_MAX = 200
OPTIONS = list(product(["1.0", "2.0"], ["none", "zstd", "snappy"], [True, False], [200, 1 << 20]))


@pytest.mark.parametrize(("version", "codec", "has_dictionary", "page_size"), OPTIONS)
def test_pages_hold_what_the_footer_says(
    tmp_path: Path, version: str, codec: str, has_dictionary: bool, page_size: int
) -> None:
    random, path = Random(7), tmp_path / "t.parquet"
    table = pa.table(
        {
            "number": [random.choice([None, random.getrandbits(62)]) for _ in range(3_000)],
            "text": [random.choice([None, "", "é" * random.randint(1, 40)]) for _ in range(3_000)],
            "list": [random.choice([None, [], [1] * random.randint(1, 9)]) for _ in range(3_000)],
            "nothing": pa.nulls(3_000, pa.string()),
        }
    )
    options = {"data_page_version": version, "compression": codec, "use_dictionary": has_dictionary}
    pq.write_table(
        table,
        path,
        **options,
        data_page_size=page_size,
        write_batch_size=100,
        row_group_size=1_700,
        write_page_checksum=True,
    )
    footer = pq.read_metadata(path)
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        for group, column in product(range(footer.num_row_groups), range(footer.num_columns)):
            chunk = footer.row_group(group).column(column)
            pages = list(pages_of(content, chunk))
            data = [page for page in pages if page.kind != DICTIONARY]
            assert sum(page.values for page in data) == chunk.num_values
            assert len(pages) - len(data) == int(chunk.has_dictionary_page)
            left = chunk.total_uncompressed_size - sum(page.size for page in pages)
            assert 0 < left <= HEADER_MAX * len(pages)


def test_a_chunk_of_no_values_has_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema({"n": pa.int64()})) as writer:
        writer.write_table(pa.table({"n": pa.array([], pa.int64())}))
    footer = pq.read_metadata(path)
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        for group in range(footer.num_row_groups):
            assert list(pages_of(content, footer.row_group(group).column(0))) == []
