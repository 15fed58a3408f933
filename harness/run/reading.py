"""How much of a large file has been read, and the time left: readers of all formats report nothing themselves."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

LARGE: Final = 8 << 20  # Bytes; a smaller file is read within a second or two.
EVERY_S: Final = 0.5
_OPEN: Final = Path("/proc/self/fd")
_STATE: Final = Path("/proc/self/fdinfo")


@contextmanager
def reading(path: Path, tell: Callable[[str], None] | None) -> Iterator[None]:
    """Tell that the file is being read, and while the context lasts the share of a large one and the time left."""
    if tell is None:
        yield
        return
    tell(f"reading {path.name}")
    is_over = Event()
    thread = Thread(target=_follow, args=(path, tell, is_over), name="reading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _follow(path: Path, tell: Callable[[str], None], is_over: Event) -> None:
    started_s = time.monotonic()
    with suppress(OSError):  # A folder, or a file that is gone: then there is no share to show.
        size = path.stat().st_size if path.is_file() else 0
        while size >= LARGE and not is_over.wait(EVERY_S):
            share = offset_of(path) / size
            if 0 < share < 1:
                left_s = (time.monotonic() - started_s) * (1 - share) / share
                tell(f"reading {path.name}: {share:.0%}, about {left_s:.0f} s left")


def offset_of(path: Path) -> int:
    """The offset in bytes up to which this process has read an open file; 0 if it is not open, or without /proc."""
    place = os.path.realpath(path)
    with suppress(OSError), os.scandir(_OPEN) as entries:
        for entry in entries:
            with suppress(OSError):  # Closed since.
                if os.readlink(entry.path) == place:
                    return int((_STATE / entry.name).read_text().split()[1])
    return 0
