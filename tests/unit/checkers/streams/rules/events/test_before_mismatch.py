"""Before-images that contradict the row before them, in Debezium's streams and under a mapping file."""

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.columns.images import DELETED, THERE, differ
from seamark import check

UNKNOWN = "__debezium_unavailable_value"
NAME = "before-mismatch"
MAPPING = """one_session = true
[fields]
key = "k"
position = "p"
value = "v"
before = "old"
[stream]
closed = "<="
cut = "position"
position = "offset"
identity = "position+key"
unit_rows = "final"
"""


def line(op: str, at: int, before: Any, after: Any, key: int = 1, **source: Any) -> dict[str, Any]:
    """A change of one key at an LSN; images are numbers for whole rows, or objects."""
    old, new = ({"id": key, "v": each} if isinstance(each, int) else each for each in (before, after))
    origin = {"connector": "postgresql", "schema": "s", "table": "t", "lsn": at} | source
    message = {"before": old, "after": new, "source": origin, "op": op}
    return {"topic": "t", "partition": 0, "key": {"id": key}, "value": message}


def judged(folder: Path, *lines: Any) -> tuple[list[list[int]], int]:
    """The lines that findings name, and the number of rows that were compared."""
    (folder / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    report = check(folder / "s.jsonl", stream="debezium")
    assert all(finding.anomaly == NAME for finding in report.findings), report.findings
    [promise] = [each for each in report.promises if each.id == "S29"]
    named = [finding.sentence.rpartition("(lines ")[2].rstrip(").").split(" and ") for finding in report.findings]
    return [[int(each) for each in one] for one in named], promise.witnesses


def test_a_change_that_never_came_shows_in_the_next_image(tmp_path: Path) -> None:
    lines = [line("c", 10, None, 7), line("u", 20, 7, 8), line("u", 40, 9, 10)]
    assert judged(tmp_path, *lines) == ([[2, 3]], 2)


def test_a_deletion_or_an_update_needs_a_row_that_is_there(tmp_path: Path) -> None:
    gone = [line("c", 10, None, 7), line("d", 20, 7, None)]
    assert judged(tmp_path, *gone, line("u", 30, None, 9)) == ([[2, 3]], 2)
    assert judged(tmp_path, *gone, line("d", 30, {"id": 1, "v": None}, None)) == ([[2, 3]], 2)
    assert judged(tmp_path, *gone, line("c", 30, None, 9), line("u", 40, None, 9)) == ([], 2)


def test_a_change_lost_between_snapshot_and_stream_shows(tmp_path: Path) -> None:
    assert judged(tmp_path, line("r", 10, None, 7), line("u", 20, 8, 9)) == ([[1, 2]], 1)
    assert judged(tmp_path, line("r", 10, None, 7), line("u", 20, 7, 9)) == ([], 1)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([line("r", 30, None, 9), line("u", 20, 7, 8), line("u", 25, 8, 9)], id="the stream is below it"),
        pytest.param([line("r", 10, None, 9), line("u", 20, 7, 8), line("u", 25, 8, 9)], id="the stream reaches it"),
        pytest.param([line("u", 5, 1, 7, 2), line("r", 10, None, 7), line("u", 20, 8, 9)], id="it came in the stream"),
    ],
)
def test_a_snapshot_may_overlap_the_stream(tmp_path: Path, lines: list[Any]) -> None:
    assert judged(tmp_path, *lines)[0] == []


def test_a_snapshot_does_not_show_a_change_that_was_under_way(tmp_path: Path) -> None:
    legal = [line("r", 30, None, 7), line("u", 20, 7, 8), line("u", 40, 8, 9), line("u", 50, 9, 10)]
    assert judged(tmp_path, *legal) == ([], 1)
    assert judged(tmp_path, *legal[:3], line("u", 60, 10, 11)) == ([[3, 4]], 1)


def test_a_snapshot_without_an_exact_position_is_not_compared(tmp_path: Path) -> None:
    place: dict[str, Any] = {"connector": "sqlserver", "change_lsn": "00000027:00000758:0003"}
    lines = [line("r", 0, None, 7, **place, commit_lsn="00000027:00000758:0001", snapshot="true")]
    assert judged(tmp_path, *lines, line("u", 0, 8, 9, **place, commit_lsn="00000027:00000758:0005")) == ([], 0)


