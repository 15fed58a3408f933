"""A controller: answers writers and readers, hosts transactions, and runs the stream's processor if it has the lease.

Theory of operation. Controllers keep nothing on disk. The lease is a record that its owner changes again and again; who
finds it unchanged for long enough takes it over. Two controllers may both believe that they have it: see processor.py.
"""

from collections.abc import Callable

from clusters.parts.cas_store import ABSENT, Held, Next
from clusters.parts.procedures import TIMER, Sleep
from clusters.parts.routing import Later, Procedure
from clusters.pravega.controller.marks import mark, note
from clusters.pravega.controller.metadata import Superseded, changed, counted, held, history, one, replaced, state
from clusters.pravega.controller.processor import Processor
from clusters.pravega.controller.transactions import Transactions
from clusters.pravega.messages import (
    AbortTxn,
    Asked,
    CheckTxn,
    CommitTxn,
    CreateTxn,
    Epochs,
    GetGroup,
    GetHistory,
    GetMark,
    GetPending,
    GetSuccessors,
    NoteTime,
    PingTxn,
    Reply,
    RestoreGroup,
    SealStream,
    Status,
    Successors,
    TakeCheckpoint,
    ToController,
    Told,
    TruncateStream,
)
from clusters.pravega.readers.group import Group, begun, group_of, restored
from clusters.pravega.records import GROUP, LEASE, SEAL, TRUNCATE, History, Lease, encoded, lease_of
from clusters.pravega.shape import CONTROLLERS, MS, STORE_PLACE
from clusters.pravega.site import Site
from harness.core.machine import (
    Closed,
    Context,
    Durable,
    Event,
    NodeId,
    Received,
    Settings,
    TimerFired,
)

LEASES = "leases"
LEASES_NS = 20 * MS
BEAT_NS = 60 * MS
MISSED = 5  # Beats after which a controller takes over the lease, and what others hosted.


class Controller:
    """The machine of the controllers c1 and c2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._node = context.node
        self._site = Site(context.node, settings, context)
        self._transactions = Transactions(self._site)
        self._processor = Processor(self._site)
        self._site.procedures.run(self._hold_lease())
        self._site.procedures.run(self._processor.serve())
        self._site.procedures.run(self._processor.plan())
        for other in CONTROLLERS:
            self._site.procedures.run(self._watch(other))
        context.set_timer(LEASES, LEASES_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Asked(number, body)) if isinstance(body, ToController):
                self._site.procedures.run(self._answer(sender, number, body))
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case TimerFired():
                for txn, version in self._transactions.expired():
                    self._site.procedures.run(self._transactions.expire(txn, version))
                context.set_timer(LEASES, LEASES_NS)
            case Closed(peer):
                self._site.procedures.closed(peer)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: the metadata node shows the epochs."""

    def _answer(self, sender: NodeId, number: int, request: ToController) -> Procedure[None]:
        answer: Reply
        try:
            answer = yield from self._answered(request)
        except Superseded:
            answer = Later()
        self._site.context.point("controller-before-answer")
        self._site.context.send(sender, Told(number, answer))

    def _answered(self, request: ToController) -> Procedure[Reply]:
        match request:
            case CreateTxn() | PingTxn() | CommitTxn() | AbortTxn() | CheckTxn() | GetPending():
                return (yield from self._of_transactions(request))
            case GetHistory():
                is_sealed = (yield from state()).name == "sealed"
                epochs = yield from history()
                return Epochs(History(epochs.listed(), epochs.current), is_sealed)
            case GetSuccessors(segment):
                is_sealed = (yield from state()).name == "sealed"
                found = (yield from history()).successors(segment)
                return Successors(found or ()) if is_sealed or found is not None else Later()
            case SealStream():
                yield from changed(SEAL, ABSENT, b"asked")
                return Status((yield from state()).name)
            case TruncateStream():
                yield from one((STORE_PLACE, Next(TRUNCATE)))
                return Status("truncating")
            case TakeCheckpoint() | RestoreGroup():
                yield from self._change_group(begun if isinstance(request, TakeCheckpoint) else restored)
                return Status("accepted")
            case NoteTime():
                yield from note(request)
                return Status("noted")
            case GetMark():
                return (yield from mark())
            case GetGroup():
                return (yield from held(GROUP))

    def _of_transactions(
        self, request: CreateTxn | PingTxn | CommitTxn | AbortTxn | CheckTxn | GetPending
    ) -> Procedure[Reply]:
        match request:
            case CreateTxn():
                return (yield from self._transactions.create())
            case PingTxn(txn):
                return (yield from self._transactions.ping(txn))
            case CommitTxn(txn):
                return (yield from self._transactions.commit(txn))
            case AbortTxn(txn):
                return (yield from self._transactions.abort(txn))
            case CheckTxn(txn):
                return (yield from self._transactions.status(txn))
            case GetPending():
                return (yield from self._transactions.pending())

    def _change_group(self, change: Callable[[Group, int], Group]) -> Procedure[None]:
        """Change the group's state, under the number of a session that nobody has."""
        entry = yield from held(GROUP)
        if entry.value is None:
            return
        before = group_of(entry.value)
        after = change(before, (yield from counted("reader-sessions")))
        yield from replaced(GROUP, entry.version, encoded(after))
        if len(after.restored) > len(before.restored):
            self._site.context.sometimes("the readers were restored")

    def _hold_lease(self) -> Procedure[None]:
        """Renew the lease, or take it over."""
        seen: tuple[int, int] = (-1, 0)  # A version, and since when it is there.
        while True:
            try:
                entry = yield from held(LEASE)
                if entry.version != seen[0]:
                    seen = (entry.version, self._site.now_ns())
                yield from self._renew(entry, seen[1])
            except Superseded:
                self._processor.has_lease = False
            yield Sleep(BEAT_NS)

    def _renew(self, entry: Held, since_ns: int) -> Procedure[None]:
        lease = Lease(NodeId(""), 0) if entry.value is None else lease_of(entry.value)
        is_own = lease.owner == self._node
        is_free = entry.value is None or self._site.now_ns() > since_ns + MISSED * BEAT_NS
        self._processor.has_lease &= is_own
        if is_own or is_free:
            after = yield from changed(LEASE, entry.version, encoded(Lease(self._node, lease.beat + 1)))
            if after.is_done and not is_own and entry.value is not None:
                self._site.context.sometimes("a controller took over the stream")
            self._processor.has_lease = after.is_done

    def _watch(self, host: NodeId) -> Procedure[None]:
        """Beat, if that is this controller, having taken over what it hosted before; else look for its beats."""
        name = f"alive/{host}"
        is_own = host == self._node
        while is_own and not (yield from self._transactions.sweep(host)):
            yield Sleep(BEAT_NS)
        seen: tuple[int, int] = (-1, 0)
        while True:
            try:
                entry = yield from held(name)
                if is_own:
                    yield from changed(name, entry.version, str(self._site.now_ns()).encode())
                elif entry.version != seen[0]:
                    seen = (entry.version, self._site.now_ns())
                elif self._site.now_ns() > seen[1] + MISSED * BEAT_NS:
                    seen = (entry.version, self._site.now_ns())
                    yield from self._transactions.sweep(host)
            except Superseded:
                pass
            yield Sleep(BEAT_NS)
