"""A storage: the fragment replicas of one node, with the locks and the prepared operations of transactions.

Theory of operation. An append goes from the primary to the backups, is locked and prepared at each, and the last one
answers. The primary answers reads. A transaction has one record here for each fragment that it locked.
1. Commit travels from the last backup to the primary. So every value that a reader saw at a primary is committed at
   every live replica, and the death of a primary together with its coordinator cannot undo it (N1.12 (1)).
2. Commit frees the locks at the primary, Complete those at backups. So a later transaction, which the primary has
   admitted, cannot overtake an earlier one at a backup (N1.12 (2)).
3. A message carries its sender's view. One of a later view waits until that view is installed here; one of a life that
   has ended is dropped. So reports to a take-over stay true, an abort after a failure comes after all messages of the
   failed node, and messages of a new member are interpreted correctly.
4. The chain of an append is decided when its lock is granted, by the view of that moment: see row_copy.py.
5. The epoch comes with Commit, and is the same for all rows of the transaction (N1.12 (3)).
6. Whether a row is there to be deleted is decided at the primary under the row's lock. Its before-image is taken when
   the change is installed, so at every replica it is what the change before left.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from clusters.ndb import planted
from clusters.ndb.membership.row_copy import RowCopy
from clusters.ndb.membership.view import Member, View
from clusters.ndb.parts import Site
from clusters.ndb.shape import Key, fragment_of, image, is_imaged
from clusters.ndb.transactions.locks import LockTable
from clusters.ndb.transactions.messages import (
    COMMITTED,
    EXCLUSIVE,
    MOVED,
    NO_ROW,
    SHORT,
    Abort,
    Aborted,
    Commit,
    Committed,
    Complete,
    Completed,
    CopyDone,
    CopyRow,
    CopyRowConf,
    Declined,
    Operate,
    Operated,
    Prepare,
    StorageMessage,
    TransConf,
    TransLast,
    TransStatus,
    coordinator_in,
    life_in,
    life_of,
)
from clusters.ndb.transactions.rows import Rows
from harness.core.machine import Message, NodeId
from harness.core.record import Json

COPY = -1  # The owner of a copy's locks; transids are not negative.


class Record:
    """A transaction's state in one fragment here. `epoch` is None until it is committed."""

    __slots__ = ("appends", "awaited", "chain", "epoch", "fragment", "locked", "transid")

    def __init__(self, transid: int, fragment: int, chain: tuple[NodeId, ...]) -> None:
        self.transid = transid
        self.fragment = fragment
        self.chain = chain
        self.appends: dict[Key, list[Json]] = {}
        self.locked: dict[Key, None] = {}
        self.awaited: Key | None = None  # The key whose lock it waits for.
        self.epoch: int | None = None

    def append(self, key: Key, value: Json, chain: tuple[NodeId, ...]) -> None:
        """Prepare an append. The chain becomes longer if a node has joined since the last operation."""
        self.appends.setdefault(key, []).append(value)
        if len(chain) > len(self.chain):
            self.chain = chain


