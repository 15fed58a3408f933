"""Limits of Parquet files: what is honest passes, however odd; what a limit is passed by is named with it."""

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Fault, Invoke, Json, Mark, MicroOp, Probe, State, StreamEvent
from harness.record.formats.parquet import limits, operations, parquet
from harness.record.formats.parquet.limits import require_bounded, require_bounded_table, stream_batches
from harness.record.formats.parquet.parquet import footer_of, hash_of, records_of, write_history
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.formats.parquet.validation import validate
from harness.record.journal import RECORD_MAX
from tests.worlds import bombs

MIB = 1 << 20


def long_values() -> list[Evidence]:
    """A history with a value of each size in each place where a journal takes one."""
    records: list[Evidence] = []
    for index, mib in enumerate([1, 3, 8, 14, 15]):
        text = chr(ord("a") + index) * (mib * MIB)
        mops = (MicroOp("w", index, text), MicroOp("w", text[: MIB // 2], 1, text[:99]))
        records += [
            Invoke(2 * index, 0, 0, index, "txn", None, mops),
            Complete(2 * index, 1, "ok", None, mops, text[:999]),
            Invoke(2 * index + 1, 0, 0, index, "write", text),
            Complete(2 * index + 1, 1, "ok", [text, index]),
            StreamEvent(2, "s", 0, index, "row", key=text, value=[index]),
            State(3, "n1", "log", index, {"dump": text}),
            Fault(4, index, "begin", "cut", ("n1",), None, text),
            Mark(5, "load", {}, {}, {}, text),
        ]
    return records


def test_long_values_are_written_read_back_and_accepted(tmp_path: Path) -> None:
    records = long_values()
    write_history(records, tmp_path / "h")
    validate(tmp_path / "h")
    assert list(records_of(tmp_path / "h")) == records
    for name in ("ops", "states"):
        footer = pq.read_metadata(tmp_path / "h" / f"{name}.parquet")
        assert footer.num_row_groups > 1, name


@pytest.mark.parametrize(
    "value",
    [
        "\0" * (15 * MIB),  # Six bytes of JSON for each.
        [False] * (15 * MIB),
        "[{" * 5_000_000,
        "€" * (5 * MIB),
    ],
    ids=["control characters", "booleans", "brackets in a text", "three bytes a sign"],
)
def test_what_a_journal_holds_in_a_record_is_accepted_however_long_its_json(tmp_path: Path, value: Json) -> None:
    write_history([State(0, "n1", "log", "x", value)], tmp_path / "h")
    require_bounded(tmp_path / "h")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ('"' + "a" * RECORD_MAX + '"', "the limit is 16 MiB for one text"),
        ("[" + "1," * RECORD_MAX + "1]", "the limit is 16 MiB for one text"),
        ("no JSON" * (3 * MIB), "the limit is 16 MiB for one text"),
        ("[" + "[]," * 4_000_001 + "[]]", "the limit is 4,000,000 values in a text"),
        ("[" + '"a",' * 4_000_001 + "[]]", "the limit is 4,000,000 values in a text"),
    ],
    ids=["text", "numbers", "no JSON", "lists", "texts"],
)
def test_what_no_journal_holds_is_refused_with_the_limit(tmp_path: Path, text: str, limit: str) -> None:
    path = changed(bombs.sound(tmp_path / "h"), "states", "value", [text])
    with pytest.raises(HistoryError, match=limit) as caught:
        require_bounded(tmp_path / "h")
    assert str(caught.value).startswith(f"{path}: column 'value' has a text ")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "RLE_DICTIONARY"])
def test_a_text_is_measured_whatever_its_encoding(tmp_path: Path, encoding: str, version: str) -> None:
    texts = ["a" * (5 * MIB), *[None] * 100, "a" * (17 * MIB)]
    path = changed(bombs.sound(tmp_path / "h"), "faults", "note", texts, encoding=encoding, data_page_version=version)
    with pytest.raises(HistoryError, match="the limit is 16 MiB for one text"):
        require_bounded_table(path)
    texts[-1] = "a" * (16 * MIB)
    changed(tmp_path / "h", "faults", "note", texts, encoding=encoding, data_page_version=version)
    require_bounded_table(path)


