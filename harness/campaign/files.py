"""The files of an ended sweep in its folder: sweep.json for programs, the page for people, junit.xml for CI."""

from collections.abc import Sequence
from typing import Final

from harness.campaign.document import SWEEP_FILE, Sweep, sweep_to_json
from harness.campaign.rows import Row
from harness.campaign.sweep import Begun
from harness.record.store import write_atomically

PAGE_FILE: Final = "page.html"


def store_sweep(begun: Begun, sweep: Sweep, rows: Sequence[Row]) -> None:
    """Write the files of a sweep. Raises StoreFull if the disk takes no more."""
    write_atomically(begun.folder / SWEEP_FILE, sweep_to_json(sweep))
