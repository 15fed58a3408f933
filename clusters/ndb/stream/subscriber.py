"""A subscriber: one session at a time with all data nodes, a library that stores events, and a user who reads them.

Theory of operation.
1. The session's number is on disk before it is used, so that no two sessions share one.
2. A session opens when all started nodes of the newest known view have confirmed it in that view, after the highest
   epoch at which one of them begins to send. Messages from before the opening are stored, so that none is missed. A
   confirmation of an older view may promise rows that the node has lost by a take-over.
3. An announcement is acknowledged at once, when the rows before it are stored. It never waits for the user.
4. A lost node is only queried again: other nodes take over its buckets, or end the session. A node that publishes
   epochs which it does not send to this session leaves a hole: the session ends.
5. When the last node is lost, or the cluster has been restarted (another generation), everything incomplete is
   dropped.
"""

from enum import Enum

from clusters.ndb import planted
from clusters.ndb.shape import DATA_NODES, MS
from clusters.ndb.stream.library import Epoch, Library
from clusters.ndb.stream.messages import (
    Disconnected,
    EpochAck,
    EpochComplete,
    Row,
    SessionNumber,
    SubStart,
    SubStartConf,
)
from clusters.ndb.stream.user import User
from harness.core.machine import (
    Closed,
    Context,
    Durable,
    Event,
    Message,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)

TICK = "tick"
TICK_NS = 100 * MS
BEGIN = "begin"
BEGIN_NS = 100 * MS
DISCONNECTED = "disconnected"
CLUSTER_FAILURE = "cluster-failure"


class Phase(Enum):
    """The progress of a session."""

    NUMBERED = 0  # The session's number is not durable yet, or the session has ended.
    ASKING = 1
    OPEN = 2


