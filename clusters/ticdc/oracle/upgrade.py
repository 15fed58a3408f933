"""A rolling upgrade: nodes of the old version are replaced one after the other, under load.

Theory of operation. An old capture releases row by row. An old store keeps the watermark below the start of every large
transaction with locks left, ignores locks in stale reads, and shares no states of large transactions.
1. Captures are upgraded first: a new one matches whole transactions, which is right with either rule of watermarks.
2. While any store is old, all stores follow the old rule. Each timestamp carries whether the last store is new
   (`Timestamp.is_new`): so a round follows the rule that was in force at its timestamp.
3. What the oracle has announced is durable: it never goes back to the old rule.
4. A node writes its new version to disk, and starts again with it. If faults delay that, the cluster stays mixed.
"""

from typing import Final

from clusters.ticdc.oracle.messages import AllNew, Upgrade, Upgraded, Version
from clusters.ticdc.shape import CAPTURES, MS, STORES
from clusters.ticdc.site import Site
from harness.core.machine import Durable, NodeId, Settings

OPTION: Final = "versions"
ROLLING: Final = "rolling"
PACE_NS: Final = 300 * MS  # Between two nodes.
AGAIN_NS: Final = 200 * MS  # After so much silence the request is sent again.
DOWN_NS: Final = 40 * MS  # How long a node is away.
LAST_NS: Final = 4_000 * MS  # No node goes away later than that in a run, as it could be away when the run ends.


def is_rolling(settings: Settings) -> bool:
    """True if the run begins with old nodes."""
    return settings.options.get(OPTION) == ROLLING


def is_new(durable: Durable, settings: Settings) -> bool:
    """True if this node runs the new version."""
    return not is_rolling(settings) or durable.value("version") is not None


def upgrade(site: Site, oracle: NodeId, _request: Upgrade) -> None:
    """Write the new version to disk and restart (invariant 4); if this node runs it already, answer that it does."""
    if site.is_new:
        site.send(oracle, Upgraded())
        return
    site.context.put("version", Version())
    site.sync(lambda: site.context.exit(DOWN_NS))


class Upgrades:
    """The upgrade at the oracle: the nodes that are still old, in the order in which they are upgraded."""

    def __init__(self, site: Site, durable: Durable, settings: Settings) -> None:
        self.is_done = not is_rolling(settings) or durable.value("all-new") is not None
        self._site = site
        self._left = [] if self.is_done else [*CAPTURES, *STORES]
        self._due_ns = site.now_ns() + PACE_NS

    def tick(self) -> None:
        """Send the request to the next node, if it is due."""
        if self._left and self._due_ns <= self._site.now_ns() < LAST_NS:
            self._due_ns = self._site.now_ns() + AGAIN_NS
            self._site.send(self._left[0], Upgrade())

    def upgraded(self, node: NodeId) -> None:
        """Note that this node is new. After the last one the new rule is in force (invariants 2 and 3)."""
        if not self._left or node != self._left[0]:
            return
        del self._left[0]
        self._due_ns = self._site.now_ns() + PACE_NS
        if not self._left:
            self._site.context.put("all-new", AllNew())
            self._site.sync(self._finish)

    def _finish(self) -> None:
        self._site.context.sometimes("a rolling upgrade came to its end")
        self.is_done = True
