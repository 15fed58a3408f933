"""The server's end of a process that decodes records: started when needed, and ended when it misses a limit."""

import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec
from anyio import CapacityLimiter

from harness.core.errors import HistoryError, SeamarkError
from harness.serve.decoding.requests import OUT_OF_MEMORY, Answer, Refused, Request

FOLLOWER: Final = ("-P", "-m", "harness.serve.decoding.follower")
CUTTER: Final = ("-P", "-m", "harness.serve.decoding.cutter")
MEMORY_MIB: Final = 96  # For the values of one request.


class OverLimit(SeamarkError):
    """A request missed its limit of time or memory, and its process was ended."""


class Child(NamedTuple):
    """A process that decodes records, and our end of the connection to it."""

    process: subprocess.Popen[bytes]
    connection: "Connection[Any, Any]"


class Worker:
    """A process that answers one request at a time, each within `seconds` and with `memory_mib` more than at its start.

    It ends with the server, however the server ends. Callers wait for their turn at `turns`.
    """

    def __init__(self, command: tuple[str, ...], seconds: float, memory_mib: int = MEMORY_MIB) -> None:
        self.turns = CapacityLimiter(1)
        self._seconds, self._memory_mib, self._command = seconds, memory_mib, command
        self._lock = Lock()
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        return None if self._child is None else self._child.process.pid

    def ask(self, request: Request) -> Answer:
        """The answer to a request.

        Raises HistoryError if the run cannot be decoded, OverLimit if that takes too much time or memory.
        """
        with self._lock:
            child = self._child = self._child or self._started()
            try:
                child.connection.send_bytes(msgspec.json.encode(request))
                if not child.connection.poll(self._seconds):
                    raise OverLimit(f"to decode its records takes more than {self._seconds:g} s")
                answer: Answer = msgspec.json.decode(child.connection.recv_bytes(), type=Answer)
            except BaseException as error:
                code = self._ended(child)
                if isinstance(error, EOFError | OSError):
                    raise OverLimit(self._reason(code)) from None
                raise
        if isinstance(answer, Refused):
            raise HistoryError(answer.why)
        return answer

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._child is not None:
                self._ended(self._child)

    def _started(self) -> Child:
        ours, theirs = Pipe()
        with theirs:
            command = [sys.executable, *self._command, str(theirs.fileno()), str(self._memory_mib << 20)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),))  # noqa: S603  Our own interpreter and module.
        return Child(process, ours)

    def _ended(self, child: Child) -> int:
        """End the process; returns its exit code, -9 if it was still running."""
        self._child = None
        child.connection.close()
        child.process.kill()
        return child.process.wait()

    def _reason(self, code: int) -> str:
        if code == OUT_OF_MEMORY:
            return f"to decode its records takes more than {self._memory_mib} MiB of memory"
        return f"the process that decoded its records ended with code {code}"
