"""The subscriber's library: assembles epochs from the messages of all data nodes.

Theory of operation. It is pure: rows and announcements go in, whole epochs come out. Rows wait until their epoch is
complete: until some node has announced each bucket. Nothing counts as done for a silent or dead node; another node
will announce its buckets.
1. An epoch's rows of a bucket are those of the node that first announced the bucket in it. Both nodes of a group may
   have sent rows of it, when one takes over from the other, and neither set is safe before it is announced:
   (a) d1 sends a row, as its transaction begins to commit there, and dies before anyone else has committed it;
   (b) the coordinator has died as well, and the take-over aborts the transaction;
   (c) d2 resends the epoch without the row. Deduplication alone would deliver a row that was never committed.
   A node that announces an epoch has sent all of it before, by the same link, so one sender's rows always suffice.
2. When all buckets of an epoch are announced, so are those of every smaller epoch from `first` on. For one bucket the
   announcements form an unbroken run: its owner announces in order, by one link; a node that takes over begins after
   the last epoch that everybody has acknowledged, so not after the end of the run, and continues in order; a node that
   is handed the bucket begins where the previous owner ends, and a session that had not reached it by then is given up
   (subscriber.py). So no smaller epoch can still be unknown, and epochs complete in order.
3. Messages for a released epoch are dropped: they were sent twice.
"""

from dataclasses import dataclass, field
from zlib import crc32

from clusters.ndb import planted
from clusters.ndb.shape import BUCKETS
from clusters.ndb.stream.messages import EpochComplete, Row
from harness.core.machine import NodeId

ALL_BUCKETS = (1 << BUCKETS) - 1


@dataclass(frozen=True, slots=True)
class Epoch:
    """A complete epoch. If data is missing, it has no rows."""

    number: int
    rows: list[Row]
    is_missing_data: bool


@dataclass(slots=True)
class Content:
    """The known parts of an epoch: rows by sender, the announcer of each bucket, and the announced buckets, as bits."""

    rows: dict[NodeId, list[Row]] = field(default_factory=dict)
    announcer: dict[int, NodeId] = field(default_factory=dict)
    done: int = 0
    count: int = 0
    is_missing_data: bool = False


class Library:
    """The library of one session. Until `open` is called, everything is kept and nothing is released."""

    def __init__(self, bugs: frozenset[str]) -> None:
        self.is_open = False
        self.latest_complete = 0
        self.repeated_rows = 0  # The number of rows dropped because another node sends them.
        self._contents: dict[int, Content] = {}
        self._is_hasty = planted.LIB_ANY_NODE_COMPLETES in bugs
        self._is_counting = planted.BUCKET_COUNT_NOT_SET in bugs
        self._is_trusting = planted.HANDOVER_DOUBLE in bugs
        self._sorts = planted.ROW_ORDER_IN_EPOCH in bugs
        self._latest_partial = 0  # The last epoch of an earlier session, released as it is.
        self._keeps_partial = planted.CLUSTER_FAILURE_KEEPS_PARTIAL in bugs
        self._shares: dict[NodeId, tuple[int, ...]] = {}  # The buckets that each node last announced.

    def row(self, sender: NodeId, row: Row) -> None:
        """Store a row."""
        if row.epoch <= self.latest_complete:
            self.repeated_rows += 1
            return
        content = self._contents.get(row.epoch)
        if content is None:
            content = self._contents[row.epoch] = Content()
        rows = content.rows.get(sender)
        if rows is None:
            content.rows[sender] = [row]
        else:
            rows.append(row)

    def announced(self, sender: NodeId, message: EpochComplete) -> list[Epoch]:
        """The epochs that become complete by an announcement, in order."""
        if message.epoch <= self.latest_complete:
            return []
        content = self._contents.get(message.epoch)
        if content is None:
            content = self._contents[message.epoch] = Content()
        content.is_missing_data |= message.is_missing_data
        content.count += len(message.buckets)
        self._shares[sender] = message.buckets
        for bucket in message.buckets:
            content.done |= 1 << bucket
            # The bug assumes: each bucket has one owner, so a second announcement comes only with a resent epoch.
            if message.is_resent or not self._is_trusting:
                content.announcer.setdefault(bucket, sender)
        if self._is_hasty or (self._is_counting and content.count >= BUCKETS):
            content.done = ALL_BUCKETS
        return self._released() if content.done == ALL_BUCKETS else []

    def lost(self, node: NodeId) -> list[Epoch]:
        """The epochs that become complete if nothing more is awaited of a lost node."""
        for content in self._contents.values():
            for bucket in self._shares.get(node, ()):
                content.done |= 1 << bucket
        return self._released()

    def succeed(self, before: "Library") -> None:
        """Take over what an earlier session left incomplete."""
        self._contents = before._contents
        self._latest_partial = max(self._contents, default=0)

    def open(self, first: int) -> list[Epoch]:
        """The epochs already complete from `first` on, in order: from there on every relevant node sends everything."""
        self.is_open = True
        self.latest_complete = first - 1
        if not self._keeps_partial:
            self._contents = {epoch: content for epoch, content in self._contents.items() if epoch >= first}
        return self._released()

    def _released(self) -> list[Epoch]:
        """The epochs that are complete, together with all smaller ones."""
        released: list[Epoch] = []
        while self.is_open and self._contents:
            number = min(self._contents)
            content = self._contents[number]
            if content.done != ALL_BUCKETS and number > self._latest_partial:
                break
            del self._contents[number]
            self.latest_complete = number
            rows = [] if content.is_missing_data else self._chosen(content)
            released.append(Epoch(number, rows, content.is_missing_data))
        return released

    def _chosen(self, content: Content) -> list[Row]:
        """For each bucket, the rows of its announcer (invariant 1)."""
        announcer = content.announcer
        chosen = [
            row for sender, rows in content.rows.items() for row in rows if announcer.get(row.bucket, sender) == sender
        ]
        self.repeated_rows += sum(map(len, content.rows.values())) - len(chosen)
        return sorted(chosen, key=_hash) if self._sorts else chosen


def _hash(row: Row) -> int:
    return crc32(f"{row.key} {row.transid}".encode())
