"""A data node: the primary orders transactions in a log, its backup holds a copy.

Theory of operation. The log is the database: position p is the transaction at index p - 1, and the lists are the
result of its appends. A client gets its answer when its transaction is committed.
1. An entry is on the primary's disk before it is sent to the backup, so the backup's log is never ahead of it: two
   entries of one view at one index are the same entry.
2. An entry is committed when the backup of this view has it on disk, or when the view has no backup. Reads are entries
   too, so a deposed primary, which gets no answer from a backup, cannot return an old state.
3. A view is on disk before it is obeyed; a node ignores messages of a lower view. So a deposed primary commits
   nothing.
4. A backup keeps the longest common prefix of its log and the primary's; the rest of its own was never committed.
   `matched` is the length known to be equal in this view; entries that start after it are not accepted.
5. Transactions are streamed whole and in order, and a watermark names the last one sent to that subscriber.
"""

from clusters.tutorial import planted
from clusters.tutorial.feed import Feed
from clusters.tutorial.messages import (
    Done,
    Entry,
    Heartbeat,
    Held,
    Operate,
    Refused,
    Replicate,
    Replicated,
    Subscribe,
    Transact,
    Unclear,
    View,
)
from harness.core.machine import (
    Answer,
    Call,
    Closed,
    Context,
    Drained,
    Dump,
    Durable,
    Event,
    NodeId,
    Received,
    Settings,
    Synced,
    TimerFired,
)
from harness.core.record import Json, MicroOp

MS = 1_000_000
COORDINATOR = NodeId("c1")
OPEN_MAX = 256  # The most transactions in flight; more are refused, and certainly not begun.
VIEW_TOKEN = 0  # A token of entries is the view's number and the position, so that no token of an older view matches.
POSITION_BITS = 40


