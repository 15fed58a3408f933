"""docs/track-record.md shows the data beside it, and each row names what exists."""

import json
import subprocess

import pytest

from checkers.catalogue import RECORDS
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from tests.bench.track_record import PAGE, Record, Result, carried_out, load, page


def test_the_page_shows_today_s_data() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(load())


def test_each_row_names_a_promise_an_anomaly_and_versions_of_its_system() -> None:
    record = load()
    for row in record.rows:
        system = load_cluster(installed(row.system))
        promises = {promise.id: promise for promise in system.promises}
        [versions] = [option.values for option in system.options if option.name in ("version", "server")]
        assert row.promise is None or row.promise in promises
        assert {*row.affected, *row.clean} <= set(versions)
        assert row.anomaly in RECORDS
        assert row.source.startswith("https://")
    keys = {
        f"{row.name} {version}{suffix}"
        for row in record.rows
        for version in (*row.affected, *row.clean)
        for suffix in ("", " control")
    }
    assert set(record.results) <= keys


def test_what_was_never_run_is_called_so_and_what_was_is_counted() -> None:
    record = load()
    bare = Record(rows=record.rows, results={})
    assert "3.4.23: not run" in page(bare)
    bare.results["compacted-delete 3.4.23"] = Result(runs=5, found=2, date="2026-11-27")
    assert "3.4.23: 2 of 5" in page(bare)


@pytest.mark.parametrize(("seen", "counted"), [(["lost-acknowledged"], (2, 0)), ([], (0, 2))])
def test_a_permitted_anomaly_counts_also_if_the_run_tested_nothing_else(
    monkeypatch: pytest.MonkeyPatch, seen: list[str], counted: tuple[int, int]
) -> None:
    [row] = [row for row in load().rows if row.name == "lost-with-its-copy"]
    report = {"reason": "no promise was exercised", "findings": [{"anomaly": each} for each in seen]}
    vacuous = subprocess.CompletedProcess([], 3, stdout=json.dumps(report), stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: vacuous)
    result = carried_out(row, row.command, row.affected[0])
    assert (result.found, result.undecided) == counted
