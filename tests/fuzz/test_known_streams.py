"""Damaged files of each known format of streams are read, or refused in one line with their path.

SEAMARK_FUZZ_COUNT is the number of files of each format, SEAMARK_FUZZ_SEED the first seed.
"""

import random
from pathlib import Path

import pytest

from harness.record.formats.parquet import parquet
from harness.record.formats.streams.mappings.known import stream_format
from tests.amount import FIRST_SEED, count
from tests.fuzz.test_streams import problem_of
from tests.worlds.streams.known import SAMPLES, moved

COUNT = count(8)
PIECES = (b'"', b"{", b"}", b"[", b"]", b"null", b"-1", b"1e400", b"\x00", b"\xff", b"\n", b",", b"\t", b"9" * 30, b":")


def damaged(draw: random.Random, content: bytes) -> bytes:
    """The content with bytes cut out, put in, doubled or exchanged, at one to three places."""
    for _ in range(draw.randint(1, 3)):
        low, high = sorted(draw.randrange(len(content) + 1) for _ in range(2))
        high = min(high, low + draw.choice((1, 3, 40)))
        middle = draw.choice((b"", draw.choice(PIECES), content[low:high] * 2, bytes([draw.randrange(256)])))
        content = content[:low] + middle + content[high:]
    return content


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_stream_is_read_or_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)
    path, form = tmp_path / "s.jsonl", stream_format(name, SAMPLES[name].key)
    whole = ("\n".join(moved(SAMPLES[name])) + "\n").encode()
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        path.write_bytes(damaged(random.Random(f"{name} {seed}"), whole))
        problem = problem_of(path, tmp_path / str(seed), form)
        assert problem is None or (problem.startswith(str(path)) and "\n" not in problem), (
            f"{name} seed {seed}: {problem}"
        )
