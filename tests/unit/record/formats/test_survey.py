"""One pass over a foreign stream: its columns are the records that a history has, and limits name the line."""

import json
from pathlib import Path

import pytest

from harness.core.errors import HistoryError
from harness.record.formats.parquet.parquet import hash_of, records_of
from harness.record.formats.streams.convert import load_stream
from harness.record.formats.streams.mappings.known import stream_format
from harness.record.journal import history_sha256
from tests.worlds.streams.known import SAMPLES


def change(**more: object) -> str:
    source = {"connector": "postgresql", "schema": "s", "table": "t", "lsn": 7}
    value = {"op": "c", "before": None, "after": {"id": 1}, "source": source} | more
    return json.dumps(
        {"topic": "t", "partition": 0, "key": {"schema": {"type": "struct"}, "payload": 1}, "value": value}
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_the_tables_have_the_hash_of_their_records(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    (tmp_path / "s").write_text("\n".join(sample.lines))
    loaded, _ = load_stream(tmp_path / "s", tmp_path / "into", stream_format(name, sample.key))
    records = list(records_of(loaded.history))
    assert len(records) > 1
    assert history_sha256(records) == hash_of(loaded.history)
    unhashed, _ = load_stream(tmp_path / "s", tmp_path / "other", stream_format(name, sample.key), is_hashed=False)
    assert list(records_of(unhashed.history)) == records
    assert hash_of(unhashed.history) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (change(transaction={"id": "a", "total_order": 1 << 70}), "one of its numbers does not fit into 64 bits"),
        (change(source={"connector": "postgresql", "lsn": 1 << 62, "table": "t"}), "its lsn does not fit into 62 bits"),
        (change(after=json.loads("[" * 70 + "]" * 70)), "nested deeper than 64"),
        (json.dumps({"ts_ms": 5, "rows": 7}), "it is no change event"),  # A heartbeat has its time alone.
    ],
)
def test_what_no_history_can_hold_is_refused_with_its_line(line: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(f"{change()}\n{line}\n")
    with pytest.raises(HistoryError, match=f"s, line 2: .*{problem}"):
        load_stream(tmp_path / "s", tmp_path / "into", stream_format("debezium"))


def test_a_great_number_in_a_row_is_kept(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(change(after={"id": 1, "n": 1 << 70}))
    loaded, _ = load_stream(tmp_path / "s", tmp_path / "into", stream_format("debezium"))
    assert str(1 << 70) in str(list(records_of(loaded.history)))
