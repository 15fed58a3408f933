"""Stops a run at its first violation: follows its journal, and checks its streams as they grow.

A simulated run must be the same each time, but its progress at the moment of a look depends on the machine. So the
journal is cut at the first milestone (one per second of the run's time) after the violation; the violation itself does
not depend on how the stream was read. A replay makes the cut part again. In containers nothing repeats, and all
records are kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from checkers.streams.online import ONLINE, Online, Violation
from checkers.streams.sentences import CHECKER
from harness.core.columns import KINDS, NEVER, Deliveries
from harness.core.promises import Promise, StreamContract
from harness.core.record import Evidence, Footer, Header, Mark, Record, StreamEvent
from harness.record.formats.parquet.names import Names
from harness.record.journal import JournalTail, end_after, read_journal
from harness.record.store import RunFile

SECOND: Final = 1_000_000_000
STOPPED: Final = "stopped at the first violation: "  # The beginning of the footer's reason for such a run.
_END: Final = "end"
_NUMBERS: Final = ("position", "ordinal", "epoch", "unit", "unit_rows")


class FirstViolation:
    """Finds the first violation in one run's journal while it grows. A run without a stream has none."""

    def __init__(self, journal: Path, run_file: RunFile) -> None:
        self._journal = journal
        self._is_repeatable = run_file.runtime == "sim"
        self._watch = _Watch(journal, run_file.stream, forbidden(run_file.promises)) if run_file.stream else None
        self._tail = JournalTail(journal)
        self._count = 0  # Pieces of evidence read.
        self._found: Violation | None = None
        self._end: Mark | None = None  # The first milestone after the violation, and the count of evidence up to it.
        self._end_count = 0
        self._is_over = False

    def look(self) -> bool:
        """Read the new records; returns True once the run may stop."""
        if self._watch is None:
            return False
        records = list(self._tail.read())
        self._is_over = self._is_over or any(isinstance(record, Footer) for record in records)
        new = [record for record in records if not isinstance(record, Header | Footer)]
        if self._found is None:
            self._found = self._watch.first(new, self._count)
        if self._found is not None and self._end is None:
            for seq, record in enumerate(new, self._count):
                if seq > self._found.seq and isinstance(record, Mark):
                    self._end, self._end_count = record, seq + 1
                    break
        self._count += len(new)
        return self._found is not None and (self._end is not None or not self._is_repeatable)

    def close(self) -> str | None:
        """Look once more after the run; write into its journal that it was stopped, and return the reason.

        None if there was no violation, or the run had already completed.
        """
        self.look()
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

    def __init__(self, journal: Path, contract: StreamContract, wanted: frozenset[str]) -> None:
        self._journal = journal
        self._wanted = wanted
        self._names, self._spans = Names(), dict[str, int]()
        self._subscribers = dict[str, int]()
        self._online = Online(contract, self._before)

    @property
    def subscribers(self) -> tuple[str, ...]:
        """The subscribers' names, by number."""
        return tuple(self._subscribers)

    def first(self, new: Sequence[Evidence], seq: int) -> Violation | None:
        """The first violation that those records show, or None; the first record has position `seq`."""
        found = self._online.feed(self._columns(_events(new, seq)))
        return next((each for each in found if each.anomaly in self._wanted), None)

    def _before(self, subscriber: int | None, seq: int) -> Deliveries:
        """The events before that journal position, of one subscriber or all."""
        wanted = None if subscriber is None else self.subscribers[subscriber]
        events = _events(_until(read_journal(self._journal), seq), 0)
        return self._columns((place, event) for place, event in events if wanted in {None, event.subscriber})

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
    """The anomalies that a promise forbids and the online check can find."""
    heard = (promise for promise in promises if promise.check in {None, CHECKER})
    return frozenset(name for promise in heard for name in promise.forbids) & frozenset(ONLINE)


def is_stopped(footer: Footer | None) -> bool:
    """True if the footer is of a run that was stopped at its first violation."""
    return footer is not None and footer.reason.startswith(STOPPED)


def _events(records: Iterable[Evidence], seq: int) -> Iterator[tuple[int, StreamEvent]]:
    return ((place, record) for place, record in enumerate(records, seq) if isinstance(record, StreamEvent))


def _until(records: Iterable[Record], count: int) -> Iterator[Evidence]:
    """The first `count` pieces of evidence."""
    evidence = (record for record in records if not isinstance(record, Header | Footer))
    for _, record in zip(range(count), evidence, strict=False):
        yield record
