"""One region's replica on a store: its log and its rows; at the leader also its latches, watermark and feed.

Theory of operation. A request that would change something is decided under the latches of its keys, proposed to the
log, and answered when its command has been applied here.
1. Requests are served under the leader's lease only, so that no deposed leader answers with old rows.
2. The latches of a request are held until its command is applied: decisions about a key are made one after the other,
   and each sees the effects of those before it.
3. Everything that depends on leading, such as latches, the advancer and sessions, belongs to one term and ends with it.
   Requests without an answer are answered "not leader"; a sender that repeats them learns what became of them.
4. Each applied change goes to the advancer and to the feed in the order of the log, before any later watermark.
5. What changes the region itself (regions/__init__.py) is decided while no other command is under way. So all commands
   after it in the log were decided by what it left; requests for an older version of the region are refused.
6. While a flashback holds locks here, the region is closed: only its own requests are served, and those that settle
   locks or look for them. All else is sent back, to come again. Reads of the past go on: they are below its start.
"""

from collections.abc import Sequence
from typing import Protocol, assert_never, cast

from msgspec import Struct

from clusters.ticdc import planted
from clusters.ticdc.backup.uploads import Uploads
from clusters.parts.log_messages import Entry, Vote
from clusters.parts.quorum_log import Group, QuorumLog
from clusters.ticdc.regions.messages import (
    LOCAL,
    REGION_COMMANDS,
    RESHAPING,
    SHOWN,
    Absorb,
    Command,
    Found,
    Freeze,
    FromRegion,
    InFlashback,
    MergeInto,
    MergeLeft,
    Moved,
    NotLeader,
    Ordered,
    Region,
    RegionCommand,
    Reply,
    Request,
    Reshaped,
    Reshaping,
    Split,
    SplitAt,
    TransferLeader,
    keys_of,
)
from clusters.ticdc.rows import commands
from clusters.ticdc.rows.messages import (
    Alive,
    AskBackup,
    AskResolved,
    BackupGet,
    Changing,
    CheckStatus,
    Commit,
    Get,
    Heartbeat,
    Local,
    Locks,
    PrepareFlashback,
    Prewrite,
    PutLocks,
    Reaches,
    Resolve,
    RowCommand,
    ScanLocks,
    Shown,
    StaleGet,
    Status,
    Upload,
)
from clusters.ticdc.rows.versions import Versions
from clusters.ticdc.shape import MS, STORES, Key, slot_of
from clusters.ticdc.site import Site
from clusters.ticdc.store.stale import ReadProgress
from clusters.ticdc.stream.feed import Feed
from clusters.ticdc.stream.messages import NOT_LEADER, RESHAPED
from clusters.ticdc.watermarks.advancer import Advancer
from harness.core.machine import Dump, NodeId


_POINTS: dict[type, str] = {
    Commit: "commit-applied",
    Heartbeat: "heartbeat-applied",
    Prewrite: "prewrite-applied",
}


class Work(Struct, frozen=True):
    """A request to change the region of that version. `number` is that of the request at `sender`; 0: no answer."""

    sender: NodeId
    number: int
    body: Ordered
    keys: tuple[Key, ...]
    version: int


class Host(Protocol):
    """The store, as its replicas see it."""

    def regions(self) -> tuple[Region, ...]:
        """The regions as far as this store knows them."""

    def found(self, region: Region, first: Entry[Command], *, is_eager: bool) -> None:
        """Make a replica of a region that a split has made."""

    def absorbed(self, regions: tuple[int, ...]) -> None:
        """Drop the replicas of regions that have become parts of others."""

    def progress_of(self, region: int) -> ReadProgress | None:
        """How far this store's replica of a region can be read; None without one."""


