"""The upstream system: a log of records, which shows what was acknowledged and drops it.

Theory of operation. A client that writes a record gets its answer when the record is acknowledged, as with synchronous
replication: from then on every strict read must see it.
1. A record is fetched only when it is durable.
2. Records below the acknowledged offset are gone: no ingestion gets it a second time.
3. It keeps so many records that were not acknowledged, and no more. Once it has dropped one of them nobody can
   acknowledge those that follow, and clients need not wait for that.
"""

from functools import partial

from msgspec import Struct

from clusters.materialize.messages import (
    Acknowledge,
    Acknowledged,
    Asked,
    Fetch,
    Gone,
    Produce,
    Produced,
    Records,
    Told,
    Unclear,
)
from clusters.materialize.site import Site
from harness.core.machine import (
    Answer,
    Call,
    Context,
    Dump,
    Durable,
    Event,
    NodeId,
    Received,
    Settings,
    Synced,
)
from harness.core.record import Json


class Written(Struct, frozen=True, tag=True):
    """On disk: a record."""

    value: Json


class Upstream:
    """The machine of u1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._values = [record.value for record in durable.log("records") if isinstance(record, Written)]
        self._length = len(self._values)  # The number of durable records.
        acknowledged = durable.value("acknowledged")
        self._first = acknowledged.offset if isinstance(acknowledged, Acknowledged) else 0
        self._retained = settings.parameters["retained"]
        dropped = durable.value("dropped")
        self._dropped = dropped.offset if isinstance(dropped, Acknowledged) else 0
        self._waiting: list[tuple[int, NodeId, int]] = []

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Call(number, Produce(value))):
                self._waiting.append((len(self._values), sender, number))
                self._values.append(value)
                context.append("records", Written(value))
                self._drop()
                self._site.sync(partial(self._written, len(self._values)))
            case Received(sender, Asked(number, Fetch(first, end))):
                oldest = max(self._first, self._dropped)
                if first < oldest:
                    context.send(sender, Told(number, Gone(oldest)))
                else:
                    last = self._length if end is None else min(end, self._length)
                    context.send(sender, Told(number, Records(first, tuple(self._values[first:last]))))
            case Received(sender, Asked(number, Acknowledge(offset))):
                if offset > self._first:
                    self._first = offset
                    context.put("acknowledged", Acknowledged(offset))
                self._site.sync(partial(self._acknowledged, offset, sender, number))
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Record all records that were ever written, and how many of them are acknowledged."""
        context.dump(Dump(object="upstream", key="source", value=[self._first, self._values]))

    def _drop(self) -> None:
        """Drop what is too much (3)."""
        last = len(self._values) - self._retained
        if last > self._first or self._dropped:
            self._site.context.sometimes("upstream dropped records that nobody had acknowledged")
            self._dropped = max(last, self._dropped)
            self._site.context.put("dropped", Acknowledged(self._dropped))
            self._site.sync(self._give_up)

    def _give_up(self) -> None:
        """Answer all clients: their records are written, and nobody acknowledges them."""
        for _, client, call in self._waiting:
            self._site.send(client, Answer(call, Unclear("the record was not acknowledged")))
        self._waiting.clear()

    def _written(self, length: int) -> None:
        self._length = length

    def _acknowledged(self, offset: int, sender: NodeId, number: int) -> None:
        self._site.send(sender, Told(number, Acknowledged(offset)))
        for place, client, call in self._waiting:
            if place < offset:
                self._site.send(client, Answer(call, Produced(place)))
        self._waiting = [each for each in self._waiting if each[0] >= offset]
