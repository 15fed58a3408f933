"""The checks of `checkers/state` that one cluster alone exercises judge files from elsewhere as well."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record.formats.parquet.parquet import write_history
from tests.command.conftest import Seamark
from tests.unit.checkers.state import test_aborts, test_durability, test_replay, test_timestamps

STREAM = '[stream]\nclosed = "<="\ncut = "position"\nposition = "commit-timestamp"\n'
LATE = '[[promise]]\nid = "LATE"\nforbids = ["late-event"]\n'


def aborted(folder: Path, *, is_wrong: bool) -> None:
    run = test_aborts.failing(100)
    if not is_wrong:
        run.fault("crash", "n1", 90, 160)
        run.append(9_000, {1: 3}, at=9)
    run.write(folder)


def read_at(folder: Path, *, is_wrong: bool) -> None:
    story = test_replay.Story()
    story.op(test_replay.append(1), read_ts=1, commit_ts=5)
    story.op(test_replay.read(*([] if is_wrong else [1])), read_ts=7)
    write_history(story.records, folder / "history")


def committed(folder: Path, *, is_wrong: bool) -> None:
    world = test_timestamps.World()
    world.txn(5, 6)
    world.txn(7, 7 if is_wrong else 8)
    world.event("row", 6)
    world.event("watermark", 6)
    write_history(world.records, folder / "history")


def restored(folder: Path, *, is_wrong: bool) -> None:
    test_durability.dumped([1, 2], [3] if is_wrong else [3, 4]).write(folder)


@pytest.mark.parametrize("is_wrong", [True, False])
@pytest.mark.parametrize(
    ("told", "anomaly", "check", "declared"),
    [
        (aborted, "spurious-abort", "aborts", '[bounds]\nspurious = ["rolled back alive"]\n'),
        (read_at, "snapshot-mismatch", "replay", ""),
        (committed, "double-timestamp", "timestamps", STREAM + LATE),
        (restored, "lost-acknowledged", "durability", "[bounds]\nsaved_bits = 32\n"),
    ],
)
def test_a_history_from_elsewhere_gets_the_check_that_its_promise_names(
    seamark: Seamark,
    tmp_path: Path,
    told: Callable[..., None],
    anomaly: str,
    check: str,
    declared: str,
    *,
    is_wrong: bool,
) -> None:
    told(tmp_path, is_wrong=is_wrong)
    promises = tmp_path / "promises.toml"
    promise = f'[[promise]]\nid = "P"\nforbids = ["{anomaly}"]\ncheck = "{check}"\n'
    promises.write_text(declared + promise, encoding="utf-8")
    report = seamark("check", tmp_path / "history", "--promises", promises, "--engine", "local", "--json").json
    rows = report["promises"]
    findings = report["findings"]
    assert isinstance(rows, list)
    assert isinstance(findings, list)
    verdicts = {row["id"]: row["verdict"] for row in rows if isinstance(row, dict)}
    assert verdicts["P"] == ("violated" if is_wrong else "holds"), report["reason"]
    found = {(each["checker"], each["anomaly"]) for each in findings if isinstance(each, dict)}
    assert ((check, anomaly) in found) == is_wrong
