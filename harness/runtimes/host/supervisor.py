"""The first process of a container: it loads the code once, and forks one child for each life of the node.

A child that has ended is started again: after the time that it requested, else after one second, as a service manager
would do. SIGTERM and SIGINT end child and supervisor.
"""

import gc
import os
import select
import signal
import struct
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

_AFTER: Final = struct.Struct(">Q")  # Nanoseconds until the next life.
_RESTART_S: Final = 1.0
_CHILD_FAILED: Final = 70
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def supervise(live: Callable[[Callable[[int, int | None], None]], None]) -> NoReturn:
    """Run `live(leave)` in one child after the other. `leave(exit code, after_ns)` ends the child immediately."""
    child = 0

    def stop(number: int, _: FrameType | None) -> None:
        if child:
            os.kill(child, signal.SIGKILL)
        os._exit(128 + number)

    for number in _SIGNALS:
        signal.signal(number, stop)
    gc.freeze()  # Objects loaded before the fork are never garbage in any life.
    while True:
        reading, writing = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        child = os.fork()
        if child == 0:
            os.close(reading)
            _be_child(live, writing)
        os.close(writing)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        status = _await(child)
        child = 0
        answer = os.read(reading, _AFTER.size)
        os.close(reading)
        if len(answer) == _AFTER.size:
            _wait(_AFTER.unpack(answer)[0] / 1e9)
        else:
            print(f"the node's process ended with {_reason(status)}", file=sys.stderr, flush=True)  # noqa: T201
            _wait(_RESTART_S)


def _wait(duration_s: float) -> None:
    """Wait for that time. `time.sleep` fails with EINVAL where libfaketime is loaded."""
    select.select([], [], [], duration_s)


def _be_child(live: Callable[[Callable[[int, int | None], None]], None], writing: int) -> NoReturn:
    def leave(code: int, after_ns: int | None) -> None:
        if after_ns is not None:
            os.write(writing, _AFTER.pack(max(0, after_ns)))
        os._exit(code)

    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    try:
        live(leave)
    except BaseException as error:  # noqa: BLE001  No exception of a child may reach the supervisor's code.
        print(f"the node's process: {error!r}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(_CHILD_FAILED)


def _await(child: int) -> int:
    """The exit status of the child. Other children, inherited by the first process, are reaped too."""
    while True:
        ended, status = os.wait()
        if ended == child:
            return status


def _reason(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {-code}" if code < 0 else f"exit code {code}"
