"""The binlog injector: a subscriber whose user writes the binlog, and which serves it to replicas.

1. Deliveries reach the binlog in the order in which they reach the history: an injector is a user of the event API like
   any other. Its acknowledgements to data nodes do not wait for its disk.
"""

from clusters.ndb.binlog.binlog import TOKENS, Binlog
from clusters.ndb.binlog.messages import Fetch, IsReady, Locate, NotYet, Shown
from clusters.ndb.shape import INJECTORS
from clusters.ndb.stream.library import Epoch
from clusters.ndb.stream.messages import Row
from clusters.ndb.stream.subscriber import Subscriber
from clusters.ndb.stream.user import User
from harness.core.machine import Answer, Call, Context, Durable, Event, Received, Settings, Synced


class BinlogUser(User):
    """The user of an injector: the binlog takes all its deliveries."""

    def __init__(self, limit: int, nap_permille: int, binlog: Binlog) -> None:
        super().__init__(limit, nap_permille)
        self._binlog = binlog
        self._rows: dict[int, list[Row]] = {}  # By epoch that waits.

    def epoch(self, session: int, epoch: Epoch, context: Context) -> None:
        self._rows[epoch.number] = epoch.rows
        super().epoch(session, epoch, context)

    def wake(self, context: Context) -> None:
        deliveries = list(self._waiting)
        super().wake(context)
        for delivery in deliveries:
            rows = self._rows.get(delivery.position or 0, []) if delivery.kind == "watermark" else []
            self._binlog.take(delivery, rows, context)
        self._rows.clear()  # Whatever is left was discarded: the user takes all that waits.


class Injector(Subscriber):
    """The machine of an injector."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        server = INJECTORS.index(context.node) + 1
        self._binlog = Binlog(server, settings.bugs, durable)
        super().recover(durable, settings, context)

    def user_for(self, settings: Settings) -> User:
        return BinlogUser(settings.parameters["event_buffer"], settings.parameters["nap_permille"], self._binlog)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Call(number, IsReady())):
                context.send(sender, Answer(number, Shown() if self._binlog.has_begun else NotYet()))
            case Received(sender, Locate() as message):
                context.send(sender, self._binlog.located(message))
            case Received(sender, Fetch() as message):
                context.send(sender, self._binlog.fetched(message))
            case Received(sender, Call(number, Locate() as message)):
                context.send(sender, Answer(number, self._binlog.located(message)))
            case Received(sender, Call(number, Fetch() as message)):
                context.send(sender, Answer(number, self._binlog.fetched(message)))
            case Synced(token) if token >= TOKENS:
                self._binlog.synced(token, context)
            case _:
                super().handle(event, context)

    def dump(self, context: Context) -> None:
        self._binlog.dump(context)
