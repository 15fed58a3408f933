"""Stops a run at its first violation: follows its journal, and checks its streams as they grow.

A simulated run must be the same each time, but its progress at the moment of a look depends on the machine. So the
journal is cut at the first milestone (one per second of the run's time) after the violation; the violation itself does
not depend on how the stream was read. A replay makes the same part again. Runs in containers do not repeat exactly, so
all their records are kept.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from checkers.streams.online import ONLINE, Online, Violation
from checkers.words.checks import STREAMS
from harness.core.columns import KINDS, NEVER, Deliveries
from harness.core.promises import Promise, StreamContract
from harness.core.record import Evidence, Footer, Header, Mark, StreamEvent
from harness.record.formats.parquet.names import Names
from harness.record.journal import STOPPED, JournalTail, end_after
from harness.record.store import RunFile

SECOND: Final = 1_000_000_000
_END: Final = "end"
_GROWTH: Final = 8
_SHORT: Final = 20_000  # A stream with fewer events is judged at each look.
_NUMBERS: Final = ("position", "ordinal", "epoch", "unit", "unit_rows")


class FirstViolation:
    """The search for the first violation in one run's journal while it grows. A run without a stream has none."""

    def __init__(self, journal: Path, run_file: RunFile) -> None:
        self._journal = journal
        self._is_repeatable = run_file.runtime == "sim"
        self._watch = _Watch(run_file.stream, forbidden(run_file.promises)) if run_file.stream else None
        self._tail = JournalTail(journal)
        self._count = 0  # The number of records read.
        self._found: Violation | None = None
        self._end: Mark | None = None  # The first milestone after the violation, and the number of records up to it.
        self._end_count = 0
        self._is_over = False

    def look(self, *, is_last: bool = False) -> bool:
        """Read the new records; returns True once the run may stop. The last look judges all of them."""
        if self._watch is None:
            return False
        records = list(self._tail.read())
        self._is_over = self._is_over or any(isinstance(record, Footer) for record in records)
        new = [record for record in records if not isinstance(record, Header | Footer)]
        if self._found is None:
            self._found = self._watch.first(new, self._count, is_last=is_last)
        if self._found is not None and self._end is None:
            for seq, record in enumerate(new, self._count):
                if seq > self._found.seq and isinstance(record, Mark):
                    self._end, self._end_count = record, seq + 1
                    break
        self._count += len(new)
        return self._found is not None and (self._end is not None or not self._is_repeatable)

    def close(self) -> str | None:
        """Look once more after the run. If there is a violation, record in the journal that the run was stopped.

        Returns the reason. None if there was no violation, or the run had already completed.
        """
        self.look(is_last=True)
        found, end = self._found, self._end
        if self._watch is None or found is None:
            return None
        if (end is None or end.phase == _END) if self._is_repeatable else self._is_over:
            return None
        reason = f"{STOPPED}{found.anomaly} of {self._watch.subscribers[found.subscriber]}, {found.ns / SECOND:.3f} s"
        if end is not None and self._is_repeatable:
            end_after(self._journal, self._end_count, Footer(end.time_ns, reason))
        else:
            end_after(self._journal, self._count, Footer(found.ns, reason))
        return reason


class _Watch:
    """The online check, fed with events in journal order."""

    def __init__(self, contract: StreamContract, wanted: frozenset[str]) -> None:
        self._names, self._spans = Names(), dict[str, int]()
        self._subscribers = dict[str, int]()
        self._waiting: list[tuple[int, StreamEvent]] = []
        self._judged = 0
        self._online = Online(contract, wanted)

    @property
    def subscribers(self) -> tuple[str, ...]:
        """The subscribers' names, by number."""
        return tuple(self._subscribers)

    def first(self, new: Sequence[Evidence], seq: int, *, is_last: bool) -> Violation | None:
        """The first violation that the records show; None if there is none. The first of `new` has position `seq`.

        A long stream is judged again only once it has grown by an eighth, or `is_last`: whenever that is, the first
        violation is the same.
        """
        self._waiting += ((place, event) for place, event in enumerate(new, seq) if isinstance(event, StreamEvent))
        if not self._waiting or (not is_last and len(self._waiting) * _GROWTH < self._judged - _SHORT):
            return None
        batch = self._columns(self._waiting)
        self._judged += len(self._waiting)
        self._waiting = []
        return next(self._online.feed(batch), None)

    def _columns(self, events: Iterable[tuple[int, StreamEvent]]) -> Deliveries:
        rows = [self._cells(seq, event) for seq, event in events]
        columns = np.array(rows, np.int64).reshape(len(rows), 8 + len(_NUMBERS)).T
        seq, ns, subscriber, session, kind, span, key, value, *numbers = columns
        named = dict(zip(_NUMBERS, numbers, strict=True))
        return Deliveries(
            seq=seq,
            ns=ns,
            subscriber=subscriber,
            session=session,
            kind=kind.astype(np.int8),
            span=span,
            key=key,
            value=value,
            **named,
        )

    def _cells(self, seq: int, event: StreamEvent) -> tuple[int, ...]:
        return (
            seq,
            event.time_ns,
            self._subscribers.setdefault(event.subscriber, len(self._subscribers)),
            event.session,
            KINDS.index(event.kind),
            -1 if event.span is None else self._spans.setdefault(event.span, len(self._spans)),
            NEVER if event.key is None else self._names.id(event.key),
            NEVER if event.value is None else self._names.id(event.value),
            *(NEVER if number is None else number for number in map(event.__getattribute__, _NUMBERS)),
        )


def forbidden(promises: Iterable[Promise]) -> frozenset[str]:
    """The forbidden anomalies that the online check can find."""
    heard = (promise for promise in promises if promise.check in {None, STREAMS})
    return frozenset(name for promise in heard for name in promise.forbids) & frozenset(ONLINE)
