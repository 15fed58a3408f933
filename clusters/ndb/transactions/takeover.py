"""The take-over of dead coordinators' transactions: the master queries all storages, and decides.

1. Nothing is decided before every member has reported everything: a silent one may be the only one that committed.
2. A transaction of which any part is committed had begun to commit, and all of its parts are prepared or further: it
   is committed, in the epoch that it had. Any other transaction has shown no row and had no answer: it is aborted.
3. From the first query to the last decision no epoch is finished here (`hold`), so an adopted one is still open.
4. When another member leaves the view, the master queries again, for all lives that are no longer in it.
"""

from collections.abc import Sequence

from clusters.ndb import planted
from clusters.ndb.parts import Site
from clusters.ndb.transactions.messages import TransConf, TransLast, TransStatus, coordinator_in, since_in
from harness.core.machine import NodeId


class Decision:
    """The decision on a transaction: `epoch` if it is committed; the participating chain of each fragment."""

    __slots__ = ("chains", "epoch", "transid")

    def __init__(self, transid: int, epoch: int | None, chains: dict[int, tuple[NodeId, ...]]) -> None:
        self.transid = transid
        self.epoch = epoch
        self.chains = chains


class TakeOver:
    """One query at a time; `coordinator.py` carries out its decisions."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._number = 0
        self._waiting: dict[NodeId, None] = {}  # The members that have not answered; empty unless a query is open.
        self._reports: dict[int, list[TransConf]] = {}

    def begin(self) -> None:
        """Query all members; this replaces an earlier query (invariant 4)."""
        if not self._waiting:
            self._site.checkpoints.hold()
        self._number = self._site.view.number
        self._waiting = dict.fromkeys(self._site.view.nodes())
        self._reports = {}
        self._site.everyone(TransStatus(self._number))
        self._site.context.point("takeover-collecting")

    def report(self, message: TransConf) -> None:
        """Add a report on one part of a transaction."""
        if message.view == self._number and self._waiting:
            self._reports.setdefault(message.transid, []).append(message)

    def last(self, sender: NodeId, message: TransLast) -> Sequence[Decision] | None:
        """The decisions, once all have answered (invariant 1), else None; `finish` must follow."""
        if message.view != self._number or sender not in self._waiting:
            return None
        del self._waiting[sender]
        is_hasty = planted.TAKEOVER_PARTIAL_QUERY in self._site.bugs
        if self._waiting and not (is_hasty and 2 * len(self._waiting) < len(self._site.view.members)):
            return None
        self._waiting = {}
        return [
            self._decision(transid, reports) for transid, reports in self._reports.items() if self._is_dead(transid)
        ]

    def finish(self) -> None:
        """End the take-over, as its decisions are being carried out."""
        self._reports = {}
        self._site.checkpoints.let_go()

    def _is_dead(self, transid: int) -> bool:
        """True if this node's view has the coordinator as failed.

        A storage may already know of a failure that this view lacks and that others have not reported.
        """
        return self._site.view.since(coordinator_in(transid)) != since_in(transid)

    def _decision(self, transid: int, reports: list[TransConf]) -> Decision:
        chains: dict[int, tuple[NodeId, ...]] = {}
        epochs = [report.epoch for report in reports if report.epoch is not None]
        for report in reports:
            if len(report.chain) > len(chains.get(report.fragment, ())):
                chains[report.fragment] = report.chain
        if epochs:
            self._site.context.sometimes("a coordinator was taken over with a committed operation")
        bugs, current = self._site.bugs, self._site.checkpoints.current
        epoch = epochs[0] if epochs else None
        if planted.TAKEOVER_ABORTS_COMMITTED in bugs and len(epochs) < len(reports):
            epoch = None
        elif (planted.ADOPT_WITH_CURRENT_EPOCH if epochs else planted.TAKEOVER_COMMITS_PREPARED) in bugs:
            epoch = current
        return Decision(transid, epoch, chains)
