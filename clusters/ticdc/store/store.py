"""A store (TiKV): the replicas of all regions, and the rounds that advance their watermarks.

Theory of operation. An event goes to the replica that it concerns. A timer drives logs and scans.
1. A replica that has come to lead begins to track locks at the first tick after its log has caught up; the scan of its
   locks takes until a later tick. Captures are refused until then.
"""

from clusters.ticdc import planted
from clusters.ticdc.log.messages import LOG_MESSAGES, Entry, Vote
from clusters.ticdc.oracle.messages import Timestamp
from clusters.ticdc.rows.messages import ToRegion, Upload
from clusters.ticdc.shape import MS, REGIONS, STORES
from clusters.ticdc.site import Site
from clusters.ticdc.store.replica import Replica
from clusters.ticdc.stream.messages import NOT_LEADER, SessionError, Subscribe
from clusters.ticdc.watermarks.messages import ROUND_MESSAGES
from clusters.ticdc.store.rounds import Rounds
from harness.core.machine import (
    Closed,
    Context,
    Dump,
    Durable,
    Event,
    Message,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)

TICK_NS = 20 * MS
SCAN_NS = 3 * MS
UPLOAD_NS = 60 * MS


class Store:
    """The machine of the stores k1 to k3."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        site = self._site = Site(context.node, settings.bugs, settings.parameters)
        site.context = context
        self._replicas: dict[int, Replica] = {}
        for region in REGIONS:
            vote = durable.value(f"vote-{region}")
            entries = [entry for entry in durable.log(f"log-{region}") if isinstance(entry, Entry)]
            uploaded = [piece for piece in durable.log(f"backup-{region}") if isinstance(piece, Upload)]
            vote = vote if isinstance(vote, Vote) else Vote()
            self._replicas[region] = Replica(site, region, vote, entries, uploaded)
        self._rounds = Rounds(site, self._replicas)
        self._is_scanning = False
        self._upload_ns = context.now_ns()
        context.set_timer("tick", TICK_NS)
        context.set_timer("round", site.parameters["advance_ms"] * MS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, message):
                self._receive(sender, message)
            case TimerFired(name):
                self._timer(name)
            case Synced(token):
                self._site.synced(token)
            case Closed(peer):
                self._closed(peer)
            case _:
                pass

    def dump(self, context: Context) -> None:
        for replica in self._replicas.values():
            for key, elements, commit_ts in replica.rows.newest_values():
                context.dump(Dump(object="row", key=key, value=list(elements), position=commit_ts))

    def _receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, ToRegion):
            self._replicas[message.region].request(sender, message.number, message.body)
        elif isinstance(message, LOG_MESSAGES):
            self._replicas[message.region].log.handle(sender, message)
        elif isinstance(message, Subscribe):
            self._subscribe(sender, message)
        elif isinstance(message, (Timestamp, *ROUND_MESSAGES)):
            self._rounds.handle(sender, message)
        else:
            self._site.context.unexpected(message)

    def _timer(self, name: str) -> None:
        context = self._site.context
        if name == "tick":
            context.set_timer("tick", TICK_NS)
            for replica in self._replicas.values():
                replica.log.tick()
                self._track(replica)
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

    def _upload(self) -> None:
        """Write to storage what log backups have in their buffers."""
        if self._site.now_ns() >= self._upload_ns + UPLOAD_NS:
            self._upload_ns = self._site.now_ns()
            for replica in self._replicas.values():
                replica.uploads.flush()

    def _track(self, replica: Replica) -> None:
        """Begin to track locks, and at a later tick to advance (invariant 1)."""
        if replica.advancer is None:
            is_hasty = replica.log.is_leader and planted.SCAN_WITHOUT_READ_INDEX in self._site.bugs
            if replica.log.has_caught_up or is_hasty:
                replica.begin()
        elif not replica.advancer.is_ready:
            replica.advancer.scanned()
        if replica.feed.has_scans():
            self._scan_soon()

    def _subscribe(self, capture: NodeId, message: Subscribe) -> None:
        replica = self._replicas[message.region]
        advancer = replica.advancer
        if advancer is None or not advancer.is_ready or not replica.log.has_lease():
            self._site.send(capture, SessionError(message.request, NOT_LEADER))
            return
        replica.feed.subscribe(capture, message.request, message.after, replica.rows, advancer)
        self._scan_soon()

    def _scan_soon(self) -> None:
        if not self._is_scanning:
            self._is_scanning = True
            self._site.context.set_timer("scan", SCAN_NS)

    def _closed(self, peer: NodeId) -> None:
        for replica in self._replicas.values():
            if peer in STORES:
                replica.log.closed(peer)
            else:
                replica.feed.closed(peer)
        self._rounds.closed(peer)
