"""The observer: follows the file log of a master, applies pieces as they come, and delivers what committed.

Theory of operation.
1. Rows of a piece are kept apart until the last piece of their transaction has come. Then they are delivered, with the
   place of that piece as their position, and a watermark of that position.
2. After a crash it reads the log from the beginning, since it may need pieces of transactions that were open. What it
   had delivered before is on disk as a place, and is not delivered again.
3. A session that ends is followed by another one, from where this one was.
"""

from functools import partial

from msgspec import Struct

from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Assembly, BadPieces, Rows
from clusters.drizzle.messages import Done, Follow, Got, Piece, Pushed, ReadThere, Refused
from clusters.drizzle.shape import FILE_SOURCE, MS, OBSERVED, PEOPLE
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
    Received,
    Settings,
    Synced,
    TimerFired,
)
from harness.core.record import Json

LOOK = "look"
LOOK_NS = 40 * MS


class Saved(Struct, frozen=True, tag=True):
    """On disk: how many pieces were handled, and the number of the session."""

    place: int
    session: int


class Observer:
    """The machine of o1."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        saved = durable.value("saved")
        self._saved = saved if isinstance(saved, Saved) else Saved(0, 0)
        self._session = self._saved.session
        self._place = 0
        self._open: dict[object, Assembly] = {}
        self._lists: dict[Json, list[Json]] = {}
        self._error = ""
        self._is_open = False
        if self._session:
            context.sometimes("the observer began anew")
        self._begin()
        context.set_timer(LOOK, LOOK_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(_, Pushed(session, place, pieces)) if session == self._session and place == self._place:
                self._pushed(pieces)
            case Received(_, Pushed()):
                pass  # Of a session that is over.
            case Received(sender, Call(number, ReadThere(keys))):
                if self._place < self._saved.place:
                    context.send(sender, Answer(number, Refused("it reads the log again")))
                else:
                    found: Json = [[key, list(self._lists.get(key, ()))] for key in keys]
                    context.send(sender, Answer(number, Done(value=[[[FILE_SOURCE, self._place]], found])))
            case Closed(peer) if peer == OBSERVED:
                self._is_open = False
            case TimerFired():
                if not self._is_open:
                    self._begin()
                context.set_timer(LOOK, LOOK_NS)
            case Synced(token):
                self._site.synced(token)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def _begin(self) -> None:
        """Open another session (3)."""
        self._session += 1
        self._is_open = True
        self._site.context.deliver(Delivery(session=self._session, kind="open", position=self._saved.place))
        self._site.context.put("saved", Saved(self._saved.place, self._session))
        self._site.send(OBSERVED, Follow(self._session, self._place))

    def _pushed(self, pieces: tuple[Piece, ...]) -> None:
        for piece in pieces:
            self._place += 1
            if self._error:
                return
            try:
                self._add(piece)
            except BadPieces as reason:
                self._error = str(reason)
                self._site.context.deliver(Delivery(session=self._session, kind="error", value=self._error))
        self._site.send(OBSERVED, Got(self._session, self._place))
        if self._place > self._saved.place:
            self._site.context.deliver(Delivery(session=self._session, kind="watermark", position=self._place))
            saved = Saved(self._place, self._session)
            self._site.context.put("saved", saved)
            self._site.sync(partial(self._durable, saved))

    def _durable(self, saved: Saved) -> None:
        if saved.place > self._saved.place:
            self._saved = saved

    def _add(self, piece: Piece) -> None:
        """Keep a piece, and apply its transaction if it is the last one (1)."""
        if planted.STREAMING_WITHOUT_UNDO in self._site.bugs:
            alone = Assembly()
            for entry in piece.entries:
                if entry.kind == "rows":
                    self._apply(((entry, entry.changes),), piece)
            del alone
            return
        key = piece.server if planted.BUFFER_BY_SERVER_ONLY in self._site.bugs else (piece.server, piece.trx)
        assembly = self._open.setdefault(key, Assembly())
        if assembly.add(piece):
            del self._open[key]
            self._apply(assembly.rows, piece)

    def _apply(self, rows: Rows, piece: Piece) -> None:
        is_new = self._place > self._saved.place
        ordinal = 0
        for entry, changes in rows:
            for change in changes if entry.table != PEOPLE else ():
                self._lists.setdefault(change.key, []).append(change.value)
                if is_new:
                    self._site.context.deliver(
                        Delivery(
                            session=self._session, kind="row", key=change.key, value=change.value,
                            position=self._place, ordinal=ordinal, unit=piece.trx,
                        )
                    )  # fmt: skip
                    ordinal += 1

    def dump(self, context: Context) -> None:
        """Record what it has of the log, and the error that stopped it."""
        lists = [[key, held] for key, held in sorted(self._lists.items(), key=str)]
        opened = sorted(str(key) for key in self._open)
        context.dump(Dump(object="observed", key=context.node, value=[self._place, lists, opened, self._error or None]))
