"""A reader of the group: reads the segments that it owns, and takes part in the group's state.

Theory of operation. What a reader delivers it reports later, with the group's state; so after its death another one
delivers again what was not reported.
1. A reader reads a segment only after the group's state names it as the owner, and from the offset there.
2. At the end of a segment it asks for the successors; with these it reports the segment as completed, once.
3. While it gives a segment away it delivers nothing of it, so that the next owner begins exactly behind. An attempt
   without an answer may have been made: the segment stays held until an attempt is known to be the last.
4. A member whose beat stands still for long is removed by another one. A reader that finds itself removed drops what it
   reads and joins anew, as another session. Until then it may deliver a little more.
5. What was truncated before it was read is a gap: the reader goes on where the segment begins now.
6. While it comes to a checkpoint it delivers nothing: what it has delivered before lies before the checkpoint. All that
   it delivers behind it lies behind. A restoration takes its membership, so that it joins anew.
"""

from clusters.parts.procedures import TIMER, Ask, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.controller.metadata import Superseded, changed, counted, held
from clusters.pravega.messages import (
    Batch,
    Contents,
    Fetch,
    GetMark,
    GetSuccessors,
    KeepAlive,
    Mark,
    Read,
    Successors,
    Told,
    Truncated,
)
from clusters.pravega.readers.group import (
    Group,
    arrived,
    completed,
    dropped,
    first_group,
    group_of,
    is_expected,
    joined,
    left,
    reported,
    shared_out,
)
from clusters.pravega.records import GROUP, Copied, Segment, encoded, first_history
from clusters.pravega.shape import CONTROLLER_PLACE, MS, SPACE, STORES, container_of
from clusters.pravega.site import Site
from harness.core.machine import (
    Closed,
    Context,
    Delivery,
    Durable,
    Event,
    Received,
    Settings,
    TimerFired,
)

STEP_NS = 20 * MS
MARK_NS = 150 * MS
HASH_BITS = 63 - SPACE.bit_length() + 1  # A place in the space of keys is the highest bits of a hash below 2^63.


class _Session:
    """A segment that this reader reads."""

    def __init__(self, segment: Segment, offset: int) -> None:
        self.segment = segment
        self.offset = offset
        self.successors: tuple[Copied, ...] | None = None  # Known when it was read to its end.
        self.is_over = self.is_held = False


