"""Scales: some neighbouring segments are sealed, and others take their keys, in a new epoch.

Theory of operation. A scale is planned against the active epoch, recorded (`Transition`), and carried out when its turn
comes; it waits for no transaction.
1. A plan whose epoch is no longer active is carried over if the active one has the same reference, as that has segments
   of the same numbers and keys; else it is dropped.
2. The new epoch refers to itself. New segments have numbers that no epoch had.
3. The epoch is recorded, the old segments are sealed, and only then `current` moves (processor, 5).
"""

from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.controller.metadata import Stream, Superseded, replaced
from clusters.pravega.messages import Create, Ok, Seal
from clusters.pravega.records import (
    HISTORY,
    STATE,
    TRANSITION,
    Epoch,
    History,
    Segment,
    Span,
    State,
    Transition,
    encoded,
)
from clusters.pravega.shape import MS, SEGMENTS, container_of
from clusters.pravega.site import Site

Step = Procedure[None]


class Scaling:
    """The scales that one controller proposes and carries out."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._bugs = site.bugs
        self._every_ns = site.parameters["scale_ms"] * MS
        self._next_ns = 0

    def propose(self, records: Stream) -> Step:
        """Plan a scale, if it is time for one, and none is planned."""
        now_ns = self._site.now_ns()
        if not self._next_ns:
            self._next_ns = now_ns + self._every_ns
        if now_ns < self._next_ns or records.transition is not None or records.state.name in {"sealing", "sealed"}:
            return
        self._next_ns = now_ns + self._every_ns
        yield from replaced(TRANSITION, records.versions[TRANSITION], encoded(self._plan(records.history.active)))

    def _plan(self, active: Epoch) -> Transition:
        """A split of one segment, or a merge of two neighbours."""
        spans, draw = active.spans, self._site.context.draw("scale")
        can_split = len(spans) < SEGMENTS[1]
        if can_split and (len(spans) <= SEGMENTS[0] or draw.chance(1, 2)):
            span = spans[draw.below(len(spans))]
            return Transition(active.number, (span.segment,), (span.low, (span.low + span.high) // 2, span.high))
        first = draw.below(len(spans) - 1)
        one, other = spans[first : first + 2]
        return Transition(active.number, (one.segment, other.segment), (one.low, other.high))

    def begin(self, records: Stream) -> Step:
        """Carry out a plan whose turn has come."""
        versions, epochs, plan = records.versions, records.history, records.transition
        assert plan is not None
        if plan.epoch != epochs.current and planted.STALE_ETR not in self._bugs:
            if epochs.epochs[plan.epoch].reference != epochs.active.reference:
                yield from replaced(TRANSITION, versions[TRANSITION], b"")
                return
            self._site.context.sometimes("a scale was carried over to duplicates")
            numbers = [segment.number for segment in plan.seal]
            seal = tuple(span.segment for span in epochs.active.spans if span.segment.number in numbers)
            plan = Transition(epochs.current, seal, plan.edges)
            versions[TRANSITION] = yield from replaced(TRANSITION, versions[TRANSITION], encoded(plan))
        versions[STATE] = yield from replaced(STATE, versions[STATE], encoded(State("scaling")))
        self._site.context.point("scale-begun")
        yield from self.finish(records._replace(transition=plan))

    def finish(self, records: Stream) -> Step:
        """Carry out the plan, from wherever another controller has left it."""
        versions, epochs, plan = records.versions, records.history, records.transition
        is_due = plan is not None and epochs.current == plan.epoch
        if plan is not None and (is_due or planted.STALE_ETR in self._bugs or planted.REPLAYED_EVENT in self._bugs):
            if len(epochs.epochs) == epochs.current + 1:
                epoch = _scaled(epochs, plan)
                yield from _all_ok([Create(span.segment) for span in epoch.spans if span.segment.epoch == epoch.number])
                self._site.context.point("scale-created")
                epochs = History((*epochs.epochs, epoch), epochs.current)
                versions[HISTORY] = yield from replaced(HISTORY, versions[HISTORY], encoded(epochs))
            self._site.context.point("scale-recorded")
            moved = History(epochs.epochs, epochs.current + 1)
            if planted.PUBLISH_BEFORE_SEAL in self._bugs:
                versions[HISTORY] = yield from replaced(HISTORY, versions[HISTORY], encoded(moved))
            yield from _all_ok([Seal(segment) for segment in plan.seal])
            self._site.context.point("scale-sealed")
            yield from replaced(HISTORY, versions[HISTORY], encoded(moved))
            self._site.context.sometimes("a segment was split" if len(plan.seal) == 1 else "segments were merged")
            self._site.context.point("scale-moved")
        yield from replaced(TRANSITION, versions[TRANSITION], b"")
        if planted.NO_STATE_CAS not in self._bugs:
            yield from replaced(STATE, versions[STATE], encoded(State()))


def _scaled(epochs: History, plan: Transition) -> Epoch:
    """The epoch after the plan (2)."""
    active = epochs.active
    number = len(epochs.epochs)
    free = 1 + max(span.segment.number for epoch in epochs.epochs for span in epoch.spans)
    kept = [span for span in active.spans if span.segment not in plan.seal]
    edges = plan.edges
    new = [Span(edges[at], edges[at + 1], Segment(free + at, number)) for at in range(len(edges) - 1)]
    return Epoch(number, number, tuple(sorted((*kept, *new))))


def _all_ok(commands: list[Create] | list[Seal]) -> Step:
    answers = yield Ask(tuple((container_of(each.segment.number), each) for each in commands))
    if not all(isinstance(answer, Ok) for answer in answers):
        raise Superseded
