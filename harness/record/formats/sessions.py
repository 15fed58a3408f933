"""Processes that do one thing at a time, from those of a file, which may have several operations open at once.

Theory of operation. The order of a session is that of one process's operations, and is judged only where each ended
before the next began.
1. An operation goes to one of its process's sessions: of those that are idle, the one whose last operation ended last.
   So a process that does one thing at a time is one session, and keeps its number.
2. If none is idle, a new session begins, with a number from OVERLAPPING on.
3. Whatever its outcome, an operation ends at its completion. One without completion stays open.
So no order is invented: of two operations of one session, one ended before the other began.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from harness.core.record import Complete, Evidence, Invoke

OVERLAPPING: Final = 1 << 62  # Numbers of sessions from here on: operations that overlap others of their process.


class Sessions:
    """The sessions of all processes, and which of them are idle."""

    def __init__(self) -> None:
        self._idle: dict[int, list[int]] = {}  # By process: those that are idle, in the order in which they became so.
        self._overlap_count = 0

    def begin(self, process: int) -> int:
        """The session to which an operation of that process goes. It is busy until `end`."""
        idle = self._idle.get(process)
        if idle is None:
            self._idle[process] = []
            return process
        if idle:
            return idle.pop()
        self._overlap_count += 1
        return OVERLAPPING + self._overlap_count - 1

    def end(self, process: int, session: int) -> None:
        """Note that the operation of that session, of that process, ended."""
        self._idle[process].append(session)


def in_sessions(records: Iterable[Evidence]) -> Iterator[Evidence]:
    """The records, with sessions for processes. A completion that belongs to no open invocation stays as it is."""
    sessions, running = Sessions(), dict[int, tuple[int, int]]()  # By operation: its process and its session.
    for record in records:
        if isinstance(record, Invoke):
            session = sessions.begin(record.process)
            running[record.index] = record.process, session
            yield record if session == record.process else msgspec.structs.replace(record, process=session)
            continue
        if isinstance(record, Complete) and record.index in running:
            sessions.end(*running.pop(record.index))
        yield record
