"""Standard output and error that do not change an exit code when their reader closes them or a disk is full.

A reader that has gone, as `head` does, is no fault, and certainly no finding: libraries would exit with 1 for it.
"""

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, Final, TextIO

from harness.core.errors import SeamarkError

_NUMBERS: Final = (0, 1, 2)


class _Lasting(FileIO):
    """A stream that outlives its reader. Any other failure to write is an error, if the stream is `vital`."""

    def __init__(self, number: int, *, is_vital: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._is_vital = is_vital

    def write(self, content: Any, /) -> int:  # Any bytes-like object.
        try:
            return super().write(content)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
        except OSError as error:
            if self._is_vital:
                raise SeamarkError(f"standard output cannot be written ({error.strerror})") from None
        return memoryview(content).nbytes


def use_lasting_streams() -> None:
    """Make this process write through such streams.

    A closed stream leads to /dev/null, not into the next opened file.
    """
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # The opened file gets the lowest free descriptor.
    sys.stdout = _lasting(sys.stdout, 1, is_vital=True)
    sys.stderr = _lasting(sys.stderr, 2, is_vital=False)


def _lasting(before: TextIO | None, number: int, *, is_vital: bool) -> TextIOWrapper:
    return TextIOWrapper(
        BufferedWriter(_Lasting(number, is_vital=is_vital)),
        encoding=before.encoding if before is not None else "utf-8",
        errors=before.errors if before is not None else "backslashreplace",
        line_buffering=not is_vital or os.isatty(number),
    )
