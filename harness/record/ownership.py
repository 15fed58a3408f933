"""Owners of temporary files and containers, encoded in names, so that leftovers of a dead harness are recognized.

A process is identified by its boot, its number and its start time, because numbers are reused, all of them after a
reboot. `host` distinguishes machines that share one engine, and containers that share one machine.
"""

import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

LOGS_OF_BUILDS = "build"  # Logs kept after a failure. `seamark clean` or the next run removes them.
_TEMPORARY = re.compile(r"\.?seamark-[a-z.]+-([0-9a-f]{8})-([0-9a-f]{8}|none)-(\d+)-(\d+)-")


class Fate(Enum):
    """The state of an owner. Only files of a GONE owner may be removed without a request."""

    ALIVE = "alive"
    GONE = "gone"
    ELSEWHERE = "elsewhere"  # On another machine, or a process that cannot be seen from here.


class Owner(Struct, frozen=True, kw_only=True):
    """A process on some machine."""

    host: str
    boot: str
    pid: int
    start: int  # In clock ticks since boot: field 22 of /proc/PID/stat.

    def fate(self) -> Fate:
        """The owner's state, as far as this process can see."""
        if self.host != host_id():
            return Fate.ELSEWHERE
        is_alive = self.boot == boot_id() and self.start == start_of(self.pid)
        return Fate.ALIVE if is_alive else Fate.GONE


def this_process() -> Owner:
    """The owner for this process."""
    return Owner(host=host_id(), boot=boot_id(), pid=os.getpid(), start=start_of(os.getpid()) or 0)


def host_id() -> str:
    """The scope in which process numbers are unique: a machine's name, and its process namespace."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        namespace = 0
    return f"{socket.gethostname()}/{namespace}"


def boot_id() -> str:
    """The id that the kernel draws at each boot; "none" if there is no such id."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "none"


def start_of(pid: int) -> int | None:
    """The start time of a process, in ticks since boot; None if it does not exist, or is dead and not yet reaped."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return _start_without_proc(pid)
    except OSError:
        return None
    fields = line[line.rindex(")") + 2 :].split()  # The name of the program before it may contain spaces and brackets.
    return None if fields[0] in "ZX" else int(fields[19])


def _start_without_proc(pid: int) -> int | None:
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0


@contextmanager
def temporary_folder(purpose: str, beside: Path | None = None) -> Iterator[Path]:
    """A new folder, removed on exit: in the machine's temporary folder, or in `beside`.

    Leftovers of dead processes in the same place are removed first, except logs of failed builds.
    """
    place = Path(tempfile.gettempdir()) if beside is None else beside
    remove_left_behind(place, kept=LOGS_OF_BUILDS)
    prefix = temporary_prefix(purpose) if beside is None else f".{temporary_prefix(purpose)}"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def temporary_name(purpose: str) -> str:
    """A unique name for a temporary file or folder, which encodes its owner."""
    return f".{temporary_prefix(purpose)}{os.urandom(4).hex()}"


def remove_left_behind(place: Path, *, kept: str | None = None) -> tuple[Path, ...]:
    """Remove this user's temporary files and folders in `place` whose owners are dead; returns those removed.

    Those made for the purpose `kept` stay.
    """
    removed = []
    for path in files_left_behind(place):
        if kept is not None and path.name.lstrip(".").startswith(f"seamark-{kept}-"):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()
        if not path.exists():
            removed.append(path)
    return tuple(removed)


def files_left_behind(place: Path) -> tuple[Path, ...]:
    """This user's temporary files and folders in `place` whose owners are dead."""
    try:
        names = sorted(name for name in os.listdir(place) if temporary_fate(name) is Fate.GONE)
    except OSError:
        return ()
    return tuple(place / name for name in names if _is_own(place / name))


def _is_own(path: Path) -> bool:
    try:
        found = path.lstat()
    except FileNotFoundError:  # Another process removed it.
        return False
    return (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)) and found.st_uid == os.getuid()


def temporary_prefix(purpose: str) -> str:
    """The prefix for names of temporary files and folders of this process, which encodes the owner."""
    owner = this_process()
    return f"seamark-{purpose}-{_short(owner.host)}-{owner.boot[:8]}-{owner.pid}-{owner.start}-"


def temporary_fate(name: str) -> Fate:
    """The state of a temporary file's owner; ELSEWHERE if the name is not of our form."""
    match = _TEMPORARY.match(name)
    if match is None:
        return Fate.ELSEWHERE
    host, boot, pid, start = match.groups()
    if host != _short(host_id()):
        return Fate.ELSEWHERE
    is_alive = boot == boot_id()[:8] and start_of(int(pid)) == int(start)
    return Fate.ALIVE if is_alive else Fate.GONE


def temporary_pid(name: str) -> int | None:
    """The number of the process that owns a temporary file; None if the name is not of our form."""
    match = _TEMPORARY.match(name)
    return None if match is None else int(match[3])


def _short(host: str) -> str:
    return blake2b(host.encode(), digest_size=4).hexdigest()
