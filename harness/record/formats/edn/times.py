"""Histories whose times fall back: their recorder wrote call and answer of an operation together, when it had ended.

The order of the file then claims too much: whatever stands earlier seems to have ended before the rest began.
1. If every map has a time, and those of each process never fall, the records are ordered by time, which is of one clock
   (docs/history-format.md). At equal times all calls come before all answers, so such operations are concurrent; two of
   one process become two sessions (`harness.record.formats.sessions`).
2. Else nothing is known about order: all calls come before all answers.
"""

from collections.abc import Sequence

import msgspec

from harness.core.record import Complete, Evidence, Invoke

_BY_TIME = "times fall back in {source}: operations are ordered by their times, and equal times count as concurrent"
_NONE = (
    "times fall back in {source}, and {why}: all operations count as concurrent, so neither real time nor the order "
    "in a process is claimed"
)


class Times:
    """The times of the maps in a file, as far as they have been read."""

    def __init__(self) -> None:
        self.fall = False
        self._is_whole, self._is_ordered = True, True
        self._last = -1
        self._last_of: dict[int, int] = {}

    def see(self, process: int, time_ns: int | None) -> None:
        """Note the time of the next map of a client's process; None: it has none."""
        if time_ns is None:
            self._is_whole = False
            return
        self.fall |= time_ns < self._last
        self._last = time_ns
        self._is_ordered &= time_ns >= self._last_of.get(process, 0)
        self._last_of[process] = time_ns

    def note(self, source: str) -> str:
        """What is done about times that fall."""
        if self._is_whole and self._is_ordered:
            return _BY_TIME.format(source=source)
        why = "those of one process, too" if self._is_whole else "some operations have none"
        return _NONE.format(source=source, why=why)

    def ordered(self, records: Sequence[Evidence]) -> list[Evidence]:
        """The records of the whole file in the order of rule 1 or 2, with operations numbered by their calls."""
        is_timed = self._is_whole and self._is_ordered
        order = sorted(records, key=lambda each: (each.time_ns * is_timed, isinstance(each, Complete)))
        calls = [record.index for record in order if isinstance(record, Invoke)]
        number = {index: place for place, index in enumerate(calls)}
        return [
            msgspec.structs.replace(record, index=number[record.index])
            if isinstance(record, Invoke | Complete)
            else record
            for record in order
        ]
