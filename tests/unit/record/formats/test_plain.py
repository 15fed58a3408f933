"""Plain lines, read at once by columns, have the same contents as lines that are read one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.draw import Draw, Stream
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.record.formats import jsonl
from harness.record.formats.streams.line import Content, Place, StreamFormat
from harness.record.formats.streams.lines import contents_of
from harness.record.formats.streams.mappings.known import stream_format
from tests.amount import FIRST_SEED, count
from tests.worlds.streams.known import SAMPLES
from tests.worlds.streams.public import drawn

SPOILT: tuple[Json, ...] = (
    None,
    "",
    7,
    -1,
    True,
    0.5,
    [],
    {},
    "c",
    "r",
    "1.5",
    '{"id": 1}',
    {"payload": {"id": 2}},
    1 << 70,
)
PUT_IN = ("op", "after", "updateDescription", "payload", "value", "tombstone", "status", "resolved")


def rows(path: Path, form: StreamFormat) -> Iterator[object]:
    """The contents of the file one by one with their places, and the problem at its end if there is one."""
    try:
        for contents in contents_of(path, form):
            columns = [contents.column(name) for name in Content._fields]
            for row, cells in enumerate(zip(*columns, strict=True)):
                yield contents.place(row), [plain(cell) for cell in cells]
    except HistoryError as error:
        yield str(error)


def plain(cell: object) -> object:
    if isinstance(cell, Place):
        return cell.kind, cell.parts, cell.is_snapshot, cell.is_of_change
    return list(map(plain, cell)) if isinstance(cell, tuple) else msgspec.to_builtins(cell)  # Both are arrays in JSON.


def lines_of(kind: str, seed: int) -> list[dict[str, Any]]:
    if kind == "crdb":
        return [msgspec.json.decode(line) for line in SAMPLES[kind].lines]
    lines = [item.line for item in drawn("mysql" if kind == "mysql" else "postgresql", seed)[0]][:40]
    return [line | {"value": with_schema(line["value"])} for line in lines] if kind == "connect" else lines


def with_schema(value: Any) -> Any:
    """The message as Kafka Connect's converter writes it by default."""
    return {"schema": {"type": "struct", "fields": [{"field": "value"}, {"field": "op"}]}, "payload": value}


def spoilt(draw: Stream, value: Any) -> Any:
    """The value with something inside of it removed, exchanged or put in."""
    if not isinstance(value, dict) or not value or draw.chance(1, 10):
        return draw.choice(SPOILT)
    name = draw.choice(sorted(value))
    match draw.below(4):
        case 0:
            return {each: of for each, of in value.items() if each != name}
        case 1:
            return value | {draw.choice(PUT_IN): value[name]}
        case _:
            return value | {name: spoilt(draw, value[name])}


@pytest.mark.parametrize("kind", ["postgresql", "connect", "mysql", "crdb"])
def test_lines_at_once_are_as_lines_one_by_one(kind: str, tmp_path: Path) -> None:
    path, form = tmp_path / "s", stream_format("crdb" if kind == "crdb" else "debezium")
    for seed in range(FIRST_SEED, FIRST_SEED + count(20)):
        draw = Draw(seed).stream(kind)
        lines = lines_of(kind, seed)
        for _ in range(draw.below(3)):
            at = draw.below(len(lines))
            lines[at] = spoilt(draw, lines[at])
        path.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
        assert [*rows(path, form)] == [*rows(path, form._replace(plain=()))], f"{kind} seed {seed}"


def refused(line: Json) -> Iterator[Content]:
    raise ValueError(f"it was read alone: {line}")


