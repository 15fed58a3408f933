"""Spoiled files of each kind: each is read to its end, or refused by a HistoryError, in bounded time and memory.

SEAMARK_FUZZ_COUNT is the number of spoiled files of each kind, SEAMARK_FUZZ_SEED where their seeds begin. A failure
names its seed.
"""

import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from harness.core.record import (
    SCHEMA,
    Evidence,
    Footer,
    Header,
    Invoke,
    Record,
)
from harness.record.formats.edn.exchange import write_edn_history
from harness.record.formats.jsonl import write_jsonl
from harness.record.journal import JournalWriter
from tests.amount import FIRST_SEED
from tests.worlds.spoiled_files import BYTES_MAX, COUNT, history, is_read, judge, spoiled


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
