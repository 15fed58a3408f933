"""The loss of power, as a node's file system sees it; and the two files that show what was lost.

The ioctl EXT4_IOC_SHUTDOWN ends a mounted file system at once: no write reaches the disk any more. With its second flag
not even the journal is flushed, so that what was not synced is gone; with the first the journal is, so that names and
sizes stay whose content is lost. The server is frozen meanwhile, and killed before it can answer.
"""

import fcntl
import os
import struct
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from harness.core.errors import DeployError

_SHUTDOWN: Final = 0x8004587D
_FLUSHING_THE_JOURNAL, _AT_ONCE = 1, 2
SYNCED, UNSYNCED = ".seamark-synced", ".seamark-unsynced"
_TEXT: Final = b"seamark wrote this just before the power failed\n"


class Canaries(NamedTuple):
    """Which of the two files has its content."""

    synced: bool
    unsynced: bool


def sync(folder: Path) -> None:
    """Sync the whole file system of that folder. Raises DeployError."""
    done = subprocess.run(["sync", "-f", str(folder)], capture_output=True, text=True, check=False)  # noqa: S603, S607
    if done.returncode != 0:
        raise DeployError(f"sync -f {folder} exited with {done.returncode}: {done.stderr.strip()}")


def fail(folder: Path, device: int, *, is_torn: bool) -> None:
    """Write both canaries into that folder, and end its file system, which must be on the device of that number.

    Raises OSError, DeployError.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if os.fstat(opened).st_dev != device:
            raise DeployError(f"{folder} is not on the node's own disk, and was left alone")
        for name in (SYNCED, UNSYNCED):
            if name in os.listdir(opened):
                os.unlink(name, dir_fd=opened)
        # The synced file first: to sync it commits the journal, and with it what was there before.
        _write(opened, SYNCED, is_synced=True)
        _write(opened, UNSYNCED, is_synced=False)
        fcntl.ioctl(opened, _SHUTDOWN, struct.pack("=I", _FLUSHING_THE_JOURNAL if is_torn else _AT_ONCE))
    finally:
        os.close(opened)


def found(folder: Path) -> Canaries:
    """The canaries that are there after the start."""
    return Canaries(
        *((folder / name).is_file() and (folder / name).read_bytes() == _TEXT for name in (SYNCED, UNSYNCED))
    )


def found_on(device: str) -> Canaries:
    """The canaries on a disk that is mounted nowhere. Raises DeployError if no start has read its journal yet."""
    if b"needs_recovery" in _debugged(device, "show_super_stats -h"):
        raise DeployError(f"{device} has not been mounted since the power failed")
    return Canaries(*(_debugged(device, f"cat /{name}") == _TEXT for name in (SYNCED, UNSYNCED)))


def _debugged(device: str, request: str) -> bytes:
    return subprocess.run(["debugfs", "-R", request, device], capture_output=True, check=False).stdout  # noqa: S603, S607


def _write(folder: int, name: str, *, is_synced: bool) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        os.write(file, _TEXT)
        if is_synced:
            os.fsync(file)
            os.fsync(folder)
    finally:
        os.close(file)
