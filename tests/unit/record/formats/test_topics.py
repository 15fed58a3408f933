"""Debezium's begins and ends of transactions on a topic of their own, which has no order with the rows' topics."""

import json
from pathlib import Path
from typing import Any

import pytest

from seamark import check


def meta(status: str, unit: str, **sizes: int) -> dict[str, Any]:
    each = [{"data_collection": f"s.{table}", "event_count": count} for table, count in sizes.items()]
    return {"topic": "meta", "partition": 0, "value": {"status": status, "id": unit, "data_collections": each}}


def row(
    unit: str, order: int, at: int, table: str = "t", partition: int = 0, op: str = "c", key: int = 0
) -> dict[str, Any]:
    source = {"connector": "postgresql", "schema": "s", "table": table, "lsn": at, "sequence": f'[null,"{at}"]'}
    about = {"id": unit, "total_order": order, "data_collection_order": order}
    value = {"op": op, "before": None, "after": {"id": at}, "source": source, "transaction": about}
    return {"topic": table, "partition": partition, "key": {"id": key or at}, "value": value}


def found(folder: Path, *lines: dict[str, Any], tail: str = "open") -> list[str]:
    """The ends of the sentences of torn units."""
    (folder / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (folder / "s.toml").write_text(f'format = "debezium"\n[stream]\ntail = "{tail}"\n')
    report = check(folder / "s.jsonl", stream=str(folder / "s.toml"))
    assert all(finding.anomaly == "torn-unit" for finding in report.findings), report.findings
    return [finding.sentence for finding in report.findings]


A, A_END = meta("BEGIN", "a"), meta("END", "a", t=2)
B, B_END = meta("BEGIN", "b"), meta("END", "b", t=1)
ROWS = [row("a", 1, 1), row("a", 2, 2), row("b", 1, 3)]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([A, A_END, B, B_END, *ROWS], id="ends first"),
        pytest.param([*ROWS, A, A_END, B, B_END], id="rows first"),
        pytest.param([A, ROWS[0], A_END, B, ROWS[1], ROWS[2], B_END], id="mixed"),
        pytest.param([A, A_END, B, B_END, *ROWS[:1]], id="the rows go on later"),
        pytest.param([A, A_END, B, B_END, *ROWS[1:]], id="the rows began before"),
        pytest.param([A_END, B, B_END, *ROWS], id="the metadata began before"),
        pytest.param([A_END, A, A_END, B, B_END, *ROWS], id="the metadata began before a restart"),
        pytest.param([A, A_END, A, A_END, B, B_END, *ROWS[:2], *ROWS], id="a restart"),
        pytest.param(
            [
                *(meta("BEGIN", "7:10"), meta("END", "7:30", t=2), meta("BEGIN", "8:40"), meta("END", "8:50", t=1)),
                *(row("7:10", 1, 10), row("7:20", 2, 20), row("8:40", 1, 40)),
            ],
            id="PostgreSQL's ids have the LSN of each operation",
        ),
        pytest.param([A, A_END, B, B_END, ROWS[0], row("b", 1, 3, partition=1)], id="another partition may lag"),
    ],
)
def test_topics_may_come_in_any_order_and_end_anywhere(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert found(tmp_path, *lines) == []


def test_lines_of_several_topics_need_their_partitions(tmp_path: Path) -> None:
    ends = meta("END", "a", t=1, u=1), meta("END", "b", t=1, u=1)
    lost, late = row("a", 2, 2, "u"), row("b", 2, 4, "u") | {"offset": 0}
    mixed = [row("a", 1, 1), A, ends[0], row("b", 1, 3), B, ends[1], lost, late]
    without = [{name: line[name] for name in line if name != "partition"} for line in mixed]
    assert found(tmp_path, *mixed) == found(tmp_path, *without) == []
    [sentence] = found(tmp_path, *(line for line in mixed if line is not lost))
    assert "but not every row that unit a has" in sentence


def test_a_row_that_its_partition_passed_is_missing(tmp_path: Path) -> None:
    ends = [meta("BEGIN", "7:10"), meta("END", "7:30", t=2), meta("BEGIN", "8:40"), meta("END", "8:50", t=1)]
    assert "every row that unit 7 has" in found(tmp_path, *ends, row("7:10", 1, 10), row("8:40", 1, 40))[0]
    [sentence] = found(tmp_path, A, A_END, B, B_END, ROWS[0], ROWS[2])
    assert "but not every row that unit a has (lines 5 and 2)" in sentence
    ends = [meta("END", "b", u=1), meta("BEGIN", "c"), meta("END", "c", t=1, u=1)]
    others = [row("c", 1, 4), row("c", 2, 5, table="u")]
    snapshot = row("-", 0, 0, table="u", op="r")
    snapshot["value"] |= {"transaction": None}
    lines = [A, A_END, B, *ends, *ROWS[:2], *others]
    [sentence] = found(tmp_path, snapshot | {"offset": 0}, *lines)
    assert sentence.startswith("The end of transaction b names 1 row, and none of them reached stream (line 5)")
    assert found(tmp_path, snapshot, *lines) == []  # A blocking snapshot, behind b, and read from its middle.


def test_if_all_was_at_rest_the_last_transaction_is_whole_as_well(tmp_path: Path) -> None:
    whole = [A, A_END, B, B_END, *ROWS]
    assert found(tmp_path, *whole, tail="settled") == []
    for lost, words in ((ROWS[2], "names 1 row, and none"), (ROWS[1], "every row that unit a has"), (B_END, "ended")):
        left = [line for line in whole if line is not lost]
        assert lost is ROWS[1] or found(tmp_path, *left) == []
        [sentence] = found(tmp_path, *left, tail="settled")
        assert words in sentence
    among = [{"value": line["value"]} for line in (A, ROWS[0], ROWS[1], A_END, B, ROWS[2], B_END)]
    assert found(tmp_path, *among, tail="settled") == []
    assert found(tmp_path, *among[:-1]) == []
    [sentence] = found(tmp_path, *among[:-1], tail="settled")
    assert sentence.startswith("Transaction b never ended at stream (line")


def test_metadata_from_its_first_message_on_begins_with_a_begin(tmp_path: Path) -> None:
    [sentence] = found(tmp_path, A_END | {"offset": 0}, B, B_END, *ROWS)
    assert sentence.startswith("The end of transaction a did not reach stream right after its begin (line 1)")


LONG = [row("a", 1, 1), row("a", 2, 2), row("b", 1, 3, key=1), row("c", 1, 4), row("c", 2, 5), row("c", 3, 6)]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(LONG, id="legal"),
        pytest.param([LONG[1], *LONG[2:]], id="the file begins inside a transaction"),
        pytest.param([*LONG[:4], LONG[5] | {"partition": 1}, *LONG[2:4], LONG[4]], id="another partition has the rest"),
        pytest.param([*LONG[:2], *LONG[3:4], LONG[5]], id="the topic was compacted: no key came twice"),
        pytest.param([*LONG, LONG[4], LONG[5]], id="a restart inside a transaction"),
    ],
)
def test_numbers_of_rows_have_legal_jumps(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    assert found(tmp_path, *lines) == []


def test_a_jump_in_the_numbers_of_a_table_is_a_lost_row(tmp_path: Path) -> None:
    [sentence] = found(tmp_path, *LONG[:4], LONG[5])
    assert sentence == "Transaction c lacks a row at stream: the numbers of its rows in their table jump (line 5)."


def test_an_end_that_is_not_behind_its_begin_is_out_of_order(tmp_path: Path) -> None:
    [sentence] = found(tmp_path, A, B, B_END, A_END, *ROWS)
    assert sentence == "The end of transaction a did not reach stream right after its begin (line 4)."
    [sentence] = found(tmp_path, A_END, A, B, B_END, *ROWS)
    assert sentence == "The end of transaction a did not reach stream right after its begin (line 3)."
    [sentence] = found(tmp_path, A, B, B_END, *ROWS)
    assert sentence == "Transaction a never ended at stream (line 2)."
