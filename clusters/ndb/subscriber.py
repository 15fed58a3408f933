"""A subscriber: one session at a time with all data nodes, a library that stores, and a user that takes.

Theory of operation.
1. The session's number is on disk before it is used, so that no two sessions share one.
2. A session opens when all started nodes of the newest view that anyone has named have confirmed it in that view,
   behind the highest epoch at which one of them begins to send. What comes before that is stored, so that nothing of it
   is missed. A confirmation of an older view may promise what the node has lost by a take-over.
3. An announcement is acknowledged at once, when the rows before it are stored. The user is never waited for.
4. A node that is lost is asked again, and nothing else: others take over what it had, or say that the session is over.
   A node that publishes from an epoch on from which it does not send to this session leaves a hole: the session ends.
5. With the last node, or when the cluster has been started anew (another generation), everything incomplete is dropped.
"""

from enum import Enum

from clusters.ndb.library import Epoch, Library
from clusters.ndb.shape import DATA_NODES, MS
from clusters.ndb.stream import (
    Disconnected,
    EpochAck,
    EpochComplete,
    Row,
    SessionNumber,
    SubStart,
    SubStartConf,
)
from clusters.ndb.user import User
from harness.core.machine import (
    Closed,
    Context,
    Drained,
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
    """How far a session is."""

    NUMBERED = 0  # Its number is not durable yet, or it has ended.
    ASKING = 1
    OPEN = 2


class Subscriber:
    """s1 or s2, each on its own."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        saved = durable.value("session")
        self._session = saved.number if isinstance(saved, SessionNumber) else 0
        self._bugs = settings.bugs
        self._user = User(settings.parameters["event_buffer"], settings.parameters["nap_permille"])
        self._generation = 0  # The newest that this life has seen.
        context.set_timer(TICK, TICK_NS)
        self._begin(context)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, message):
                self._receive(sender, message, context)
            case TimerFired(name):
                self._timer(name, context)
            case Synced(token):
                if token == self._session:
                    self._phase = Phase.ASKING
                    self._ask(context)
            case Closed(peer):
                self._lose(peer, context)
            case Drained():
                pass

    def dump(self, context: Context) -> None:
        """Nothing that a check asks for."""

    # Events.

    def _receive(self, sender: NodeId, message: Message, context: Context) -> None:
        if isinstance(message, Row):
            if message.session == self._session:
                self._library.row(sender, message)
        elif isinstance(message, EpochComplete):
            if message.session == self._session and self._phase is not Phase.NUMBERED:
                context.point("subscriber-before-ack")
                context.send(sender, EpochAck(message.session, message.epoch))
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

    def _lose(self, peer: NodeId, context: Context) -> None:
        """A link has ended (invariants 4 and 5)."""
        was_confirmed = self._confirmations.pop(peer, None) is not None
        if was_confirmed and not self._confirmations and self._phase is Phase.OPEN:
            self._end(CLUSTER_FAILURE, context)

    # Sessions.

    def _begin(self, context: Context) -> None:
        """The next session: its number is made durable (invariant 1)."""
        self._session += 1
        self._phase = Phase.NUMBERED
        self._library = Library(self._bugs)
        self._confirmations: dict[NodeId, SubStartConf] = {}
        context.put("session", SessionNumber(self._session))
        context.sync(self._session)

    def _ask(self, context: Context) -> None:
        """Until the session opens, everybody, since views change meanwhile; then whoever has not confirmed it."""
        if self._phase is not Phase.NUMBERED:
            for node in DATA_NODES:
                if self._phase is Phase.ASKING or node not in self._confirmations:
                    context.send(node, SubStart(self._session))

    def _confirmed(self, node: NodeId, conf: SubStartConf, context: Context) -> None:
        if conf.generation < self._generation:
            return  # That node has not noticed yet that the cluster was started without it.
        if conf.generation > self._generation:
            is_first, self._generation = self._generation == 0, conf.generation
            if not is_first:
                context.sometimes("a subscriber saw the whole cluster fail")
                self._end(CLUSTER_FAILURE, context)
                return
        self._confirmations[node] = conf
        if self._phase is Phase.ASKING:
            self._try_to_open(context)
        elif _has_hole(conf, self._first):
            self._end(DISCONNECTED, context)

    def _try_to_open(self, context: Context) -> None:
        """Open the session if everybody has confirmed who must (invariant 2)."""
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
        """The session is over; the next begins soon."""
        if self._phase is Phase.OPEN:
            self._user.ended(self._session, cause, self._library.latest_complete + 1, context)
        self._phase = Phase.NUMBERED
        self._confirmations = {}
        context.set_timer(BEGIN, BEGIN_NS)


def _has_hole(conf: SubStartConf, first: int) -> bool:
    """Are there epochs, from `first` on, that this node publishes but does not send to the session?"""
    return conf.publishing_from is not None and max(conf.publishing_from, first) < conf.first_epoch
