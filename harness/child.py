"""What all child processes that carry runs out have in common: they die with the harness, and end with one line."""

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

PR_SET_PDEATHSIG = 1
OWN_MODULE = "seamark_own_"  # How the names of modules begin that were loaded from a file of one's own.


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """A harness that was killed must not leave a run going on: it gets that signal when it is."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() == 1:
            sys.exit("the harness died before its run began")


def end_with(carry_out: Callable[[], int]) -> NoReturn:
    """Exit with what `carry_out` returns, or with 4 and, as the last line on standard error, why it could not."""
    try:
        code = carry_out()
    except Exception as error:  # noqa: BLE001  The outermost handler: one line for people, the rest for the log.
        cause = _first_cause(error)
        with contextlib.suppress(OSError):  # The log is a file in the store, which may be full.
            traceback.print_exc()
            line = f"{type(cause).__name__}: {' '.join(str(cause).split())}{_place_in_own_file(cause)}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201  Its only voice.
        os._exit(4)  # At once: the tasks that are left would complain of their end, and have the last word.
    sys.exit(code)


def _place_in_own_file(error: BaseException) -> str:
    """Where in a file of one's own it was raised, or what it had called; nothing if the error came by no such file."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).startswith(OWN_MODULE)
    ]
    return f" (at {frames[-1][0]}:{frames[-1][1]})" if frames else ""


def _first_cause(error: BaseException) -> BaseException:
    """What a group of exceptions is about."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
