"""The watermark of the stream: all events that its live writers had acknowledged by a time lie before a cut.

Theory of operation. Pravega's released code has it, the text does not.
1. Each writer notes again and again the time, and for each of its segments how far it reached when its last event there
   was acknowledged. So all that the writer had acknowledged by that time lies before these offsets.
2. The watermark's time is the least of the notes, and its cut has the highest offset of each segment. A writer without
   a new note for long is left out: the watermark promises nothing about it, and names the writers that it counts.
3. Times never fall.
"""

from msgspec import msgpack

from clusters.parts.routing import Procedure
from clusters.pravega.controller.metadata import changed, held, listed, replaced
from clusters.pravega.messages import Mark, NoteTime
from clusters.pravega.records import MARK, NOTES, Segment, encoded
from clusters.pravega.shape import MS
from clusters.pravega.site import Site

MARK_NS = 200 * MS
DEAD_NS = 800 * MS

note_of = msgpack.Decoder(NoteTime).decode
mark_of = msgpack.Decoder(Mark).decode
NO_MARK = Mark(0, (), ())


def note(noted: NoteTime) -> Procedure[None]:
    """Keep a writer's note, unless a newer one is there (1)."""
    entry = yield from held(f"{NOTES}{noted.writer}")
    if entry.value is None or note_of(entry.value).time_ns < noted.time_ns:
        yield from changed(entry.name, entry.version, encoded(noted))


def mark() -> Procedure[Mark]:
    """The newest watermark."""
    entry = yield from held(MARK)
    return NO_MARK if entry.value is None else mark_of(entry.value)


class Marks:
    """The watermarks, as the controller with the lease makes them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._next_ns = 0

    def advance(self) -> Procedure[None]:
        """Record the next watermark, if it is time for one (2, 3)."""
        now_ns = self._site.now_ns()
        if now_ns < self._next_ns:
            return
        self._next_ns = now_ns + MARK_NS
        entry = yield from held(MARK)
        notes = [note_of(each.value) for each in (yield from listed(NOTES)) if each.value is not None]
        live = [each for each in notes if each.time_ns > now_ns - DEAD_NS]
        time_ns = min((each.time_ns for each in live), default=0)
        if time_ns <= (NO_MARK if entry.value is None else mark_of(entry.value)).time_ns:
            return
        cut: dict[Segment, int] = {}
        for each in live:
            for segment, offset in each.cut:
                cut[segment] = max(offset, cut.get(segment, 0))
        made = Mark(time_ns, tuple(sorted(cut.items())), tuple(each.writer for each in live))
        yield from replaced(MARK, entry.version, encoded(made))