SOURCE = {"connector": "postgresql", "schema": "s", "table": "t", "lsn": 7, "sequence": '["5","7"]'}
CHANGE = {"op": "c", "before": None, "after": {"id": 1}, "source": SOURCE}
AROUND = {"topic": "s.t", "partition": 0, "offset": 0, "key": {"schema": {}, "payload": {"id": 1}}}
MYSQL = {"connector": "mysql", "db": "d", "table": "t", "file": "binlog.000002", "pos": 4, "row": 0, "server_id": 1}


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("debezium", [AROUND | {"value": {"schema": {}, "payload": CHANGE}}] * 3),
        ("debezium", [AROUND | {"value": CHANGE | {"op": op}} for op in "curd"]),
        ("debezium", [AROUND | {"value": CHANGE | {"transaction": {"id": "1:7", "total_order": 1}}}]),
        ("debezium", [AROUND | {"value": CHANGE | {"source": MYSQL}}]),
        ("crdb", [{"after": {"id": 1}, "key": [1], "updated": "1.0"}, {"resolved": "2.0"}]),
    ],
)
def test_plain_lines_are_read_at_once(form: str, lines: list[Json], tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    found = [*rows(tmp_path / "s", stream_format(form)._replace(read=refused))]
    assert len(found) == len(lines)
    assert found == [*rows(tmp_path / "s", stream_format(form)._replace(plain=()))]


@pytest.mark.parametrize("kind", ["postgresql", "connect", "crdb"])
def test_lines_with_none_or_two_values_are_as_lines_one_by_one(kind: str, tmp_path: Path) -> None:
    path, form = tmp_path / "s", stream_format("crdb" if kind == "crdb" else "debezium")
    for seed in range(FIRST_SEED, FIRST_SEED + count(20)):
        draw = Draw(seed).stream(kind)
        texts = [msgspec.json.encode(line) for line in lines_of(kind, seed)]
        whole = draw.choice((b"\n", b"\r\n", b" \n")).join(texts)
        for _ in range(draw.below(3)):  # As many lines as values, or more, or fewer.
            at = draw.below(len(whole))
            wanted, instead = draw.choice(
                ((b"\n", b""), (b"{", b"\n{"), (b",", b"\n,"), (b"}", b"}\n"), (b"\n", b"\n\n"))
            )
            whole = whole[:at] + whole[at:].replace(wanted, instead, 1)
        path.write_bytes(whole + b"\n" * draw.below(3))
        assert [*rows(path, form)] == [*rows(path, form._replace(plain=()))], f"{kind} seed {seed}"


@pytest.mark.parametrize("kind", ["postgresql", "connect", "mysql", "crdb"])
@pytest.mark.parametrize("field", ["value", "payload"])  # As kcat calls it.
def test_messages_in_texts_are_as_messages(kind: str, field: str, tmp_path: Path) -> None:
    path, form = tmp_path / "s", stream_format("crdb" if kind == "crdb" else "debezium")
    for seed in range(FIRST_SEED, FIRST_SEED + count(20)):
        draw, lines = Draw(seed).stream(kind), lines_of(kind, seed)
        if kind == "crdb":
            lines = [{"topic": "t", "partition": 0, "key": line.get("key"), "value": line} for line in lines]
        lines = [line | {"offset": at + 1} for at, line in enumerate(lines)]
        for _ in range(draw.below(3)):
            at = draw.below(len(lines))
            lines[at] |= {"value": spoilt(draw, lines[at]["value"])}
        texts = [{field if name == "value" else name: line[name] for name in line} for line in lines]
        for line in texts:
            line[field] = msgspec.json.encode(line[field]).decode()
        path.write_bytes(b"\n".join(map(msgspec.json.encode, texts)))
        assert [*rows(path, form)] == [*rows(path, form._replace(shape=None, plain=()))], f"{kind} seed {seed}"


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("kind", ["debezium", "crdb"])
def test_a_line_that_is_too_long_is_refused_wherever_its_block_begins(
    kind: str, before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "LINE_MAX", 1 << 20)
    path = tmp_path / "stream.jsonl"
    path.write_text("\n" * before + f'{{"payload": "{"x" * (1 << 20)}"}}\n', encoding="utf-8")
    with pytest.raises(HistoryError, match=f"line {before + 1}: it is longer than 1 MiB, the limit"):
        list(contents_of(path, stream_format(kind)))
