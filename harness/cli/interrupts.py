"""SIGTERM and Ctrl-C end a command by a KeyboardInterrupt, at a point that can bear one.

An exception raised in the import system of Python leaves its locks held, so that every later import of any thread waits
for ever; one raised in a finalizer or in the callback of a weak reference is printed and forgotten. So the interrupt
waits until no import is at work in the main thread, and comes again if it was forgotten.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_S: Final = 0.01
_PATIENCE_S: Final = 3.0  # A module that computes for ever while it is imported must end, too.
_TERMINATED: list[int] = []  # The SIGTERMs received; the first one ends the command.


def is_terminated() -> bool:
    """Whether SIGTERM, and not Ctrl-C, has ended the command."""
    return bool(_TERMINATED)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM end what is in this context as Ctrl-C does, once: a second one does not disturb the clean-up.

    Uses SIGALRM. Where Ctrl-C is ignored, as in the background of a shell, it stays ignored.
    """
    since: list[float] = []  # When an interrupt began to wait for the end of an import.

    def on_signal(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            _TERMINATED.append(number)
            if len(_TERMINATED) > 1:
                return
            os.write(2, b"seamark: SIGTERM: stopping, and removing what was started\n")  # A handler must not print.
        if _is_importing(frame):
            since.append(time.monotonic())
            if since[-1] - since[0] < _PATIENCE_S:
                signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
                return
        since.clear()
        raise KeyboardInterrupt

    def on_unraisable(unraisable: "UnraisableHookArgs") -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook(unraisable)

    _TERMINATED.clear()
    numbers = [signal.SIGTERM, signal.SIGALRM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = [(number, signal.signal(number, on_signal)) for number in numbers]
    hook, sys.unraisablehook = sys.unraisablehook, on_unraisable
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        for number, handler in before:
            signal.signal(number, handler)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether the import system is among the callers of a frame."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
