import re
from pathlib import Path

import msgspec
import pytest

from harness.core.errors import HistoryError, ScenarioError
from harness.core.promises import Bounds, Promise, StreamContract
from harness.record.store import (
    RUN_SCHEMA,
    RunFile,
    create_run,
    find_run,
    folders_of,
    list_runs,
    read_run_file,
    write_atomically,
    write_run_file,
)
from nemesis.plan import Plan, Step

RUN = RunFile(
    versions={"seamark": "0.1.0"},
    cluster="tutorial",
    runtime="sim",
    seed=7,
    options={"rate": 100.0, "nemesis": None},
    workload="list-append",
    types=("txn",),
    checks=("serializability",),
    plan=Plan(steps=(Step(fault="cut", package="partition", at_ns=1, until_ns=2, targets=("n1>n2",), args={"a": 1}),)),
    promises=(Promise(id="TUT-1", text="All is well.", source="docs", forbids=("G0",)),),
    stream=StreamContract(closed="<=", cut="position", position="offset"),
)


def test_two_runs_in_one_second_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.record.store.time.strftime", lambda *_: "20261121T080000Z")
    runs = [create_run(tmp_path / "store", "tutorial", 7) for _ in range(3)]
    assert [run.name for run in runs] == ["20261121T080000Z-7", "20261121T080000Z-7.2", "20261121T080000Z-7.3"]


def test_a_run_is_named_for_its_time_and_seed(tmp_path: Path) -> None:
    run = create_run(tmp_path, "tutorial", 12)
    assert run.parent == tmp_path / "tutorial"
    assert re.fullmatch(r"\d{8}T\d{6}Z-12", run.name)


def test_a_store_that_is_no_folder_is_the_person_s_mistake(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(ScenarioError, match="choose another with --store"):
        create_run(tmp_path / "store", "tutorial", 1)


def test_run_json_comes_back_as_it_was(tmp_path: Path) -> None:
    write_run_file(tmp_path, RUN)
    assert read_run_file(tmp_path / "run.json") == RUN
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_run_json_without_bounds_promises_no_number(tmp_path: Path) -> None:
    write_run_file(tmp_path, msgspec.structs.replace(RUN, bounds=Bounds(saved_bits=32)))
    assert read_run_file(tmp_path / "run.json").bounds.saved_bits == 32
    older = msgspec.json.decode((tmp_path / "run.json").read_bytes())
    del older["bounds"]
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(older))
    assert read_run_file(tmp_path / "run.json").bounds == Bounds()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b'{"schema": "x"}', b"[" * 5000])
def test_a_run_json_that_is_none_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(HistoryError, match=r"run\.json: not a run\.json"):
        read_run_file(tmp_path / "run.json")


def test_a_newer_run_json_is_refused_by_its_number(tmp_path: Path) -> None:
    write_run_file(tmp_path, msgspec.structs.replace(RUN, schema=RUN_SCHEMA + 1))
    with pytest.raises(HistoryError, match=f"has schema {RUN_SCHEMA + 1}, this Seamark reads up to {RUN_SCHEMA}"):
        read_run_file(tmp_path / "run.json")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.record.store.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_runs_are_found_latest_first_whatever_else_is_there(tmp_path: Path) -> None:
    for test, name in (("a", "20260101T000000Z-1"), ("b", "20260102T000000Z-1"), ("a", "20260103T000000Z-1")):
        (tmp_path / test / name).mkdir(parents=True)
        write_run_file(tmp_path / test / name, RUN)
    (tmp_path / "a" / "no run").mkdir()
    (tmp_path / "a file").write_text("")
    assert [f"{run.parent.name}/{run.name[:8]}" for run in list_runs(tmp_path)] == [
        "a/20260103",
        "b/20260102",
        "a/20260101",
    ]
    assert list_runs(tmp_path / "none") == []


def test_a_run_is_found_by_its_folder_or_its_run_json(tmp_path: Path) -> None:
    write_run_file(tmp_path, RUN)
    assert find_run(tmp_path) == find_run(tmp_path / "run.json") == tmp_path
    with pytest.raises(ScenarioError, match="not a run's directory"):
        find_run(tmp_path / "elsewhere")


def test_temporary_files_are_looked_for_in_the_folders_of_sweeps_as_well(tmp_path: Path) -> None:
    deep = tmp_path / "sweeps" / "nightly" / "20261123T010203Z-1"
    (deep / "logs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(deep)
    assert folders_of(tmp_path) == [tmp_path, *reversed(deep.parents[:2]), deep]
