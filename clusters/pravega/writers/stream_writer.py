"""The writer of plain events.

Theory of operation. Each segment has a queue of its own, in which events wait until they are acknowledged; several are
on their way at once. They have consecutive numbers, and name the number before: the store refuses one that comes too
early, and ignores one that comes again.
1. The events of a queue are sent in order, and appended in order, whatever gets lost on the way.
2. A sealed segment holds the queue's first events, up to the number that the answer names. The others wait, with all
   new ones of their keys, until the successors are known; then they go there in order, before anything newer.
3. Successors take the place of a sealed segment for the keys of that segment alone. Without any the stream is sealed:
   what was not acknowledged certainly has no effect.
"""

from clusters.parts.client import Refused
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.messages import Append, Appended, Done, GetSuccessors, Sealed, Successors
from clusters.pravega.records import Epoch, Event, Segment, Span
from clusters.pravega.shape import CONTROLLER_PLACE, MS, container_of, key_hash
from clusters.pravega.site import Site
from clusters.pravega.writers.transaction import STREAM_SEALED
from harness.core.machine import Answer, NodeId
from harness.core.record import Json, MicroOp

AGAIN_NS = 10 * MS
NO_HOLD_NS = 30 * MS  # With a planted bug: how long new events may overtake.

Caller = tuple[NodeId, int]


class _Queue:
    """The events on their way to one segment, by number."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.last = 0
        self.length = 0  # Of the segment, when its last event of this writer was acknowledged.
        self.waiting: dict[int, tuple[Event, Caller]] = {}
        self.is_sealed = False


class StreamWriter:
    """The plain events of one incarnation of a writer, which begins with the active epoch."""

    def __init__(self, site: Site, name: str, active: Epoch) -> None:
        self._site, self._name = site, name
        self._ways: list[Span] = list(active.spans)
        self._queues: dict[Segment, _Queue] = {}
        self._ends: list[Segment] = []  # Segments without successors.
        self._count = 0

    def cut(self) -> tuple[tuple[Segment, int], ...]:
        """For each segment that takes this writer's events: all that it had acknowledged there lies before an offset.

        What it had acknowledged elsewhere lies in their predecessors.
        """
        segments = (*(way.segment for way in self._ways), *self._ends)
        return tuple((each, self._queues[each].length if each in self._queues else 0) for each in segments)

    def write(self, caller: Caller, key: Json, value: Json) -> None:
        """Append an event, and answer the caller once it is there."""
        self._count += 1
        self._submit(Event(key, value, self._name, self._count), caller)

    def _submit(self, event: Event, caller: Caller) -> None:
        place = key_hash(event.key)
        segment = next((way.segment for way in self._ways if way.low <= place < way.high), None)
        if segment is None:
            client, call = caller
            self._site.context.send(client, Answer(call, Refused(STREAM_SEALED)))
            return
        queue = self._queues.setdefault(segment, _Queue(segment))
        queue.last += 1
        queue.waiting[queue.last] = (event, caller)
        if not queue.is_sealed:
            self._site.procedures.run(self._send(queue, queue.last))

    def _send(self, queue: _Queue, number: int) -> Procedure[None]:
        """Send an event until its queue knows what became of it."""
        while number in queue.waiting and not queue.is_sealed:
            event, _ = queue.waiting[number]
            append = Append(queue.segment, self._name, number, number - 1, event)
            (answer,) = yield Ask(((container_of(queue.segment.number), append),))
            match answer:
                case Appended(number=last, length=length):
                    queue.length = max(queue.length, length)
                    self._acknowledge(queue, last)
                case Sealed(number=last, length=length) if not queue.is_sealed:
                    queue.length = length
                    self._acknowledge(queue, last)
                    queue.is_sealed = True
                    self._site.procedures.run(self._follow(queue))
                case _:
                    yield Sleep(AGAIN_NS)

    def _acknowledge(self, queue: _Queue, last: int) -> None:
        for number in [each for each in queue.waiting if each <= last]:
            event, (client, call) = queue.waiting.pop(number)
            mops = (MicroOp("append", event.key, event.value),)
            self._site.context.send(client, Answer(call, Done(mops)))

    def _follow(self, queue: _Queue) -> Procedure[None]:
        """Go on behind a sealed segment (2, 3)."""
        found = None
        while not isinstance(found, Successors):
            (found,) = yield Ask(((CONTROLLER_PLACE, GetSuccessors(queue.segment)),))
        self._site.context.point("writer-has-successors")
        if not found.found:
            self._ends.append(queue.segment)
        ways: list[Span] = []
        for way in self._ways:
            if way.segment != queue.segment:
                ways.append(way)
                continue
            for copied in found.found:
                span = copied.span
                if span.meets(way):
                    ways.append(Span(max(way.low, span.low), min(way.high, span.high), span.segment))
        self._ways = ways
        waiting, queue.waiting = queue.waiting, {}
        if planted.WRITER_NO_HOLD in self._site.bugs:
            yield Sleep(NO_HOLD_NS)
        if waiting:
            self._site.context.sometimes("a writer moved events behind a sealed segment")
        for event, caller in waiting.values():
            self._submit(event, caller)
