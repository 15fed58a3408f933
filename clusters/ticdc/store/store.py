"""A store (TiKV): the replicas of all regions, and the rounds that advance their watermarks.

Theory of operation. An event goes to the replica that it concerns. A timer drives logs and scans.
1. A replica that has come to lead begins to track locks at the first tick after its log has caught up; the scan of its
   locks takes until a later tick. Captures are refused until then.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from clusters.ticdc import planted
from clusters.parts.log_messages import LOG_MESSAGES, Entry, LogMessage, Vote
from clusters.ticdc.oracle.messages import Timestamp, Upgrade
from clusters.ticdc.oracle.upgrade import is_new, is_rolling, upgrade
from clusters.ticdc.regions.messages import FIRST, Command, FromRegion, KnownRegions, MergeInto, Moved, Region, ToRegion
from clusters.ticdc.rows.incarnations import incarnation, name, view
from clusters.ticdc.rows.messages import Upload
from clusters.ticdc.shape import MS, STORES
from clusters.ticdc.site import Site
from clusters.ticdc.store.replica import Replica
from clusters.ticdc.store.stale import ReadProgress
from clusters.ticdc.stream.messages import NOT_LEADER, RESHAPED, SessionError, Subscribe
from clusters.ticdc.watermarks.messages import ROUND_MESSAGES
from clusters.ticdc.store.rounds import Rounds
from harness.core.machine import (
    Context,
    Dump,
    Durable,
    Event,
    NodeId,
    Settings,
)

TICK_NS = 20 * MS
SCAN_NS = 3 * MS
UPLOAD_NS = 60 * MS


class Store:
    """The machine of the stores k1 to k3."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        site = self._site = Site(context.node, settings.bugs, settings.parameters)
        site.context = context
        site.is_new, site.has_new_rule = is_new(durable, settings), not is_rolling(settings)
        self._replicas: dict[int, Replica] = {}
        known = durable.value("regions")
        known = known if isinstance(known, KnownRegions) else KnownRegions(tuple(region.id for region in FIRST), ())
        self._absorbed: dict[int, None] = dict.fromkeys(known.absorbed)
        for region in known.present:
            vote = durable.value(f"vote-{region}")
            entries = [entry for entry in durable.log(f"log-{region}") if isinstance(entry, Entry)]
            uploaded = [piece for piece in durable.log(f"backup-{region}") if isinstance(piece, Upload)]
            vote = vote if isinstance(vote, Vote) else Vote()
            is_eager = not entries and site.node == STORES[region % len(STORES)]  # Spread at the beginning.
            self._make(region, vote, entries, uploaded, is_eager=is_eager)
        self._rounds = Rounds(site, self._replicas, self._replica_at)
        self.receivers: dict[type, Callable[[NodeId, Any], None]] = {
            ToRegion: self._requested,
            **dict.fromkeys(LOG_MESSAGES, self._log_of),
            Subscribe: self._subscribe,
            **dict.fromkeys((Timestamp, *ROUND_MESSAGES), self._rounds.handle),
            Upgrade: partial(upgrade, site),
            MergeInto: self._asked_to_merge,
        }
        self._is_scanning = False
        self._upload_ns = context.now_ns()
        context.set_timer("tick", TICK_NS)
        context.set_timer("round", site.parameters["advance_ms"] * MS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.handle(event, context, self)

    def dump(self, context: Context) -> None:
        for replica in self._replicas.values():
            if replica.is_frozen:
                continue  # The region to the left has its rows.
            for key, elements, commit_ts in replica.rows.newest_values():
                for each in range(incarnation(elements) + 1):
                    shown = list(view(elements, each))
                    context.dump(Dump(object="row", key=name(key, each), value=shown, position=commit_ts))

    # The regions, as replicas see them.

    def regions(self) -> tuple[Region, ...]:
        return tuple(replica.region for replica in self._replicas.values() if replica.region.version >= 0)

    def found(self, region: Region, first: Entry[Command], *, is_eager: bool) -> None:
        if region.id in self._absorbed:
            return
        replica = self._replicas.get(region.id)
        if replica is None:
            replica = self._make(region.id, Vote(), (), (), is_eager=is_eager)
            self._save_regions()
        replica.log.found(first)

    def absorbed(self, regions: tuple[int, ...]) -> None:
        for region in regions:
            self._absorbed[region] = None
            replica = self._replicas.pop(region, None)
            if replica is not None:
                replica.feed.end(RESHAPED, self.regions(), None)
        self._save_regions()

    def progress_of(self, region: int) -> ReadProgress | None:
        replica = self._replicas.get(region)
        return replica.progress if replica is not None else None

    def _make(
        self, region: int, vote: Vote, entries: Sequence[Entry[Command]], uploaded: Sequence[Upload], *, is_eager: bool
    ) -> Replica:
        """A replica of a region: one of the first, or one whose log has, or gets, its range (regions, invariant 2)."""
        known = FIRST[region] if region < len(FIRST) else Region(region, -1, 0, 0)
        replica = Replica(self._site, self, known, vote, entries, uploaded, is_eager=is_eager)
        self._replicas[region] = replica
        if region >= len(FIRST):
            replica.log.found()
        return replica

    def _save_regions(self) -> None:
        self._site.context.put("regions", KnownRegions(tuple(self._replicas), tuple(self._absorbed)))

    def _replica_at(self, slot: int) -> Replica | None:
        """The replica of the region that holds a slot, as far as this store knows.

        None until a restarted store has applied again that a region became a part of another.
        """
        newest: Replica | None = None
        for each in self._replicas.values():
            region = each.region
            if region.start <= slot < region.end and (newest is None or region.version > newest.region.version):
                newest = each
        return newest

    # Events.

    def _requested(self, sender: NodeId, message: ToRegion) -> None:
        replica = self._replicas.get(message.region)
        if replica is None:
            self._site.send(sender, FromRegion(message.number, Moved(self.regions())))
        else:
            replica.request(sender, message.number, message.version, message.body)

    def _log_of(self, sender: NodeId, message: LogMessage[Command]) -> None:
        region = message.log
        if region in self._absorbed:
            return
        replica = self._replicas.get(region)
        if replica is None:
            replica = self._make(region, Vote(), (), (), is_eager=False)
            self._save_regions()
        replica.log.handle(sender, message)

    def _asked_to_merge(self, sender: NodeId, message: MergeInto) -> None:
        neighbour = self._replica_at(message.source.start - 1)
        if neighbour is not None:
            neighbour.merge(sender, message)

    def expired(self, name: str) -> None:
        context = self._site.context
        if name == "tick":
            context.set_timer("tick", TICK_NS)
            for replica in tuple(self._replicas.values()):
                replica.log.tick()
                self._track(replica)
                self._merge(replica)
            self._upload()
        elif name == "round":
            context.set_timer("round", self._site.parameters["advance_ms"] * MS)
            self._rounds.tick()
        else:
            for replica in self._replicas.values():
                replica.feed.scan()
            self._is_scanning = any(replica.feed.has_scans() for replica in self._replicas.values())
            if self._is_scanning:
                context.set_timer("scan", SCAN_NS)

    def _merge(self, replica: Replica) -> None:
        """Send a frozen region to its left neighbour (regions, invariant 3)."""
        request = replica.leaves()
        neighbour = self._replica_at(request.source.start - 1) if request is not None else None
        if request is None or neighbour is None:
            return
        if neighbour.log.is_leader:
            neighbour.merge(self._site.node, request)
        elif neighbour.log.leader is not None:
            self._site.send(neighbour.log.leader, request)

    def _upload(self) -> None:
        """Write to storage what log backups have in their buffers."""
        if self._site.now_ns() >= self._upload_ns + UPLOAD_NS:
            self._upload_ns = self._site.now_ns()
            for replica in self._replicas.values():
                replica.uploads.flush()

    def _track(self, replica: Replica) -> None:
        """Begin to track locks, and at a later tick to advance (invariant 1)."""
        if replica.is_frozen:
            return
        if replica.advancer is None:
            is_hasty = replica.log.is_leader and planted.SCAN_WITHOUT_READ_INDEX in self._site.bugs
            if replica.log.has_caught_up or is_hasty:
                replica.begin()
        elif not replica.advancer.is_ready:
            replica.advancer.scanned()
        if replica.feed.has_scans():
            self._scan_soon()

    def _subscribe(self, capture: NodeId, message: Subscribe) -> None:
        replica = self._replicas.get(message.region)
        if replica is None or replica.region.version != message.version:
            self._site.send(capture, SessionError(message.request, RESHAPED, self.regions()))
            return
        advancer = replica.advancer
        if advancer is None or not advancer.is_ready or not replica.serves:
            self._site.send(capture, SessionError(message.request, NOT_LEADER, self.regions(), replica.log.leader))
            return
        replica.feed.subscribe(capture, message.request, message.after, replica.rows, advancer)
        self._scan_soon()

    def _scan_soon(self) -> None:
        if not self._is_scanning:
            self._is_scanning = True
            self._site.context.set_timer("scan", SCAN_NS)

    def closed(self, peer: NodeId) -> None:
        for replica in self._replicas.values():
            if peer in STORES:
                replica.log.closed(peer)
            else:
                replica.feed.closed(peer)
        self._rounds.closed(peer)
