"""A data node: keeps shards, and sends new updates to listeners.

Theory of operation. An append is applied at once, and answered when it is durable, which is also when listeners
get it. So neither the leader nor a reader acts on updates that a crash takes back.
"""

from functools import partial

from clusters.materialize.messages import (
    Asked,
    AtUpper,
    CompareAndAppend,
    Downgrade,
    GetUpper,
    Listen,
    Mismatch,
    Part,
    Told,
)
from clusters.materialize.shape import SHARDS, home_of
from clusters.materialize.site import Site
from clusters.materialize.storage.shard import Appended, Shard, Since
from harness.core.machine import Closed, Context, Dump, Durable, Event, NodeId, Received, Settings, Synced


class DataNode:
    """The machine of the data nodes d1 and d2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        own = [shard for shard in SHARDS if home_of(shard) == context.node]
        appends: dict[str, list[Appended]] = {shard: [] for shard in own}
        for record in durable.log("appends"):
            if isinstance(record, Appended):
                appends.setdefault(record.shard, []).append(record)
        self._shards = {name: Shard(name, held) for name, held in appends.items()}
        for name, shard in self._shards.items():
            since = durable.value(f"since {name}")
            shard.rows.compact(since.ts if isinstance(since, Since) else 0)
        self._durable = {name: shard.rows.upper for name, shard in self._shards.items()}
        self._listeners: dict[str, dict[NodeId, int]] = {}

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Asked(number, CompareAndAppend() as request)):
                self._append(sender, number, request)
            case Received(sender, Asked(number, GetUpper(shard))):
                answer = Told(number, AtUpper(shard, self._shard(shard).rows.upper))
                self._site.sync(partial(self._site.send, sender, answer))
            case Received(sender, Listen(shard, session)):
                self._listen(sender, shard, session)
            case Received(_, Downgrade(shards, since)):
                self._downgrade(shards, since)
            case Synced(token):
                self._site.synced(token)
            case Closed(peer):
                for listeners in self._listeners.values():
                    listeners.pop(peer, None)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Record of each shard its appends, and how many rows are there less than never."""
        for name, shard in sorted(self._shards.items()):
            context.dump(Dump(object="shard", key=name, value=[list(each) for each in shard.history]))
            last = shard.rows.upper - 1
            negative = [
                [row[0], row[1], count]
                for key in shard.rows.keys()  # noqa: SIM118  It is no dictionary.
                for row, count in shard.rows.at(last, key)
                if count < 0
            ]
            context.dump(Dump(object="negative", key=name, value=negative))

    def _shard(self, name: str) -> Shard:
        return self._shards.setdefault(name, Shard(name))

    def _append(self, sender: NodeId, number: int, request: CompareAndAppend) -> None:
        shard = self._shard(request.shard)
        reply, append = shard.append(request, self._site.now_ns())
        if append is None:
            if isinstance(reply, Mismatch):
                self._site.context.sometimes("an append met another upper")
            self._site.sync(partial(self._site.send, sender, Told(number, reply)))
            return
        self._site.context.append("appends", append)
        self._site.context.point("append-applied")
        self._site.sync(partial(self._appended, sender, number, append))

    def _appended(self, sender: NodeId, number: int, append: Appended) -> None:
        self._site.send(sender, Told(number, AtUpper(append.shard, append.new)))
        shard = self._shards[append.shard]
        self._durable[append.shard] = append.new
        for listener, session in self._listeners.get(append.shard, {}).items():
            part = Part(append.shard, session, False, shard.rows.since, append.new, append.updates)
            self._site.send(listener, part)

    def _listen(self, listener: NodeId, name: str, session: int) -> None:
        """Send all of a shard, once that is durable. Appends that become durable before are part of it."""
        self._listeners.get(name, {}).pop(listener, None)
        self._site.sync(partial(self._begin, listener, name, session))

    def _begin(self, listener: NodeId, name: str, session: int) -> None:
        """Send all that is durable. The rest follows when it is."""
        rows, durable = self._shard(name).rows, self._durable.get(name, 0)
        updates = tuple(update for update in rows.updates(0) if update.ts < durable)
        self._listeners.setdefault(name, {})[listener] = session
        self._site.send(listener, Part(name, session, True, rows.since, durable, updates))

    def _downgrade(self, names: tuple[str, ...], since: int) -> None:
        for name in names:
            if home_of(name) == self._site.node and name in self._shards:
                rows = self._shards[name].rows
                if rows.since < since < rows.upper:
                    rows.compact(since)
                    self._site.context.put(f"since {name}", Since(name, since))
