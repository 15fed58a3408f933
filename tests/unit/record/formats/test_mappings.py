"""Expressions of mapping files, suggested mapping files, and the events of a stream as they were understood."""

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.cli.histories.understood import explained
from harness.core.errors import HistoryError, ScenarioError
from harness.record.formats.load import load
from harness.record.formats.streams.lines import first_lines, lines_of
from harness.record.formats.streams.mappings.fields import Spot, bytes_place, field
from harness.record.formats.streams.mappings.known import stream_format, text_of
from harness.record.formats.streams.mappings.names import names
from harness.record.formats.streams.mappings.suggest import suggestion
from seamark import check

LINE: Any = {
    "a": {"b": 1, "c": None},
    "rows": [{"id": 1, "v": "x"}, {"id": 2, "v": "y"}],
    "names": ["id", "v"],
    "values": [7, "z"],
    "pk": ["v", "id"],
    "token": "aGk=",
    "text": '{"n": 5}',
    "flag": False,
}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("a.b", 1),
        ("a.x.y", None),
        ("rows.1.v", "y"),
        ("rows.5.v", None),
        ("rows.*.v", "y"),
        ("rows.id", [1, 2]),
        ("flag", False),
        ("@.offset", 9),
        (["a.b", "rows.*.id"], [1, 2]),
        (["a.c", "x"], None),
        ({"first": ["a.c", "a.b"]}, 1),
        ({"names": "names", "values": "values"}, {"id": 7, "v": "z"}),
        ({"names": "x", "values": "values"}, None),
        ({"pick": "pk", "from": "rows.*"}, ["y", 2]),
        ({"pick": {"text": ["id"]}, "from": {"names": "names", "values": "values"}}, 7),
        ({"rest": ["c"], "of": "a"}, {"b": 1}),
        ({"base64": "token"}, "hi"),
        ({"hex": {"text": "ff"}}, "ff"),
        ({"json": "text"}, {"n": 5}),
        ({"text": "x"}, "x"),
        ({"place": "line"}, 4),
    ],
)
def test_an_expression_finds_its_value(given: Any, value: object) -> None:
    assert field("[fields] key", given).get(Spot(LINE, 1, {"offset": 9}, 4)) == value


@pytest.mark.parametrize(
    "given", [7, "", [], {}, {"first": []}, {"names": "a"}, {"base64": "a", "hex": "b"}, {"place": "x"}]
)
def test_what_is_no_expression_is_refused_with_its_place(given: Any) -> None:
    with pytest.raises(ScenarioError, match=r"^\[fields\] key: "):
        field("[fields] key", given)


def test_positions_of_bytes_compare_as_bytes_do() -> None:
    texts = ["", "00", "0001", "01", "01" * 7, "01" * 7 + "00", "01" * 8, "ff"]
    at: list[Any] = [bytes_place(each, "hex").parts for each in texts]
    assert all(one < other for one, other in pairwise(at))
    assert bytes_place("AQ==", "base64").parts == bytes_place("01", "hex").parts
    with pytest.raises(ValueError, match="is not in base64"):
        bytes_place("?", "base64")


ORDERS = [
    {"op": "insert", "row": {"id": 1, "v": 1}, "lsn": 10, "tx": 1},
    {"op": "update", "row": {"id": 1, "v": 2}, "lsn": 11, "tx": 2, "old": {"v": 1}},
    {"op": "remove", "row": {"id": 1, "v": 2}, "lsn": 12, "tx": 3, "old": {"v": 2}},
]
AUDIT = [{"id": key, "seq": at, "shard": key > "a", "data": {"n": at}} for at, key in enumerate("abcab", 1)]
DYNAMO = [  # DynamoDB Streams: names in capitals, images of which each value has its type, positions of 26 digits.
    {
        "eventID": f"e{at}",
        "eventName": "MODIFY" if at else "INSERT",
        "dynamodb": {
            "Keys": {"id": {"N": "101"}},
            "SequenceNumber": str(44215845 * 10**18 + at),
            "NewImage": {"id": {"N": "101"}, "v": {"N": str(at)}},
        },
    }
    for at in range(3)
]
CHANGES = [  # Salesforce: a header with the ids of the records.
    {"payload": {"Header": {"recordIds": ["1"], "changeType": "UPDATE"}, "Name": f"n{at}"}, "event": {"replayId": at}}
    for at in range(31, 34)
]
METERS = [{"meter_id": at % 3, "offset": at, "payload": {"kwh": at}, "type": "put"} for at in range(6)]


