"""The progress of reading a large file, as the system knows it."""

from pathlib import Path

import pytest

from harness.run import reading
from harness.run.reading import offset_of


def test_the_offset_of_an_open_file_is_known_and_of_others_is_not(tmp_path: Path) -> None:
    path = tmp_path / "h.edn"
    path.write_bytes(b"x" * 100_000)
    assert offset_of(path) == 0
    with path.open("rb", buffering=0) as file:
        file.read(25_000)
        assert offset_of(path) == 25_000
    assert offset_of(path) == 0


def test_a_large_file_shows_its_share_and_a_small_one_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE", 1_000)
    monkeypatch.setattr(reading, "EVERY_S", 0.001)
    told: list[str] = []
    path = tmp_path / "h.edn"
    path.write_bytes(b"x" * 2_000)
    with path.open("rb", buffering=0) as file, reading.reading(path, told.append):
        file.read(1_000)
        while len(told) < 3:
            pass
    assert told[0] == "reading h.edn"
    assert told[-1].startswith("reading h.edn: 50%, about 0 s left")
    path.write_bytes(b"x")
    told.clear()
    with reading.reading(path, told.append):
        pass
    assert told == ["reading h.edn"]
