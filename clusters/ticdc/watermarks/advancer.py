"""The watermark advancer of one region at its leader (formerly resolver): the timestamp up to which all is decided.

Theory of operation. It sees every change of the region's locks in the order in which they are applied. At a tick with
timestamp ts0, which was fetched before the leader was confirmed, the region's resolved timestamp rises to the least of
(a) ts0: a transaction that has no lock here yet gets its commit timestamp after its prewrite, so after ts0;
(b) the start of every normal transaction with a lock here: it commits above its start;
(c) m - 1 for every large one, m being a replicated bound of its primary lock: it commits at m or above.
1. It never falls: a lock that comes late cannot commit at or below what was announced before.
2. Of a large transaction it keeps one entry, however many rows it has here: start, bound, primary key, live locks.
3. The first commit of a large transaction here frees the watermark: with it, each receiver of the stream releases all
   rows of the transaction. That it is committed *elsewhere* frees nothing: the bound is c - 1 until that commit
   has been applied here. That it is rolled back frees it at once.
4. An advancer of a new leader, or of a new term, begins with the locks of an applied snapshot, and keeps what is
   applied meanwhile in a buffer. Only then is it ready.
5. While leftover locks of a determined transaction live here, its timestamp is kept for streams that begin now.
"""

from dataclasses import dataclass

from clusters.ticdc import planted
from clusters.ticdc.rows.messages import Lock, Status
from clusters.ticdc.rows.versions import Change
from clusters.ticdc.shape import Key
from clusters.ticdc.site import Site


@dataclass(slots=True)
class Large:
    """A large transaction. It commits at `bound` or above; None: it no longer holds the watermark back."""

    primary: Key
    bound: int | None
    live: int = 0  # Its locks here.
    commit_ts: int = 0  # Of the first commit seen here.


class Advancer:
    """The advancer of a region's leader in one term."""

    def __init__(self, site: Site, locks: tuple[Lock, ...]) -> None:
        self.is_ready = False
        self.resolved = 0
        self._bugs = site.bugs
        self._site = site
        self._snapshot = locks
        self._buffer: list[Change] = []
        self._starts: dict[Key, int] = {}  # Of normal transactions, by the keys that they hold.
        self._large: dict[int, Large] = {}

    def scanned(self) -> None:
        """Begin to advance: the locks of the snapshot have been read (invariant 4)."""
        for lock in self._snapshot:
            self._locked(lock)
        if planted.PENDING_LOST_IN_SCAN not in self._bugs:
            for change in self._buffer:
                self._track(change)
        self._snapshot, self._buffer = (), []
        self.is_ready = True

    def observe(self, change: Change) -> None:
        """Take an applied change into account."""
        if self.is_ready:
            self._track(change)
        else:
            self._buffer.append(change)

    def open_large(self) -> list[tuple[int, Key]]:
        """The large transactions that hold the watermark back, with their primary keys."""
        return [(start_ts, large.primary) for start_ts, large in self._large.items() if large.bound is not None]

    def entries(self) -> int:
        """The number of entries that are kept (invariant 2)."""
        return len(self._starts) + len(self._large)

    def determined(self) -> tuple[tuple[int, int], ...]:
        """The start and commit timestamps of large transactions that have committed here in part (invariant 5)."""
        if planted.RESCAN_FORGETS_DETERMINED in self._bugs or not self._site.is_new:
            return ()
        return tuple((start_ts, large.commit_ts) for start_ts, large in self._large.items() if large.commit_ts)

    def hints(self) -> tuple[tuple[int, Status], ...]:
        """The known states of large transactions with locks here."""
        found = []
        for start_ts, large in self._large.items():
            if large.commit_ts:
                found.append((start_ts, Status("committed", large.commit_ts)))
            elif large.bound is not None:
                found.append((start_ts, Status("ongoing", large.bound)))
        return tuple(found)

    def learn(self, start_ts: int, status: Status) -> None:
        """Take the state of a large transaction at its primary key into account (invariant 3)."""
        large = self._large.get(start_ts)
        if large is None or large.bound is None:
            return
        match status.state:
            case "ongoing":
                large.bound = max(large.bound, status.timestamp)
            case "committed":
                self._site.context.sometimes("a large transaction was known as committed before its commit came")
                large.bound = max(large.bound, status.timestamp)
                if planted.UNBLOCK_ON_STATUS in self._bugs:
                    large.bound = None
            case "rolled-back":
                large.bound = None
            case "missing":
                pass

    def least(self) -> int | None:
        """The highest timestamp that the locks here allow; None without any."""
        return min((*self._starts.values(), *self._large_bounds()), default=None)

    def tick(self, ts0: int, least: int | None) -> int:
        """Raise the resolved timestamp after a round that a quorum confirmed, and return it.

        `least` is what the locks allow.
        """
        bound = ts0 if least is None else min(ts0, least)
        if bound > self.resolved or planted.WM_NOT_MAX in self._bugs:
            self.resolved = bound
        return self.resolved

    def whole(self) -> int:
        """The timestamp at or below which every row has been applied here: it stays below locks of committed rows."""
        if planted.PITR_STATUS_BASED in self._bugs or not self._site.is_new:
            return self.resolved
        left = (large.bound or large.commit_ts for large in self._large.values() if large.live)
        return min((self.resolved, *(bound - 1 for bound in left if bound)))

    def _large_bounds(self) -> list[int]:
        """The highest resolved timestamp that each large transaction allows."""
        if planted.WM_IGNORES_LARGE in self._bugs:
            return []
        if planted.START_TS_RULE in self._bugs or not self._site.has_new_rule:
            return [start_ts for start_ts, large in self._large.items() if large.live]
        least = 0 if planted.WM_EQ_MIN_COMMIT in self._bugs else 1
        return [large.bound - least for large in self._large.values() if large.bound is not None]

    def _track(self, change: Change) -> None:
        lock = change.lock
        match change.kind:
            case "prewrite":
                assert lock is not None
                self._locked(lock, is_new=change.is_new)
            case "rewrite":
                pass  # Also for a primary lock here, `learn` brings the state: other regions have no other source.
            case "commit" | "rollback":
                if lock is not None and lock.is_large:
                    self._large_unlocked(change)
                elif lock is not None:
                    self._starts.pop(change.key, None)

    def _locked(self, lock: Lock, *, is_new: bool = True) -> None:
        if not lock.is_large:
            self._starts[lock.key] = lock.start_ts
            return
        large = self._large.get(lock.start_ts)
        if large is None:
            large = self._large[lock.start_ts] = Large(lock.primary, lock.min_commit_ts)
        large.live += is_new

    def _large_unlocked(self, change: Change) -> None:
        large = self._large.get(change.start_ts)
        if large is None:
            return
        large.live -= 1
        large.bound = None
        large.commit_ts = max(large.commit_ts, change.commit_ts)
        if large.live == 0:
            del self._large[change.start_ts]
