"""The files that a request may read: those with known names, in plain folders of the store. Nothing else.

No component of such a path is a link: runs in the store may come from anywhere, and a link could lead anywhere.
"""

import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Final

from harness.campaign.calibration.document import CALIBRATION_FILE
from harness.campaign.calibration.shown import PAGE_FILE as PAGE_OF_CALIBRATION
from harness.campaign.document import SWEEP_FILE
from harness.campaign.page import PAGE_FILE as PAGE_OF_SWEEP
from harness.core.errors import HistoryError
from harness.record.documents import opened, read_plain, values_in
from harness.record.store import JOURNAL, RUN_FILE
from harness.report.model import REPORT_FILE

SERVED: Final = {
    REPORT_FILE: "application/json",
    RUN_FILE: "application/json",
    SWEEP_FILE: "application/json",
    "rows.jsonl": "application/jsonl",
    CALIBRATION_FILE: "application/json",
    "report.html": "text/html; charset=utf-8",
    PAGE_OF_SWEEP: "text/html; charset=utf-8",
    PAGE_OF_CALIBRATION: "text/html; charset=utf-8",
    "trace.html": "text/html; charset=utf-8",
    "junit.xml": "application/xml",
    "trace.jsonl": "application/jsonl",
    JOURNAL: "application/octet-stream",
}
SHOWN_MAX: Final = 8 << 20  # The most bytes of a document that a page is made from, and
VALUES_MAX: Final = 300_000  # the most values in it: more would take hundreds of megabytes.
_BLOCK: Final = 1 << 18


class NotThere(Exception):
    """The store has no file or folder of that name, or it must not be served."""


def folder_in(store: Path, *names: str) -> Path:
    """The folder at that path below the store. Raises NotThere unless each component is a plain folder."""
    if not all(_is_name(name) for name in names):
        raise NotThere("a name in this address is none that a folder of a store can have")
    path = store.joinpath(*names)
    try:
        is_plain = os.path.realpath(path, strict=True) == os.path.join(os.path.realpath(store), *names)
    except (OSError, ValueError):
        raise NotThere(f"the store has no {'/'.join(names)}") from None
    if not is_plain or not path.is_dir():
        raise NotThere(f"{'/'.join(names)} is a link or not a folder, and links are not followed")
    return path


def open_file(folder: Path, name: str) -> BufferedReader:
    """A file in a folder of the store, opened. Raises NotThere unless it is a plain file with a name in SERVED."""
    if name not in SERVED:
        raise NotThere(f"{folder.name} has no {name} that may be shown")
    try:
        return opened(folder / name)
    except HistoryError:
        raise NotThere(f"{folder.name} has no {name}, or it is no plain file, or cannot be read") from None


def require_small(path: Path) -> None:
    """Raise HistoryError unless a page can be made from that document in little memory. It may be missing."""
    if os.path.lexists(path):
        count = values_in(read_plain(path, most=SHOWN_MAX))
        if count > VALUES_MAX:
            raise HistoryError(f"{path.name} has some {count:,} values, and a page is made from up to {VALUES_MAX:,}")


def blocks_of(file: BufferedReader) -> Iterator[bytes]:
    """The content of a file, block by block. Closes the file at its end."""
    with file:
        while block := file.read(_BLOCK):
            yield block


def plain_folders(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """The folders in `folder`, in no order, without links. Empty if there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield entry
    except OSError:
        return


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not any(sign in name for sign in "/\\\0")