def test_texts_that_begin_alike_are_counted_in_full(tmp_path: Path) -> None:
    texts = ["a" * (4 * MIB)] * 100
    path = changed(bombs.sound(tmp_path / "h"), "faults", "note", texts, encoding="DELTA_BYTE_ARRAY")
    with pytest.raises(HistoryError, match="the limit is 256 MiB, or 1,000 bytes for each of the file"):
        require_bounded_table(path)


def test_what_is_written_without_compression_is_never_too_much(tmp_path: Path) -> None:
    texts = ["a" * MIB] * 300
    bombs.sound(tmp_path / "h")
    options: dict[str, Any] = {"encoding": "PLAIN", "write_batch_size": 4}
    path = changed(tmp_path / "h", "faults", "note", texts, **options)
    with pytest.raises(HistoryError, match="the limit is 256 MiB"):
        require_bounded_table(path)
    changed(tmp_path / "h", "faults", "note", texts, **options, compression="none")
    require_bounded_table(path)


def test_a_history_that_is_all_alike_is_written_so_that_it_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EXPANDED_FREE", MIB)
    monkeypatch.setattr(limits, "EXPANSION", 10)
    monkeypatch.setattr(parquet, "GROUP_TEXT_BYTES", MIB)
    monkeypatch.setattr(operations, "GROUP_TEXT_BYTES", MIB)
    value = "a" * 100_000
    records: list[Evidence] = [State(0, "n1", "log", 1, value) for _ in range(300)]
    for index in range(300):
        records += [Invoke(index, 0, 0, 0, "write", value), Complete(index, 0, "ok", value, None, value)]
    write_history(records, tmp_path / "h")
    validate(tmp_path / "h")
    assert (tmp_path / "h" / "ops.parquet").stat().st_size > 300 * 100_000
    assert {path.stem for path in (tmp_path / "h").iterdir()} == set(SCHEMAS)
    assert list(records_of(tmp_path / "h")) == records
    assert hash_of(tmp_path / "h") is not None
    assert footer_of(tmp_path / "h") is None


def test_ten_million_rows_of_another_writer_are_accepted(tmp_path: Path) -> None:
    """Written as small as it goes: numbers by their differences, and the strongest compression that is common."""
    folder, count, piece = bombs.sound(tmp_path / "h"), 10_000_000, 1_000_000
    path, random = folder / "probes.parquet", np.random.default_rng(7)
    first, ns = len(bombs.RECORDS), 0
    probe = next(n for n, record in enumerate(bombs.RECORDS) if isinstance(record, Probe))
    deltas = dict.fromkeys(["seq", "ns", "value"], "DELTA_BINARY_PACKED")
    options: dict[str, Any] = {"use_dictionary": ["node", "name"], "column_encoding": deltas, "compression": "zstd"}
    with pq.ParquetWriter(path, SCHEMAS["probes"], compression_level=9, **options) as file:
        for begin in range(0, count, piece):
            seq = np.arange(begin, begin + piece) + first - 1
            seq[0] = probe if begin == 0 else seq[0]
            times = ns + np.cumsum(1_000_000 + random.integers(0, 8, piece))  # A clock that nearly stands still.
            ns = int(times[-1])
            same = [pa.array([text]).take(pa.array(np.zeros(piece, np.int8))) for text in ("n1", "memory")]
            cells = [pa.array(seq), pa.array(times), *same, pa.array(np.zeros(piece, np.int64))]
            file.write_table(pa.table(cells, schema=SCHEMAS["probes"]))
    assert path.stat().st_size < count
    validate(folder)


def test_empty_tables_are_accepted(tmp_path: Path) -> None:
    write_history([], tmp_path / "h")
    validate(tmp_path / "h")
    for name, schema in SCHEMAS.items():
        pq.write_table(schema.empty_table(), tmp_path / "h" / f"{name}.parquet")
    validate(tmp_path / "h")