class Storage:
    """The fragment replicas of one node."""

    def __init__(self, site: Site) -> None:
        self.is_copied = False  # True if it holds all rows of its fragments.
        self._site = site
        self._rows = Rows(site)
        self._locks: LockTable[Operate | Prepare | None] = LockTable()  # None: the request of a copy.
        self._records: dict[tuple[int, int], Record] = {}
        self._copy: RowCopy | None = None
        self._number = 0  # The number of the view; the fields below follow from the view.
        self._since: dict[NodeId, int] = {}
        self._lives: dict[int, None] = {}
        self._chains: tuple[tuple[NodeId, ...], ...] = ()
        self._early: list[tuple[NodeId, Message]] = []  # Messages of later views (invariant 3).

    # Calls from the node.

    def restore(self, records: Sequence[Message], gci: int) -> None:
        """Restore the log's records of global checkpoints up to `gci`; later ones never count again."""
        self._rows.restore(records, gci)

    def copy_to(self, node: NodeId) -> None:
        """Copy all rows to a node of the group that has joined. It must be in the view installed here."""
        self._end_copy()
        self._copy = RowCopy(self._site, self._rows, node, lock=self._lock_for_copy, unlock=self._unlock_for_copy)
        self._copy.begin(dict.fromkeys((*self._rows.keys(), *self._locks.keys())))

    def rows_dump(self) -> Iterator[tuple[Key, list[Json], int]]:
        """Each row in order of the keys: key, elements, epoch of the last commit."""
        return self._rows.dump()

    def keys(self) -> list[Key]:
        """The keys of the rows of which this node is the primary."""
        keys = self._rows.keys()
        return [key for key in keys if self._is_primary(fragment_of(key))]

    def read(self, key: Key) -> tuple[list[Json], int]:
        """The committed elements of a row, and the epoch of the last commit to it."""
        return self._rows.read(key)

    def is_idle(self) -> bool:
        """True if no transaction is known here, and nothing is locked."""
        return not self._records and not self._locks and not self._early

    def view_changed(self, view: View, failed: tuple[Member, ...]) -> None:
        """Adopt the lives of the view. Records of dead coordinators stay until a take-over decides."""
        self._number = view.number
        self._since = {member.node: member.since for member in view.members}
        self._lives = {life_of(member.node, member.since): None for member in view.members}
        self._chains = view.chains()
        gone = tuple(member.node for member in failed)
        if self._copy is not None and self._copy.target in gone:
            self._end_copy()
        for record in tuple(self._records.values()):
            record.chain = tuple(node for node in record.chain if node not in gone)
            if record.awaited is not None and life_in(record.transid) not in self._lives:
                if not record.locked:
                    del self._records[record.transid, record.fragment]
                self._stop_waiting(record)
        early, self._early = self._early, []
        for sender, message in early:
            self.handle(sender, message)

    def handle(self, sender: NodeId, message: Message) -> None:
        """React to a coordinator, another storage, or a take-over (invariant 3)."""
        request, since = cast("StorageMessage", message), self._since.get(sender)
        if request.view > self._number:
            self._early.append((sender, message))
        elif since is not None and since <= request.view:
            self._react(sender, request)

    def _react(self, sender: NodeId, message: StorageMessage) -> None:
        match message:
            case Operate():
                self._operate(message)
            case Prepare():
                self._prepare(message)
            case Commit():
                self._commit(message)
            case Complete():
                self._complete(sender, message)
            case Abort():
                self._abort(message)
            case TransStatus():
                self._tell(sender, message)
            case CopyRow():
                self._rows.replace(message.key, message.elements)
                self._site.send(sender, CopyRowConf(self._number, message.key))
            case CopyRowConf():
                if self._copy is not None and self._copy.target == sender:
                    self._copy.confirmed(message.key)
            case CopyDone():
                self.is_copied = True

    # Execution.

    def _operate(self, message: Operate) -> None:
        """Handle an operation as the primary."""
        fragment = fragment_of(message.key)
        if not self._is_primary(fragment):
            self._decline(message)
        elif message.lock == COMMITTED:
            self._read(message, self._records.get((message.transid, fragment)))
        else:
            record = self._record(message.transid, fragment, (self._site.node,))
            is_exclusive = message.lock == EXCLUSIVE
            if self._locks.take(message.key, message.transid, message, is_exclusive=is_exclusive):
                self._execute(message, record)
            else:
                record.awaited = message.key

    def _is_primary(self, fragment: int) -> bool:
        return self._chains[fragment][:1] == (self._site.node,)

    def _execute(self, message: Operate, record: Record) -> None:
        """Execute an operation whose lock is held."""
        key = message.key
        if message.f == "append":
            record.locked[key] = None
            is_delete = is_imaged(key) and image(message.value) is None
            if is_delete and self._rows.image(key, record.appends.get(key, ())) is None:
                self._decline(message, NO_ROW)
                return
            chain = self._chains[record.fragment]  # Invariant 4.
            record.append(key, message.value, chain)
            self._pass_on(
                Prepare(message.transid, self._number, message.number, key, message.value, chain), after=chain[1:]
            )
            self._prepared(key, record)
            return
        self._read(message, record)
        if message.lock != SHORT:
            record.locked[key] = None
        elif key not in record.locked:
            if not record.locked:
                del self._records[record.transid, record.fragment]
            self._free(key, record.transid)

    def _read(self, message: Operate, record: Record | None) -> None:
        """Answer with the committed elements and the transaction's own appends, if this node may still serve."""
        if not self._site.may_serve():
            self._decline(message)
            return
        elements, epoch = self._rows.read(message.key)
        if record is not None and message.key in record.appends:
            elements += record.appends[message.key]
        answer = Operated(message.transid, self._number, message.number, (self._site.node,), elements, epoch)
        self._site.send(coordinator_in(message.transid), answer)

    def _decline(self, message: Operate, reason: str = MOVED) -> None:
        answer = Declined(message.transid, self._number, message.number, reason)
        self._site.send(coordinator_in(message.transid), answer)

    def _prepare(self, message: Prepare) -> None:
        """Handle an append as a backup. One of a dead coordinator is dropped, as a take-over does not know of it."""
        if life_in(message.transid) not in self._lives:
            return
        record = self._record(message.transid, fragment_of(message.key), message.chain)
        if self._locks.take(message.key, message.transid, message, is_exclusive=True):
            self._keep_ready(message, record)
        else:
            record.awaited = message.key
            self._site.context.sometimes("a backup waited for Complete")

    def _keep_ready(self, message: Prepare, record: Record) -> None:
        """Prepare an append whose lock is held, and pass it on."""
        record.locked[message.key] = None
        record.append(message.key, message.value, message.chain)
        self._prepared(message.key, record)
        self._pass_on(message, after=message.chain[message.chain.index(self._site.node) + 1 :])

    def _pass_on(self, message: Prepare, *, after: tuple[NodeId, ...]) -> None:
        """Pass an append to the next node of the chain; the last one answers."""
        if after:
            onward = message
            if message.view != self._number:
                onward = Prepare(
                    message.transid, self._number, message.number, message.key, message.value, message.chain
                )
            self._site.send(after[0], onward)
        else:
            answer = Operated(message.transid, self._number, message.number, message.chain)
            self._site.send(coordinator_in(message.transid), answer)

    def _record(self, transid: int, fragment: int, chain: tuple[NodeId, ...]) -> Record:
        record = self._records.get((transid, fragment))
        if record is None:
            record = self._records[transid, fragment] = Record(transid, fragment, chain)
        return record

    # The end of a transaction.

    def _commit(self, message: Commit) -> None:
        """Install once, then pass on or answer. An unknown transaction is already complete (invariants 1, 2 and 5)."""
        site = self._site
        record = self._records.get((message.transid, message.fragment))
        if record is not None and record.epoch is None:
            epoch = site.checkpoints.current if planted.EPOCH_PER_PARTICIPANT in site.bugs else message.epoch
            record.epoch = epoch
            for key, values in record.appends.items():
                before = self._rows.image(key) if is_imaged(key) else 0
                self._rows.install(epoch, message.transid, key, values)
                if self._is_primary(record.fragment):
                    site.backups.committed(epoch, key, values)
                if (before, image(values[-1])) != (None, None):  # A row that came and went is no change.
                    site.publisher.row(epoch, message.transid, key, values[-1], before)
        if message.path:
            site.context.point("commit-on-backup")
            onward = Commit(
                message.transid, self._number, message.epoch, message.fragment, message.path[1:], message.coordinator
            )
            site.send(message.path[0], onward)
        else:
            if record is not None:
                self._free_all(record)
            site.send(message.coordinator, Committed(message.transid, self._number, message.fragment))

    def _complete(self, coordinator: NodeId, message: Complete) -> None:
        record = self._records.pop((message.transid, message.fragment), None)
        if record is not None:
            self._free_all(record)
        self._site.send(coordinator, Completed(message.transid, self._number, message.fragment))

    def _abort(self, message: Abort) -> None:
        """Abort, then pass on, or answer unless it is a take-over's.

        No correct sender aborts an installed transaction.
        """
        site = self._site
        record = self._records.pop((message.transid, message.fragment), None)
        after: tuple[NodeId, ...] = ()
        if record is not None and site.node in record.chain:
            after = record.chain[record.chain.index(site.node) + 1 :]
        if after:
            site.send(after[0], Abort(message.transid, self._number, message.fragment))
        elif life_in(message.transid) in self._lives:
            site.send(coordinator_in(message.transid), Aborted(message.transid, self._number, message.fragment))
        if record is not None:
            self._free_all(record)

    def _tell(self, master: NodeId, message: TransStatus) -> None:
        """Report all transactions here whose coordinators are no longer members."""
        for record in self._records.values():
            if life_in(record.transid) not in self._lives:
                conf = TransConf(message.view, record.transid, record.fragment, record.chain, record.epoch)
                self._site.send(master, conf)
        self._site.send(master, TransLast(message.view))

    # Locks.

    def _prepared(self, key: Key, record: Record) -> None:
        """Keep the lock of a prepared append until the transaction's end (invariant 2)."""
        if planted.ROW_UNLOCKED_AT_PREPARE in self._site.bugs:
            self._free(key, record.transid)

    def _stop_waiting(self, record: Record) -> None:
        """Drop the operation that waits for a lock."""
        key, record.awaited = record.awaited, None
        if key is not None:
            self._resume(key, self._locks.cancel(key, record.transid))

    def _free_all(self, record: Record) -> None:
        locked, record.locked = record.locked, {}
        self._stop_waiting(record)
        for key in locked:
            self._free(key, record.transid)

    def _free(self, key: Key, owner: int) -> None:
        self._resume(key, self._locks.release(key, owner))

    def _resume(self, key: Key, granted: Sequence[Operate | Prepare | None]) -> None:
        """Continue operations that were granted the lock now."""
        for request in granted:
            if request is None:
                if self._copy is not None:
                    self._copy.granted(key)
                continue
            record = self._records[request.transid, fragment_of(key)]
            record.awaited = None
            if isinstance(request, Prepare):
                self._keep_ready(request, record)
            else:
                self._execute(request, record)

    def _lock_for_copy(self, key: Key) -> bool:
        if planted.COPY_MISSES_RUNNING in self._site.bugs:
            return True
        return self._locks.take(key, COPY, None, is_exclusive=False)

    def _unlock_for_copy(self, key: Key) -> None:
        self._free(key, COPY)

    def _end_copy(self) -> None:
        """End the copy, as its target is gone."""
        copy, self._copy = self._copy, None
        for key in copy.stop() if copy is not None else ():
            self._resume(key, self._locks.cancel(key, COPY))
            self._free(key, COPY)
