"""Whatever stands in a foreign stream: it is read, or refused in one line that names the file."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import HistoryError
from harness.core.promises import StreamContract
from harness.record.formats.parquet import parquet
from harness.record.formats.streams.convert import load_stream
from harness.record.formats.streams.line import StreamFormat
from harness.record.formats.streams.mappings.known import stream_format
from harness.record.formats.streams.mappings.mapped import mapped
from harness.record.formats.streams.mappings.mapping import Fields, Mapping
from harness.record.formats.streams.mappings.names import names as known_names
from tests.amount import count

WORDS = (
    "after",
    "updated",
    "resolved",
    "key",
    "value",
    "payload",
    "op",
    "source",
    "transaction",
    "status",
    "id",
    "lsn",
)
MORE = ("total_order", "data_collections", "data_collection", "event_count", "partition", "topic", "table", "ts_ms")
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["c", "u", "d", "r", "END", "BEGIN", "1.5", "0/1", "7", "row", "watermark", "open", '{"after":1}']),
)
names = st.sampled_from([*WORDS, *MORE])
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6))
lines = st.lists(st.dictionaries(names, values, max_size=8) | values, max_size=5)
OWN = mapped(
    "own.toml",
    Mapping(
        fields=Fields(
            key="key",
            position="lsn",
            value="value",
            kind="op",
            watermark="resolved",
            session="id",
            subscriber="topic",
            partition="partition",
            unit="transaction",
            unit_rows="event_count",
            ordinal="total_order",
            time="ts_ms",
        ),
        stream=StreamContract(closed="<", cut="position", position="lsn"),
        kinds={"c": "row", "d": "watermark", "r": "backfill", "u": "open", "END": "gap", "row": "row"},
        time_unit="s",
    ),
)


@pytest.mark.parametrize("form", [*map(stream_format, known_names()), OWN], ids=lambda form: form.name)
@settings(max_examples=count(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(evidence=lines)
def test_a_stream_of_anything_is_read_or_refused(
    form: object, evidence: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in evidence))
    assert isinstance(form, StreamFormat)
    problem = problem_of(path, tmp_path / str(len(list(tmp_path.iterdir()))), form)
    assert problem is None or (problem.startswith(f"{path}") and "\n" not in problem)


def problem_of(path: Path, into: Path, form: StreamFormat) -> str | None:
    """Why that file is refused, None if it is read."""
    try:
        loaded, _ = load_stream(path, into, form)
    except HistoryError as error:
        return str(error)
    assert loaded.history.is_dir()
    return None
