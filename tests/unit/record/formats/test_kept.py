"""Imported histories are kept, and an entry that is not whole is none."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record.formats import kept
from harness.record.formats import load as loading
from harness.record.formats.edn.notation import NotationName
from harness.record.formats.edn.whole import Spread, write_in_parts
from harness.record.formats.load import Loaded, load
from harness.record.formats.parquet.parquet import hash_of
from harness.record.formats.parquet.rows import records_of
from harness.record.journal import history_sha256

LINE = "{{:type :{}, :process 0, :f :read, :value nil, :index {}}}\n"
NEMESIS = "{:type :info, :f :kill, :process :nemesis}\n"
Break = Callable[[Path], object]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the entries, with every file taken for a large one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "KEPT_BYTES", 0)
    return tmp_path / "cache" / "seamark" / "imports"


def written(path: Path, count: int = 1) -> Path:
    path.write_text("".join(LINE.format(kind, index) for index, kind in enumerate(["invoke", "ok"] * count)) + NEMESIS)
    return path


def contents(loaded: Loaded) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in loaded.history.iterdir()}


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def linked(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def refuse(*_: object) -> None:
    raise AssertionError("it is imported again")


def test_a_second_import_of_the_same_content_takes_what_was_kept(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(written(tmp_path / "one.edn"), tmp_path / "first")
    monkeypatch.setattr(loading, "write_in_parts", refuse)
    second = load(written(tmp_path / "other.edn"), tmp_path / "second")
    assert len(list(place.iterdir())) == 1
    assert contents(second) == contents(first)
    assert (second.notes, second.format, second.is_foreign, second.is_complete) == (
        ("1 nemesis operations skipped",),
        first.format,
        first.is_foreign,
        first.is_complete,
    )
    shutil.rmtree(place)
    assert contents(second) == contents(first)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("change", ["content", "code"])
def test_other_content_or_other_code_is_imported_anew(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "one.edn")
    load(path, tmp_path / "first")
    if change == "content":
        written(path, 2)
    else:
        monkeypatch.setattr(kept, "_code", lambda: "newer")
    imports: list[Path] = []

    def imported(path: Path, folder: Path, spread: Spread, *, notation: NotationName, is_hashed: bool) -> int:
        imports.append(path)
        return write_in_parts(path, folder, spread, notation=notation, is_hashed=is_hashed)

    monkeypatch.setattr(loading, "write_in_parts", imported)
    load(path, tmp_path / "second")
    assert imports == [path]


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: (entry / "ops.parquet").write_bytes(b"PAR1"),
        lambda entry: (entry / "ops.parquet").unlink(),
        lambda entry: (entry / "import.json").write_bytes(b"{"),
        lambda entry: (entry / "import.json").write_bytes(b'{"notes": [], "files": {}}'),
        lambda entry: (entry / "import.json").write_bytes(b'{"notes": [], "files": {"../x": ""}}'),
        lambda entry: (entry / "import.json").unlink(),
        lambda entry: piped(entry / "import.json"),
        lambda entry: piped(entry / "events.parquet"),
        lambda entry: linked(entry / "import.json", "/dev/zero"),
        lambda entry: linked(entry / "events.parquet", "/dev/zero"),
        lambda entry: os.truncate(entry / "events.parquet", kept.BYTES_MAX),
    ],
)
@pytest.mark.parametrize("is_hashed", [True, False])
def test_a_damaged_entry_is_none(damage: Break, is_hashed: bool, place: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "one.edn")
    first = contents(load(path, tmp_path / "first", is_hashed=is_hashed))
    (entry,) = place.iterdir()
    damage(entry)
    assert contents(load(path, tmp_path / "second", is_hashed=is_hashed)) == first
    assert contents(load(path, tmp_path / "third", is_hashed=is_hashed)) == first


def test_an_import_without_its_hash_is_kept_for_those_that_need_none(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "one.edn")
    unhashed = load(path, tmp_path / "first", is_hashed=False)
    assert hash_of(unhashed.history) is None
    hashed = load(path, tmp_path / "second")
    assert hash_of(hashed.history) == history_sha256(records_of(unhashed.history))
    monkeypatch.setattr(loading, "write_in_parts", refuse)
    assert contents(load(path, tmp_path / "third")) == contents(hashed)
    assert contents(load(path, tmp_path / "fourth", is_hashed=False)) == contents(hashed)
    entry = next(entry for entry in place.iterdir() if not entry.name.endswith("-unhashed"))
    shutil.rmtree(entry)
    assert contents(load(path, tmp_path / "fifth", is_hashed=False)) == contents(unhashed)
    next(place.iterdir()).rename(entry)
    monkeypatch.undo()
    assert kept.found(entry.name, tmp_path / "sixth", is_hashed=True) is None


def test_an_import_in_one_pass_records_its_hash(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "one.edn")
    monkeypatch.setattr(loading, "_in_parts", lambda *_, **__: None)
    loaded = load(path, tmp_path / "first", is_hashed=False)
    (entry,) = place.iterdir()
    assert hash_of(loaded.history) is not None
    assert kept.found(entry.name, tmp_path / "second", is_hashed=True) == loaded.notes


def test_two_entries_that_are_swapped_are_none(place: Path, tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{count}.edn", count) for count in (1, 2)]
    first = [contents(load(path, tmp_path / f"first {path.name}")) for path in paths]
    one, other = place.iterdir()
    one.rename(place / "aside")
    other.rename(one)
    (place / "aside").rename(other)
    assert [contents(load(path, tmp_path / f"second {path.name}")) for path in paths] == first
    assert first[0] != first[1]


def test_a_cache_that_cannot_be_written_is_none(place: Path, tmp_path: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("a file")
    assert load(written(tmp_path / "one.edn"), tmp_path / "first").history.is_dir()


def test_the_least_recently_used_entries_go(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "ENTRIES_MAX", 2)
    for count in (1, 2, 3):
        load(written(tmp_path / "one.edn", count), tmp_path / str(count))
    assert len(list(place.iterdir())) == 2
    assert kept.found(kept.key_of(tmp_path / "one.edn", "EDN") or "", tmp_path / "last", is_hashed=True) is not None


def test_entries_have_a_limit_of_bytes(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(written(tmp_path / "one.edn", 1), tmp_path / "1")
    (entry,) = place.iterdir()
    size = sum(path.stat().st_size for path in entry.iterdir())
    monkeypatch.setattr(kept, "BYTES_MAX", 2 * size + size // 2)
    for count in (2, 3):
        load(written(tmp_path / "one.edn", count), tmp_path / str(count))
    assert len(list(place.iterdir())) == 2
    assert not entry.exists()
    monkeypatch.setattr(kept, "BYTES_MAX", size // 2)
    load(written(tmp_path / "one.edn", 4), tmp_path / "4")
    assert list(place.iterdir()) == []


def test_a_file_that_changed_meanwhile_is_not_kept(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "one.edn")

    def imported(path: Path, folder: Path, spread: Spread, *, notation: NotationName, is_hashed: bool) -> int:
        written(path, 3)
        return write_in_parts(path, folder, spread, notation=notation, is_hashed=is_hashed)

    monkeypatch.setattr(loading, "write_in_parts", imported)
    load(path, tmp_path / "first")
    assert not place.exists()


def test_the_same_content_read_in_another_format_is_another_import(tmp_path: Path) -> None:
    path = written(tmp_path / "one.edn")
    assert kept.key_of(path, "EDN") != kept.key_of(path, "Jepsen log")