class Replica:
    """A replica of one region."""

    def __init__(
        self, site: Site, host: Host, region: Region, vote: Vote, entries: Sequence[Entry[Command]],
        uploaded: Sequence[Upload], *, is_eager: bool,
    ) -> None:  # fmt: skip
        self.region = region
        self.is_frozen = False
        self.rows = Versions()
        election_ns = site.parameters["election_ms"] * MS
        group = Group(number=region.id, members=STORES, election_ns=election_ns, noun="region")
        self.log = QuorumLog(
            site, group, vote, entries, is_original=region.version == 0, is_eager=is_eager,
            applied=self._applied, deposed=self._deposed,
        )  # fmt: skip
        self.advancer: Advancer | None = None  # Of this term, if it leads.
        self.feed = Feed(site)
        self.progress = ReadProgress(site)
        self.uploads = Uploads(site, region.id, uploaded)
        self._site = site
        self._host = host
        self._absorbed: tuple[int, ...] = ()
        self._earlier: Advancer | None = None  # Used by a bug alone: the first one, which knows nothing of its absence.
        self._latched: dict[Key, None] = {}
        self._is_reshaping = False  # A change of the region itself is under way (invariant 5).
        self._waiting: list[Work] = []
        self._proposed: dict[int, tuple[Work, Reply]] = {}  # By the place in the log.
        self._told: dict[int, int] = {}  # The highest bound of each transaction that others know from here.

    @property
    def serves(self) -> bool:
        """True if this replica leads and may answer for the region (invariant 1)."""
        return not self.is_frozen and self.log.has_lease()

    def request(self, sender: NodeId, number: int, version: int, body: Request) -> None:
        """Serve a request, if this replica leads."""
        if version != self.region.version:
            self._answer(sender, number, Moved(self._host.regions()))
        elif type(body) in LOCAL:
            self._answer(sender, number, self._local(cast("Local", body)))
        elif not self.serves:
            self._answer(sender, number, NotLeader(self.log.leader if not self.log.is_leader else None))
        elif isinstance(body, TransferLeader):
            self.log.transfer(body.to)
            self._answer(sender, number, Reshaped("done"))
        elif type(body) in SHOWN:
            is_closed = commands.is_closed(self.rows, body)
            self._answer(sender, number, InFlashback() if is_closed else self._shown(cast("Shown", body)))
        else:
            self._admit(Work(sender, number, cast("Ordered", body), keys_of(body), version))

    def merge(self, sender: NodeId, request: MergeInto) -> None:
        """Take in the frozen region to the right; a request that comes again is dropped."""
        if self.serves and request.source.id not in self._absorbed:
            self._admit(Work(sender, 0, request, (), self.region.version))

    def leaves(self) -> MergeInto | None:
        """The request to the region to the left, for which this one is frozen; None if this replica need not send it."""
        if not (self.is_frozen and self.log.has_caught_up):
            return None
        return MergeInto(self.region, self.rows.contents(self._absorbed))

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
            case _:
                assert_never(body)

    def status(self, start_ts: int, primary: Key) -> Status | None:
        """The replicated state of a large transaction; None if this replica does not lead."""
        if not self.serves:
            return None
        lock = self.rows.locks.get(primary)
        if lock is not None and lock.start_ts == start_ts:
            self._tell(start_ts, lock.min_commit_ts)
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
        if work.version != self.region.version:
            self._answer(work.sender, work.number, Moved(self._host.regions()))
        elif self.is_frozen or self.log.has_left:
            self._answer(work.sender, work.number, NotLeader(None))
        elif commands.is_closed(self.rows, work.body):
            self._site.context.sometimes("a flashback kept others out of a region")
            self._answer(work.sender, work.number, InFlashback())
        elif self._must_wait(work):
            self._waiting.append(work)
        elif type(work.body) in RESHAPING:
            self._reshape(work, cast("Reshaping", work.body))
        else:
            self._decide(work, cast("Changing", work.body))

    def _must_wait(self, work: Work) -> bool:
        """True if an earlier request has to be applied first (invariants 2 and 5)."""
        if self._is_reshaping:
            return True
        if type(work.body) in RESHAPING:
            return bool(self._proposed or self._waiting)
        return not self._latched.keys().isdisjoint(work.keys) or any(
            type(earlier.body) in RESHAPING or any(key in earlier.keys for key in work.keys)
            for earlier in self._waiting
        )

    def _decide(self, work: Work, body: Changing) -> None:
        """Decide a request whose keys are free: answer, or propose its command (invariant 2)."""
        decision = self._decision(body)
        if decision.command is None:
            self._answer_work(work, decision.answer)
            return
        for key in work.keys:
            self._latched[key] = None
        self._propose(work, decision.answer, decision.command)

    def _reshape(self, work: Work, body: Reshaping) -> None:
        """Decide a change of the region, which nothing else is changing (invariant 5)."""
        region = self.region
        command: RegionCommand | None = None
        match body:
            case SplitAt(key, child) if region.start < slot_of(key):
                command = Split(slot_of(key), child)
            case MergeLeft() if region.start > 0:  # So regions never wait for each other in a ring.
                command = Freeze()
            case MergeInto(source, contents) if source.start == region.end and source.id not in self._absorbed:
                command = Absorb(source, contents)
        if command is None:
            self._answer(work.sender, work.number, Reshaped("refused"))
            return
        self._is_reshaping = True
        self._propose(work, Reshaped("done"), command)

    def _propose(self, work: Work, answer: Reply, command: Command) -> None:
        is_raised = isinstance(command, PutLocks) and command.is_rewrite
        if is_raised and planted.HB_BEFORE_REPLICATE in self._site.bugs:
            self._answer_work(work, answer)
        self._proposed[self.log.propose(command)] = (work, answer)

    def _decision(self, body: Changing) -> commands.Decision:
        bugs = self._site.bugs
        match body:
            case Prewrite():
                return commands.prewrite(self.rows, body, bugs)
            case Commit():
                return commands.commit(self.rows, body, bugs)
            case PrepareFlashback():
                return commands.prepare_flashback(self.rows, body)
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

    def _applied(self, index: int, entry: Entry[Command]) -> None:
        """Apply a decided entry (invariant 4)."""
        command = entry.command
        if type(command) in REGION_COMMANDS:
            self._reshaped(index, cast("RegionCommand", command))
        elif command is not None:
            changes = self.rows.apply(cast("RowCommand", command))
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
            point = _POINTS.get(type(work.body))
            if point is not None:
                self._site.context.point(point)
            self._answer_work(work, answer)
            self._release(work.keys)

    def _reshaped(self, index: int, command: RegionCommand) -> None:
        """Change the region itself. Sessions, tracked locks and backups begin anew."""
        before = self.region
        self._is_reshaping = False
        match command:
            case Found(region, contents):
                self.region, self._absorbed = region, contents.absorbed
                self.rows.take(contents)
            case Split(slot, child):
                self.region = Region(before.id, before.version + 1, before.start, slot)
                contents = self.rows.cut(slot).contents(self._absorbed)
                part = Region(child, before.version + 1, slot, before.end)
                self._host.found(part, Entry(0, Found(part, contents)), is_eager=self.log.is_leader)
                self._site.context.sometimes("a region was split")
            case Freeze():
                self.is_frozen = True
            case Absorb(source, contents):
                version = max(before.version, source.version) + 1
                self.region = Region(before.id, version, before.start, source.end)
                self.rows.take(contents)
                self.progress.merged(index, self._host.progress_of(source.id))
                self._absorbed = (*self._absorbed, source.id, *contents.absorbed)
                self._host.absorbed(self._absorbed)
                self._site.context.sometimes("regions were merged")
            case _:
                assert_never(command)
        self.advancer = None
        self.feed.end(RESHAPED, self._host.regions(), self.log.leader)
        self.uploads.begin_version(self.region.version)

    def _deposed(self) -> None:
        """End what belonged to the term (invariant 3)."""
        left = [work for work, _ in self._proposed.values()] + self._waiting
        self._proposed, self._waiting, self._latched, self._told = {}, [], {}, {}
        self._is_reshaping = False
        self.advancer = None
        self.feed.end(NOT_LEADER, self._host.regions(), None)
        self.uploads.end()
        for work in left:
            self._answer(work.sender, work.number, NotLeader(None))

    def _answer_work(self, work: Work, answer: Reply) -> None:
        body = work.body
        if isinstance(answer, Alive) and isinstance(body, Heartbeat):
            self._tell(body.start_ts, answer.min_commit_ts)
        elif isinstance(answer, Status) and answer.state == "ongoing" and isinstance(body, CheckStatus):
            self._tell(body.start_ts, answer.timestamp)
        self._answer(work.sender, work.number, answer)

    def _tell(self, start_ts: int, bound: int) -> None:
        """Record a bound that others learn: the transaction must not commit below it."""
        if bound > self._told.get(start_ts, 0):
            self._told[start_ts] = bound
            self._site.context.dump(Dump(object="bound", key=start_ts, value=bound))

    def _answer(self, sender: NodeId, number: int, body: Reply) -> None:
        if number:
            self._site.send(sender, FromRegion(number, body))