def test_a_footer_that_lies_about_sizes_changes_nothing(tmp_path: Path) -> None:
    path = bombs.texts(tmp_path / "h", count=3, mib=100) / "names.parquet"
    declared = pq.read_metadata(path).row_group(0).column(1).total_uncompressed_size
    patch(path, varint(2 * declared), b"\x82\x80\x80\x00")
    assert pq.read_metadata(path).row_group(0).column(1).total_uncompressed_size == 1
    with pytest.raises(HistoryError, match="the limit is 16 MiB for one text"):
        require_bounded_table(path)


def test_a_page_that_is_larger_than_it_says_is_damage(tmp_path: Path) -> None:
    path = bombs.texts(tmp_path / "h", count=3, mib=15) / "names.parquet"
    patch(path, varint(2 * (15 * MIB + 4)), b"\x82\x80\x80\x00")
    with pytest.raises(HistoryError, match="cannot be read as Parquet"):
        validate(tmp_path / "h")


def test_pages_without_sense_are_damage(tmp_path: Path) -> None:
    path = bombs.sound(tmp_path / "h") / "names.parquet"
    content = bytearray(path.read_bytes())
    content[4:9] = b"\xff" * 5
    path.write_bytes(content)
    with pytest.raises(HistoryError, match=r"names.parquet: cannot be read as Parquet"):
        require_bounded(tmp_path / "h")


def test_rows_of_a_stream_come_in_batches_that_are_bounded_in_bytes(tmp_path: Path) -> None:
    text = pa.array(["a" * (20 * MIB)])
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10, np.int32)), text)
    nested = pa.array([[{"of": text[0].as_py(), "n": 1}]] * 10)
    path = tmp_path / "s.parquet"
    pq.write_table(pa.table({"text": column, "nested": nested, "n": range(10)}), path, store_schema=False)
    assert [len(batch) for batch in stream_batches(path)] == [1] * 10
    pq.write_table(pa.table({"text": ["a"] * 100_000, "n": range(100_000)}), path)
    assert [len(batch) for batch in stream_batches(path)] == [limits.BATCH_ROWS, 100_000 - limits.BATCH_ROWS]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
)
def test_texts_of_a_stream_have_any_type(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "s.parquet"
    for size, count in ((MIB, 100), (65 * MIB, 1)):
        cells = pa.array(["a" * size] * count).cast(kind)
        pq.write_table(pa.table({"text": cells, "list": [[1]] * count}), path, compression="zstd", use_dictionary=False)
        if size > MIB:
            with pytest.raises(HistoryError, match="the limit is 64 MiB for one text"):
                list(stream_batches(path))
        else:
            assert sum(map(len, stream_batches(path))) == count


def test_decimals_and_dictionaries_of_a_stream_are_no_long_texts(tmp_path: Path) -> None:
    path, count = tmp_path / "s.parquet", 100_000
    decimals = pa.array([Decimal(number) for number in range(count)], pa.decimal256(60))
    words = pa.array(["a" * 5_000_000, "b"]).dictionary_encode().take(pa.array([1] * (count - 1) + [0]))
    pq.write_table(pa.table({"decimal": decimals, "word": words}), path)
    assert sum(map(len, stream_batches(path))) == count


def changed(folder: Path, name: str, column: str, cells: Sequence[Any], *, encoding: str = "", **options: Any) -> Path:
    """The table with so many copies of its first row, and these cells in one column."""
    path = folder / f"{name}.parquet"
    table = pq.ParquetFile(path).read().slice(0, 1).take(pa.array(np.zeros(len(cells), np.int8)))
    place = table.schema.get_field_index(column)
    table = table.set_column(place, table.schema.field(place), pa.array(cells, pa.string()))
    if encoding and encoding != "RLE_DICTIONARY":
        options |= {"use_dictionary": False, "column_encoding": {column: encoding}}
    pq.write_table(table, path, **{"compression": "zstd", **options})
    return path


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol has it."""
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])


def patch(path: Path, before: bytes, after: bytes) -> None:
    """Replace some bytes of a file, in all places, by as many."""
    content = path.read_bytes()
    assert before in content
    assert len(before) == len(after)
    path.write_bytes(content.replace(before, after))
