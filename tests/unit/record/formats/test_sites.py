"""Logs of several sites that write to each other, by a mapping file: judged as their states are."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import HistoryError, ScenarioError
from harness.record.formats.streams.mappings.known import stream_format
from seamark import check

MAPPING = """
at_rest = true
[fields]
site = "site"
origin = "born"
unit = "tx"
position = { place = "line" }
epoch = "epoch"
key = "id"
value = "v"
kind = "kind"
[kinds]
write = "row"
exception = "rejected"
[conflicts]
rule = "epoch"
primary = "A"
"""
SEEN = ("A a1 A 1 x=1", "B b1 B 1 x=2", "B a1 A 2 x=1")
REJECTED = (*SEEN, "A b1 B 5 x=2 exception", "A a2 A 5 x=1", "B a2 A 6 x=1")


def found(folder: Path, lines: tuple[str, ...], mapping: str = MAPPING) -> set[str]:
    """The anomalies in lines SITE TRANSACTION ORIGIN EPOCH KEY=VALUE [KIND]."""
    written: list[dict[str, Any]] = []
    for line in lines:
        site, name, origin, epoch, row, *kind = line.split()
        key, _, value = row.partition("=")
        written.append(
            {"site": site, "tx": name, "born": origin, "epoch": int(epoch), "id": key}
            | {"v": int(value) if value else None, "kind": kind[0] if kind else "write"}
        )
    (folder / "own.toml").write_text(mapping)
    (folder / "logs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in written))
    report = check(folder / "logs.jsonl", stream=str(folder / "own.toml"))
    return {finding.anomaly for finding in report.findings}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (REJECTED, set()),
        ((*SEEN, "A b1 B 5 x=2"), {"site-divergence", "missed-conflict"}),
        ((*SEEN, "A b0 B 5 y=7 exception"), {"unrecorded-loss"}),
        (("A a1 A 1 x=1", "B a1 A 1 x=1", "A a1 B 2 x=1"), {"own-change-applied"}),
        (("A a1 A 1 x=1", "A a1 A 1 y=1", "B a1 A 1 x=1", "B a1 A 1 y=1", "B b1 B 2 x=", "A b1 B 2 x="), set()),
    ],
)
def test_logs_of_two_sites_are_judged(tmp_path: Path, lines: tuple[str, ...], expected: set[str]) -> None:
    assert found(tmp_path, lines) == expected


def test_without_a_rule_and_rest_neither_conflicts_nor_divergence_are_judged(tmp_path: Path) -> None:
    bare = MAPPING.partition("[conflicts]")[0].replace("at_rest = true", "")
    assert found(tmp_path, (*SEEN, "A b1 B 5 x=2"), bare) == set()


def test_an_epoch_that_falls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"line 2: its epoch 1 is less than 2"):
        found(tmp_path, ("A a1 A 2 x=1", "A a2 A 1 x=2"))


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        ('unit = "tx"', "", "it has a site and no unit"),
        ('primary = "A"', "", "it needs a 'primary'"),
        ('rule = "epoch"', 'rule = "newest"', "Invalid enum value 'newest'"),
        ('site = "site"', "[stream]", "name the field site"),
    ],
)
def test_a_mistake_in_the_mapping_is_one_line(tmp_path: Path, line: str, instead: str, message: str) -> None:
    text = MAPPING.replace(line, "" if instead == "[stream]" else instead)
    if instead == "[stream]":
        text = f'one_session = true{text}[stream]\nclosed = "<="\ncut = "unknown"\nposition = "lsn"\n'
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(ScenarioError, match=message):
        stream_format(str(tmp_path / "own.toml"))
