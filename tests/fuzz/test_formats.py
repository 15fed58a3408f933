"""Spoiled files of each kind: each is read to its end, or refused by a HistoryError, in bounded time and memory.

SEAMARK_FUZZ_COUNT is the number of spoiled files of each kind, SEAMARK_FUZZ_SEED where their seeds begin. A failure
names its seed.
"""

import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from checkers.engine.datasets import LocalEngine
from harness.core.errors import HistoryError
from harness.core.record import (
    SCHEMA,
    Complete,
    Evidence,
    Fault,
    Footer,
    Header,
    Invoke,
    Json,
    Mark,
    MicroOp,
    Probe,
    Record,
    State,
    StreamEvent,
)
from harness.judging.judge import judge as judge_history
from harness.record.formats.edn.exchange import write_edn_history
from harness.record.formats.jsonl import write_jsonl
from harness.record.formats.load import load
from harness.record.formats.parquet.parquet import records_of
from harness.record.journal import JournalWriter, history_sha256
from tests.amount import FIRST_SEED, count

COUNT = count(300)
SECONDS_MAX, BYTES_MAX = 10, 1 << 30
PIECES = [
    *(b"[", b"]", b"{", b"}", b"(", b")", b'"', b"\\", b"#", b"#_", b"#{", b":", b";", b",", b"\n", b"\0", b"\xff"),
    *(b"\xef\xbb\xbf", b"\\ud800", b"##NaN", b"1e999", b"1/0", b"-0", b"NaN", b"null", b"nil", b"true", b"[" * 100),
    *(b"9" * 30, b"9223372036854775808", b"18446744073709551616", b"9" * 5000, b"\\u0000", b":type", b'"type":', b"-1"),
    *(bytes([first, 0xFF, 0xFF, 0xFF, 0xFF]) for first in (0xDD, 0xDF, 0xDB, 0xC6, 0xD3, 0xCF)),  # Sizes in msgpack.
]
MEANINGFUL_KEYS: list[Json] = ["x", 1, None, [1, "é"], {"a": 1.5}, 1 << 60]


def history(random: Random) -> list[Evidence]:
    """A small history with records of all kinds."""
    records: list[Evidence] = [Mark(0, "load", {"network": 3}, {"n1": 2}, {"goal": 1}, "begins")]
    for index in range(random.randint(1, 12)):
        key = random.choice(MEANINGFUL_KEYS)
        asked = (MicroOp("append", key, index), MicroOp("r", key), MicroOp("w", "y", "v", "table", "lock"))
        done = (asked[0], MicroOp("r", key, [index, "z", None]), asked[2])
        records += [
            Invoke(index, index, index, random.randint(0, 3) + 4 * index, "txn", None, asked),
            StreamEvent(index, "s1", 0, index, "row", None, key, {"v": index}, 5, 0, 1, 7, 2),
            Fault(index, 0, "begin", "cut", ("n1>n2",), 3, "note"),
            Probe(index, "n1", "memory", 12),
            State(index, "n1", "log", key, [1], 4, None),
        ]
        if random.random() < 0.8:
            records.append(Complete(index, index + 1, "ok", None, done, None, "n1", commit_ts=index))
    return records


