"""A coordinator of transactions: executes their operations in sequence, commits them, and takes over those of others.

Theory of operation. Any data node coordinates the transactions that clients send to it. Operations go to the primaries
of their keys; `chains` has the participants for each locked fragment.
1. A commit begins only where `begin_commit` gives an epoch, at this moment, and while this node may serve. No node
   with a newer view can meet a commit that began in an older one, so all locks of a transaction still hold. A
   transaction with locks and no writes passes the same gate, else it could mix reads from before and after a failure;
   it keeps no epoch open (N1.12 (3)).
2. The client is answered when all primaries have committed: then every live replica has, and every reader sees it.
3. An epoch stays open until all nodes have completed its transactions, adopted ones included (N1.12 (4)).
4. A transaction that has begun to commit is never aborted: after a failure Commit is sent again along the remaining
   chain, and storages answer it again. Any other is aborted if one of its operations was at the failed node.
5. An abort too is remembered until the end of each chain has it: a node that fails may lose it in transit.
"""

from collections import deque

from clusters.ndb import planted
from clusters.ndb.membership.view import Member, View
from clusters.ndb.parts import Site
from clusters.ndb.shape import FRAGMENTS, GCI_BITS, MS, fragment_of, key_of
from clusters.ndb.transactions.messages import (
    COMMITTED,
    CUT_OFF,
    EXCLUSIVE,
    LOCK_TIMEOUT,
    LOCKS,
    MOVED,
    NODE_FAILED,
    NOT_STARTED,
    UNSUPPORTED,
    Abort,
    Aborted,
    Commit,
    Committed,
    Complete,
    Completed,
    Declined,
    Done,
    Operate,
    Operated,
    Refused,
    TransConf,
    TransLast,
    life_of,
    transid_of,
)
from clusters.ndb.transactions.open_transaction import State, Transaction
from clusters.ndb.transactions.takeover import Decision, TakeOver
from harness.core.machine import Answer, Message, NodeId
from harness.core.record import MicroOp

OPEN_MAX = 256  # The most transactions executed at a time; more are refused, and certainly not begun.
LOCK_TIMER = "tc-locks"
LONG_NS = 1000 * MS  # A commit that is blocked for longer is probed before it begins.
SCAN_NS = 20 * MS  # The longest delay of a lock time-out.


