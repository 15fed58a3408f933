"""What a run may hold, and who writes into it: plain files and folders, and one writer at a time."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli.options import plan_file
from harness.core.errors import HistoryError, ScenarioError
from harness.record.documents import DOCUMENT_MAX, LINE_MAX, read_plain, read_toml, whole_lines
from harness.record.store import one_writer, require_plain, write_atomically
from harness.scenario.scenario import scenario_file


def test_a_folder_that_vanishes_meanwhile_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    scandir = os.scandir

    def slow(path: Path) -> object:
        if Path(path).name == "gone":
            Path(path).rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", slow)
    require_plain(tmp_path)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_link_is_found_at_any_depth(tmp_path: Path, depth: int) -> None:
    folder = tmp_path / "/".join(["."] + ["d"] * depth)
    folder.mkdir(parents=True, exist_ok=True)
    require_plain(tmp_path)
    (folder / "link").symlink_to("nowhere")
    with pytest.raises(HistoryError, match="link: is a link or no file"):
        require_plain(tmp_path)


def test_a_document_is_read_whole_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_atomically(path, b"{}")
    assert read_plain(path) == b"{}"
    os.truncate(path, DOCUMENT_MAX + 1)
    with pytest.raises(HistoryError, match=r"has 67,108,865 bytes, the limit is 67,108,864"):
        read_plain(path)


READERS: tuple[Callable[[Path], object], ...] = (
    read_plain,
    read_toml,
    lambda path: list(whole_lines(path)),
    plan_file,
    scenario_file,
)


@pytest.mark.parametrize("what", ["pipe", "device", "link", "folder", "sparse"])
@pytest.mark.parametrize("read", READERS)
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path, what: str, read: Callable[[Path], object]) -> None:
    path = tmp_path / "waivers.toml"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case "link":
            (tmp_path / "real").write_text("{}\n")
            path.symlink_to("real")
        case "folder":
            path.mkdir()
        case _:
            path.touch()
            os.truncate(path, 1 << 40)
    with pytest.raises((HistoryError, ScenarioError), match=r"is a link or no file|the limit"):
        read(path)


def test_a_line_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{}\n[]\n{")
    assert list(whole_lines(path)) == [b"{}\n", b"[]\n"]
    path.write_bytes(b"{}\n" + b"a" * (LINE_MAX + 1) + b"\n")
    with pytest.raises(HistoryError, match=r"rows.jsonl:2: has more than 16,777,216 bytes"):
        list(whole_lines(path))
    path.write_bytes(b"[" * 2_000_001 + b"\n")
    with pytest.raises(HistoryError, match=r"rows.jsonl:1: has more than 2,000,000 values"):
        list(whole_lines(path))


def test_a_number_of_five_thousand_digits_is_no_fault_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text("a = " + "9" * 5_000)
    with pytest.raises(ScenarioError, match=r"waivers.toml: not valid TOML"):
        read_toml(path)


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with one_writer(tmp_path), pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == []
