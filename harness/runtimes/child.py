"""Shared by all child processes that carry out runs: they report failure in one line."""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from harness.scenario.registry import place_in_own_file

NOTE = "note: "  # The beginning of a log line that the harness shows to its user.


def note(text: str) -> None:
    """Show a line to the harness's user, through the log."""
    with contextlib.suppress(OSError):  # The log is a file in the store, which may be full.
        print(f"{NOTE}{' '.join(text.split())}", file=sys.stderr, flush=True)  # noqa: T201  The log.


def end_with(carry_out: Callable[[], int]) -> NoReturn:
    """Exit with the result of `carry_out`.

    If it raises, exit with 4; the last line on standard error gives the reason.
    """
    try:
        code = carry_out()
    except Exception as error:  # noqa: BLE001  The outermost handler: one line for people, the rest for the log.
        cause = first_cause(error)
        with contextlib.suppress(OSError):  # The log is a file in the store, which may be full.
            traceback.print_exc()
            place = place_in_own_file(cause)
            line = f"{type(cause).__name__}: {' '.join(str(cause).split())}"
            print(line if place is None else f"{line} (at {place})", file=sys.stderr, flush=True)  # noqa: T201  The only output.
        os._exit(4)  # At once: the remaining tasks would report their cancellation after our last line.
    sys.exit(code)


def first_cause(error: BaseException) -> BaseException:
    """The first exception inside a group of exceptions."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
