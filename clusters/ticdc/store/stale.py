"""Stale reads: what any replica may show of the past without asking its leader.

Theory of operation. A leader publishes, with its watermark, how far its log was applied then.
1. A replica's safe timestamp rises to a published one when it has applied as much: every row committed at or below is
   here then, or is a lock of a large transaction that has committed elsewhere.
2. Normal locks are ignored: their transactions commit above the safe timestamp. The state of a large transaction with a
   lock comes from what the reader knows, from the leader's hint, or else from the primary key, which the reader asks.
   If it committed at or below the timestamp, the lock itself holds the value.
3. Where regions are merged, both must be readable at the timestamp. What was published before the merge is about one of
   them only.
"""

from collections import deque

from clusters.ticdc import planted
from clusters.ticdc.rows.messages import DataIsNotReady, Elements, Lock, Locked, StaleGet, Status, Values
from clusters.ticdc.rows.versions import Versions
from clusters.ticdc.site import Site
from clusters.ticdc.watermarks.messages import ReadState


class ReadProgress:
    """The safe timestamp of one replica. It is in memory only, and falls at most when the region absorbs another."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._safe_ts = 0
        self._hints: dict[int, Status] = {}
        self._pending: deque[ReadState] = deque()
        self._since = 0  # The place in the log of the last merge.

    def learn(self, state: ReadState, applied: int) -> None:
        """Take over what the leader published. `applied` is how far this replica has applied the log."""
        if state.applied >= self._since:
            self._pending.append(state)
        self.applied(applied)

    def merged(self, index: int, other: "ReadProgress | None") -> None:
        """Lower the safe timestamp to that of the absorbed region's replica; earlier published ones no longer count.

        `other` is the progress of that replica; None if this store had none. See invariant 3.
        """
        least = max if planted.MERGE_MAX_SAFE_TS in self._site.bugs else min
        self._safe_ts = least(self._safe_ts, other._safe_ts if other is not None else 0)
        self._hints |= other._hints if other is not None else {}
        self._since = index
        self._pending = deque(state for state in self._pending if state.applied >= index)

    def applied(self, applied: int) -> None:
        """Raise the safe timestamp, if this replica has now applied enough (invariant 1)."""
        while self._pending and (
            self._pending[0].applied <= applied or planted.NO_APPLIED_CHECK in self._site.bugs
        ):
            state = self._pending.popleft()
            if state.safe_ts >= self._safe_ts:
                self._safe_ts, self._hints = state.safe_ts, dict(state.hints)

    def read(self, rows: Versions, request: StaleGet) -> DataIsNotReady | Locked | Values:
        """The values at the request's timestamp, or the locks of transactions whose state the reader must find out."""
        if request.read_ts > self._safe_ts:
            return DataIsNotReady(self._safe_ts)
        known = dict(request.known)
        found, open_locks = list[Elements](), list[Lock]()
        for key in request.keys:
            elements = rows.read(key, request.read_ts)
            lock = rows.locks.get(key)
            if lock is not None and self._concerns(lock, request.read_ts):
                state = known.get(lock.start_ts) or self._hints.get(lock.start_ts)
                if state is None or (state.state == "ongoing" and state.timestamp <= request.read_ts):
                    open_locks.append(lock)
                elif self._is_visible(state, request.read_ts):
                    self._site.context.sometimes("a stale read took a value from a lock")
                    elements = lock.elements
            found.append(elements)
        return Locked(tuple(open_locks)) if open_locks else Values(tuple(found))

    def _concerns(self, lock: Lock, read_ts: int) -> bool:
        """True if a lock may hide what was committed at or below the timestamp (invariant 2)."""
        if planted.STALE_SKIP_LOCKS in self._site.bugs or not self._site.is_new:
            return False
        return lock.is_large and lock.kind == "put" and lock.start_ts <= read_ts

    def _is_visible(self, state: Status, read_ts: int) -> bool:
        if planted.HINT_IS_ONGOING in self._site.bugs:
            return False
        return state.state == "committed" and state.timestamp <= read_ts