class Reader:
    """The machine of the readers r1 and r2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._report_ns = settings.parameters["report_ms"] * MS
        self._dead_ns = settings.parameters["reader_dead_ms"] * MS
        self._session = 0
        self._reads: dict[Segment, _Session] = {}
        self._beats: dict[int, tuple[int, int]] = {}  # By session: the last beat, and since when it stands.
        self._reported_ns = -1
        self._later: list[_Session] = []  # With a planted bug: completed, and not reported yet.
        self._site.procedures.run(self._take_part())
        self._site.procedures.run(self._follow_time())

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case Closed(peer):
                self._site.procedures.closed(peer)
            case Received(_, KeepAlive()):
                pass
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: a reader shows all by what it delivers."""

    # The group.

    def _take_part(self) -> Procedure[None]:
        while True:
            try:
                is_due = self._site.now_ns() >= self._reported_ns + self._report_ns
                has_ended = any(read.successors is not None for read in self._reads.values())
                if is_due or has_ended:
                    yield from self._report()
            except Superseded:
                pass  # The attempt may have been made, so what it gave away stays held (3).
            yield Sleep(STEP_NS)

    def _report(self) -> Procedure[None]:
        """Change the group's state once, and obey it."""
        entry = yield from held(GROUP)
        group = first_group(first_history().active) if entry.value is None else group_of(entry.value)
        session = self._session
        if not group.has(session):
            if self._session and not any(each.session >= self._session for each in group.restored):
                self._site.context.sometimes("a reader was removed")
            self._leave()
            session = yield from counted("reader-sessions")
            after = joined(group, self._site.node, session)
        else:
            after = self._progress(group, session)
        answer = yield from changed(GROUP, entry.version, encoded(after))
        if not answer.is_done:
            raise Superseded
        if session != self._session:
            self._deliver(Delivery(session=session, kind="open"))
        self._session, self._reported_ns = session, self._site.now_ns()
        if group.checkpoint is not None and is_expected(group, session):
            self._deliver(Delivery(session=session, kind="checkpoint", ordinal=group.checkpoint.number))
            self._site.context.sometimes("a reader came to a checkpoint")
        self._site.context.point("reader-reported")
        self._obey(after)

    def _progress(self, group: Group, session: int) -> Group:
        """The group after what this reader has read, and after it has looked for the dead."""
        offsets = {read.segment: read.offset for read in self._reads.values()}
        after = arrived(reported(group, session, offsets), session)
        own = [each.segment for each in after.of(session)]  # An attempt without an answer may have completed some (2).
        for read in self._reads.values() if after.checkpoint is None else ():
            if read.successors is not None and planted.POSITION_WITHOUT_COMPLETED in self._site.bugs:
                after, self._later = dropped(after, read.segment), [*self._later, read]
            elif read.successors is not None and read.segment in own:
                after = completed(after, read.segment, read.successors, self._site.bugs)
        for read in [each for each in self._later if not group.holds(each.segment)]:
            after = completed(after, read.segment, read.successors or (), self._site.bugs)
            self._later.remove(read)
        for dead in self._dead(after):
            if after.of(dead):
                self._site.context.sometimes("a reader was taken for dead with segments")
            after = left(after, dead)
        if after.checkpoint is None:
            after = shared_out(after, session)
        kept = [each.segment for each in after.of(session)]
        for read in self._reads.values():
            read.is_held |= read.segment not in kept or is_expected(group, session)
        return after

    def _dead(self, group: Group) -> list[int]:
        """The other members whose beats stand still (4)."""
        now_ns = self._site.now_ns()
        self._beats = {
            member.session: self._beats.get(member.session, (member.beat, now_ns)) for member in group.members
        }
        for member in group.members:
            if self._beats[member.session][0] != member.beat:
                self._beats[member.session] = (member.beat, now_ns)
        return [
            each for each, (_, since_ns) in self._beats.items()
            if each != self._session and now_ns > since_ns + self._dead_ns
        ]  # fmt: skip

    def _obey(self, group: Group) -> None:
        """Read the segments that the group's state gives to this reader, and no others (1)."""
        own = {each.segment: each for each in group.of(self._session)}
        for segment in [each for each in self._reads if each not in own]:
            read = self._reads.pop(segment)
            if read.successors is None:
                self._site.context.sometimes("a reader gave a segment away")
            read.is_over = True
        for segment, holding in own.items():
            if segment not in self._reads:
                read = self._reads[segment] = _Session(segment, holding.offset)
                self._site.procedures.run(self._read(read))
            self._reads[segment].is_held = False

    def _leave(self) -> None:
        for read in self._reads.values():
            read.is_over = True
        self._reads = {}

    def _follow_time(self) -> Procedure[None]:
        """Show how far the stream's watermark is behind, and keep connections alive."""
        while True:
            for store in STORES:
                self._site.send(store, KeepAlive())
            (mark,) = yield Ask(((CONTROLLER_PLACE, GetMark()),))
            if isinstance(mark, Mark) and mark.time_ns:
                self._site.context.probe("watermark-behind-ms", (self._site.now_ns() - mark.time_ns) // MS)
            yield Sleep(MARK_NS)

    # Segments.

    def _read(self, read: _Session) -> Procedure[None]:
        """Read a segment to its end, and then its successors (2)."""
        segment, place, session = read.segment, container_of(read.segment.number), self._session
        if read.offset < 0:
            (found,) = yield Ask(((place, Fetch((segment,), ())),))
            read.offset = found.found[0].length if isinstance(found, Contents) else 0
        self._deliver(Delivery(session=session, kind="open", span=str(segment), position=read.offset))
        is_end = False
        while not is_end and not read.is_over:
            (batch,) = yield Ask(((place, Read(segment, read.offset)),))
            if isinstance(batch, Batch) and not read.is_over and not read.is_held:
                for event in batch.events:
                    self._deliver(
                        Delivery(
                            session=session, kind="row", span=str(segment), key=event.key, value=event.value,
                            position=read.offset, epoch=segment.epoch, unit=event.txn or None,
                        )
                    )  # fmt: skip
                    read.offset += 1
                is_end = batch.is_end
            elif isinstance(batch, Truncated) and not read.is_over and not read.is_held:
                read.offset = batch.start
                self._deliver(Delivery(session=session, kind="gap", span=str(segment), position=read.offset))
                self._site.context.sometimes("a lagging reader met a truncation")
            elif not isinstance(batch, Batch) or read.is_held:
                yield Sleep(STEP_NS)
        if is_end:
            self._deliver(Delivery(session=session, kind="end", span=str(segment)))
        while read.successors is None and not read.is_over:
            (answer,) = yield Ask(((CONTROLLER_PLACE, GetSuccessors(segment)),))
            if isinstance(answer, Successors):
                read.successors = answer.found
                for copied in answer.found:
                    self._declare(session, copied)
                self._site.context.point("reader-has-successors")

    def _declare(self, session: int, copied: Copied) -> None:
        """Show a segment with its keys, and those that it follows."""
        span = copied.span
        value = {
            "parents": [str(each) for each in copied.before],
            "ranges": [[span.low << HASH_BITS, span.high << HASH_BITS]],
        }
        self._deliver(Delivery(session=session, kind="successors", span=str(span.segment), value=value))

    def _deliver(self, delivery: Delivery) -> None:
        self._site.context.deliver(delivery)
