"""The ingestion of a source: gives upstream records their timestamps, stores them, and acknowledges them.

Theory of operation. A binding gives a timestamp to the next records, up to an offset.
1. A binding is durable before its records are appended. So after a restart the same records get the same timestamp.
2. The records of a binding were appended if the shard's upper is above its timestamp. At most the last binding was not:
   its records are fetched again, and appended at its timestamp.
3. Records are acknowledged when they are durable, and reads are at or above their timestamp: a coordinator confirms
   that. A superseded one may confirm it: its reads are below the new leader's.
4. If the upstream system has dropped records that were not appended, ingestion stops: it does not go on with a gap. The
   shard's upper still rises, so that the records before the gap can be read.
"""

from msgspec import Struct

from clusters.materialize import planted
from clusters.materialize.collections import Update
from clusters.materialize.coordinator.clock import Clock
from clusters.materialize.messages import (
    Acknowledge,
    Acknowledged,
    AckOk,
    AtUpper,
    CompareAndAppend,
    Fetch,
    GetUpper,
    Gone,
    MayAcknowledge,
    Mismatch,
    Records,
    Told,
)
from clusters.materialize.shape import COORDINATOR_PLACE, MS, SOURCE, UPSTREAM_PLACE
from clusters.materialize.site import Site
from clusters.parts.procedures import TIMER, Ask, Sleep
from clusters.parts.routing import Procedure
from harness.core.machine import Closed, Context, Durable, Event, Received, Settings, Synced, TimerFired
from harness.core.record import Json

AGAIN_NS = 20 * MS
PLACE = "place"  # The key of all records of the source; the rank is their offset.


class Binding(Struct, frozen=True, tag=True):
    """On disk: the records below `offset` that no earlier binding has are at `ts`."""

    ts: int
    offset: int


class Ingestion:
    """The machine of i1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._bindings = [record for record in durable.log("bindings") if isinstance(record, Binding)]
        self._upper = 0
        self._appended = 0  # The offset below which all records are durable,
        self._appended_ts = 0  # the highest timestamp of them,
        self._acknowledged = 0  # and the offset that was acknowledged.
        self._interval_ns = settings.parameters["source_ms"] * MS
        self._site.procedures.run(self._begin())

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case Synced(token):
                self._site.synced(token)
            case Closed(peer):
                self._site.procedures.closed(peer)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: the shard and the upstream system show what came."""

    def _begin(self) -> Procedure[None]:
        """Find out what is durable (2), and go on from there."""
        answer = None
        while not isinstance(answer, AtUpper):
            (answer,) = yield Ask(((SOURCE, GetUpper(SOURCE)),))
        self._upper = answer.upper
        for binding in self._bindings:
            if binding.ts < self._upper:
                self._appended, self._appended_ts = binding.offset, binding.ts
        self._clock = Clock(self._site, max(self._upper, 1) if self._upper else None)
        self._site.procedures.run(self._acknowledge())
        if self._bindings and self._bindings[-1].ts >= self._upper:
            self._site.context.sometimes("ingestion appended the records of a binding after a restart")
            yield from self._store(self._bindings[-1])
        if self._appended:
            self._site.context.sometimes("ingestion resumed")
        while True:
            yield from self._next()
            yield Sleep(self._interval_ns)

    def _next(self) -> Procedure[None]:
        """Bind and append what has come; without records the shard's upper moves alone."""
        values = yield from self._fetch(self._appended, None)
        ts = max(self._upper, self._clock.now())
        binding = Binding(ts, self._appended + len(values))
        if values and planted.BINDING_NOT_DURABLE not in self._site.bugs:
            self._site.context.append("bindings", binding)
            durable: list[bool] = []
            self._site.sync(lambda: durable.append(True))
            while not durable:
                yield Sleep(1)
            self._site.context.point("binding-durable")
        yield from self._append(binding, values)

    def _store(self, binding: Binding) -> Procedure[None]:
        """Append the records of a binding that were bound before."""
        values = yield from self._fetch(self._appended, binding.offset)
        yield from self._append(binding, values)

    def _fetch(self, first: int, end: int | None) -> Procedure[tuple[Json, ...]]:
        """The records from an offset on."""
        while True:
            (answer,) = yield Ask(((UPSTREAM_PLACE, Fetch(first, end)),))
            if isinstance(answer, Records) and (end is None or first + len(answer.values) == end):
                return answer.values
            if isinstance(answer, Gone):
                self._site.context.sometimes("ingestion stopped at a gap")
                if planted.RESUME_PAST_GAP in self._site.bugs:
                    self._appended = answer.first
                return ()
            yield Sleep(AGAIN_NS)

    def _append(self, binding: Binding, values: tuple[Json, ...]) -> Procedure[None]:
        first = binding.offset - len(values)
        updates = tuple(Update(PLACE, value, first + place, binding.ts, 1) for place, value in enumerate(values))
        request = CompareAndAppend(SOURCE, self._upper, binding.ts + 1, updates, 0)
        if values and planted.ACK_BEFORE_DURABLE in self._site.bugs:
            yield Ask(((UPSTREAM_PLACE, Acknowledge(binding.offset)),))
        while True:
            (answer,) = yield Ask(((SOURCE, request),))
            if isinstance(answer, AtUpper):
                break
            if isinstance(answer, Mismatch):
                raise AssertionError("nobody else writes the source")
        self._site.context.point("records-appended")
        self._upper = request.new
        if values:
            self._appended, self._appended_ts = binding.offset, binding.ts

    def _acknowledge(self) -> Procedure[None]:
        """Acknowledge what is durable, once all reads see it (3)."""
        while True:
            offset, ts = self._appended, self._appended_ts
            if offset == self._acknowledged:
                yield Ask(((COORDINATOR_PLACE, MayAcknowledge(0)),))  # It keeps the connection open.
                yield Sleep(2 * AGAIN_NS)
                continue
            if planted.ACK_BEFORE_GLOBAL not in self._site.bugs:
                (answer,) = yield Ask(((COORDINATOR_PLACE, MayAcknowledge(ts)),))
                if not isinstance(answer, AckOk):
                    continue
            self._site.context.point("may-acknowledge")
            (answer,) = yield Ask(((UPSTREAM_PLACE, Acknowledge(offset)),))
            if isinstance(answer, Acknowledged):
                self._site.context.sometimes("records were acknowledged upstream")
                self._acknowledged = offset