class DataNode:
    """The data node n1 or n2. Its role follows from `view`."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        view = durable.value("view")
        self.view = view if isinstance(view, View) else View(0, NodeId(""))
        self.next_view = self.view
        self.log = [entry for entry in durable.log("log") if isinstance(entry, Entry)]
        self.is_early = planted.LOST_ACK in settings.bugs
        self.watermark_ns = settings.parameters["watermark_ms"] * MS
        self.feed = Feed(settings)
        self._start_view(context)
        for timer in ("heartbeat", "resend", "watermark"):
            self._timer(timer, context)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Call(number, Transact() | Operate() as request)):
                self._transact(sender, number, request, context)
            case Received(_, Replicate(view, start, entries)):
                if view == self.view.number and self.next_view is self.view:
                    self._replicate(start, entries, context)
            case Received(_, Replicated(view, length)):
                if view == self.view.number:
                    self._replicated(length, context)
            case Received(_, View() as view):
                self._learn(view, context)
            case Received(sender, Subscribe(session, after)):
                self._subscribe(sender, session, after, context)
            case Synced(token):
                self._synced(token, context)
            case TimerFired(name):
                self._timer(name, context)
            case Closed(peer):
                self.feed.drop(peer)
            case Drained():
                self.feed.pump(self.log, self.committed, context)
            case Received(_, message):
                context.unexpected(message)

    def dump(self, context: Context) -> None:
        for key, elements in sorted(self.lists.items(), key=str):
            context.dump(Dump(object="row", key=key, value=list(elements), position=self.committed))

    @property
    def is_primary(self) -> bool:
        """True if this node leads its view."""
        return self.view.primary == self.node

    def _start_view(self, context: Context) -> None:
        """Reset the state of a single view. The whole log is durable at this moment."""
        self.node = context.node
        self.lists: dict[Json, list[Json]] = {}
        self.registers: dict[Json, Json] = {}
        for entry in self.log:
            for mop in entry.mops:
                if mop.f != "r":
                    self._done(mop)
            if entry.operate is not None:
                self._operate(entry.operate)
        self.pending: dict[int, tuple[NodeId, int, Done | Held]] = {}
        self.durable_length = self.inherited = len(self.log)  # The backup is caught up when it has the inherited ones.
        self.backup_length = self.send_from = 0  # The length of the backup's log; where to continue sending.
        self.matched = 0
        self.committed = 0
        self._commit(context)

    def _transact(self, client: NodeId, number: int, request: Transact | Operate, context: Context) -> None:
        if not self.is_primary or self.next_view is not self.view or len(self.pending) >= OPEN_MAX:
            context.send(client, Answer(number, Refused(None if self.is_primary else self.view.primary)))
            return
        mops, operate = (request.mops, None) if isinstance(request, Transact) else ((), request)
        entry = Entry(self.view.number, mops, operate)
        self.log.append(entry)
        self.pending[len(self.log)] = (client, number, self._apply(len(self.log), entry))
        context.append("log", entry)
        context.sync(self._token(len(self.log)))

    def _token(self, position: int) -> int:
        return self.view.number << POSITION_BITS | position

    def _synced(self, token: int, context: Context) -> None:
        if token == VIEW_TOKEN:
            self._obey(context)
            return
        position = token - self._token(0)
        if position < 0:
            return  # The token belongs to an older view: `_start_view` has counted it.
        if not self.is_primary:
            context.send(self.view.primary, Replicated(self.view.number, position))
            return
        self.durable_length = position
        context.point("before-replicate")
        if self.view.backup is not None:
            entries = tuple(self.log[position - 1 : position])
            context.send(self.view.backup, Replicate(self.view.number, position - 1, entries))
        self._commit(context)

    def _replicated(self, length: int, context: Context) -> None:
        self.backup_length = max(self.backup_length, length)
        self.send_from = length  # Lower than before, if the backup has restarted.
        self._commit(context)

    def _commit(self, context: Context) -> None:
        """Answer and stream newly committed entries (invariant 2)."""
        if not self.is_primary:
            return
        length = self.durable_length
        if self.view.backup is not None and not self.is_early:
            length = min(length, self.backup_length)
        while self.committed < length:
            self.committed += 1
            if self.committed in self.pending:
                client, number, done = self.pending.pop(self.committed)
                context.point("before-answer")
                context.send(client, Answer(number, done))
        self.feed.pump(self.log, self.committed, context)

    def _replicate(self, start: int, entries: tuple[Entry, ...], context: Context) -> None:
        """Adopt the primary's log (invariant 4)."""
        if start > self.matched:
            context.send(self.view.primary, Replicated(self.view.number, self.matched))
            return
        for index, entry in enumerate(entries, start):
            if index < len(self.log) and self.log[index].view != entry.view:
                context.sometimes("a conflicting tail was cut off")
                context.truncate("log", index)
                del self.log[index:]
            if index == len(self.log):
                self.log.append(entry)
                context.append("log", entry)
        self.matched = max(self.matched, start + len(entries))
        context.sync(self._token(self.matched))

    def _learn(self, view: View, context: Context) -> None:
        if view.number > self.next_view.number:
            self.next_view = view
            context.put("view", view)
            context.sync(VIEW_TOKEN)

    def _obey(self, context: Context) -> None:
        """Act on the latest view, which is on disk now (invariant 3)."""
        if self.view is self.next_view:
            return
        if self.pending:
            context.sometimes("the view changed while transactions were open")
        for client, number, _ in self.pending.values():
            context.send(client, Answer(number, Unclear()))
        self.view = self.next_view
        self.feed.close()
        self._start_view(context)
        context.point("view-obeyed")
        self._resend(context)

    def _subscribe(self, subscriber: NodeId, session: int, after: int, context: Context) -> None:
        if self.is_primary:
            self.feed.open(subscriber, session, after)
            self.feed.pump(self.log, self.committed, context)
        else:
            context.send(subscriber, Refused(self.view.primary))

    def _timer(self, name: str, context: Context) -> None:
        match name:
            case "heartbeat":
                has_all = self.is_primary and self.view.backup is not None and self.backup_length >= self.inherited
                context.send(COORDINATOR, Heartbeat(self.view.number, has_all, context.local_clock_ns()))
                context.set_timer(name, 50 * MS)
            case "resend":
                self._resend(context)
                context.set_timer(name, 100 * MS)
            case _:
                self.feed.pump(self.log, self.committed, context)
                self.feed.announce(self.committed, context)
                context.set_timer(name, self.watermark_ns)

    def _resend(self, context: Context) -> None:
        """Send entries again that the backup has not acknowledged, as they may have been lost with a connection."""
        if self.is_primary and self.view.backup is not None and self.send_from < self.durable_length:
            entries = tuple(self.log[self.send_from : self.durable_length])
            context.send(self.view.backup, Replicate(self.view.number, self.send_from, entries))

    def _apply(self, position: int, entry: Entry) -> Done | Held:
        """The answer for a committed entry at that position, after applying it to lists and registers."""
        if entry.operate is not None:
            held, is_done = self._operate(entry.operate)
            return Held(position, held, is_done)
        return Done(position, tuple(self._done(mop) for mop in entry.mops))

    def _done(self, mop: MicroOp) -> MicroOp:
        """The micro-operation after applying it; a read has its result: of a register, if its key is text."""
        match mop.f:
            case "append":
                self.lists.setdefault(mop.key, []).append(mop.value)
                return mop
            case "w":
                self.registers[mop.key] = mop.value
                return mop
            case "r" if isinstance(mop.key, str):
                return MicroOp("r", mop.key, self.registers.get(mop.key), lock=mop.lock)
            case _:
                return MicroOp("r", mop.key, list(self.lists.setdefault(mop.key, [])), lock=mop.lock)

    def _operate(self, operate: Operate) -> tuple[Json, bool]:
        """The register's value before that operation, and True if the operation was carried out."""
        held = self.registers.get(operate.key)
        is_done = operate.f != "cas" or held == operate.old
        if operate.f != "read" and is_done:
            self.registers[operate.key] = operate.value
        return held, is_done
