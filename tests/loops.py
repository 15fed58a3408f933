"""Loop devices with a file, and the processes that hold them open, whoever else uses such devices meanwhile."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def held_by(process: int | str) -> set[str]:
    """The loop devices that the process holds open, as "loop0"."""
    return {path.name for path in _opened(process) if path.parts[:2] == ("/", "dev") and path.name.startswith("loop")}


def abandoned() -> set[str]:
    """The loop devices with a file that no process holds open: a harness does so until it has removed its disks."""
    with_file = {path.parts[3] for path in Path("/sys/block").glob("loop*/loop/backing_file")}
    return with_file.difference(*map(held_by, filter(str.isdigit, os.listdir("/proc"))))


def _opened(process: int | str) -> Iterator[Path]:
    with suppress(OSError):  # It has ended.
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                yield link.readlink()
