"""One builder of images at a time on this machine: a lock in the temporary folder, where others may write too."""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.core.errors import DeployError

# Never through a link, and never blocking: other users may have left a link or a pipe in the folder.
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE: Final = 0o600


@contextmanager
def one_builder() -> Iterator[None]:
    """Hold the lock for building: of two harnesses that need the same image, one builds it, and the other waits.

    Raises DeployError if the lock's path holds a link, or a file that is not ours.
    """
    lock = _opened(Path(tempfile.gettempdir()) / f"seamark-images-{os.getuid()}.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    """The descriptor of our own plain file at that path, created if missing. Its content is kept."""
    try:
        lock = os.open(path, _FLAGS, _MODE)
    except OSError as error:
        reason = "it is a link" if path.is_symlink() else error.strerror
        raise _refused(path, str(reason)) from error
    found = os.fstat(lock)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_nlink > 1:
        os.close(lock)
        raise _refused(path, "it is no plain file of your own")
    return lock


def _refused(path: Path, reason: str) -> DeployError:
    return DeployError(f"the lock {path} is refused: {reason}; remove it, or set TMPDIR to another folder")
