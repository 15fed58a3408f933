"""Tombstones of Debezium: directly behind each deletion, and nowhere else."""

import json
from pathlib import Path
from typing import Any

import pytest

from seamark import SeamarkError, check


def lines(text: str) -> list[dict[str, Any]]:
    """`+a` inserts key a, `-a` deletes it, `.a` is its tombstone; a number is the position, by default the place."""
    result = []
    for place, word in enumerate(text.split(), 1):
        op, key, at = word[0], word[1], int(word[2:] or place)
        source = {"connector": "postgresql", "schema": "s", "table": "t", "lsn": at}
        row, gone = {"id": key, "v": at}, {"id": key, "v": None}
        before, after = (gone, None) if op == "-" else (None, row)
        value = (
            None if op == "." else {"op": "d" if op == "-" else "c", "before": before, "after": after, "source": source}
        )
        result.append({"topic": "t", "partition": 0, "key": {"id": key}, "value": value})
    return result


def found(folder: Path, text: str, declared: str = "") -> list[str]:
    (folder / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines(text)))
    (folder / "s.toml").write_text(f'format = "debezium"\n[stream]\n{declared}')
    report = check(folder / "s.jsonl", stream=str(folder / "s.toml"))
    assert {finding.anomaly for finding in report.findings} <= {"lost-tombstone"}, report.findings
    return [finding.sentence.rpartition(" (")[2] for finding in report.findings]


@pytest.mark.parametrize(
    "text",
    [
        "+a -a .a +b -b .b",
        "+a -a +b -b +c",  # They are switched off.
        "+a -a +b -b .b +c -c .c",  # They were switched on,
        "+a -a .a +b -b .b +c -c +d",  # or off.
        "+a -a .a +b -b",  # The file ends.
        "+a -a .a .a +b",  # Sent twice.
        "+a1 -a2 .a +b4 -a2 .a +b4 +c5",  # A restart.
        "+a1 -a2 .a +b4 .a +b4 +c5",  # A retry that begins with it.
        "+a -a .a +b -b7 -b7 .b +c -c .c",  # The task ended between the two.
        ".a +b -b .b",  # The deletion came before the file.
        "+b .a .c +a +a",  # Compaction removed the deletions.
    ],
)
def test_legal_tombstones_are_not_accused(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("+a -a .a +b -b +c -c .c", "lines 5 and 6)."),  # Lost.
        ("+a -a +b .a +c", "lines 3 and 4)."),  # Moved behind another row,
        ("+a +b +a5 .b -b7 +c", "lines 3 and 4)."),  # or before its deletion.
        ("+a1 -a2 .a +b4 +c5 .a +c5 +d6", "lines 5 and 6)."),  # No retry: something else follows.
    ],
)
def test_a_tombstone_belongs_behind_its_deletion(tmp_path: Path, text: str, named: str) -> None:
    assert found(tmp_path, text) == [named]


EACH = 'tombstones = "each"\n'


def test_each_deletion_has_its_tombstone_if_that_is_declared(tmp_path: Path) -> None:
    for text in ("+a -a .a +b -b", "+a -a7 -a7 .a +b", "+a1 -a2 .a +b4 -a2 .a +b4 +c5"):
        assert found(tmp_path, text, EACH) == []
    assert found(tmp_path, "+a -a .a +b -b +c", EACH) == ["lines 5 and 6)."]  # None shows that they were switched off.
    assert found(tmp_path, "+a -a +b", EACH) == ["lines 2 and 3)."]
    assert found(tmp_path, "+a -a .a +b -b", EACH + 'tail = "settled"\n') == ["line 5)."]  # Nor may it come later.


def test_tombstones_that_show_no_deletion_cannot_be_declared(tmp_path: Path) -> None:
    keyless = [line | ({"key": None} if line["value"] is None else {}) for line in lines("+a -a .a +b")]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(each) + "\n" for each in keyless))
    (tmp_path / "s.toml").write_text(f'format = "debezium"\n[stream]\n{EACH}')
    with pytest.raises(SeamarkError, match="with its topic, partition and key"):
        check(tmp_path / "s.jsonl", stream=str(tmp_path / "s.toml"))
    assert not check(tmp_path / "s.jsonl", stream="debezium").findings
