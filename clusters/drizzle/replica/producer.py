"""The producer of a replica: polls the table log of one source, and fills the queue.

Theory of operation.
1. It asks for what follows the last commit id that it has on disk, in the queue or applied; with the answer comes up to
   where the log was read. It fetches these transactions with all their pieces.
2. Each enters the queue in one record. The position moves once that is durable.
3. It does not take what was born here.
4. A request without an answer is repeated at the next poll.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from clusters.drizzle import planted
from clusters.drizzle.messages import Committed, Fetched, FetchPieces, ListCommits, Listed, Piece
from clusters.drizzle.shape import MS, ONLY_LOCAL
from clusters.drizzle.site import Site
from harness.core.machine import NodeId

QUEUE = "queue"
BITS_32 = 2**32
SILENT_NS = 200 * MS


class Queued(Struct, frozen=True, tag=True):
    """On disk: a transaction in the queue."""

    source: NodeId
    found: Committed


class QueuedPiece(Struct, frozen=True, tag=True):
    """On disk, with a planted bug: a piece in the queue."""

    source: NodeId
    piece: Piece
    found: Committed | None  # With the last piece.


class Producer:
    """The producer for one source. `queued` is called with what has entered the queue."""

    def __init__(self, site: Site, source: NodeId, position: int, queued: Callable[[Queued], None]) -> None:
        self._site, self.source, self._queued = site, source, queued
        self.position = position  # The last commit id that is on disk.
        self._upto = 0  # Up to where the log was read by the last answer.
        self.answered_ns = -1  # When the last request was sent whose answer had nothing new.
        self.error = ""
        self._number = site.now_ns()
        self._asked_ns = -SILENT_NS
        self._is_waiting = False
        self._listed: tuple[tuple[int, int], ...] = ()
        self._pieces: set[tuple[int, int]] = set()  # With a planted bug: the keys that are in the queue.

    def poll(self) -> None:
        """Ask for more (1, 4)."""
        if self.error or (self._is_waiting and self._site.now_ns() < self._asked_ns + SILENT_NS):
            return
        self._number += 1
        self._asked_ns = self._site.now_ns()
        self._is_waiting = True
        is_only_local = self._site.node in ONLY_LOCAL
        self._site.send(self.source, ListCommits(self._number, self.position, is_only_local))

    def listed(self, answer: Listed) -> None:
        """Fetch what was listed (1)."""
        if not self._is_waiting or answer.number != self._number:
            return
        self._upto = answer.upto
        self._listed = answer.commits
        if not answer.commits:
            self._is_waiting = False
            self.position = answer.upto
            self.answered_ns = self._asked_ns
            return
        trxs = tuple(trx for _, trx in answer.commits)
        if planted.TRX_ID_32BIT in self._site.bugs:
            trxs = tuple(trx % BITS_32 for trx in trxs)
        self._site.send(self.source, FetchPieces(self._number, trxs))

    def fetched(self, answer: Fetched) -> None:
        """Put what was fetched into the queue (2)."""
        if not self._is_waiting or answer.number != self._number:
            return
        by_trx = {each.trx: each for each in answer.transactions}
        if not all(trx in by_trx for _, trx in self._listed):
            self._is_waiting = False  # The source has restarted meanwhile: ask again.
            return
        for _, trx in self._listed:
            self._enter(by_trx[trx])
        self._site.context.point("queue-written")
        self._site.sync(partial(self._durable, self._number))

    def _enter(self, found: Committed) -> None:
        if planted.QUEUE_INSERT_NOT_ATOMIC not in self._site.bugs:
            self._site.context.append(QUEUE, Queued(self.source, found))
            self._site.context.point("queued")
            self._queued(Queued(self.source, found))
            return
        for piece in found.pieces:
            key = (piece.trx, piece.segment)
            if key in self._pieces:
                self.error = f"piece {piece.segment} of {piece.trx} is in the queue already"
                return
            self._pieces.add(key)
            self._site.context.append(QUEUE, QueuedPiece(self.source, piece, found if piece.is_end else None))
            self._site.context.point("queued")
        self._queued(Queued(self.source, found))

    def recovered(self, record: QueuedPiece) -> None:
        """A piece was in the queue at the start."""
        self._pieces.add((record.piece.trx, record.piece.segment))

    def _durable(self, number: int) -> None:
        if number == self._number and not self.error:
            self.position = self._upto
            self._is_waiting = False
            self.poll()


def listed(site: Site, readable: list[Committed], request: ListCommits, sender: NodeId, batch: int) -> Listed:
    """The answer of a source: the transactions after a commit id that were not born at the replica (3)."""
    found: list[tuple[int, int]] = []
    upto = request.after
    behind = len(readable)
    while behind and not 0 < readable[behind - 1].commit <= request.after:
        behind -= 1  # From the end, as a log is long and a replica is seldom far behind.
    entries = readable[behind:]
    for each in entries[::-1] if planted.POLL_UNORDERED in site.bugs else entries:
        if not each.commit:
            if planted.READER_STUCK_ON_DELETED in site.bugs:
                break
            continue
        if len(found) == batch:
            break
        upto = each.commit if planted.POLL_UNORDERED in site.bugs else max(upto, each.commit)
        is_own = each.origin == sender and planted.OWN_CHANGES_BACK not in site.bugs
        if not is_own and not (request.only_local and each.origin != site.node):
            found.append((each.commit, each.trx))
    return Listed(request.number, tuple(found), upto)


def fetched(readable: list[Committed], request: FetchPieces) -> Fetched:
    """The answer of a source: the transactions with these ids, from the end of its log as in `listed`."""
    wanted = set(request.trxs)
    found: list[Committed] = []
    for each in reversed(readable):
        if not wanted:
            break
        if each.commit and each.trx in wanted:
            wanted.remove(each.trx)
            found.append(each)
    return Fetched(request.number, tuple(reversed(found)))
