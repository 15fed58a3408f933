"""Copies of shards, kept up to date by listening.

Theory of operation. A session with a data node begins with the whole of a shard, and then brings what is added, in
order. A new session's first part may have less than the copy, or more: updates below the copy's upper are left out, as
the copy has them. Compaction moves old updates to later timestamps, where they look like new ones. So
a copy that was cut off until its whole past was compacted begins anew.
"""

from clusters.materialize.collections import Rows, Update
from clusters.materialize.messages import Listen, Part
from clusters.materialize.shape import MS, home_of
from clusters.materialize.site import Site
from harness.core.machine import NodeId

SILENT_NS = 300 * MS  # After so long without a part a shard is listened to anew.


class Copies:
    """The copies of one compute node."""

    def __init__(self, site: Site) -> None:
        self.rows: dict[str, Rows] = {}
        self._site = site
        self._session = site.now_ns()
        self._sessions: dict[str, int] = {}
        self._heard_ns: dict[str, int] = {}
        self._since: dict[str, int] = {}

    def copy(self, shard: str) -> Rows:
        """The copy of a shard, which is listened to from now on."""
        if shard not in self.rows:
            self.rows[shard] = Rows()
            self._listen(shard)
        return self.rows[shard]

    def take(self, part: Part) -> list[Update] | None:
        """Add a part to the copy of its shard, and return the updates that are new; None if it must begin anew."""
        if self._sessions.get(part.shard) != part.session:
            return []
        rows = self.rows[part.shard]
        if part.is_first and 0 < rows.upper <= part.since:
            return None
        self._heard_ns[part.shard] = self._site.now_ns()
        new = [update for update in part.updates if update.ts >= rows.upper]
        rows.add(new, part.upper)
        self._since[part.shard] = max(part.since, self._since.get(part.shard, 0))
        return new

    def compact(self, shard: str, taken: int) -> None:
        """Compact the copy as far as the shard is, but keep apart what a view has yet to take up, from `taken` on."""
        rows = self.rows[shard]
        rows.compact(min(self._since.get(shard, 0), rows.upper, taken) if taken else 0)

    def closed(self, peer: NodeId) -> None:
        """Listen anew to the shards of that data node."""
        for shard in self.rows:
            if home_of(shard) == peer:
                self._heard_ns[shard] = min(self._heard_ns[shard], self._site.now_ns() - SILENT_NS + 20 * MS)

    def watch(self) -> None:
        """Listen anew to shards that are silent."""
        for shard, heard_ns in tuple(self._heard_ns.items()):
            if heard_ns <= self._site.now_ns() - SILENT_NS:
                self._listen(shard)

    def _listen(self, shard: str) -> None:
        self._session += 1
        self._sessions[shard] = self._session
        self._heard_ns[shard] = self._site.now_ns()
        self._site.send(home_of(shard), Listen(shard, self._session))