def test_rows_that_come_again_after_a_restart_contradict_nothing(tmp_path: Path) -> None:
    lines = [line("c", 10, None, 7), line("u", 20, 7, 8), line("u", 30, 8, 9)]
    assert judged(tmp_path, *lines, *lines[1:], line("u", 40, 9, 10)) == ([], 3)
    assert judged(tmp_path, *lines, *lines[1:], line("u", 40, 8, 10)) == ([[3, 6]], 3)


def test_nothing_is_known_of_the_first_row_of_a_key(tmp_path: Path) -> None:
    assert judged(tmp_path, line("u", 10, 7, 8), line("u", 20, 3, 4, key=2))[0] == []


@pytest.mark.parametrize(
    ("image", "known", "is_broken"),
    [
        (None, {"id": 1, "v": 7}, False),  # Replica identity default: an update shows nothing.
        ({"id": 1, "v": None, "w": 0, "x": ""}, {"id": 1, "v": 7, "w": 3, "x": "y"}, False),  # And a deletion the key.
        ({"id": 1, "v": 8}, {"id": 1, "v": UNKNOWN}, False),  # A value stored out of line, which was not changed.
        ({"id": 1, "v": 8, "w": 4}, {"id": 1, "v": UNKNOWN, "w": 5}, True),
        ({"id": 1, "v": 7, "w": 5}, {"id": 1, "v": 7}, False),  # A column was added,
        ({"id": 1, "v": "7"}, {"id": 1, "v": 7}, False),  # or altered.
    ],
)
def test_images_may_show_some_columns_alone(tmp_path: Path, image: Any, known: Any, is_broken: bool) -> None:
    lines = [line("u", 10, None, known), line("u", 20, image, {"id": 1, "v": 9})]
    assert judged(tmp_path, *lines) == ([[1, 2]] if is_broken else [], 1)


def test_a_null_of_mysql_may_be_a_column_that_its_log_lacks(tmp_path: Path) -> None:
    place: dict[str, Any] = {"connector": "mysql", "db": "d", "file": "b.000001", "row": 0}
    lines = [line("u", 0, None, 7, **place, pos=1), line("u", 0, {"id": 1, "v": None}, 9, **place, pos=2)]
    assert judged(tmp_path, *lines)[0] == []
    lines[1]["value"]["before"]["v"] = 0  # Its blanks are values.
    assert judged(tmp_path, *lines)[0] == [[1, 2]]


def test_a_mapping_file_names_the_field_of_the_image(tmp_path: Path) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text(MAPPING)
    rows = [(1, None, {"a": 1, "b": 1}), (2, {"a": 1}, {"a": 2, "b": 1}), (3, {"a": 1}, {"a": 3, "b": 1})]
    lines = [json.dumps({"k": "x", "p": at, "old": old, "v": new}) for at, old, new in rows]
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    [finding] = check(tmp_path / "s.jsonl", stream=str(mapping)).findings
    assert (finding.anomaly, finding.sentence.rpartition("(")[2]) == (NAME, "lines 2 and 3).")


def test_what_skips_versions_or_may_drop_events_is_not_judged(tmp_path: Path) -> None:
    lines = '{"k": "x", "p": 1, "v": 1}\n{"k": "x", "p": 2, "old": 7, "v": 2}\n'
    (tmp_path / "s.jsonl").write_text(lines)
    for field, anomalies in (("", [NAME]), ('versions = "latest"', []), ('delivery = "at-most-once"', [])):
        mapping = tmp_path / "m.toml"
        mapping.write_text(MAPPING + field)
        assert [each.anomaly for each in check(tmp_path / "s.jsonl", stream=str(mapping)).findings] == anomalies


def test_images_are_compared_column_by_column() -> None:
    assert differ('{"a":1}', '{"a":2,"b":1}')
    assert not differ('{"a":1}', '{"a":1.0,"b":1}')
    assert differ('{"a":null}', '{"a":2}')
    assert (differ(THERE, DELETED), differ(THERE, '{"a":1}')) == (True, False)
    assert not differ('{"a":"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}', '{"a":"eA=="}')