@pytest.mark.parametrize(("lines", "kept"), [(ORDERS, 1), (AUDIT, 0), (DYNAMO, 0), (CHANGES, 1), (METERS, 0)])
def test_a_suggested_mapping_reads_its_stream_and_finds_a_late_row(
    lines: list[dict[str, Any]], kept: int, tmp_path: Path
) -> None:
    path, mapping = tmp_path / "s.jsonl", tmp_path / "m.toml"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = suggestion(first_lines(path))
    assert text is not None
    mapping.write_text(text)
    assert check(path, stream=str(mapping)).verdict == "valid", text
    late = [*lines[:kept], *lines[kept + 1 :], lines[kept]]
    path.write_text("".join(json.dumps(line) + "\n" for line in late))
    assert "order-inversion" in {each.anomaly for each in check(path, stream=str(mapping)).findings}, text


def test_a_row_without_a_key_names_its_columns_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "s").write_text(json.dumps({"op": "+I", "columns": {"f0": 1, "a\nb": 2}}))
    with pytest.raises(HistoryError, match=r"with --key, such as f0, 'a\\nb'"):
        check(tmp_path / "s", stream="flink")


def test_a_column_that_rises_is_not_suggested_as_the_position() -> None:
    lines: list[Any] = [{"data": {"id": 1, "v": at}, "metadata": {"operation": "update"}} for at in range(3)]
    text = suggestion(lines)
    assert text is not None
    assert 'position = { place = "line" }' in text


def test_what_lacks_a_key_is_said_in_the_suggestion() -> None:
    text = suggestion([{"n": 1.5}, {"n": 2.5}])
    assert text is not None
    assert 'key = "?"' in text
    assert "it is needed" in text
    assert suggestion([[1], None]) is None


def test_a_known_format_has_a_text_to_copy_which_reads_the_same(tmp_path: Path) -> None:
    for name in names():
        if (text := text_of(name)) is not None:
            (tmp_path / "copy.toml").write_text(text)
            assert stream_format(str(tmp_path / "copy.toml")).contract == stream_format(name).contract


def test_the_first_events_are_shown_as_they_were_understood(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text("CreateTime:5\tPartition:0\tOffset:3\tk\t{}\nPartition:1\tOffset:4\tnull\n")
    assert list(explained(path, stream_format("kafka"))) == [
        'line 1:  row  key=["",0,"k"]  value={}  position=3  partition=0',
        'line 2:  row  key=["",1,"(no key)"]  value=(deleted)  position=4  partition=1',
    ]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b'{\n  "a": 1\n}\n{\n  "a": 2\n}\n', [{"a": 1}, {"a": 2}]),
        (b"a,b\n1,\nx,NULL\n", [{"a": "1", "b": None}, {"a": "x", "b": None}]),
        (b'{"a": 1}\nnull\n', [{"a": 1}, None]),
        (b"\xef\xbb\xbf[[1],\n[2]]", [[1], [2]]),
        (b"BEGIN 5\ntable s.t: DELETE: id[integer]:1\nCOMMIT 5\n", ["BEGIN", "DELETE", "COMMIT"]),
    ],
)
def test_lines_come_in_many_forms(content: bytes, lines: list[Any], tmp_path: Path) -> None:
    for packed in (content, gzip.compress(content)):
        (tmp_path / "s").write_bytes(packed)
        found = [line for _, line in lines_of(tmp_path / "s")]
        assert [line["kind"] if isinstance(line, dict) and "kind" in line else line for line in found] == lines


@pytest.mark.parametrize(
    "content", ['{\n  "a": 1\n', "a,b\n1,2,3\n", "BEGIN 5\ntable s.t: INSERT: id[integer]\n", "Offset:1\n"]
)
def test_a_damaged_line_of_any_form_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(content)
    with pytest.raises(HistoryError, match=r"s, line \d: "):
        list(lines_of(tmp_path / "s"))


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.record.formats.packed.LEAST", 1000)
    monkeypatch.setattr("harness.record.formats.packed.RATIO", 10)
    (tmp_path / "s.gz").write_bytes(gzip.compress(b"null\n" * 10_000))
    with pytest.raises(HistoryError, match="unpacks to more than 10 times its size"):
        list(lines_of(tmp_path / "s.gz"))


def test_a_folder_of_jepsens_store_is_read_with_its_results(tmp_path: Path) -> None:
    event = "0\t:{}\t:txn\t[[:append 5 1] [:r 5 {}]]\n"
    (tmp_path / "history.txt").write_text(event.format("invoke", "nil") + event.format("ok", "[1]"))
    (tmp_path / "results.edn").write_text(
        "{:valid? false, :w {:valid? false, :anomaly-types [:G1c]}, :s {:valid? true}}"
    )
    loaded = load(tmp_path, tmp_path / "work")
    assert loaded.format == "Jepsen history.txt"
    assert loaded.notes == ("Jepsen's own results.edn has :valid? false, by w (G1c)",)
