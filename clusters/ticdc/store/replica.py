"""One region's replica on a store: its log and its rows; at the leader also its latches, watermark and feed.

Theory of operation. A request that would change something is decided under the latches of its keys, proposed to the
log, and answered when its command has been applied here.
1. Requests are served under the leader's lease only, so that no deposed leader answers with old rows.
2. The latches of a request are held until its command is applied: decisions about a key are made one after the other,
   and each sees the effects of those before it.
3. Everything that depends on leading, such as latches, the advancer and sessions, belongs to one term and ends with it.
   Requests without an answer are answered "not leader"; a sender that repeats them learns what became of them.
4. Each applied change goes to the advancer and to the feed in the order of the log, before any later watermark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from typing import assert_never

from clusters.ticdc import planted
from clusters.ticdc.backup.uploads import Uploads
from clusters.ticdc.log.messages import Entry, Vote
from clusters.ticdc.log.quorum_log import QuorumLog
from clusters.ticdc.rows import commands
from clusters.ticdc.rows.messages import (
    AskBackup,
    AskResolved,
    BackupGet,
    Changing,
    CheckStatus,
    Command,
    Commit,
    CopyOf,
    FromRegion,
    Get,
    Heartbeat,
    Local,
    Locks,
    NotLeader,
    Prewrite,
    PutLocks,
    Reaches,
    Reply,
    Request,
    Resolve,
    ScanLocks,
    Shown,
    StaleGet,
    Status,
    Upload,
)
from clusters.ticdc.rows.versions import Versions
from clusters.ticdc.shape import Key
from clusters.ticdc.site import Site
from clusters.ticdc.store.stale import ReadProgress
from clusters.ticdc.stream.feed import Feed
from clusters.ticdc.stream.messages import NOT_LEADER
from clusters.ticdc.watermarks.advancer import Advancer
from harness.core.machine import NodeId


@dataclass(frozen=True, slots=True)
class Work:
    """A request that changes something, its sender, and the keys whose latches it needs."""

    sender: NodeId
    number: int
    body: Changing
    keys: tuple[Key, ...]


class Replica:
    """A replica of one region."""

    def __init__(
        self, site: Site, region: int, vote: Vote, entries: Sequence[Entry], uploaded: Sequence[Upload]
    ) -> None:
        self.region = region
        self.rows = Versions()
        self.log = QuorumLog(site, region, vote, entries, applied=self._applied, deposed=self._deposed)
        self.advancer: Advancer | None = None  # Of this term, if it leads.
        self.feed = Feed(site, region)
        self.progress = ReadProgress(site)
        self.uploads = Uploads(site, region, uploaded)
        self._site = site
        self._earlier: Advancer | None = None  # For a planted bug only: the first advancer.
        self._latched: dict[Key, None] = {}
        self._waiting: list[Work] = []
        self._proposed: dict[int, tuple[Work, Reply]] = {}  # By the place in the log.

    def request(self, sender: NodeId, number: int, body: Request) -> None:
        """Serve a request, if this replica leads (invariant 1)."""
        if isinstance(body, Local):
            self._answer(sender, number, self._local(body))
            return
        if not self.log.has_lease():
            self._answer(sender, number, NotLeader(self.log.leader if not self.log.is_leader else None))
            return
        if isinstance(body, Shown):
            self._answer(sender, number, self._shown(body))
        else:
            self._admit(Work(sender, number, body, _keys(body)))

    def _local(self, body: Local) -> Reply:
        """The answer of any replica: values of the past, or of its uploads."""
        match body:
            case StaleGet():
                return self.progress.read(self.rows, body)
            case BackupGet(keys, read_ts):
                return self.uploads.read(keys, read_ts)
            case AskBackup():
                self.uploads.is_on = True
                if self.advancer is not None:
                    self.uploads.begin(self.rows)
                return Reaches(self.uploads.checkpoint)
            case _:
                assert_never(body)

    def _shown(self, body: Shown) -> Reply:
        """The leader's answer to a request that changes nothing."""
        match body:
            case Get():
                return commands.get(self.rows, body)
            case ScanLocks(before_ts):
                return Locks(tuple(lock for lock in self.rows.locks.values() if lock.start_ts < before_ts))
            case AskResolved():
                return Reaches(self.advancer.resolved if self.advancer is not None else 0)
            case CopyOf():
                return commands.copy_of(self.rows, body)
            case _:
                assert_never(body)

    def status(self, start_ts: int, primary: Key) -> Status | None:
        """The replicated state of a large transaction; None if this replica does not lead."""
        if not self.log.has_lease():
            return None
        lock = self.rows.locks.get(primary)
        if lock is not None and lock.start_ts == start_ts:
            return Status("ongoing", lock.min_commit_ts)
        return commands.final_status(self.rows, primary, start_ts)

    def begin(self) -> None:
        """Begin to track locks, once the log has applied an entry of its term (invariant 3 of the log)."""
        self.advancer = Advancer(self._site, tuple(self.rows.locks.values()))
        if planted.ABA_OBSERVE in self._site.bugs:
            self.advancer = self._earlier = self._earlier or self.advancer
        self.uploads.begin(self.rows)

    # Latches.

    def _admit(self, work: Work) -> None:
        if any(key in self._latched for key in work.keys) or any(
            key in earlier.keys for earlier in self._waiting for key in work.keys
        ):
            self._waiting.append(work)
        else:
            self._decide(work)

    def _decide(self, work: Work) -> None:
        """Decide a request whose keys are free: answer, or propose its command (invariant 2)."""
        decision = self._decision(work.body)
        if decision.command is None:
            self._answer(work.sender, work.number, decision.answer)
            return
        for key in work.keys:
            self._latched[key] = None
        self._propose(work, decision.answer, decision.command)

    def _propose(self, work: Work, answer: Reply, command: Command) -> None:
        is_raised = isinstance(command, PutLocks) and command.is_rewrite
        if is_raised and planted.HB_BEFORE_REPLICATE in self._site.bugs:
            self._answer(work.sender, work.number, answer)
        self._proposed[self.log.propose(command)] = (work, answer)

    def _decision(self, body: Changing) -> commands.Decision:
        bugs = self._site.bugs
        match body:
            case Prewrite():
                return commands.prewrite(self.rows, body)
            case Commit():
                return commands.commit(self.rows, body, bugs)
            case Heartbeat():
                return commands.heartbeat(self.rows, body, bugs)
            case CheckStatus():
                return commands.check_status(self.rows, body, bugs)
            case Resolve():
                return commands.resolve(self.rows, body)
            case _:
                assert_never(body)

    def _release(self, keys: tuple[Key, ...]) -> None:
        """Release the latches of these keys, and decide the requests that now hold all of theirs, in order."""
        for key in keys:
            self._latched.pop(key, None)
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            self._admit(work)

    # The log.

    def _applied(self, index: int, entry: Entry) -> None:
        """Apply a decided entry (invariant 4)."""
        if entry.command is not None:
            changes = self.rows.apply(entry.command)
            is_old = entry.term < self.log.term and planted.SCAN_WITHOUT_READ_INDEX in self._site.bugs
            if self.advancer is not None and not is_old:
                for change in changes:
                    self.advancer.observe(change)
            self.feed.observe(changes)
            self.uploads.observe(changes)
        self.progress.applied(index)
        proposed = self._proposed.pop(index, None)
        if proposed is not None:
            work, answer = proposed
            self._point_of(work.body)
            self._answer(work.sender, work.number, answer)
            self._release(work.keys)

    def _point_of(self, body: Changing) -> None:
        match body:
            case Commit():
                self._site.context.point("commit-applied")
            case Heartbeat():
                self._site.context.point("heartbeat-applied")
            case Prewrite():
                self._site.context.point("prewrite-applied")

    def _deposed(self) -> None:
        """End what belonged to the term (invariant 3)."""
        left = [work for work, _ in self._proposed.values()] + self._waiting
        self._proposed, self._waiting, self._latched = {}, [], {}
        self.advancer = None
        self.feed.end(NOT_LEADER)
        self.uploads.end()
        for work in left:
            self._answer(work.sender, work.number, NotLeader(None))

    def _answer(self, sender: NodeId, number: int, body: Reply) -> None:
        self._site.send(sender, FromRegion(number, body))


def _keys(body: Changing) -> tuple[Key, ...]:
    """The keys whose latches a request needs."""
    match body:
        case Prewrite():
            return tuple(mutation.key for mutation in body.mutations)
        case Commit() | Resolve():
            return body.keys
        case Heartbeat() | CheckStatus():
            return (body.primary,)
        case _:
            assert_never(body)
