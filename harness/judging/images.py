"""The images that a run in containers tested, from the first lines of its nodes' logs."""

import re
from pathlib import Path
from typing import Final

from harness.core.errors import HistoryError
from harness.record.documents import opened
from harness.record.store import LOGS, RunFile, sut_in

FIRST_LINE_MAX: Final = 1_000  # Bytes.
OURS: Final = "seamark-node:"  # It holds the machines of a model, and no system.
_LINE: Final = re.compile(r"image: (\S+)(?: \(of no registry; its id is (\S+)\))?")


def declared_or_seen(run_file: RunFile, run: Path) -> dict[str, str]:
    """The release of the system under test: as declared, with the images that ran if none is declared."""
    declared = sut_in(run_file)
    seen = images_of(run) if run_file.runtime == "docker" and "image" not in declared else None
    return declared if seen is None else declared | {"image": seen}


def images_of(run: Path) -> str | None:
    """The images of a run's nodes, each with its digest or id: "redis@sha256:..."; None if no log names one."""
    found = dict[str, None]()
    for log in sorted((run / LOGS).glob("*.log")):
        try:
            with opened(log) as file:
                line = file.readline(FIRST_LINE_MAX).decode("utf-8", "replace")
        except (HistoryError, OSError):
            continue
        match = _LINE.match(line)
        if match is not None and not match[1].startswith(OURS):
            found.setdefault(match[1] if match[2] is None else f"{match[1]}@{match[2]}")
    return ", ".join(found) or None
