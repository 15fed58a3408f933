import bz2
import errno
import gzip
import json
import lzma
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from harness.core.errors import HistoryError, ScenarioError
from harness.core.record import SCHEMA, Complete, Evidence, Footer, Header, Invoke, MicroOp, Record
from harness.record.formats.edn.exchange import write_edn_history
from harness.record.formats.edn.whole import write_in_parts
from harness.record.formats.jsonl import write_jsonl
from harness.record.formats.load import UnknownFormat, load
from harness.record.formats.packed import opened
from harness.record.formats.parquet.parquet import read_table, records_of, write_history
from harness.record.formats.spread import in_turn, spread
from harness.record.journal import JournalWriter

ASKED = (MicroOp("append", "x", 1), MicroOp("append", 1, 1))  # A mixed history: keys "x" and 1.
RECORDS: list[Evidence] = [Invoke(0, 5, 5, 0, "txn", None, ASKED), Complete(0, 6, "ok", None, ASKED)]


def write_journal(path: Path, *, is_ended: bool = True) -> None:
    with JournalWriter(path) as writer:
        writer.append(Header(SCHEMA, "2026-11-21T08:00:00Z"))
        for record in RECORDS:
            writer.append(record)
        if is_ended:
            writer.append(Footer(9, "completed"))


def write_json(path: Path) -> None:
    maps = [
        {"type": kind, "process": 0, "f": "txn", "time": time, "value": [["append", "x", 1], ["append", 1, 1]]}
        for kind, time in (("invoke", 5), ("ok", 6))
    ]
    path.write_text(json.dumps(maps))


