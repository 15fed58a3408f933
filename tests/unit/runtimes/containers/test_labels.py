import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.record.ownership import (
    Fate,
    Owner,
    start_of,
    temporary_fate,
    temporary_folder,
    temporary_prefix,
    this_process,
)
from harness.runtimes.containers.engine.labels import PID, START, labels_for, owner_of
from harness.runtimes.containers.engine.sweeper import sweep_folders


@contextmanager
def child(program: str | Path = "sleep") -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([program, "60"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def as_owner(pid: int) -> Owner:
    return replace(this_process(), pid=pid, start=start_of(pid) or 0)


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=temporary_prefix("build")))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_labels_lead_back_to_this_process_which_is_alive() -> None:
    labels = labels_for("r1")
    assert labels["seamark.run"] == "r1"
    assert owner_of(labels) == this_process()
    assert this_process().fate() is Fate.ALIVE


def test_a_process_that_was_killed_is_gone_even_before_it_is_reaped() -> None:
    with child() as process:
        owner = as_owner(process.pid)
        assert owner.fate() is Fate.ALIVE
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # Dead, and still in the table of processes.
        assert owner.fate() is Fate.GONE
    assert owner.fate() is Fate.GONE


def test_a_number_used_again_by_a_later_process_is_another_owner() -> None:
    assert replace(this_process(), start=this_process().start - 1).fate() is Fate.GONE


def test_an_owner_of_an_earlier_boot_is_gone() -> None:
    assert replace(this_process(), boot="another").fate() is Fate.GONE


def test_an_owner_on_another_machine_cannot_be_judged_from_here() -> None:
    assert replace(this_process(), host="elsewhere/1").fate() is Fate.ELSEWHERE


def test_a_program_whose_name_looks_like_the_fields_after_it_has_its_own_start(tmp_path: Path) -> None:
    odd = shutil.copy(shutil.which("sleep") or "", tmp_path / "a) Z 1 (b")
    before = start_of(os.getpid()) or 0
    with child(odd) as process:
        assert (start_of(process.pid) or 0) >= before


@pytest.mark.parametrize("spoiled", [{PID: "x"}, {START: ""}, {PID: "-1.5"}])
def test_spoiled_labels_name_no_owner(spoiled: dict[str, str]) -> None:
    assert owner_of(labels_for("r1") | spoiled) is None


def test_labels_of_somebody_else_name_no_owner() -> None:
    assert owner_of({"com.example": "1", PID: "1"}) is None


def test_a_folder_s_name_tells_its_owner(temporary: Path) -> None:
    assert temporary_fate(new_folder().name) is Fate.ALIVE


@pytest.mark.parametrize(
    "name", ["seamark-", "seamark-images-0.lock", "seamark-build-1-2-3", "other", "seamark-a-b-c-d-e-f"]
)
def test_a_folder_that_we_did_not_name_is_nobody_s(name: str) -> None:
    assert temporary_fate(name) is Fate.ELSEWHERE


def test_folders_of_the_dead_are_removed_and_nothing_else(temporary: Path) -> None:
    mine = new_folder()
    dead_name = mine.name.replace(f"-{this_process().start}-", "-1-")
    dead = temporary / dead_name
    (dead / "deep").mkdir(parents=True)
    (dead / "deep" / "file").write_text("x", encoding="utf-8")
    foreign = temporary / "seamark-of-somebody"
    foreign.mkdir()
    pointed_at = temporary / "pointed-at"
    pointed_at.mkdir()
    (temporary / f"{dead_name}x").symlink_to(pointed_at)
    (temporary / f"{dead_name}y").write_text("a file", encoding="utf-8")

    assert [Path(each.name) for each in sweep_folders()] == [dead, temporary / f"{dead_name}y"]
    assert not dead.exists()
    assert mine.exists()
    assert foreign.exists()
    assert pointed_at.exists()
    assert sweep_folders() == ()


def test_the_folder_of_an_engine_goes_when_its_harness_was_killed(temporary: Path) -> None:
    code = "from harness.judging.engines import EngineStart as E; "
    code += "e = E('local').__enter__(); print(1, flush=True); input()"
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"1\n"
        assert sweep_folders() == ()
        harness.kill()
    assert [Path(each.name).name.split("-")[:2] for each in sweep_folders()] == [["seamark", "spark"]]
    assert list(temporary.iterdir()) == []


def test_the_log_of_a_failed_build_outlives_the_next_command_but_not_a_clean(temporary: Path) -> None:
    log = temporary / new_folder().name.replace(f"-{this_process().start}-", "-1-")
    other = temporary / log.name.replace("seamark-build-", "seamark-check-")
    for folder in (log, other):
        folder.mkdir()
    with temporary_folder("check"):
        assert (log.exists(), other.exists()) == (True, False)
    assert [Path(each.name) for each in sweep_folders()] == [log]
