"""Debezium's change events: legal oddities of its connectors, each beside a twin in which a change is lost or late."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.record.formats.streams.debezium.sources import place_in
from harness.record.formats.streams.positions import Positions
from seamark import check

Line = dict[str, Any]


def found(folder: Path, lines: list[Line], key: str | None = None) -> set[str]:
    """The anomalies of a stream of those lines."""
    (folder / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return {finding.anomaly for finding in check(folder / "s.jsonl", stream="debezium", key=key).findings}


def postgresql(op: str, lsn: int, commit: int | None, before: int | None, after: int | None, key: int = 1) -> Line:
    """A change of a key's row, sent after that commit."""
    sequence = json.dumps([None if commit is None else str(commit), str(lsn)])
    source = {"connector": "postgresql", "schema": "s", "table": "t", "lsn": lsn, "sequence": sequence}
    old, new = (None if each is None else {"id": key, "v": each} for each in (before, after))
    return {"before": old, "after": new, "source": source, "op": op}


def on_topic(messages: list[Line], partition: int | None = 0) -> list[Line]:
    """The messages with their keys, on the partition of a topic."""
    where = {"topic": "t"} | ({} if partition is None else {"partition": partition})
    return [where | {"key": {"id": (each["after"] or each["before"])["id"]}, "value": each} for each in messages]


RETURNS = [
    postgresql("c", 10, None, None, 1),
    postgresql("u", 20, 15, 1, 2),
    postgresql("u", 30, 25, 2, 1),
    postgresql("d", 40, 35, 1, None),
    postgresql("c", 50, 45, None, 1),
]


def test_without_a_key_a_row_that_returns_is_no_row_before_its_image(tmp_path: Path) -> None:
    assert found(tmp_path, RETURNS) == set()
    for key, lines in (("id", RETURNS), (None, on_topic(RETURNS))):
        assert found(tmp_path, lines, key) == set()
        assert found(tmp_path, [*lines[:1], *lines[2:]], key) == {"before-mismatch"}
    late = [RETURNS[1], RETURNS[0], *RETURNS[2:]]
    assert found(tmp_path, late) == {"order-inversion"}


def test_without_keys_the_remedy_is_to_name_their_columns(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in RETURNS))
    notes = check(tmp_path / "s.jsonl", stream="debezium").facts["notes"]
    assert isinstance(notes, list)
    [note] = [each for each in map(str, notes) if "before-mismatch" in each]
    assert note.startswith("not exercised, as rows have no keys: ")
    assert note.endswith("; name the key's columns with --key")


def snapshot(lsn: int, value: int) -> Line:
    """The key's row as a snapshot shows it."""
    return postgresql("r", lsn, None, None, value)


AGAIN = [snapshot(10, 1), postgresql("u", 20, None, 1, 2), postgresql("u", 30, 25, 2, 3)]
AGAIN += [snapshot(60, 3), postgresql("u", 70, None, 3, 4), postgresql("u", 80, 75, 4, 5)]


@pytest.mark.parametrize("lines", [AGAIN, [*AGAIN[:5], *AGAIN[3:]], [*AGAIN[:3], *AGAIN]])
def test_behind_another_snapshot_of_postgresql_no_commit_is_reported(tmp_path: Path, lines: list[Line]) -> None:
    assert found(tmp_path, on_topic(lines)) == set()
    assert found(tmp_path, lines, key="id") == set()


def test_behind_another_snapshot_a_lost_or_late_row_of_a_key_shows(tmp_path: Path) -> None:
    assert found(tmp_path, on_topic([*AGAIN[:4], AGAIN[5]])) == set()  # Nothing came between it and the snapshot.
    more = postgresql("u", 90, 85, 5, 6)
    assert found(tmp_path, on_topic([*AGAIN[:5], more])) == {"before-mismatch"}
    assert found(tmp_path, on_topic([*AGAIN[:4], AGAIN[5], AGAIN[4]])) == {"order-inversion"}


@pytest.mark.parametrize(("lines", "is_whole"), [(AGAIN[:3], True), ([*AGAIN[:3], *AGAIN[:3]], True), (AGAIN, False)])
def test_commits_order_what_follows_one_snapshot(lines: list[Line], is_whole: bool) -> None:
    positions = Positions()
    positions.take_all([place_in(each["source"]) for each in lines], str)
    assert positions.orders_units is is_whole


