"""The process that decodes records. Started by Worker, as `python -m harness.serve.decoding.child DESCRIPTOR BYTES`.

DESCRIPTOR is the end of a connection: requests come from it, one at a time, and answers go to it. The process ends when
the other end is closed: a thread waits for that, so that a long request outlives no server. It also ends when a request
takes more than BYTES of memory.
"""

import gc
import os
import resource
import signal
import sys
from collections import OrderedDict
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import msgspec

from harness.record.store import JOURNAL
from harness.report.screen import visible
from harness.report.trouble import in_one_line
from harness.run.live import LiveLine, Progress
from harness.serve.decoding.requests import (
    OUT_OF_MEMORY,
    WATCHERS_MAX,
    Answer,
    Cut,
    Done,
    Refused,
    Request,
    Seen,
    Shown,
)
from harness.serve.decoding.slices import write_slice

RECORD_MAX: Final = 256 << 10  # The most bytes of a record that is counted: larger ones take too much memory.


def main() -> None:
    """Answer requests until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal: the server ends us.
    connection, requests = Connection(int(sys.argv[1])), SimpleQueue[bytes]()
    Thread(target=_receive, args=(connection, requests), daemon=True).start()
    _limit_memory(int(sys.argv[2]))
    os.nice(5)  # On a busy machine, the server's other pages come first.
    gc.freeze()
    gc.disable()  # Records hold no cycles, and to search a million values for them takes longer than to decode them.
    lines = OrderedDict[int, LiveLine]()
    while True:
        request: Request = msgspec.json.decode(requests.get(), type=Request)
        try:
            answer = answered(request, lines)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except Exception as error:  # noqa: BLE001  One request fails, and the next is answered.
            answer = Refused(in_one_line(error))
        connection.send_bytes(msgspec.json.encode(answer))
        gc.collect()


def answered(request: Request, lines: OrderedDict[int, LiveLine]) -> Answer:
    """The answer. `lines` are the states of the runs that are watched, by watcher; the one used last is at the end."""
    if isinstance(request, Cut):
        write_slice(Path(request.run), request.form, request.wanted, Path(request.path))
        return Done()
    line = lines.pop(request.watcher, None) or LiveLine(Path(request.run, JOURNAL), RECORD_MAX)
    lines[request.watcher] = line
    while len(lines) > WATCHERS_MAX:
        lines.popitem(last=False)
    return Seen(is_more=line.step(), shown=shown(line.progress()))


def shown(now: Progress) -> Shown:
    """The state of a run as texts."""
    return Shown(
        elapsed=f"{now.elapsed_s:.1f} s",
        phase=visible(now.phase or "starting"),
        ok=f"{now.counts['ok']:,}",
        fail=f"{now.counts['fail']:,}",
        unknown=f"{now.counts['info']:,}",
        per_s="–" if now.per_s is None else f"{now.per_s:,.0f}",
        faults=visible(", ".join(now.faults))[:200] or "none",
        slowest="–" if now.slowest is None else visible(f"{now.slowest[0][:80]} {now.slowest[1]:.1f} s"),
        seconds=now.elapsed_s,
        total=sum(now.counts.values()),
    )


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


if __name__ == "__main__":
    main()