def spoiled(content: bytes, random: Random) -> bytes:
    """The content with one to four things done to it."""
    result = bytearray(content)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(result))
        size = random.choice([1, 1, 2, 8, 64, len(result)])
        match random.randint(0, 6):
            case 0 if at < len(result):
                result[at] ^= 1 << random.randint(0, 7)
            case 1:
                del result[at : at + size]
            case 2:
                result[at:at] = random.choice(PIECES)
            case 3:
                result[at:at] = result[at : at + size]
            case 4:
                result[at : at + size] = random.randbytes(min(size, 64))
            case 5:  # Two neighbouring parts change places.
                end = min(len(result), at + 2 * size)
                result[at:end] = result[(at + end) // 2 : end] + result[at : (at + end) // 2]
            case _:
                result[at : at + random.choice([0, 1, 8])] = random.choice(PIECES)
    return bytes(result)


def write_journal(records: list[Evidence], path: Path) -> None:
    with JournalWriter(path) as writer:
        everything: list[Record] = [Header(SCHEMA, "2026-11-21T08:00:00Z"), *records, Footer(1, "completed")]
        for record in everything:
            writer.append(record)


def write_json_array(records: list[Evidence], path: Path) -> None:
    write_jsonl(records, path)
    path.write_bytes(b"[" + b",\n".join(path.read_bytes().splitlines()) + b"]")


def write_json_maps(records: list[Evidence], path: Path) -> None:
    """Jepsen's maps; what is spoiled must have been sound, so keys are plain."""
    lines = []
    for record in records:
        if isinstance(record, Invoke):
            lines.append(b'{"type": "invoke", "process": %d, "f": "txn", "value": [["r", 1, null]]}' % record.process)
            lines.append(b'{"type": "ok", "process": %d, "f": "txn", "value": [["r", 1, [2]]]}' % record.process)
    path.write_bytes(b"\n".join(lines))


def write_json_map_array(records: list[Evidence], path: Path) -> None:
    """As elle-cli has them."""
    write_json_maps(records, path)
    path.write_bytes(b"[" + b",\n".join(path.read_bytes().splitlines()) + b"]")


def write_plain_edn(records: list[Evidence], path: Path) -> None:
    """Lines that go the quick way, but for what is done to them."""
    lines = []
    for record in records:
        if isinstance(record, Invoke):
            common = f":f :txn, :process {record.process}, :time {record.time_ns}"
            lines.append(f"{{:type :invoke, {common}, :value [[:append 1 2] [:r :x nil]], :index {2 * record.index}}}")
            lines.append(f"{{:index {2 * record.index + 1} :type :ok, {common}, :value [[:append 1 2] [:r :x [1 2]]]}}")
    path.write_text("\n".join(lines), encoding="utf-8")


def write_jepsen_log(records: list[Evidence], path: Path) -> None:
    lines = []
    for record in records:
        if isinstance(record, Invoke):
            begin = f"INFO  jepsen.util - {record.process}"
            lines += [f"{begin}\t:invoke\t:cas\t[0 1]", f"{begin}\t:info\t:cas\t:timed-out", "INFO  jepsen.core - Text"]
    path.write_text("\n".join(lines), encoding="utf-8")


def write_key_values(records: list[Evidence], path: Path) -> None:
    """As porcupine has them."""
    lines = []
    for record in records:
        if isinstance(record, Invoke):
            for kind in ("invoke", "ok"):
                rest = ':f :append, :key "0", :value "x 0 0 y"}'
                lines.append(f"{{:process {record.process}, :type :{kind}, {rest}")
    path.write_text("\n".join(lines), encoding="utf-8")


def judge(path: Path, work: Path) -> None:
    """All that is ever read of a history, and a judgement on it: what is accepted must not make a check fail."""
    loaded = load(path, work)
    history_sha256(records_of(loaded.history))
    report = judge_history(loaded, LocalEngine(), log=work.with_suffix(".log"))
    assert report.verdict != "error", report.reason


def is_read(path: Path, work: Path, seed: int) -> bool:
    """Was it read to its end? Fails on whatever is no HistoryError of one line, and on what takes too long."""
    refusal: str | None = None
    started = time.process_time()  # A machine with other things to do is no fault of ours.
    try:
        judge(path, work)
    except HistoryError as error:
        refusal = str(error)
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    assert time.process_time() - started < SECONDS_MAX, f"seed {seed}"
    assert refusal is None or (len(refusal) < 1000 and "\n" not in refusal), f"seed {seed}: {refusal!r}"
    return refusal is None


FILES: dict[str, Callable[[list[Evidence], Path], None]] = {
    "journal.log": write_journal,
    "history.edn": write_edn_history,
    "history.jsonl": write_jsonl,
    "history.json": write_json_array,
    "maps.jsonl": write_json_maps,
    "maps.json": write_json_map_array,
    "plain.edn": write_plain_edn,
    "jepsen.log": write_jepsen_log,
    "kv.txt": write_key_values,
}


@pytest.mark.parametrize("name", FILES)
def test_a_spoiled_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    sound = 0
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        random = Random(seed)
        source, work = tmp_path / f"source-{seed}", tmp_path / f"work-{seed}"
        source.mkdir()
        path = source / name
        FILES[name](history(random), path)
        if seed < FIRST_SEED + 10:
            judge(path, work)  # What is spoiled was sound.
        path.write_bytes(spoiled(path.read_bytes(), random))
        sound += is_read(path, work, seed)
        shutil.rmtree(source)
        shutil.rmtree(work, ignore_errors=True)
    print(f"seeds from {FIRST_SEED}: {sound} of {COUNT} read")
    assert sound < COUNT  # Some of it was really spoiled.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < BYTES_MAX


def test_a_spoiled_parquet_file_is_read_or_refused_and_ends_no_process(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.spoiled_parquet",
        str(FIRST_SEED),
        str(COUNT),
        str(tmp_path / "history"),
    ]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    *seeds, last = child.stdout.split() or ["none"]
    assert child.returncode == 0, f"exit code {child.returncode} at seed {last}: {child.stderr[-2000:]}"
    assert seeds == [str(seed) for seed in range(FIRST_SEED, FIRST_SEED + COUNT)]
    assert int(last) < COUNT