def unit(number: int, count: int, upto: int | None = None) -> list[Line]:
    """A transaction of MySQL with so many rows, from its begin to its end, or to a restart behind row `upto`."""
    sizes = [{"data_collection": "d.t", "event_count": count}]
    lines: list[Line] = [{"status": "BEGIN", "id": str(number), "event_count": None, "data_collections": None}]
    for order in range(1, count + 1):
        key = 10 * number + order
        place = {"file": "bin.000001", "pos": 100 * number, "row": order - 1, "server_id": 1}
        source = {"connector": "mysql", "db": "d", "table": "t"} | place
        about = {"id": str(number), "total_order": order, "data_collection_order": order}
        image = {"id": key, "v": 1}
        lines.append({"before": None, "after": image, "source": source, "op": "c", "transaction": about})
    lines.append({"status": "END", "id": str(number), "event_count": count, "data_collections": sizes})
    return lines if upto is None else lines[: 1 + upto]


def without(row: int, lines: list[Line]) -> list[Line]:
    return [*lines[:row], *lines[row + 1 :]]


FIRST, SECOND, THIRD = unit(1, 2), unit(2, 3), unit(3, 1)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*FIRST, *unit(2, 3, 1), *FIRST, *SECOND, *THIRD], id="behind its first row"),
        pytest.param([*FIRST, *unit(2, 3, 2), *FIRST, *SECOND, *THIRD], id="before its last row"),
        pytest.param([*FIRST, *unit(2, 3, 0), *FIRST, *SECOND, *THIRD], id="behind its begin"),
        pytest.param([*FIRST, *unit(2, 3, 1), *FIRST, *unit(2, 3, 2), *FIRST, *SECOND, *THIRD], id="twice"),
        pytest.param([*unit(2, 3, 1), *FIRST, *SECOND, *THIRD], id="the file begins with it"),
        pytest.param([*unit(2, 3, 2)[2:], *FIRST, *SECOND, *THIRD], id="the file begins inside of it"),
    ],
)
def test_a_restart_inside_a_transaction_first_sends_earlier_ones_again(tmp_path: Path, lines: list[Line]) -> None:
    assert found(tmp_path, lines, key="id") == set()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*FIRST, *unit(2, 3, 1), *FIRST, *without(2, SECOND), *THIRD], id="a row of it is lost"),
        pytest.param([*without(2, FIRST), *unit(2, 3, 1), *without(2, FIRST), *SECOND], id="a row of an earlier one"),
        pytest.param([*unit(2, 3, 1), *without(2, FIRST), *SECOND], id="a row of one that comes first then"),
        pytest.param([*FIRST, *unit(2, 3, 1), *FIRST, *SECOND[:-1], *THIRD], id="its end is lost"),
        pytest.param([*FIRST[:2], *THIRD, *FIRST[2:]], id="without a restart, a row is late"),
    ],
)
def test_a_restart_hides_no_torn_transaction(tmp_path: Path, lines: list[Line]) -> None:
    assert found(tmp_path, lines, key="id") == {"torn-unit"}


def mongodb(op: str, at: int, after: int | None, change: int | None = None) -> Line:
    """A change of a document, which an update may show as it was when it was looked up."""
    document = None if after is None else json.dumps({"_id": 1, "v": after})
    about = None if change is None else {"removedFields": None, "updatedFields": json.dumps({"v": change})}
    source = {"connector": "mongodb", "rs": "rs0", "db": "d", "collection": "c", "ts_ms": 1000 * at, "ord": 1}
    value = {"op": op, "before": None, "after": document, "updateDescription": about, "source": source}
    return {"topic": "t", "partition": 0, "key": {"id": "1"}, "value": value}


CREATED, REMOVED = mongodb("c", 10, 1), mongodb("d", 14, None)
UPDATED = [mongodb("u", 11, None, 2), mongodb("u", 12, None, 3), mongodb("u", 13, None, 4)]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([CREATED, *UPDATED, REMOVED], id="documents are not looked up, or are gone"),
        pytest.param([CREATED, mongodb("u", 11, 4, 2), *UPDATED[1:], mongodb("u", 11, 5, 2), *UPDATED[1:]], id="again"),
        pytest.param([CREATED, REMOVED, mongodb("c", 15, 2), mongodb("u", 16, None, 3)], id="created anew"),
    ],
)
def test_an_update_of_mongodb_is_no_deletion(tmp_path: Path, lines: list[Line]) -> None:
    assert found(tmp_path, lines) == set()


def test_a_lost_or_late_change_of_mongodb_shows(tmp_path: Path) -> None:
    assert found(tmp_path, [CREATED, REMOVED, mongodb("u", 16, None, 3)]) == {"before-mismatch"}  # Created anew.
    assert found(tmp_path, [CREATED, UPDATED[1], UPDATED[0], REMOVED]) == {"order-inversion"}
