"""`seamark check --stream`: a stream alone is judged by the rules that need no source, and bad input is one line."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command.conftest import Outcome, Seamark

MAPPING = """\
[fields]
kind = "type"
key = "id"
value = "row"
position = "lsn"
session = "connection"

[kinds]
change = "row"
checkpoint = "watermark"
ping = "skip"

[stream]
closed = "<="
cut = "position"
position = "lsn"
order_key = "global"
identity = "position+key+value"
"""
Line = dict[str, object]
GOOD: list[Line] = [
    {"type": "change", "id": "x", "row": 1, "lsn": "0/10", "connection": "c1"},
    {"type": "ping", "connection": "c1"},
    {"type": "checkpoint", "lsn": "0/10", "connection": "c1"},
    {"type": "change", "id": "y", "row": None, "lsn": "0/1F", "connection": "c1"},
    {"type": "checkpoint", "lsn": "0/1F", "connection": "c1"},
]
LATE: Line = {"type": "change", "id": "z", "row": 3, "lsn": "0/11", "connection": "c1"}


def written(path: Path, lines: list[Line]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def judged(seamark: Seamark, lines: list[Line], form: str = "m.toml", mapping: str = MAPPING) -> Outcome:
    Path("m.toml").write_text(mapping)
    written(Path("s.jsonl"), lines)
    return seamark("check", "s.jsonl", "--stream", form, "--engine", "local", "--json")


def rules(outcome: Outcome, verdict: str) -> list[str]:
    """The rules of which the verdict is that."""
    promises = outcome.json["promises"]
    assert isinstance(promises, list)
    return [str(each["id"]) for each in promises if isinstance(each, dict) and each["verdict"] == verdict]


def test_a_stream_is_read_by_its_mapping_file(seamark: Seamark) -> None:
    outcome = judged(seamark, GOOD)
    assert (outcome.code, rules(outcome, "violated")) == (0, []), outcome
    assert {"S02", "S05", "S07"} <= {*rules(outcome, "holds")}
    assert {"S09", "S11", "S12", "S19", "S22"} <= {*rules(outcome, "not-exercised")}


def test_what_needs_the_source_is_named(seamark: Seamark) -> None:
    facts = judged(seamark, GOOD).json["facts"]
    assert isinstance(facts, dict)
    assert isinstance(facts["notes"], list)
    assert "operations of the source: missing-event, phantom-event" in str(facts["notes"][0])


@pytest.mark.parametrize(("lsn", "broken"), [("0/1E", ["S02", "S05"]), ("0/1F", ["S06"]), ("0/20", [])])
def test_a_row_is_late_below_a_watermark_and_at_it(seamark: Seamark, lsn: str, broken: list[str]) -> None:
    outcome = judged(seamark, [*GOOD, LATE | {"lsn": lsn}])
    assert (outcome.code, rules(outcome, "violated")) == (1 if broken else 0, broken)


def test_parquet_is_read_as_lines_are(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MAPPING)
    rows = [{"row": None, "id": None, "lsn": None} | line for line in [*GOOD, LATE]]
    columns = {name: [row[name] for row in rows] for name in ("type", "id", "row", "lsn", "connection")}
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    from_parquet = seamark("check", "s.parquet", "--stream", "m.toml", "--engine", "local", "--json")
    assert rules(from_parquet, "violated") == ["S02", "S05"]
    assert from_parquet.json["history_sha256"] == judged(seamark, [*GOOD, LATE]).json["history_sha256"]


def test_sessions_that_say_where_they_begin_are_held_to_it(seamark: Seamark) -> None:
    mapping = MAPPING.replace('ping = "skip"', 'hello = "open"')
    hello: Line = {"type": "hello", "lsn": "0/12", "connection": "c1"}
    lines = [hello, *(line for line in GOOD if line["type"] != "ping")]
    assert rules(judged(seamark, lines, mapping=mapping), "violated") == ["S01"]
    lines[0] = hello | {"lsn": "0/F"}
    assert rules(judged(seamark, lines, mapping=mapping), "violated") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"connection": None}, "s.jsonl, line 6: it has no session (connection)"),
        ({"connection": [1]}, "line 6: its session is no text and no integer"),
        ({"lsn": 17}, "line 6: its position is one of integers, and that of line 1 one of log positions"),
        ({"lsn": 0.5}, "line 6: its position 0.5 is a number with a fraction"),
        (
            {"lsn": "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5"},
            "line 6: its position is a set of GTIDs, and sets have no total order: give the GTID",
        ),
        ({"lsn": None}, "line 6: a row without a position (lsn)"),
        ({"id": None}, "line 6: a row without a key (id)"),
        (
            {"type": "checkpoint", "lsn": "1.5"},
            "line 6: its watermark is one of decimals, and that of line 1 one of log",
        ),
        ({"type": "comment"}, "line 6: type 'comment' is missing from [kinds] in the mapping file: add it"),
    ],
)
def test_a_bad_line_is_named(seamark: Seamark, change: Line, message: str) -> None:
    outcome = judged(seamark, [*GOOD, LATE | change])
    assert (outcome.code, outcome.out) == (4, "")
    assert message in outcome.line


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("key =", "kye =", "[fields]: unknown field 'kye'; did you mean key?"),
        ('session = "connection"\n', "", "[fields]: no field is the session: name the field"),
        ('key = "id"\n', "", "[fields]: it has no key: write key = ..."),
        ('key = "id"', "key = 7", "[fields] key: it is no name of a field: write a text such as data.id"),
        ("[kinds]", "[kids]", "unknown part of a mapping file 'kids'; did you mean kinds?"),
        ('"skip"', '"drop"', "unknown kind of event ([kinds] ping) 'drop'; "),
        ('kind = "type"\n', "", "[fields] has no kind"),
        ('closed = "<="\n', "", '[stream]: it has no closed: write closed = "<" or closed = "<="'),
        ('identity = "position+key+value"', 'wm_scope = "partition"', "it has no partition"),
        (MAPPING, 'time_unit = "h"\n' + MAPPING, "unknown time_unit 'h'; "),
        (MAPPING, "", "it has no [fields]"),
        (MAPPING, "fields", "not valid TOML"),
    ],
)
def test_a_mistake_in_a_mapping_file_is_one_line(seamark: Seamark, before: str, after: str, message: str) -> None:
    assert before in MAPPING
    outcome = judged(seamark, GOOD, mapping=MAPPING.replace(before, after, 1))
    assert (outcome.code, outcome.out) == (64, "")
    assert message in outcome.line


def test_a_format_that_there_is_not_is_refused(seamark: Seamark, tmp_path: Path) -> None:
    written(tmp_path / "s.jsonl", GOOD)
    outcome = seamark("check", "s.jsonl", "--stream", "crdbs", "--engine", "local")
    assert (outcome.code, "choose from crdb, debezium" in outcome.line) == (64, True)
    outcome = seamark("check", "s.jsonl", "--stream", "crdb", "--model", "serializable", "--engine", "local")
    assert (outcome.code, "leave out --promises and --model" in outcome.line) == (64, True)


# CockroachDB


def row(key: int, at: str, value: int | None = 0) -> Line:
    return {"after": None if value is None else {"k": key, "v": value}, "key": [key], "updated": at}


def resolved(at: str) -> Line:
    return {"resolved": at}


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        ([row(1, "5.0000000000"), resolved("6.0000000000"), row(2, "7.0000000000")], []),
        ([row(1, "5.0000000000"), resolved("6.0000000002"), row(2, "6.0000000001")], ["S05"]),
        ([row(1, "5.0000000000"), resolved("6.0000000002"), row(2, "6.0000000002")], []),  # At it may still come.
        ([row(1, "5.0000000000"), resolved("6.0000000000"), row(1, "5.0000000000")], []),  # Sent again.
        ([row(1, "5.0000000000"), resolved("6.0000000000"), row(1, "5.0000000000", 9)], ["S04"]),
        ([row(1, "5.0000000000"), row(1, "5.0000000000", None)], ["S04"]),
        ([row(1, "5.0000000000"), row(1, "4.0000000000")], ["S02"]),
        ([row(1, "5.0000000000"), row(2, "4.0000000000")], []),
        ([row(1, "5.0"), resolved("6.0"), resolved("5.0")], ["S07"]),
        ([{"payload": [row(1, "5.0"), row(1, "4.0")], "length": 2}], ["S02"]),
    ],
)
def test_changefeeds_of_cockroachdb_are_judged(seamark: Seamark, lines: list[Line], broken: list[str]) -> None:
    outcome = judged(seamark, lines, "crdb")
    assert rules(outcome, "violated") == broken, outcome.out


def test_partitions_of_a_changefeed_have_watermarks_of_their_own(seamark: Seamark) -> None:
    def on(partition: int, message: Line) -> Line:
        return {"topic": "t", "partition": partition, "key": "[1]", "value": json.dumps(message)}

    one: Line = {"after": {"v": 1}, "updated": "1.0"}
    two: Line = {"after": {"v": 2}, "updated": "2.0"}
    before = [on(0, one), on(1, resolved("3.0"))]
    assert rules(judged(seamark, [*before, on(0, two)], "crdb"), "violated") == []
    assert rules(judged(seamark, [*before, on(1, two)], "crdb"), "violated") == ["S05", "S26"]


def test_a_line_that_is_no_changefeed_message_is_named(seamark: Seamark) -> None:
    outcome = judged(seamark, [row(1, "5.0"), {"id": 3}], "crdb")
    assert (outcome.code, "s.jsonl, line 2: it is no changefeed message" in outcome.line) == (4, True)
    outcome = judged(seamark, [row(1, "5.0"), {"resolved": "today"}], "crdb")
    assert (outcome.code, "line 2: its watermark is neither an integer nor a text" in outcome.line) == (4, True)


# Debezium


def change(op: str, key: int, lsn: int, *, unit: str | None = None, order: int = 1, value: int = 0) -> Line:
    after = None if op == "d" else {"id": key, "v": value}
    source = {"lsn": lsn, "schema": "public", "table": "t", "ts_ms": 1}
    transaction = None if unit is None else {"id": unit, "total_order": order, "data_collection_order": order}
    message = {"before": {"id": key}, "after": after, "source": source, "op": op, "transaction": transaction}
    return {"key": {"id": key}, "value": message}


def ended(unit: str, count: int, table: str = "t") -> Line:
    sizes = [{"data_collection": f"public.{table}", "event_count": count}]
    return {"status": "END", "id": unit, "event_count": count, "data_collections": sizes}


def schematic(line: Line) -> Line:
    """The line as converters write it that put a schema beside the key and the value."""
    return {name: {"schema": {}, "payload": part} for name, part in line.items()}


WHOLE = [change("c", 1, 10, unit="a"), change("c", 2, 11, unit="a", order=2), ended("a", 2)]


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        ([change("r", 1, 5), change("c", 2, 10), change("u", 1, 11, value=1), change("d", 1, 12)], []),
        ([change("u", 1, 11), change("u", 1, 10, value=1)], ["S02"]),
        ([change("u", 1, 11), change("u", 2, 10)], []),  # Transactions come as they commit.
        ([change("u", 1, 10), change("u", 1, 11, value=1), change("u", 1, 10)], []),  # Sent again after a restart.
        ([change("u", 1, 10), change("u", 1, 10, value=9)], ["S04"]),
        (WHOLE, []),
        ([WHOLE[0], WHOLE[2]], ["S10"]),
        ([WHOLE[0], ended("a", 2, "other")], []),  # The rows of another table are in another file.
        ([WHOLE[2], WHOLE[0]], []),  # Ends that come another way mark nothing.
        ([WHOLE[0], change("c", 3, 20, unit="b"), ended("a", 2), ended("b", 1)], []),
        ([change("c", 1, 10), {"ts_ms": 5}], []),
        ([schematic(change("u", 1, 11)), schematic(change("u", 1, 9))], ["S02"]),
    ],
)
def test_change_events_of_debezium_are_judged(seamark: Seamark, lines: list[Line], broken: list[str]) -> None:
    outcome = judged(seamark, lines, "debezium")
    assert rules(outcome, "violated") == broken, outcome.out


def test_a_line_that_is_no_change_event_is_named(seamark: Seamark) -> None:
    outcome = judged(seamark, [{"op": "c"}], "debezium")
    assert (outcome.code, "line 1: it is no change event" in outcome.line) == (4, True)
