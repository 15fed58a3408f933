"""The metadata node: the compare-and-set store, and the placement of containers on segment stores.

Theory of operation.
1. An answer is sent when all that was changed before it is durable, so nobody acts on what a crash takes back.
2. Stores report that they live. The containers of a silent store move to the one with the fewest; each change of the
   placement has a higher version, under which a store opens the logs of its containers. A wrong guess costs time only:
   the log fences the old owner.
"""

from functools import partial

from clusters.parts.cas_store import Cas, CasStore, Get, Held, List, Listing, Next, Write
from clusters.pravega.messages import Alive, Asked, Placement, Told
from clusters.pravega.metadata.changes import CHANGED, shown
from clusters.pravega.readers.group import Group, group_of
from clusters.pravega.records import ENDED, GROUP, HISTORY, TXNS, first_history, history_of, txn_of
from clusters.pravega.shape import CONTAINERS, MS, STORES
from clusters.pravega.site import Site
from harness.core.machine import (
    Context,
    Dump,
    Durable,
    Event,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)

LOOK = "look"
LOOK_NS = 50 * MS


class Metadata:
    """The machine of m1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        writes = [record for record in durable.log("store") if isinstance(record, Write)]
        self._store = CasStore(writes)
        self._changes = [write for write in writes if write.name in CHANGED]
        placed = durable.value("placement")
        first = Placement(1, tuple(STORES[number % len(STORES)] for number in range(CONTAINERS)))
        self._placement = placed if isinstance(placed, Placement) else first
        self._shown = self._placement  # The last one that is durable.
        self._suspect_ns = settings.parameters["suspect_ms"] * MS
        self._heard_ns = dict.fromkeys(STORES, context.now_ns())
        self._site = Site(context.node, settings, context)
        self._open_syncs = 0
        context.set_timer(LOOK, LOOK_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Asked(number, Get() | List() | Cas() | Next() as request)):
                reply, write = self._store.serve(request)
                if write is not None:
                    context.append("store", write)
                    if write.name in CHANGED:
                        self._changes.append(write)
                self._answer(sender, Told(number, reply), is_write=write is not None)
            case Received(sender, Alive()):
                self._heard_ns[sender] = context.now_ns()
                context.send(sender, self._shown)
            case Synced(token):
                self._site.synced(token)
            case TimerFired():
                self._look(context)
                context.set_timer(LOOK, LOOK_NS)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Record the stream's epochs, its transactions, the readers' restorations, and how its records changed.

        An epoch has the epoch it refers to, and its segments with their keys.
        """
        held, _ = self._store.serve(Get(HISTORY))
        value = held.value if isinstance(held, Held) else None
        history = first_history() if value is None else history_of(value)
        for epoch in history.listed():
            spans = [[span.low, span.high, span.segment.number, span.segment.epoch] for span in epoch.spans]
            context.dump(Dump(object="epoch", key=epoch.number, value=[epoch.reference, spans]))
        for prefix in (TXNS, ENDED):
            listing, _ = self._store.serve(List(prefix))
            for entry in listing.entries if isinstance(listing, Listing) else ():
                txn = txn_of(entry.value or b"")
                context.dump(Dump(object="txn", key=txn.id, value=txn.status))
        held, _ = self._store.serve(Get(GROUP))
        group = Group() if not isinstance(held, Held) or held.value is None else group_of(held.value)
        for each in group.restored:
            cut = [[segment.number, segment.epoch, offset] for segment, offset in each.place.offsets()]
            context.dump(Dump(object="restored", key=each.session, value=[each.place.number, cut]))
        for change in self._changes:
            context.dump(Dump(object="change", key=change.version, value=shown(change)))

    def _answer(self, sender: NodeId, answer: Told, *, is_write: bool) -> None:
        """Send an answer once all that was written before is durable (1)."""
        if not is_write and not self._open_syncs:
            self._site.send(sender, answer)
            return
        self._open_syncs += 1
        self._site.sync(partial(self._answer_now, sender, answer))

    def _answer_now(self, sender: NodeId, answer: Told) -> None:
        self._open_syncs -= 1
        self._site.send(sender, answer)

    def _show(self, placement: Placement) -> None:
        self._shown = placement
        for store in STORES:
            self._site.send(store, placement)

    def _look(self, context: Context) -> None:
        """Move the containers of silent stores (2)."""
        oldest_ns = context.now_ns() - self._suspect_ns
        alive = [store for store in STORES if self._heard_ns[store] > oldest_ns]
        owners = list(self._placement.owners)
        for container, owner in enumerate(owners):
            if alive and owner not in alive:
                owners[container] = min(alive, key=owners.count)
        if tuple(owners) != self._placement.owners:
            context.sometimes("a container moved to another store")
            self._placement = Placement(self._placement.version + 1, tuple(owners))
            context.put("placement", self._placement)
            self._site.sync(partial(self._show, self._placement))
