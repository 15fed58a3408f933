"""Errors of the harness, and of a user's own code, in one line. The details go to a log, never to the terminal."""

import os
import traceback
from pathlib import Path
from typing import Final

from harness.core.errors import SeamarkError

ERROR_LOG: Final = Path("store") / "seamark-error.log"  # For errors outside any run.
RUN_LOG: Final = Path("logs") / "harness.log"  # The log in a run's folder.
LINE_MAX: Final = 300  # The most characters of a foreign message: Java's contain a stack trace.


def in_one_line(error: BaseException, log: Path = ERROR_LOG) -> str:
    """The error in one line.

    An error of ours is complete. For any other, the traceback is added to `log`, and the line names that file, and the
    place in the user's own file that raised the error, or called what raised it.
    """
    text = " ".join(str(error).split())
    if isinstance(error, SeamarkError):
        return text
    shown = text if len(text) <= LINE_MAX else f"{text[:LINE_MAX]} ..."
    from harness.scenario.registry import place_in_own_file  # noqa: PLC0415  Few commands load a user's own file.

    place = place_in_own_file(error)
    fault = "a fault of the harness" if place is None else f"a fault in your file, at {place}"
    return f"{type(error).__name__}: {shown} ({fault}; {_kept(error, log)})"


def _kept(error: BaseException, log: Path) -> str:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
            if os.fstat(file.fileno()).st_nlink > 1:
                return f"its details were not written to {log}, which is a link to another file"
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return f"its details could not be written to {log}"
    return f"details in {log}"
