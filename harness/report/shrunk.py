"""shrunk.json, in the folder of a run that `seamark shrink` made: which run it was made from, and how much is left."""

import os
from pathlib import Path
from typing import Final

import msgspec

from harness.core.errors import HistoryError
from harness.record.documents import read_document

SHRUNK_FILE: Final = "shrunk.json"
SHRUNK_SCHEMA: Final = 1


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The `run` that a shrunk one was made from. `sizes`: of each measure, the number before and after."""

    schema: int = SHRUNK_SCHEMA
    run: str
    tries: int
    sizes: dict[str, tuple[float, float]]

    def __str__(self) -> str:
        """How much is left: "1 of 13 fault steps, 2 of 253 operations"."""
        return ", ".join(f"{after:,g} of {before:,g} {what}" for what, (before, after) in self.sizes.items())


def origin_of(run: str | None) -> Origin | None:
    """The origin of a shrunk run; None of any other run, or if the file cannot be read: no verdict rests on it."""
    if run is None or not is_shrunk(run):
        return None
    try:
        return read_document(Path(run) / SHRUNK_FILE, Origin, "the output of seamark shrink", SHRUNK_SCHEMA)
    except HistoryError:
        return None


def is_shrunk(run: str) -> bool:
    """True if `seamark shrink` has made this run."""
    return os.path.isfile(os.path.join(run, SHRUNK_FILE))  # Path's raises for a name that is too long.
