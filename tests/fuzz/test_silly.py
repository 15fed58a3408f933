"""Sound files with silly contents: each is judged as what it says, or refused by a HistoryError.

What is accepted must not have changed on its way: the hash of the Parquet files is that of the journal.
"""

import shutil
from pathlib import Path
from random import Random

from harness.record.formats.load import load
from harness.record.formats.parquet.parquet import records_of, write_history
from harness.record.journal import history_sha256, read_journal
from tests.amount import FIRST_SEED
from tests.fuzz.silly import silly_journal, silly_parquet
from tests.worlds.spoiled_files import COUNT, history, is_read


def test_a_silly_journal_is_refused_or_keeps_its_hash(tmp_path: Path) -> None:
    accepted = 0
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        random = Random(seed)
        path, work = tmp_path / f"{seed}.log", tmp_path / f"work-{seed}"
        silly_journal([*history(random)], path, random)
        if is_read(path, work, seed):
            accepted += 1
            found = history_sha256(records_of(load(path, work).history))
            assert found == history_sha256(read_journal(path)), f"seed {seed}"
        shutil.rmtree(work, ignore_errors=True)
    print(f"seeds from {FIRST_SEED}: {accepted} of {COUNT} accepted")
    assert 0 < accepted < COUNT


def test_a_silly_parquet_file_is_refused_or_judged(tmp_path: Path) -> None:
    accepted = 0
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        random = Random(seed)
        folder = tmp_path / f"history-{seed}"
        write_history(history(random), folder)
        silly_parquet(folder, random)
        accepted += is_read(folder, folder, seed)
        shutil.rmtree(folder)
    print(f"seeds from {FIRST_SEED}: {accepted} of {COUNT} accepted")
    assert 0 < accepted < COUNT
