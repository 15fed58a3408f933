"""A reign: one epoch of one coordinator, from its boot until another one has taken over.

Theory of operation. A coordinator that leads cannot know that it still does. Three things end a reign: the catalog
shows another epoch, it refuses a record, or a table has an upper that this leader did not give it. Nothing that a reign
does after that has an effect; its clients get unclear answers.
"""

from collections.abc import Callable
from typing import Final

from clusters.materialize import planted
from clusters.materialize.catalog.records import LOG, Bound, Record, encoded
from clusters.materialize.coordinator.oracle import Timeline
from clusters.materialize.messages import Lead
from clusters.materialize.shape import CATALOG_PLACE, COORDINATORS, MS, WALL
from clusters.materialize.site import Site
from clusters.parts.fenced_log import Add, Added, Fenced, Look, Looked
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure
from harness.core.machine import Message

WINDOW: Final = 60  # How far the durable bound is ahead, in units.
LATER_NS: Final = 40 * MS  # A planted bug shows writes to reads so long after their answer.


class Reign:
    """The state of a leader. `length`: of the catalog's log. `names`: all names of tables that were ever given."""

    def __init__(self, site: Site, epoch: int, length: int, names: set[str]) -> None:
        self.site = site
        self.bugs = site.bugs
        self.epoch = epoch
        self.names = names
        self.is_over = False
        self.timelines: dict[str, Timeline] = {}
        self.seen_ts = 0  # The highest timestamp of any read, for a planted bug.
        self.confirmed_ns = site.now_ns()
        self._length = length
        self._records: list[tuple[Record, Callable[[], None]]] = []
        self._is_writing = False
        self._on_end: list[Callable[[], None]] = []

    @property
    def wall(self) -> Timeline:
        """The timeline of the wall clock."""
        return self.timelines[WALL]

    def end(self, reason: str) -> None:
        """End the reign: another coordinator has taken over."""
        if not self.is_over:
            self.is_over = True
            self.site.context.sometimes(f"a leader ended: {reason}")
            if self.timelines and self.wall.oracle.write_ts + 1 < self.wall.oracle.bound:
                self.site.context.sometimes("a leader ended that had timestamps left")
            for then in self._on_end:
                then()

    def on_end(self, then: Callable[[], None]) -> None:
        """Call `then` when the reign ends."""
        self._on_end.append(then)

    def beat(self) -> None:
        """Let the other coordinator know that this one lives."""
        for other in COORDINATORS:
            if other != self.site.node:
                self.site.send(other, Lead(self.epoch))

    # The catalog.

    def record(self, record: Record, then: Callable[[], None]) -> None:
        """Write a record to the catalog, and call `then` when it is durable."""
        self._records.append((record, then))
        if not self._is_writing:
            self._is_writing = True
            self.site.procedures.run(self._write())

    def persist_bound(self, timeline: Timeline, ts: int, then: Callable[[], None]) -> None:
        """Write a bound a window above `ts`, and call `then` when the oracle may hand out what is below it."""
        bound = Bound(self.epoch, ts + WINDOW, timeline.name)

        def saved() -> None:
            timeline.oracle.bound = max(timeline.oracle.bound, bound.ts)
            if timeline is self.wall:
                self.site.context.probe("bound", bound.ts)
            self.site.context.point("bound-persisted")
            then()

        self.record(bound, saved)

    def _write(self) -> Procedure[None]:
        while self._records and not self.is_over:
            batch, self._records = self._records, []
            request = Add(LOG, self.epoch, self._length, tuple(encoded(record) for record, _ in batch))
            answer: Message | None = None
            while answer is None and not self.is_over:
                (answer,) = yield Ask(((CATALOG_PLACE, request),))
            match answer:
                case Added():
                    self._length += len(batch)
                    for _, then in batch:
                        then()
                case Fenced():
                    self.end("the catalog refused its record")
                case _:
                    pass
        self._is_writing = False

    def confirm(self) -> tuple[str, Message]:
        """The request that shows if this coordinator still leads."""
        return CATALOG_PLACE, Look(LOG, self._length)

    def is_confirmed(self, answer: Message | None) -> bool:
        """True if that answer shows that this coordinator leads. If another one does the reign ends."""
        if isinstance(answer, Looked) and answer.token != self.epoch:
            self.end("the catalog shows another one")
        return isinstance(answer, Looked) and not self.is_over

    def applied(self, timeline: Timeline, ts: int) -> None:
        """Show the writes at `ts` to reads."""
        if planted.RESPOND_BEFORE_APPLY in self.bugs:
            self.site.procedures.run(self._apply_later(timeline, ts))
        else:
            timeline.oracle.apply_write(ts)

    def _apply_later(self, timeline: Timeline, ts: int) -> Procedure[None]:
        yield Sleep(LATER_NS)
        timeline.oracle.apply_write(ts)
