import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import cast

import msgspec
import pytest

from harness.core.errors import HistoryError
from harness.core.record import SCHEMA, Complete, Footer, Header, Invoke, Json, Mark, MicroOp, Record
from harness.record.formats.parquet.parquet import write_history
from harness.record.journal import MAGIC, RECORD_MAX, JournalWriter, history_sha256, read_journal

RECORDS: list[Record] = [
    Header(SCHEMA, "2026-01-01T00:00:00Z"),
    Invoke(0, 10, 9, 3, "txn", None, (MicroOp("r", "x"), MicroOp("append", None, 1.5))),
    Complete(0, 20, "ok", None, (MicroOp("r", "x", [1, "1", True]), MicroOp("append", None, 1.5)), node="a"),
    Mark(21, "final", {"network": 7}),
    Footer(30, "the time was over", "abcd"),
]
ROOT = Path(__file__).resolve().parents[3]


def written(path: Path, records: list[Record]) -> Path:
    with JournalWriter(path) as journal:
        for record in records:
            journal.append(record)
    return path


def record_bytes(payload: bytes) -> bytes:
    return struct.pack(">II", len(payload), zlib.crc32(payload)) + payload


def test_what_was_appended_is_read_in_order(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.log", RECORDS)
    assert list(read_journal(path)) == RECORDS


def test_a_record_is_in_the_file_before_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    with JournalWriter(path) as journal:
        for number, record in enumerate(RECORDS):
            journal.append(record)
            assert list(read_journal(path)) == RECORDS[: number + 1]


def test_a_journal_is_never_written_over(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.log", RECORDS)
    with pytest.raises(FileExistsError):
        JournalWriter(path)
    assert list(read_journal(path)) == RECORDS


def test_a_journal_cut_at_any_byte_keeps_all_whole_records(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole.log", RECORDS).read_bytes()
    ends = [len(written(tmp_path / f"{count}.log", RECORDS[:count]).read_bytes()) for count in range(len(RECORDS) + 1)]
    path = tmp_path / "cut.log"
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        count = max(0, sum(end <= length for end in ends) - 1)
        assert list(read_journal(path)) == RECORDS[:count]


def flipped(content: bytes, bit: int) -> bytes:
    return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


def read_or_refused(path: Path) -> list[Record] | str:
    try:
        return list(read_journal(path))
    except HistoryError as error:
        return str(error)


def test_a_last_record_with_any_one_bit_wrong_is_left_out_or_named(tmp_path: Path) -> None:
    begin = len(written(tmp_path / "before.log", RECORDS[:2]).read_bytes())
    whole = written(tmp_path / "whole.log", RECORDS[:3]).read_bytes()
    path = tmp_path / "flipped.log"
    for bit in range(begin * 8, len(whole) * 8):
        path.write_bytes(flipped(whole, bit))
        found = read_or_refused(path)
        # A length that shrank is damage: a torn write only makes a record shorter than it claims.
        assert found == RECORDS[:2] or (isinstance(found, str) and "record 2 at" in found)


def test_a_record_before_the_last_with_any_one_bit_wrong_is_named(tmp_path: Path) -> None:
    begin, end = (len(written(tmp_path / f"{count}.log", RECORDS[:count]).read_bytes()) for count in (2, 3))
    whole = written(tmp_path / "whole.log", RECORDS).read_bytes()
    path = tmp_path / "flipped.log"
    for bit in range(begin * 8, end * 8):
        path.write_bytes(flipped(whole, bit))
        found = read_or_refused(path)
        assert isinstance(found, str)
        assert f"{path}: record 2 at byte {begin} is damaged" in found


def test_damage_in_the_middle_names_file_record_and_byte(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.log", RECORDS)
    offset = len(written(tmp_path / "before.log", RECORDS[:2]).read_bytes())
    content = bytearray(path.read_bytes())
    content[offset + 9] ^= 1
    path.write_bytes(content)
    with pytest.raises(HistoryError) as caught:
        list(read_journal(path))
    assert str(caught.value) == (
        f"{path}: record 2 at byte {offset} is damaged (its checksum does not match); "
        "restore the file, or cut it there to judge what comes before"
    )


def test_a_record_of_no_known_kind_is_an_error_even_with_the_right_checksum(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    path.write_bytes(MAGIC + record_bytes(msgspec.msgpack.encode(["surprise", 1])))
    with pytest.raises(HistoryError, match="record 0 at byte 18 is damaged"):
        list(read_journal(path))


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    path.write_bytes(b"seamark journal 2\n")
    with pytest.raises(HistoryError, match="not a journal of this version"):
        list(read_journal(path))


def test_a_journal_whose_first_line_was_not_finished_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    path.write_bytes(MAGIC[:5])
    assert list(read_journal(path)) == []


def test_a_record_over_the_limit_is_refused_by_name_and_leaves_the_journal_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    with JournalWriter(path) as journal:
        journal.append(RECORDS[0])
        with pytest.raises(HistoryError, match="passes the limit of 16,777,216 bytes"):
            journal.append(Invoke(0, 0, 0, 0, "write", "x" * RECORD_MAX))
        journal.append(RECORDS[1])
    assert list(read_journal(path)) == RECORDS[:2]


def test_a_length_beyond_the_limit_is_damage_and_not_a_torn_tail(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.log", RECORDS[:2])
    path.write_bytes(path.read_bytes() + struct.pack(">II", RECORD_MAX + 1, 0) + b"x")
    with pytest.raises(HistoryError, match=r"record 2 .*it claims 16,777,217 bytes"):
        list(read_journal(path))


def test_header_and_footer_are_no_evidence() -> None:
    assert history_sha256(RECORDS) == history_sha256(RECORDS[1:-1])
    assert history_sha256(RECORDS) != history_sha256(RECORDS[:-2])


def test_an_object_whose_names_are_numbers_is_refused_with_its_record(tmp_path: Path) -> None:
    mops = (MicroOp("append", 1, cast("Json", {1: 2})),)  # As msgpack may hold it.
    with pytest.raises(HistoryError, match="a value is not JSON"):
        write_history([Invoke(0, 5, 5, 0, "txn", None, mops)], tmp_path / "history")


def test_the_hash_does_not_depend_on_the_order_of_an_object_s_names() -> None:
    one, other = Invoke(0, 0, 0, 0, "write", {"a": 1, "b": 2}), Invoke(0, 0, 0, 0, "write", {"b": 2, "a": 1})
    assert history_sha256([one]) == history_sha256([other])


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_process_loses_no_record_that_it_had_appended(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    count = random.Random(seed).randrange(1, 3000)
    path = tmp_path / "journal.log"
    command = [sys.executable, "-m", "tests.unit.journaling", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout is not None
        reported = 0
        while reported < count:
            reported += len(child.stdout.read(count - reported))
        child.kill()
        reported += len(child.stdout.read())
    found = list(read_journal(path))
    indexes = [record.index for record in found if isinstance(record, Invoke)]
    assert isinstance(found[0], Header)
    assert indexes == list(range(len(indexes)))
    assert reported <= len(indexes) <= reported + 1


def test_a_record_of_millions_of_empty_lists_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    silly = b"\x97\xa6invoke\x00\x00\x00\x00\xa1f\xdd\x00\x9f\x00\x00" + b"\x90" * 0x9F0000
    path.write_bytes(MAGIC + struct.pack(">II", len(silly), zlib.crc32(silly)) + silly)
    with pytest.raises(HistoryError, match=r"record 0 at byte 18 is damaged \(it holds more than 4,000,000 values"):
        list(read_journal(path))


def test_a_record_that_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.log") as writer:
        with pytest.raises(HistoryError, match="more than 4,000,000 values"):
            writer.append(Invoke(0, 0, 0, 0, "f", [""] * 4_000_001))
        writer.append(Invoke(0, 0, 0, 0, "f"))
    assert len(list(read_journal(tmp_path / "journal.log"))) == 1


@pytest.mark.parametrize(
    "value", ["я" * 3_000_000, [1] * 5_000_000, [300] * 3_000_000, ["abcdefgh"] * 600_000, [-0.5] * 500_000]
)
def test_a_large_record_of_few_values_is_read(value: Json, tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.log") as writer:
        writer.append(Invoke(0, 0, 0, 0, "f", value))
    [found] = read_journal(tmp_path / "journal.log")
    assert isinstance(found, Invoke)
    assert found.value == value


@pytest.mark.parametrize("length", [0, 31, 32, 255, 256, 65_535, 65_536])
def test_values_are_counted_past_texts_of_every_length(
    length: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value: list[Json] = [
        "é" * (length // 2) + "a" * (length % 2),
        -70_000,
        2.5,
        {"a": [None] * 20, "b": 1 << 40},
        [0] * 70_000,
    ]
    count = 10  # The record, its type, its f, the value; a text, an object with two names, and its list; a list.
    path = tmp_path / "journal.log"
    with JournalWriter(path) as writer:
        writer.append(Invoke(0, 0, 0, 0, "f", value))
    monkeypatch.setattr("harness.record.journal.OBJECTS_MAX", count)
    monkeypatch.setattr("harness.record.journal._NO_OBJECTS", b"")  # So that every record is looked through.
    assert len(list(read_journal(path))) == 1
    monkeypatch.setattr("harness.record.journal.OBJECTS_MAX", count - 1)
    with pytest.raises(HistoryError, match="more than"):
        list(read_journal(path))
