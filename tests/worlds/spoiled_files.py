"""Files of all formats, spoiled at random, and what reading one gives."""

import time
from pathlib import Path
from random import Random

from checkers.engine.datasets import LocalEngine
from harness.core.errors import HistoryError
from harness.core.record import (
    Complete,
    Evidence,
    Fault,
    Invoke,
    Json,
    Mark,
    MicroOp,
    Probe,
    State,
    StreamEvent,
)
from harness.judging.judge import Outlet
from harness.judging.judge import judge as judge_history
from harness.record.formats.load import UnknownFormat, load
from harness.record.formats.parquet.parquet import records_of
from harness.record.journal import history_sha256
from tests.amount import count

COUNT = count(150)
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


def judge(path: Path, work: Path) -> None:
    """All that is ever read of a history, and a judgement on it: what is accepted must not make a check fail."""
    loaded = load(path, work)
    history_sha256(records_of(loaded.history))
    report = judge_history(loaded, LocalEngine(), outlet=Outlet(log=work.with_suffix(".log")))
    assert report.verdict != "error", report.reason


def is_read(path: Path, work: Path, seed: int) -> bool:
    """Was it read to its end? Fails on any other error than a refusal of one line, and on what takes too long."""
    refusal: str | None = None
    started = time.process_time()  # A machine with other things to do is no fault of ours.
    try:
        judge(path, work)
    except (HistoryError, UnknownFormat) as error:
        refusal = str(error)
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    assert time.process_time() - started < SECONDS_MAX, f"seed {seed}"
    assert refusal is None or (len(refusal) < 1000 and "\n" not in refusal), f"seed {seed}: {refusal!r}"
    return refusal is None