class Coordinator:
    """The transactions of one node's clients, and those that it adopts as master."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open: dict[int, Transaction] = {}
        self._queue: deque[Transaction] = deque()
        self._take_over = TakeOver(site)
        self._counter = 0
        self._lock_ns = site.parameters["lock_ms"] * MS
        self._is_early = planted.ACK_BEFORE_COMMIT in site.bugs
        self._has_timer = False
        self._number = 0  # The number of the view; the fields below follow from the view:
        self._life: int | None = None
        self._since: dict[NodeId, int] = {}
        self._chains: tuple[tuple[NodeId, ...], ...] = ((),) * FRAGMENTS

    def is_idle(self) -> bool:
        """True if no transaction is open here."""
        return not self._open

    def transact(self, client: NodeId, number: int, mops: tuple[MicroOp, ...]) -> None:
        """Begin a transaction. The answer to call `number` follows."""
        site = self._site
        if self._life is None or len(self._open) >= OPEN_MAX or not site.may_serve():
            site.send(client, Answer(number, Refused(NOT_STARTED)))
            return
        if any(mop.f == "w" or (mop.f == "r" and mop.lock is not None and mop.lock not in LOCKS) for mop in mops):
            site.send(client, Answer(number, Refused(UNSUPPORTED)))
            return
        self._counter += 1
        transaction = Transaction(transid_of(self._life, self._counter), (client, number), mops)
        transaction.started = site.checkpoints.current
        self._open[transaction.transid] = transaction
        self._go_on(transaction)
        self._watch()

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to storages. An answer that is not awaited any more is dropped."""
        match message:
            case Operated():
                self._operated(message)
            case Committed():
                self._committed(message)
            case Completed():
                self._completed(sender, message)
            case Declined(transid, number=number):
                transaction = self._executing(transid, number)
                if transaction is not None:
                    self._abort(transaction, message.reason)
            case Aborted():
                self._aborted(message)
            case TransConf():
                self._take_over.report(message)
            case TransLast():
                self._decide(sender, message)
            case _:
                self._site.context.unexpected(message)

    def timer(self, name: str) -> None:
        """Abort transactions whose lock wait timed out (LOCK_TIMER is the only timer). A false deadlock is legal."""
        now_ns = self._site.context.now_ns()
        waited_ns = now_ns - self._queue[0].queued_ns if self._queue else 0
        if waited_ns > LONG_NS:
            self._site.context.probe("commit-blocked-ns", waited_ns)
        for transaction in tuple(self._open.values()):
            if transaction.state is State.EXECUTING and transaction.deadline_ns <= now_ns:
                self._site.context.sometimes("a lock wait timed out")
                self._abort(transaction, LOCK_TIMEOUT)
        self._has_timer = False
        self._watch()

    def release(self) -> None:
        """Commit the waiting transactions, in order: commits may begin again."""
        site, queue = self._site, self._queue
        while queue:
            transaction = queue[0]
            if transaction.state is State.QUEUED:
                if not self._begin_commit(transaction):
                    return
                site.context.sometimes("a commit waited for the block")
                site.context.probe("commit-blocked-ns", site.context.now_ns() - transaction.queued_ns)
            queue.popleft()

    def view_changed(self, view: View, failed: tuple[Member, ...]) -> None:
        """Apply invariants 4 and 5; the master takes over transactions that the failed nodes coordinated."""
        site = self._site
        self._number = view.number
        self._since = {member.node: member.since for member in view.members}
        since = self._since.get(site.node)
        self._life = None if since is None else life_of(site.node, since)
        self._chains = view.chains()
        gone = tuple(member.node for member in failed)
        if not gone:
            return
        for transaction in tuple(self._open.values()):
            match transaction.state:
                case State.EXECUTING | State.QUEUED:
                    if transaction.is_at(gone):
                        self._abort(transaction, NODE_FAILED, gone)
                case State.COMMITTING | State.ABORTING:
                    self._send_without(transaction, gone)
                case State.COMPLETING:
                    self._complete_without(transaction, gone)
        if site.is_master:
            self._take_over.begin()

    # Execution.

    def _watch(self) -> None:
        if self._open and not self._has_timer:
            self._has_timer = True
            self._site.context.set_timer(LOCK_TIMER, SCAN_NS)

    def _go_on(self, transaction: Transaction) -> None:
        """Send the next operation, or commit."""
        number = len(transaction.done)
        if number == len(transaction.mops):
            self._finish_execution(transaction)
            return
        mop = transaction.mops[number]
        key = key_of(mop.key)
        fragment = fragment_of(key)
        chain = self._chains[fragment]
        is_append = mop.f == "append"
        transaction.lock = EXCLUSIVE if is_append else mop.lock or COMMITTED
        if not chain:
            self._abort(transaction, MOVED)
            return
        transaction.pending = (fragment, chain if is_append else chain[:1])
        transaction.deadline_ns = self._site.context.now_ns() + self._lock_ns
        operation = Operate(transaction.transid, self._number, number, mop.f, key, mop.value, transaction.lock)
        self._site.send(chain[0], operation)

    def _executing(self, transid: int, number: int) -> Transaction | None:
        """The transaction that currently executes operation `number`, or None."""
        transaction = self._open.get(transid)
        if transaction is None or transaction.state is not State.EXECUTING or len(transaction.done) != number:
            return None
        return transaction

    def _operated(self, message: Operated) -> None:
        transaction = self._executing(message.transid, message.number)
        if transaction is None:
            return
        mop = transaction.mops[message.number]
        if mop.f == "r":
            transaction.seen = max(transaction.seen, message.epoch)
            mop = MicroOp("r", mop.key, message.elements, mop.table, mop.lock)
        transaction.done.append(mop)
        left = message.chain if message.view >= self._number else self._survivors(message)
        transaction.pending = (transaction.pending[0], left)
        transaction.touch_pending()
        if left == message.chain:
            self._go_on(transaction)
        else:  # A node of the chain failed without the primary's knowledge, while the answer was in transit.
            self._abort(transaction, NODE_FAILED)

    def _survivors(self, message: Operated) -> tuple[NodeId, ...]:
        """The nodes of the chain that still live the life they had when the answer was sent."""
        return tuple(node for node in message.chain if self._since.get(node, message.view + 1) <= message.view)

    def _abort(self, transaction: Transaction, reason: str, gone: tuple[NodeId, ...] = ()) -> None:
        """Abort a transaction, and answer the client at once: it can no longer be committed. Invariant 5."""
        if transaction.state is State.EXECUTING:
            transaction.touch_pending()
        transaction.state = State.ABORTING  # If the transaction is in the queue, it is skipped there.
        self._answer(transaction, Refused(reason))
        transaction.awaited = dict.fromkeys(transaction.chains)
        for fragment, chain in tuple(transaction.chains.items()):
            transaction.chains[fragment] = tuple(node for node in chain if node not in gone)
            self._send_abort(transaction, fragment)
        self._end_if_aborted(transaction)

    def _send_abort(self, transaction: Transaction, fragment: int) -> None:
        """Send the abort to the first node of the chain, which passes it on as it passed on the operations."""
        chain = transaction.chains[fragment]
        if chain:
            self._site.send(chain[0], Abort(transaction.transid, self._number, fragment))
        else:
            transaction.awaited.pop(fragment, None)

    def _aborted(self, message: Aborted) -> None:
        transaction = self._open.get(message.transid)
        if transaction is not None and transaction.state is State.ABORTING:
            transaction.awaited.pop(message.fragment, None)
            self._end_if_aborted(transaction)

    def _end_if_aborted(self, transaction: Transaction) -> None:
        if not transaction.awaited:
            del self._open[transaction.transid]

    def _answer(self, transaction: Transaction, answer: Message) -> None:
        if not transaction.is_answered and transaction.caller is not None:
            transaction.is_answered = True
            client, number = transaction.caller
            self._site.send(client, Answer(number, answer))

    # Commit.

    def _finish_execution(self, transaction: Transaction) -> None:
        """End the execution: without locks, answer; else commit.

        The answer's epoch is at least that of the rows read. These may be older than a restart of the whole cluster, so
        a node that has just come in, and has no epoch yet, waits for its first.
        """
        current = self._site.checkpoints.current
        if not transaction.chains and current:
            del self._open[transaction.transid]
            transaction.epoch = max(transaction.seen, current)
            self._done(transaction)
        elif not self._begin_commit(transaction):
            transaction.state = State.QUEUED
            if planted.EPOCH_AT_PREPARE in self._site.bugs:
                transaction.epoch = current
            transaction.queued_ns = self._site.context.now_ns()
            self._queue.append(transaction)

    def _begin_commit(self, transaction: Transaction) -> bool:
        """Pass the gate (invariant 1); returns False if it is closed.

        After it, only this node's own failure stops the commit.
        """
        site = self._site
        if not site.may_serve():
            self._abort(transaction, CUT_OFF)
            return True
        epoch = site.checkpoints.begin_commit(transaction.epoch)
        if epoch is None:
            return False
        transaction.epoch = epoch
        if not transaction.is_writer:
            self._done(transaction)
            self._complete(transaction)
            del self._open[transaction.transid]
            site.checkpoints.end_commit(epoch)
            return True
        if transaction.started + 3 <= epoch and epoch & (1 << GCI_BITS) - 1 >= 3:
            site.context.sometimes("a transaction was open over three epochs")
        site.context.point("before-commit-chain")
        if self._is_early:
            self._done(transaction)
        self._commit(transaction)
        return True

    def _commit(self, transaction: Transaction) -> None:
        transaction.state = State.COMMITTING
        transaction.awaited = dict.fromkeys(transaction.chains)
        for nth, fragment in enumerate(transaction.chains):
            if nth:
                self._site.context.point("between-commits")
            self._send_commit(transaction, fragment)

    def _send_commit(self, transaction: Transaction, fragment: int) -> None:
        """Send Commit, the last backup first, the primary last (invariant 1 of storage.py)."""
        site, chain = self._site, transaction.chains[fragment]
        if not chain:
            transaction.awaited.pop(fragment, None)
            return
        path = chain if planted.COMMIT_PRIMARY_FIRST in site.bugs else chain[::-1]
        site.send(path[0], Commit(transaction.transid, self._number, transaction.epoch, fragment, path[1:], site.node))

    def _committed(self, message: Committed) -> None:
        transaction = self._open.get(message.transid)
        if transaction is not None and transaction.state is State.COMMITTING:
            transaction.awaited.pop(message.fragment, None)
            if not transaction.awaited:
                self._all_committed(transaction)

    def _all_committed(self, transaction: Transaction) -> None:
        """Answer the client and complete the transaction (invariant 2)."""
        self._site.context.point("before-commit-answer")
        self._done(transaction)
        transaction.state = State.COMPLETING
        self._complete(transaction)

    def _done(self, transaction: Transaction) -> None:
        self._answer(transaction, Done(transaction.epoch, transaction.transid, tuple(transaction.done)))

    def _complete(self, transaction: Transaction) -> None:
        for fragment, chain in transaction.chains.items():
            for node in chain:
                transaction.incomplete[fragment, node] = None
                self._site.send(node, Complete(transaction.transid, self._number, fragment))

    def _completed(self, sender: NodeId, message: Completed) -> None:
        transaction = self._open.get(message.transid)
        if transaction is not None and transaction.state is State.COMPLETING:
            transaction.incomplete.pop((message.fragment, sender), None)
            self._end_if_complete(transaction)

    def _end_if_complete(self, transaction: Transaction) -> None:
        """End the transaction if all nodes have completed it (invariant 3)."""
        if not transaction.incomplete:
            del self._open[transaction.transid]
            self._site.checkpoints.end_commit(transaction.epoch)

    # Failures.

    def _send_without(self, transaction: Transaction, gone: tuple[NodeId, ...]) -> None:
        """Send Commit or Abort again, since a failed node may have lost it: the path of an abort is not known."""
        is_commit = transaction.state is State.COMMITTING
        send_again = self._send_commit if is_commit else self._send_abort
        for fragment, chain in tuple(transaction.chains.items()):
            left = tuple(node for node in chain if node not in gone)
            transaction.chains[fragment] = left
            if fragment in transaction.awaited and (left != chain or not is_commit):
                send_again(transaction, fragment)
        if is_commit and not transaction.awaited:
            self._all_committed(transaction)
        elif not is_commit:
            self._end_if_aborted(transaction)

    def _complete_without(self, transaction: Transaction, gone: tuple[NodeId, ...]) -> None:
        for fragment, node in tuple(transaction.incomplete):
            if node in gone:
                del transaction.incomplete[fragment, node]
        self._end_if_complete(transaction)

    def _decide(self, sender: NodeId, message: TransLast) -> None:
        """Carry out the decisions of the take-over."""
        decisions = self._take_over.last(sender, message)
        if decisions is None:
            return
        for decision in decisions:
            if decision.transid not in self._open:  # Otherwise it was adopted before, and is in progress.
                self._adopt(decision)
        self._take_over.finish()

    def _adopt(self, decision: Decision) -> None:
        transaction = Transaction(decision.transid, None, ())
        if decision.epoch is None:
            for fragment, chain in decision.chains.items():
                for node in chain:
                    self._site.send(node, Abort(decision.transid, self._number, fragment))
            return
        self._site.checkpoints.adopt(decision.epoch)
        transaction.epoch = decision.epoch
        transaction.chains = decision.chains
        self._open[decision.transid] = transaction
        self._commit(transaction)
