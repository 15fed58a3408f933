"""What a run may hold, and who writes into it: plain files and folders, and one writer at a time."""

import fcntl
import os
from pathlib import Path

import pytest

from harness.core.errors import HistoryError
from harness.record.store import DOCUMENT_MAX, one_writer, read_plain, require_plain, write_atomically


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
    with pytest.raises(HistoryError, match="Is a directory"):
        read_plain(tmp_path)


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with one_writer(tmp_path), pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == []
