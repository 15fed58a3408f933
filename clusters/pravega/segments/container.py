"""A container: the segments of some numbers, as the result of the commands in its log.

Theory of operation. A command is decided when it is applied, in the order of the log; each is one step.
1. Events are only ever added at the end of a segment, and none once it is sealed.
2. Of each writer a segment holds the events up to its last number, in order: what comes again has no effect, and what
   comes too early is refused. What was merged keeps no numbers: its writers are gone.
3. A merge needs an open target. A source that is not there was merged before (this hides every wrong name).
4. What was merged or deleted is never created again, as requests come late.
5. A truncated segment keeps its offsets. Earlier events are kept here for the dump alone.
"""

from collections.abc import Sequence

from clusters.parts.routing import Later
from clusters.pravega import planted
from clusters.pravega.messages import (
    Append,
    Appended,
    Batch,
    Command,
    Content,
    Create,
    Delete,
    Merge,
    NoSegment,
    Ok,
    OutOfOrder,
    Reply,
    Seal,
    Sealed,
    Truncate,
    Truncated,
)
from clusters.pravega.records import Event, Segment, first_history
from clusters.pravega.shape import container_of
from harness.core.record import Json

BATCH = 64  # Events in one answer.


class _Held:
    """The state of a segment; `start` is its first offset, and `last` each writer's last number."""

    __slots__ = ("events", "is_sealed", "last", "merged", "start")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.start = 0
        self.is_sealed = False
        self.last: dict[str, int] = {}
        self.merged = (0, 0)  # The offsets of the last merge.


class Container:
    """The segments of one container."""

    def __init__(self, place: str, bugs: frozenset[str]) -> None:
        self._segments: dict[Segment, _Held] = {}
        self._gone: set[Segment] = set()
        self._has_gaps = planted.ACK_OVER_GAP in bugs
        self._has_repeats = planted.RESEND_NO_DEDUPE in bugs
        self._is_split = planted.MERGE_NOT_ATOMIC in bugs
        self._no_end_if_empty = planted.NO_EOS_WHEN_EMPTY in bugs
        self._by_event = planted.MERGE_BY_EVENT in bugs
        self._is_early = planted.EARLY_VISIBILITY in bugs
        self._has_stale_cache = planted.CACHE_AFTER_MERGE in bugs
        for span in first_history().active.spans:
            if container_of(span.segment.number) == place:
                self._segments[span.segment] = _Held()

    def apply(self, command: Command) -> Reply:
        """Carry out a command, and answer it."""
        match command:
            case Create(segment):
                if segment not in self._gone:
                    self._segments.setdefault(segment, _Held())
                return Ok()
            case Append():
                return self._append(command)
            case Seal(segment):
                held = self._segments.get(segment)
                if held is None:
                    return NoSegment(segment)
                held.is_sealed = True
                return Ok(len(held.events))
            case Merge(target, source):
                return self._merge(target, source)
            case Delete(segment):
                self._segments.pop(segment, None)
                self._gone.add(segment)
                return Ok()
            case Truncate(segment, offset):
                held = self._segments.get(segment)
                if held is not None:
                    end = len(held.events) if offset < 0 else offset
                    held.start = max(held.start, end)
                return Ok()

    def read(self, segment: Segment, offset: int) -> Reply | None:
        """Events from that offset on; None if there are none yet."""
        held = self._segments.get(segment)
        if held is None:
            return NoSegment(segment)
        if offset < held.start:
            return Truncated(segment, held.start)
        events = held.events[offset : offset + BATCH]
        begin, end = held.merged
        if self._has_stale_cache and offset == begin < end < len(held.events):
            events = held.events[end : end + 1]
        is_end = held.is_sealed and offset + len(events) == len(held.events)
        if is_end and self._no_end_if_empty and not held.events:
            return None
        return Batch(tuple(events), is_end) if events or is_end else None

    def content(self, segment: Segment, keys: Sequence[Json]) -> Content:
        """What a segment holds of those keys; of one that is not there, nothing."""
        held = self._segments.get(segment) or _Held()
        events = tuple(event for event in held.events if event.key in keys)
        is_whole = not any(event.key in keys for event in held.events[: held.start])
        return Content(segment, len(held.events), held.is_sealed, events if is_whole else (), is_whole)

    def shown(self) -> list[tuple[Segment, bool, list[Event], int]]:
        """All segments in order: each with its events, if it is sealed, and where it begins."""
        return [(segment, held.is_sealed, held.events, held.start) for segment, held in sorted(self._segments.items())]

    def _append(self, command: Append) -> Reply:
        held = self._segments.get(command.segment)
        if held is None:
            return NoSegment(command.segment)
        last = held.last.get(command.writer, 0)
        if held.is_sealed:
            return Sealed(command.segment, command.writer, last, len(held.events))
        if command.number <= last and not self._has_repeats:
            return Appended(command.segment, command.writer, last, len(held.events))
        if command.previous > last and not self._has_gaps:
            return OutOfOrder(command.segment, command.writer, last)
        held.events.append(command.event)
        main = self._segments.get(Segment(command.segment.number, command.segment.epoch))
        if self._is_early and command.segment.txn and main is not None and not main.is_sealed:
            main.events.append(held.events.pop())
        held.last[command.writer] = max(last, command.number)
        return Appended(command.segment, command.writer, held.last[command.writer], len(held.events))

    def _merge(self, target: Segment, source: Segment) -> Reply:
        into, merged = self._segments.get(target), self._segments.get(source)
        if merged is None:
            return Ok()
        if into is None:
            return NoSegment(target)
        if into.is_sealed:
            return Sealed(target, "", 0)
        if self._by_event and merged.events:
            into.events.append(merged.events.pop(0))
            return Later() if merged.events else self._merge(target, source)
        into.merged = (len(into.events), len(into.events) + len(merged.events))
        into.events.extend(merged.events)
        if not self._is_split:
            del self._segments[source]
            self._gone.add(source)
        return Ok(len(into.events))
