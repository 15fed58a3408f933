"""Which attempt of which campaign a run in the store is, so that one whose row a kill prevented is found again."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from harness.core.errors import HistoryError
from harness.record.bounded import Count, Id
from harness.record.documents import decoded, read_plain
from harness.record.store import is_run, require_plain, write_atomically

ATTEMPT_FILE: Final = "attempt.json"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of the campaign with that id: cell, seed and attempt in a sweep, the number of the run in a hunt."""

    campaign: Id
    numbers: tuple[Count, ...]


def mark(run: Path, attempt: Attempt) -> None:
    """Write into the run's folder which attempt it is."""
    write_atomically(run / ATTEMPT_FILE, msgspec.json.encode(attempt) + b"\n")


def delivered(store: Path, tests: Iterable[str], campaign: str) -> Iterator[tuple[tuple[int, ...], Path]]:
    """The runs of a campaign in the store, below the folders `tests`, each with its numbers. Others are left out."""
    for test in dict.fromkeys(tests):
        for path in sorted((store / test).glob(f"*/{ATTEMPT_FILE}")):
            try:
                attempt = decoded(read_plain(path), Attempt)
                if attempt.campaign == campaign and is_run(path.parent):
                    require_plain(path.parent)
                    yield attempt.numbers, path.parent
            except (HistoryError, ValueError):
                continue
