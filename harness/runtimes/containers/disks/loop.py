"""A separate file system for a node: ext4 on a loop device, whose file has no name.

The device frees itself when both let go: the harness, which holds it open between two
mounts, and the engine, which mounts it while the node's container runs. So after SIGKILL of the harness, the removal of
the container (`seamark clean`) removes mount and device. Linux: loop(4), its flag LO_FLAGS_AUTOCLEAR; the numbers are
from linux/loop.h.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Self

from harness.core.errors import DeployError

MB: Final = 1 << 20
_CONTROL: Final = Path("/dev/loop-control")
_GET_FREE, _CONFIGURE = 0x4C82, 0x4C0A
_AUTOCLEAR: Final = 4
_CONFIG: Final = struct.Struct("=II 5Q 4I 64s 64s 32s 2Q 64x")  # loop_config, with its loop_info64.
_ATTEMPTS: Final = 20  # Another harness may take the device that the kernel has just named as free.
_PROGRAMS: Final = ("mke2fs", "debugfs")


def obstacle() -> str | None:
    """The reason, in one line, why this machine cannot make such a disk; None if it can."""
    if os.geteuid() != 0:
        return "power: a node needs a separate disk on a loop device, and only root can make one"
    if not os.access(_CONTROL, os.R_OK | os.W_OK):
        return f"power: a node needs a separate disk on a loop device, and there is no {_CONTROL} here"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"power: a node needs a separate file system: install e2fsprogs, as {missing[0]} is missing"
    return None


class LoopDisk:
    """An empty ext4 file system of that size, on a device that this process holds until `release`."""

    def __init__(self, size_mb: int) -> None:
        reason = obstacle()
        if reason is not None:
            raise DeployError(f"{reason}; choose other faults by --nemesis")
        self._device, self.path = _attached(size_mb * MB)
        try:
            self.format()
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def number(self) -> int:
        """The number of its device, as `st_dev` of its files gives it."""
        return os.fstat(self._device).st_rdev

    def format(self) -> None:
        """Make its file system anew, without a file. It must not be mounted."""
        _run("mke2fs", "-q", "-F", "-t", "ext4", "-E", "nodiscard", self.path)
        # An engine fills an empty volume from the image's folder, with its owner. This folder would be in the way.
        _run("debugfs", "-w", "-R", "rmdir lost+found", self.path)

    def release(self) -> None:
        """Let go. Once it is mounted nowhere, device and content are gone."""
        if self._device >= 0:
            os.close(self._device)
        self._device = -1


def _attached(size: int) -> tuple[int, str]:
    """A device with a new file of that size: its descriptor and its path. Raises DeployError."""
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        config = _CONFIG.pack(file.fileno(), 0, *(0,) * 5, 0, 0, 0, _AUTOCLEAR, b"", b"seamark", b"", 0, 0)
        reason: OSError | None = None
        for _ in range(_ATTEMPTS):
            try:
                with _CONTROL.open("rb") as control:
                    path = f"/dev/loop{fcntl.ioctl(control, _GET_FREE)}"
                device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise DeployError(f"no loop device for a node's disk: {error}") from error
            try:
                fcntl.ioctl(device, _CONFIGURE, config)
            except OSError as error:
                os.close(device)
                reason = error
            else:
                return device, path
    raise DeployError(f"no loop device for a node's disk: {reason}")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  Our own arguments.
    if done.returncode != 0:
        raise DeployError(f"{' '.join(command)} exited with {done.returncode}: {' '.join(done.stderr.split())}")