class Subscriber:
    """The machine of a subscriber, s1 or s2; the two are independent."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        saved = durable.value("session")
        self._session = saved.number if isinstance(saved, SessionNumber) else 0
        self._bugs = settings.bugs
        self._user = self.user_for(settings)
        self._library = Library(self._bugs)
        self._acks: list[tuple[NodeId, EpochAck]] = []  # Acknowledgements to be sent.
        self._generation = 0  # The newest generation seen in this life.
        context.set_timer(TICK, TICK_NS)
        self._begin(context)

    def user_for(self, settings: Settings) -> User:
        """The user of the events."""
        return User(settings.parameters["event_buffer"], settings.parameters["nap_permille"], settings.bugs)

    def handle(self, event: Event, context: Context) -> None:
        if isinstance(event, Received):
            self._receive(event.sender, event.message, context)
        elif isinstance(event, TimerFired):
            self._timer(event.name, context)
        elif isinstance(event, Synced):
            if event.token == self._session:
                self._phase = Phase.ASKING
                self._ask(context)
        elif isinstance(event, Closed):
            self._lose(event.peer, context)

    def dump(self, context: Context) -> None:
        """Do nothing: no check needs a subscriber's state."""

    # Events.

    def _receive(self, sender: NodeId, message: Message, context: Context) -> None:
        if isinstance(message, Row):
            if message.session == self._session:
                self._library.row(sender, message)
        elif isinstance(message, EpochComplete):
            if message.session == self._session and self._phase is not Phase.NUMBERED:
                context.point("subscriber-before-ack")
                self._acks.append((sender, EpochAck(message.session, message.epoch)))
                self._acknowledge(context)
                self._release(self._library.announced(sender, message), context)
        elif isinstance(message, SubStartConf):
            if message.session == self._session and self._phase is not Phase.NUMBERED:
                self._confirmed(sender, message, context)
        elif isinstance(message, Disconnected):
            if message.session == self._session and self._phase is not Phase.NUMBERED:
                self._end(DISCONNECTED, context)
        else:
            context.unexpected(message)

    def _timer(self, name: str, context: Context) -> None:
        match name:
            case "tick":
                context.set_timer(TICK, TICK_NS)
                self._ask(context)
                self._user.tick(context)
                if self._library.repeated_rows:
                    self._library.repeated_rows = 0
                    context.sometimes("a resent row was dropped as known")
            case "begin":
                self._begin(context)
            case _:
                self._user.wake(context)
                self._acknowledge(context)

    def _acknowledge(self, context: Context) -> None:
        """Send all acknowledgements (invariant 3)."""
        if self._user.is_awake or planted.SLOW_USER_NO_ACK not in self._bugs:
            acks, self._acks = self._acks, []
            for node, ack in acks:
                context.send(node, ack)

    def _lose(self, peer: NodeId, context: Context) -> None:
        """Handle the end of a link (invariants 4 and 5)."""
        was_confirmed = self._confirmations.pop(peer, None) is not None
        if was_confirmed and not self._confirmations and self._phase is Phase.OPEN:
            self._end(CLUSTER_FAILURE, context)
        elif was_confirmed and planted.FAILED_NODE_COUNTS_DONE in self._bugs:
            self._release(self._library.lost(peer), context)

    # Sessions.

    def _begin(self, context: Context) -> None:
        """Begin the next session: make its number durable (invariant 1)."""
        self._session += 1
        self._phase = Phase.NUMBERED
        library = Library(self._bugs)
        if planted.CLUSTER_FAILURE_KEEPS_PARTIAL in self._bugs:
            library.succeed(self._library)
        self._library = library
        self._confirmations: dict[NodeId, SubStartConf] = {}
        context.put("session", SessionNumber(self._session))
        context.sync(self._session)

    def _ask(self, context: Context) -> None:
        """Query nodes: until the session opens, all of them, since views change; then the unconfirmed ones."""
        if self._phase is not Phase.NUMBERED:
            for node in DATA_NODES:
                if self._phase is Phase.ASKING or node not in self._confirmations:
                    context.send(node, SubStart(self._session))

    def _confirmed(self, node: NodeId, conf: SubStartConf, context: Context) -> None:
        if conf.generation < self._generation:
            return  # This node has not yet noticed that the cluster was started without it.
        if conf.generation > self._generation:
            is_first, self._generation = self._generation == 0, conf.generation
            if not is_first:
                context.sometimes("a subscriber saw the whole cluster fail")
                self._end(CLUSTER_FAILURE, context)
                return
        self._confirmations[node] = conf
        if self._phase is Phase.ASKING:
            self._try_to_open(context)
        elif _has_hole(conf, self._first) and planted.HANDOVER_BEFORE_CONNECT not in self._bugs:
            self._end(DISCONNECTED, context)

    def _try_to_open(self, context: Context) -> None:
        """Open the session if all required nodes have confirmed it (invariant 2)."""
        confirmations = self._confirmations
        newest = max(confirmations.values(), key=lambda conf: conf.view_number)
        if all(self._has_confirmed(node, newest.view_number) for node in newest.started):
            first = max(confirmations[node].first_epoch for node in newest.started)
            for conf in confirmations.values():
                if _has_hole(conf, first):
                    first = conf.first_epoch
            self._first = first
            self._phase = Phase.OPEN
            self._user.opened(self._session, first - 1, context)
            self._release(self._library.open(first), context)

    def _has_confirmed(self, node: NodeId, view_number: int) -> bool:
        conf = self._confirmations.get(node)
        return conf is not None and conf.view_number == view_number

    def _release(self, epochs: list[Epoch], context: Context) -> None:
        for epoch in epochs:
            self._user.epoch(self._session, epoch, context)

    def _end(self, cause: str, context: Context) -> None:
        """End the session; the next one begins soon."""
        if self._phase is Phase.OPEN:
            self._user.ended(self._session, cause, self._library.latest_complete + 1, context)
        self._phase = Phase.NUMBERED
        self._confirmations = {}
        context.set_timer(BEGIN, BEGIN_NS)


def _has_hole(conf: SubStartConf, first: int) -> bool:
    """True if the node publishes epochs, from `first` on, that it does not send to the session."""
    return conf.publishing_from is not None and max(conf.publishing_from, first) < conf.first_epoch
