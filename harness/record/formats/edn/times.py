"""Histories whose times fall back: their recorder wrote call and answer of an operation together, when it had ended.

The order of the file then claims too much: whatever stands earlier seems to have ended before the rest began.
1. If every map has a time, and those of each process never fall, the records are ordered by time, which is of one clock
   (docs/history-format.md). At equal times all calls come before all answers, so such operations are concurrent; two of
   one process become two sessions (`harness.record.formats.sessions`).
2. Else nothing is known about order: all calls come before all answers. Of a history of transactions the file's order
   inside each process whose own times never fall is kept beside it (`checkers.columns.sessions`).
"""

from collections.abc import Sequence

import msgspec

from harness.core.record import Complete, Evidence, Invoke

_BY_TIME = "times fall back in {source}: operations are ordered by their times, and equal times count as concurrent"
_NONE = "times fall back in {source}, and {why}: all operations count as concurrent, so {left}"
_LEFT = {
    False: "neither real time nor the order in a process is claimed",
    True: "real time is not claimed, but the order of the file inside each process whose times never fall",
}


class Times:
    """The times of the maps in a file, as far as they have been read."""

    def __init__(self) -> None:
        self.fall = False
        self._is_whole = True
        self.falling: set[int] = set()  # The processes whose own times fall.
        self._last = -1
        self._last_of: dict[int, int] = {}

    def see(self, process: int, time_ns: int | None) -> None:
        """Note the time of the next map of a client's process; None: it has none."""
        if time_ns is None:
            self._is_whole = False
            return
        self.fall |= time_ns < self._last
        self._last = time_ns
        if time_ns < self._last_of.get(process, 0):
            self.falling.add(process)
        self._last_of[process] = time_ns

    @property
    def show_order(self) -> bool:
        """True if times order the operations, by rule 1."""
        return self._is_whole and not self.falling

    def note(self, source: str, *, has_sessions: bool) -> str:
        """What is done about times that fall. `has_sessions`: the order inside processes is kept."""
        if self.show_order:
            return _BY_TIME.format(source=source)
        why = "those of one process, too" if self._is_whole else "some operations have none"
        return _NONE.format(source=source, why=why, left=_LEFT[has_sessions])

    def ordered(self, records: Sequence[Evidence]) -> list[Evidence]:
        """The records of the whole file in the order of rule 1 or 2, with operations numbered by their calls."""
        order = sorted(records, key=lambda each: (each.time_ns * self.show_order, isinstance(each, Complete)))
        calls = [record.index for record in order if isinstance(record, Invoke)]
        number = {index: place for place, index in enumerate(calls)}
        return [
            msgspec.structs.replace(record, index=number[record.index])
            if isinstance(record, Invoke | Complete)
            else record
            for record in order
        ]