@pytest.mark.parametrize("name", ["history.edn", "history.txt", "history.json"])
@pytest.mark.parametrize("kind", ["edn", "jsonl", "json", "journal"])
def test_a_file_is_known_by_how_it_begins_whatever_it_is_called(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    match kind:
        case "edn":
            write_edn_history(RECORDS, path)
        case "jsonl":
            write_jsonl(RECORDS, path)
        case "json":
            write_json(path)
        case _:
            write_journal(path)
    loaded = load(path, tmp_path / "work")
    assert list(records_of(loaded.history)) == RECORDS
    assert loaded.is_foreign == (kind in {"edn", "json"})
    assert loaded.is_complete


@pytest.mark.parametrize("write", [write_edn_history, write_jsonl, lambda _, path: write_json(path)])
def test_the_mark_that_some_editors_put_first_does_not_matter(
    write: Callable[[Iterable[Record], Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "history"
    write(RECORDS, path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(records_of(load(path, tmp_path / "work").history)) == RECORDS


def test_gzip_is_unpacked_and_named_by_its_own_path(tmp_path: Path) -> None:
    path = tmp_path / "history.edn.gz"
    path.write_bytes(gzip.compress(b"{:type :invoke, :process 0, :f :txn, :value [[:r 1 nil]]}"))
    assert load(path, tmp_path / "work").format == "EDN"


def _flipped(packed: bytes, at: int) -> bytes:
    return packed[:at] + bytes([packed[at] ^ 1]) + packed[at:][1:]


# Without the time, which differs between the processes that collect the tests.
PACKED = gzip.compress(b"{:type :invoke, :process 0, :f :txn, :value [[:r 1 nil]]}\n" * 50, mtime=0)


@pytest.mark.parametrize(
    "damaged",
    [
        *(PACKED[:size] for size in (2, 3, 10, 40, len(PACKED) - 9, len(PACKED) - 1)),
        *(_flipped(PACKED, at) for at in (2, 12, 40, len(PACKED) - 6, len(PACKED) - 2)),
        *(PACKED + behind for behind in (b"more", b"\x1f", PACKED[:-1], bytes(4096))),
    ],
)
def test_damaged_gzip_is_refused_in_one_line(damaged: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history.edn.gz"
    path.write_bytes(damaged)
    with pytest.raises(HistoryError) as error:
        load(path, tmp_path / "work")
    assert str(error.value).startswith(f"{path}: its compressed content is damaged or ends too early (")
    assert str(error.value).isprintable()


def test_members_of_gzip_are_read_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "history.edn.gz"
    for whole in (PACKED, PACKED + PACKED, gzip.compress(b"") + PACKED, PACKED + gzip.compress(b"")):
        path.write_bytes(whole)
        with opened(path) as file:
            assert file.read() == gzip.decompress(whole)


@pytest.mark.parametrize(("packed", "name"), [(lzma.compress, "xz"), (bz2.compress, "bzip2")])
def test_a_packed_file_is_refused_with_what_packed_it(
    packed: Callable[[bytes], bytes], name: str, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    path.write_bytes(packed(b"{:type :invoke}"))
    with pytest.raises(ScenarioError, match=f"history.edn: is {name}-compressed: run [a-z0-9]+ .*history.edn first"):
        load(path, tmp_path / "work")


def test_a_folder_of_parquet_files_and_each_file_in_it_name_the_history(tmp_path: Path) -> None:
    write_history(RECORDS, tmp_path / "h")
    for path in (tmp_path / "h", tmp_path / "h" / "ops.parquet"):
        assert load(path, tmp_path / "work").history == tmp_path / "h"
    assert not (tmp_path / "work").exists()


def test_a_run_that_died_is_loaded_from_its_journal_and_is_not_complete(tmp_path: Path) -> None:
    write_journal(tmp_path / "journal.log", is_ended=False)
    loaded = load(tmp_path, tmp_path / "work")
    assert loaded.history == tmp_path / "history"
    assert not loaded.is_complete
    assert list(records_of(loaded.history)) == RECORDS
    shutil.rmtree(loaded.history)
    content = (tmp_path / "journal.log").read_bytes()
    (tmp_path / "journal.log").write_bytes(content[:-1])  # A torn tail: the completion is lost, not the invocation.
    assert list(records_of(load(tmp_path, tmp_path / "work").history)) == RECORDS[:1]


def test_whether_a_run_ended_is_known_without_its_journal(tmp_path: Path) -> None:
    for is_ended in (True, False):
        run = tmp_path / str(is_ended)
        run.mkdir()
        write_journal(run / "journal.log", is_ended=is_ended)
        load(run, tmp_path / "work")
        (run / "journal.log").unlink()
        assert load(run, tmp_path / "work").is_complete == is_ended
        assert load(run / "history", tmp_path / "work").is_complete == is_ended


def test_a_run_that_died_before_its_journal_began_has_an_empty_history(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    loaded = load(tmp_path / "run.json", tmp_path / "work")
    assert not loaded.is_complete
    assert list(records_of(loaded.history)) == []


def take_nothing(patch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Let nothing be made in those folders, as on a read-only file system."""
    make = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        if path.parent in folders and not path.exists():
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        make(path, *arguments, **options)

    patch.setattr(Path, "mkdir", mkdir)


def test_a_run_in_a_store_that_takes_nothing_is_judged_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_journal(tmp_path / "journal.log")
    (tmp_path / "work").mkdir()
    take_nothing(monkeypatch, tmp_path)
    loaded = load(tmp_path, tmp_path / "work")
    assert loaded.history == tmp_path / "work" / "history"
    assert list(records_of(loaded.history)) == RECORDS


def test_where_nothing_can_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_journal(tmp_path / "journal.log")
    (tmp_path / "work").mkdir()
    take_nothing(monkeypatch, tmp_path, tmp_path / "work")
    with pytest.raises(HistoryError, match=r"work/history: cannot be written \(.*\); make room, or use another folder"):
        load(tmp_path, tmp_path / "work")


@pytest.mark.parametrize("name", ["history", "logs"])
def test_a_file_where_a_run_has_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    write_journal(tmp_path / "journal.log")
    (tmp_path / name).write_text("in the way")
    with pytest.raises(HistoryError, match=f"{name}: is a file, which no run has under that name"):
        load(tmp_path, tmp_path / "work")


def test_what_is_wrong_with_a_run_s_records_names_its_journal(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.log") as writer:
        writer.append(Invoke(7, 0, 0, 0, "txn", None, ()))
    with pytest.raises(HistoryError, match=r"^.*/journal.log: record 0: operation 7 was invoked, 0 is the next index"):
        load(tmp_path, tmp_path / "work")
    assert not (tmp_path / "history").exists()


def test_a_foreign_nemesis_is_told_of_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text("{:type :info, :process :nemesis, :f :start}\n{:type :ok, :f :txn, :value [[:append 1 1]]}")
    loaded = load(path, tmp_path / "work")
    assert loaded.notes == ("1 nemesis operations skipped",)
    assert read_table(loaded.history, "faults").num_rows == 0
    assert read_table(loaded.history, "ops").num_rows == 1


def test_what_is_not_there_is_the_person_s_mistake(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no such file"):
        load(tmp_path / "none", tmp_path / "work")


@pytest.mark.parametrize("content", [b"\x7fELF", b"hello", b"PAR1", b"# A page\n", b"## Part\n\n[{:x 1}]\n"])
def test_what_is_no_history_is_refused_with_what_would_be_one(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UnknownFormat, match=r"file: is in no format that I read .Parquet.*EDN"):
        load(path, tmp_path / "work")


def test_a_folder_without_a_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="neither a run"):
        load(tmp_path, tmp_path / "work")


@pytest.mark.parametrize("pattern", ["elle/*.edn", "elle-cli/*/*.edn", "elle-cli/*/*.json", "knossos/*/*/*.edn"])
def test_stored_histories_load(pattern: str, stored: Path, tmp_path: Path) -> None:
    paths = sorted(stored.glob(pattern))
    assert paths
    for path in paths:
        history = load(path, tmp_path / "work").history
        assert read_table(history, "ops").num_rows + bool("rollback-.edn" in path.name) > 0, path


def test_every_case_of_elle_s_own_tests_loads(stored: Path, tmp_path: Path) -> None:
    for name, count in (("cases", 77), ("unit_functions", 21)):
        lines = (stored / "elle-unit" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == count
        for line in lines:
            path = tmp_path / "case.json"
            path.write_text(json.dumps(json.loads(line)["history"]))
            assert read_table(load(path, tmp_path / "work").history, "ops").num_rows > 0


def killed(_: object) -> NoReturn:
    """The kernel of a process that the system ends."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def test_a_large_file_of_edn_is_read_by_several_processes_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    lines = [f"{{:type :{kind}, :process 0, :f :read, :value nil}}" for kind in ("invoke", "ok")]
    nemesis = "{:type :info, :f :kill, :process :nemesis}"
    path.write_text("\n".join([*lines, nemesis, *lines]), encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr("harness.record.formats.load._in_parts", lambda *_, **__: None)
        whole = load(path, tmp_path / "whole")
    monkeypatch.setattr("harness.record.formats.load.SPREAD_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("harness.record.formats.load.write_in_parts", partial(write_in_parts, part_bytes=30))
    parts = load(path, tmp_path / "parts")
    # If one of the processes is killed, the file is read in one pass.
    monkeypatch.setattr("harness.record.formats.load.spread", lambda _, items: spread(killed, items))
    after = load(path, tmp_path / "after")
    for each in (parts, after):
        assert each.notes == whole.notes == ("1 nemesis operations skipped",)
        assert (each.format, each.is_foreign, each.is_complete) == (whole.format, whole.is_foreign, whole.is_complete)
        for one in sorted(whole.history.iterdir()):
            assert one.read_bytes() == (each.history / one.name).read_bytes()


@pytest.mark.parametrize("is_plain", [True, False])
def test_times_that_fall_between_two_parts_of_a_file_are_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_plain: bool
) -> None:
    path, whole = tmp_path / "history.edn", tmp_path / "whole.edn"
    f, value = (":txn", "[[:append 1 1]]") if is_plain else (":write", "1")
    told = "".join(
        f"{{:type {kind}, :process {process}, :f {f}, :value {value}, :time {time}}}\n"
        for process, times in ((0, (50, 60)), (1, (10, 20)))
        for kind, time in zip((":invoke", ":ok"), times, strict=True)
    )
    path.write_text(told, encoding="utf-8")
    whole.write_text(f"[{told}]", encoding="utf-8")
    part_bytes = len(told) // 2 - 5
    monkeypatch.setattr("harness.record.formats.load.write_in_parts", partial(write_in_parts, part_bytes=part_bytes))
    in_parts, in_one_pass = load(path, tmp_path / "parts"), load(whole, tmp_path / "pass")
    assert [note.partition(" in ")[0] for note in in_parts.notes] == ["times fall back"]
    for one in sorted(in_one_pass.history.iterdir()):
        assert one.read_bytes() == (in_parts.history / one.name).read_bytes()


def test_what_is_wrong_with_a_large_file_is_said_as_of_a_small_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "history.edn"
    path.write_text(
        "{:type :invoke, :process 0}\n{:type :ok, :process 0}\n{:type :ok, :process 0 : 1}\n", encoding="utf-8"
    )
    monkeypatch.setattr("harness.record.formats.load.SPREAD_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("harness.record.formats.load.write_in_parts", partial(write_in_parts, part_bytes=30))
    monkeypatch.setattr("harness.record.formats.load.spread", in_turn)
    with pytest.raises(HistoryError, match=r"line 3, column 24: ':' is not a keyword"):
        load(path, tmp_path / "parts")
    assert not (tmp_path / "parts" / "history").exists()
