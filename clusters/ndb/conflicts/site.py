"""A site: one node in the place of a whole cluster, with a clock of epochs, a binlog, and an applier of the other's.

Theory of operation. Each transaction, and each epoch of the other site, is one record of the log, in an order that is
the order of commits.
1. A client has its answer when all records up to its own are on the disk, so it reads nothing that a crash takes back.
2. Epochs rise; after a restart they go on in a new global checkpoint.
3. The other site is asked again and again for what comes after the last epoch that was applied. An answer to an earlier
   question begins with epochs that are applied, which are passed over.
"""

from collections import deque
from typing import Final

from clusters.ndb.conflicts import planted
from clusters.ndb.conflicts.applier import Verdicts
from clusters.ndb.conflicts.log import SiteLog
from clusters.ndb.conflicts.messages import (
    AskPosition,
    AtRest,
    Change,
    LogRecord,
    Noted,
    Position,
    Pull,
    Pulled,
    SiteCommit,
    Write,
    WriteRefused,
    Written,
)
from clusters.ndb.conflicts.rules import BY_EPOCH, EPOCH_TRANS, PRIMARY, RULES, Rule
from clusters.ndb.shape import GCI_BITS, MS, SITES, first_epoch, gci_of
from harness.core.machine import (
    Answer,
    Call,
    Closed,
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
from harness.core.record import Json, MicroOp

LOG: Final = "site"
EPOCH, POLL = "epoch", "poll"
BATCH: Final = 10  # Epochs of one answer.


class Site:
    """The machine of a site."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        drawn = settings.parameters
        self._epoch_ns, self._gci_ns, self._poll_ns = (drawn[name] * MS for name in ("epoch_ms", "gci_ms", "poll_ms"))
        self._bugs = settings.bugs
        self._rule = Rule(RULES[drawn["rule"]], context.node, drawn["epoch_bits"], settings.bugs)
        self._server = SITES.index(context.node) + 1
        self._peer = next(site for site in SITES if site != context.node)
        self._log = SiteLog(self._server, settings.bugs, durable.log(LOG))
        self._epoch = first_epoch(gci_of(self._log.latest) + 1)
        self._gci_since_ns = context.now_ns()
        self._sent = 0  # The last epoch that went to the other site.
        self._is_at_rest = False
        self._rises, self._asked = 0, 0  # See `Position`; and its `last`.
        self._token = 0
        self._syncs: deque[tuple[int, int, NodeId | None, Answer | None]] = deque()  # Token, log's length, client.
        context.set_timer(EPOCH, self._epoch_ns)
        context.set_timer(POLL, self._poll_ns)

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, Call(number, Write(mops))):
                self._write(sender, number, mops, context)
            case Received(sender, Call(number, AskPosition())):
                context.send(sender, Answer(number, self._position()))
            case Received(sender, Call(number, AtRest())):
                self._is_at_rest = True
                context.send(sender, Answer(number, Noted()))
            case Received(sender, Pull(after)):
                self._serve(sender, after, context)
            case Received(message=Pulled() as pulled):
                self._apply(pulled, context)
            case Received(message=message):
                context.unexpected(message)
            case Synced(token):
                self._synced(token, context)
            case TimerFired("epoch"):
                context.set_timer(EPOCH, self._epoch_ns)
                self._tick(context)
            case TimerFired():
                context.set_timer(POLL, self._poll_ns)
                context.send(self._peer, Pull(self._log.applied))
            case Closed() | _:
                pass

    def dump(self, context: Context) -> None:
        site = context.node
        context.dump(Dump(object="site-log", key=site, value=self._log.shown()))
        context.dump(Dump(object="exceptions", key=site, value=self._log.exceptions()))
        if self._is_at_rest:
            rows: list[Json] = [[key, row.value] for key, row in self._log.rows.items() if row.value is not None]
            context.dump(Dump(object="site-state", key=site, value=rows))
        rule: dict[str, Json] = {"rule": self._rule.name}
        if self._rule.name in BY_EPOCH:
            rule |= {"primary": PRIMARY, "rounding": 1 << GCI_BITS}
        context.dump(Dump(object="conflict-rule", key=None, value=rule))

    def _tick(self, context: Context) -> None:
        """End the epoch (invariant 2)."""
        self._epoch += 1
        if context.now_ns() - self._gci_since_ns >= self._gci_ns:
            self._epoch, self._gci_since_ns = first_epoch(gci_of(self._epoch) + 1), context.now_ns()
        context.point("epoch-ended")

    def _write(self, client: NodeId, number: int, mops: tuple[MicroOp, ...], context: Context) -> None:
        """Carry out a client's transaction: each read shows what was there before it and what it wrote itself."""
        transaction = self._name()
        rows = self._log.rows
        written: dict[Json, Json] = {}
        done: list[MicroOp] = []
        reads: list[Change] = []
        for mop in mops:
            if mop.f != "r":
                written[mop.key] = mop.value
                done.append(mop)
                continue
            held = rows.get(mop.key)
            value = written.get(mop.key, None if held is None else held.value)
            done.append(MicroOp("r", mop.key, [] if value is None else value))  # No row, in a history.
            reads.append(Change(transaction, self._server, mop.key, is_read=True))
        changes: list[Change] = []
        for key, value in written.items():
            held = rows.get(key)
            before = None if held is None else held.value
            if value is None and before is None:
                continue
            change = Change(transaction, self._server, key, value, before)
            refusal = self._rule.refusal(change, held)
            if refusal:
                context.send(client, Answer(number, WriteRefused(refusal)))
                return
            changes.append(change)
        tracked = reads if self._rule.name == EPOCH_TRANS else []
        if changes:
            self._rises = 0
            self._commit(SiteCommit(self._epoch, (*tracked, *changes)), context)
        answer = Written(transaction if changes else None, self._epoch, tuple(done))
        self._sync(client, Answer(number, answer), context)

    def _position(self) -> Position:
        last = self._log.last
        self._rises, self._asked = self._rises + (last > self._asked), last
        return Position(last, self._log.applied, self._rises)

    def _name(self) -> int:
        """The name of the next transaction: no other one of either site has it."""
        return self._log.named * len(SITES) + self._server

    def _serve(self, peer: NodeId, after: int, context: Context) -> None:
        epochs = self._log.epochs(after, self._epoch, BATCH)
        if epochs:
            self._sent = max(self._sent, epochs[-1].epoch)
            context.send(peer, Pulled(after, epochs))

    def _apply(self, pulled: Pulled, context: Context) -> None:
        """Commit epochs of the other site (invariant 3)."""
        for source in pulled.epochs:
            if source.epoch <= self._log.applied:
                continue
            context.point("before-apply")
            horizon = self._log.horizon
            if planted.WINDOW_USES_SENT_EPOCH in self._bugs:
                horizon = max(horizon, self._sent)
            verdicts = Verdicts(self._rule, self._log.rows, self._server, horizon)
            self._commit(verdicts.of(source, self._epoch, self._name(), context), context)
        self._sync(None, None, context)
        if len(pulled.epochs) == BATCH:
            context.sometimes("a site was many epochs behind")
            context.send(self._peer, Pull(self._log.applied))

    def _commit(self, record: LogRecord, context: Context) -> None:
        self._is_at_rest = False
        context.append(LOG, record)
        self._log.add(record)

    def _sync(self, client: NodeId | None, answer: Answer | None, context: Context) -> None:
        """Sync the log, then send the answer (invariant 1)."""
        self._token += 1
        self._syncs.append((self._token, len(self._log), client, answer))
        context.point("before-sync")
        context.sync(self._token)

    def _synced(self, token: int, context: Context) -> None:
        while self._syncs and self._syncs[0][0] <= token:
            _, length, client, answer = self._syncs.popleft()
            self._log.durable = max(self._log.durable, length)
            if client is not None and answer is not None:
                context.send(client, answer)
