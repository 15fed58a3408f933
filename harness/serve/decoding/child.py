"""A process that decodes records. Started by Worker, as `python -m harness.serve.decoding.NAME DESCRIPTOR BYTES`.

DESCRIPTOR is the end of a connection: requests come from it, one at a time, and answers go to it. The process ends when
the other end is closed: a thread waits for that, so that a long request outlives no server. It also ends when a request
takes more than BYTES of memory.
"""

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

import msgspec

from harness.report.trouble import in_one_line
from harness.serve.decoding.requests import OUT_OF_MEMORY, Answer, Refused

R = TypeVar("R")

RECORD_MAX: Final = 256 << 10  # The most bytes of a record that is counted: larger ones take too much memory.


def answer_all(answered: Callable[[R], Answer], kind: type[R]) -> None:
    """Answer requests of that type until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal: the server ends us.
    connection, requests = Connection(int(sys.argv[1])), SimpleQueue[bytes]()
    Thread(target=_receive, args=(connection, requests), daemon=True).start()
    _limit_memory(int(sys.argv[2]))
    os.nice(5)  # On a busy machine, the server's other pages come first.
    gc.freeze()
    gc.disable()  # Records hold no cycles, and to search a million values for them takes longer than to decode them.
    while True:
        request = msgspec.json.decode(requests.get(), type=kind)
        try:
            answer = answered(request)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except Exception as error:  # noqa: BLE001  One request fails, and the next is answered.
            answer = Refused(in_one_line(error))
        connection.send_bytes(msgspec.json.encode(answer))
        gc.collect()


def _receive(connection: "Connection[Any, Any]", requests: SimpleQueue[bytes]) -> None:
    """Take requests from the connection; end the process when its other end is closed."""
    try:
        while True:
            requests.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _limit_memory(more: int) -> None:
    """Allow this process `more` bytes of data than it has now."""
    if sys.platform == "linux":  # Elsewhere the limit does not count what an allocator maps.
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (held + more, held + more))
