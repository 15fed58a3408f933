"""Legal streams of Debezium, CockroachDB and etcd raise no alarm, and what is changed in them is found.

SEAMARK_FUZZ_COUNT is the number of streams of each kind, SEAMARK_FUZZ_SEED the first seed. `python -m
tests.bench.public_streams` prints a table of the same.
"""

from pathlib import Path

import pytest

from tests.amount import FIRST_SEED, count
from tests.bench.public_streams import changes, legal
from tests.worlds.streams.public import STREAMS

COUNT = count(4)


@pytest.mark.parametrize("kind", STREAMS)
def test_a_legal_stream_raises_no_alarm_and_is_judged(kind: str, tmp_path: Path) -> None:
    verdicts = legal(kind, COUNT, tmp_path, FIRST_SEED)
    assert verdicts["invalid"] == verdicts["error"] == 0, f"{kind}, seeds from {FIRST_SEED}: {verdicts}"
    assert (verdicts["vacuous"] + verdicts["unknown"]) * 20 <= COUNT, f"{kind}, seeds from {FIRST_SEED}: {verdicts}"


@pytest.mark.parametrize("kind", STREAMS)
def test_a_change_is_found_or_makes_another_legal_stream(kind: str, tmp_path: Path) -> None:
    outcomes = changes(kind, COUNT, tmp_path, FIRST_SEED)
    assert outcomes["missed"] == outcomes["FALSE ALARM"] == 0, f"{kind}, seeds from {FIRST_SEED}: {outcomes}"
