"""The observer: follows the file logs of both masters, applies pieces as they come, and delivers what committed.

Theory of operation. It does the same for each master.
1. Rows of a piece are kept apart until the last piece of their transaction has come. Then they are delivered, with the
   place of that piece as their position, and after each message a watermark of the last place.
2. After a crash it reads the log from the beginning, since it may need pieces of transactions that were open. Places up
   to which it had delivered are on disk, and what lies before is not delivered again.
3. A session that ends, or is silent, is followed by another one, from where this one was. Pieces that an earlier
   session asked for are as good: else a link slower than the patience with silence would keep the observer behind.
"""

from functools import partial

from msgspec import Struct

from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Assembly, BadPieces, Rows
from clusters.drizzle.messages import Done, Drain, Follow, Got, Piece, Pushed, ReadThere, Refused
from clusters.drizzle.shape import MASTERS, MS, PEOPLE, file_source, master_of
from clusters.drizzle.site import Site
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Delivery,
    Dump,
    Durable,
    Event,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)
from harness.core.record import Json

LOOK = "look"
LOOK_NS = 40 * MS
SILENT_NS = 500 * MS
DRAINED_NS = 200 * MS  # A message that comes so long after a request was sent after it.


class Saved(Struct, frozen=True, tag=True):
    """On disk: how many pieces of a log were handled, and the number of the session."""

    place: int = 0
    session: int = 0


class Followed:
    """What the observer has of one master. Its sessions have numbers of their own: each `step`-th one."""

    def __init__(self, site: Site, master: NodeId, saved: Saved, step: int) -> None:
        self._site, self.master, self.saved, self._step = site, master, saved, step
        self.session = saved.session
        self.place = 0
        self.error = ""
        self.is_open = False
        self.heard_ns = 0
        self.is_at_end = False  # The last message had nothing new.
        self.opened: dict[object, Assembly] = {}
        self.lists: dict[Json, list[Json]] = {}

    def begin(self) -> None:
        """Open another session (3)."""
        self.session = self.session + len(MASTERS) if self.session else self._step
        self.is_open, self.heard_ns = True, self._site.now_ns()
        self._deliver(Delivery(session=self.session, kind="open", span=self.master, position=self.saved.place))
        self._site.context.put(f"saved {self.master}", Saved(self.saved.place, self.session))
        self._site.send(self.master, Follow(self.session, self.place))

    def pushed(self, pieces: tuple[Piece, ...]) -> None:
        """Handle pieces of the log."""
        self.heard_ns = self._site.now_ns()
        self.is_at_end = not pieces
        for piece in pieces:
            self.place += 1
            if not self.error:
                try:
                    self._add(piece)
                except BadPieces as reason:
                    self.error = str(reason)
                    self._deliver(Delivery(session=self.session, kind="error", span=self.master, value=self.error))
        self._site.send(self.master, Got(self.session, self.place))
        if self.place > self.saved.place and not self.error:
            self._deliver(Delivery(session=self.session, kind="watermark", span=self.master, position=self.place))
            saved = Saved(self.place, self.session)
            self._site.context.put(f"saved {self.master}", saved)
            self._site.sync(partial(self._durable, saved))

    def _deliver(self, delivery: Delivery) -> None:
        self._site.context.deliver(delivery)

    def _durable(self, saved: Saved) -> None:
        if saved.place > self.saved.place:
            self.saved = saved

    def _add(self, piece: Piece) -> None:
        """Keep a piece, and apply its transaction if it is the last one (1)."""
        if planted.STREAMING_WITHOUT_UNDO in self._site.bugs:
            self._apply(tuple((entry, entry.changes) for entry in piece.entries), piece)
            return
        key = piece.server if planted.BUFFER_BY_SERVER_ONLY in self._site.bugs else (piece.server, piece.trx)
        assembly = self.opened.setdefault(key, Assembly())
        if assembly.add(piece):
            del self.opened[key]
            self._apply(assembly.rows, piece)

    def _apply(self, rows: Rows, piece: Piece) -> None:
        is_new = self.place > self.saved.place
        ordinal = 0
        for entry, changes in rows:
            for change in changes if entry.table != PEOPLE else ():
                self.lists.setdefault(change.key, []).append(change.value)
                if is_new:
                    self._deliver(
                        Delivery(
                            session=self.session, kind="row", span=self.master, key=change.key, value=change.value,
                            position=self.place, ordinal=ordinal, unit=self.place,
                        )
                    )  # fmt: skip
                    ordinal += 1


class Observer:
    """The machine of o1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._followed: dict[NodeId, Followed] = {}
        self._drains: list[tuple[NodeId, int, int]] = []
        for step, master in enumerate(MASTERS, start=1):
            saved = durable.value(f"saved {master}")
            followed = Followed(self._site, master, saved if isinstance(saved, Saved) else Saved(), step)
            self._followed[master] = followed
            if followed.session:
                context.sometimes("the observer began anew")
            followed.begin()
        context.set_timer(LOOK, LOOK_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Pushed(_, place, pieces)) if sender in self._followed:
                followed = self._followed[sender]
                if place <= followed.place <= place + len(pieces):
                    followed.pushed(pieces[followed.place - place :])
            case Received(sender, Call(number, ReadThere(keys))):
                context.send(sender, Answer(number, self._read(keys)))
            case Received(sender, Call(number, Drain())):
                self._drains.append((sender, number, context.now_ns()))
            case Closed(peer) if peer in self._followed:
                self._followed[peer].is_open = False
            case TimerFired():
                for followed in self._followed.values():
                    if not followed.is_open or context.now_ns() > followed.heard_ns + SILENT_NS:
                        followed.begin()
                self._drain()
                context.set_timer(LOOK, LOOK_NS)
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def _drain(self) -> None:
        """Answer those who wait until it has all of the logs, or until it stopped."""
        for drain in [*self._drains]:
            sender, number, asked_ns = drain
            if all(
                each.error or (each.is_at_end and each.heard_ns > asked_ns + DRAINED_NS)
                for each in self._followed.values()
            ):
                self._site.send(sender, Answer(number, Done()))
                self._drains.remove(drain)

    def _read(self, keys: tuple[Json, ...]) -> Done | Refused:
        """The lists under these keys, unless it is not yet as far as it was before a crash (2)."""
        if any(each.place < each.saved.place for each in self._followed.values()):
            return Refused("it reads a log again")
        positions: Json = [[file_source(master), each.place] for master, each in self._followed.items()]
        found: Json = [[key, list(self._followed[master_of(key)].lists.get(key, ()))] for key in keys]
        return Done(value=[positions, found])

    def dump(self, context: Context) -> None:
        """Record what it has of the logs, and the errors that stopped it."""
        for master, each in self._followed.items():
            lists = [[key, held] for key, held in sorted(each.lists.items(), key=str)]
            opened = sorted(str(key) for key in each.opened)
            context.dump(
                Dump(object="observed", key=master, value=[each.place, lists, opened, each.error or None])
            )  # fmt: skip
