"""Evidence that two sides of a partition went on at once: guarantee G25.

Two nodes are on different sides while each has installed a view without the other. Such views may legally follow each
other: nodes that were cut off and stopped may restart the cluster once the others are gone. So a finding takes two
acknowledged writes, one on each node. Both must *begin* after both views were installed, and end before either node
installed another view: then neither view had ended when the other began. Writes in flight when a view was installed may
still be answered.

An arbitrator must not let two disjoint sets of nodes go on either, unless nodes of both came together in between, or
the whole cluster was restarted. Only grants that were used count: another may have been lost before it arrived.

Witnesses: acknowledged writes of a node whose view lacked a live node (one that no crash had struck and that installed
another view later), and grants that were used in a partition.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.runs import groups
from checkers.engine.protocol import Check, Context
from checkers.history.faults import overlaps
from checkers.history.names import Dictionary
from checkers.history.tables import State, Window, first_reports, states, windows
from checkers.history.troubles import Trouble, judgement
from checkers.state.written import Written, written_in
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OK, Int64s
from harness.core.promises import Excuse
from harness.core.verdict import Judgement

CHECKER = "authority"
SPLIT = "split-brain"
ANOMALIES: Final = {
    SPLIT: Anomaly(meaning="Two nodes act as the only one at once.", cause=Cause.OWNER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign:
    """A view on one node, from its installation to the installation of the next."""

    node: str
    number: int
    members: tuple[str, ...]
    seq: int
    ns: int
    end_seq: int  # NEVER for the last view.
    writes: Int64s  # Acknowledged writes that began and ended within it, ascending,
    begun: Int64s  # and the positions in the journal at which they began.

    def after(self, seq: int) -> int | None:
        """The first operation that wrote and began after that position in the journal; None if there is none."""
        place = int(np.searchsorted(self.begun, seq, side="right"))
        return int(self.writes[place]) if place < len(self.writes) else None


def check(history: Path, context: Context) -> Judgement:
    """The judgement of views, grants and acknowledged writes. Raises HistoryError if they are damaged."""
    found = states(history, Dictionary(history), "view", "grant", "restart")
    views = [view for view in found["view"] if isinstance(view.key, int) and isinstance(view.value, list)]
    reigns = _reigns(views, written_in(history, context.facts))
    faults = windows(history, context.excuses)
    used = _used_grants(found["grant"], reigns)
    restarts_ns = [restart.ns for restart in first_reports(found["restart"]) if restart.key != 0]
    grace_ns = context.bounds.grace_ns
    cuts = [fault for fault in faults if Excuse.LINKS in fault.excuse and fault.effect]
    in_partition = sum(any(overlaps(cut, grant.ns, grant.ns, grace_ns) for cut in cuts) for grant in used)
    crashes = [fault for fault in faults if Excuse.MEMORY in fault.excuse]
    return judgement(
        CHECKER,
        ANOMALIES,
        (*_both_sides(reigns), *_two_grants(used, reigns, restarts_ns, grace_ns)),
        {SPLIT: _writes_without_a_live_node(reigns, crashes) + in_partition},
        facts={"views": len({reign.number for reign in reigns}), "grants": len(found["grant"])},
        scope=(),
    )


def _reigns(views: Sequence[State], written: Written) -> list[Reign]:
    """Every view of every node, in order of installation."""
    of_node: dict[str, list[State]] = {}
    for view in views:
        of_node.setdefault(view.node, []).append(view)
    inside = {node: _inside(written, node, installed) for node, installed in of_node.items()}
    reigns = [
        Reign(
            node=node,
            number=view.key_id,
            members=_members(view),
            seq=view.seq,
            ns=view.ns,
            end_seq=installed[place + 1].seq if place + 1 < len(installed) else NEVER,
            writes=written.index[inside[node][place]],
            begun=written.invoke_seq[inside[node][place]],
        )
        for node, installed in of_node.items()
        for place, view in enumerate(installed)
    ]
    return sorted(reigns, key=lambda reign: reign.seq)


def _inside(written: Written, node: str, views: Sequence[State]) -> list[Int64s]:
    """For each view of a node the rows of the acknowledged writes that began and ended within it."""
    number = written.nodes.index(node) if node in written.nodes else len(written.nodes)
    rows = np.flatnonzero((written.outcome == OK) & (written.node == number))
    starts = np.array([view.seq for view in views], np.int64)
    place = np.searchsorted(starts, written.invoke_seq[rows], side="right")
    is_inside = (place > 0) & (place == np.searchsorted(starts, written.complete_seq[rows], side="right"))
    rows = rows[is_inside]
    return [rows[own] for own in groups(place[is_inside] - 1, len(views))]


def _members(state: State) -> tuple[str, ...]:
    return tuple(map(str, state.value)) if isinstance(state.value, list) else ()


def _both_sides(reigns: Sequence[Reign]) -> Iterator[Trouble]:
    """A violation for each two views of different sides with such writes."""
    acting = [reign for reign in reigns if len(reign.writes)]
    for place, one in enumerate(acting):
        for other in islice(acting, place + 1, None):
            if other.seq >= one.end_seq:
                break  # This view and all later ones began after `one` had ended.
            if one.node == other.node or other.node in one.members or one.node in other.members:
                continue
            left, right = one.after(other.seq), other.after(one.seq)
            if left is not None and right is not None:
                sentence = (
                    f"{one.node} acknowledged T{left} in view {one.number} ({', '.join(one.members)}), and "
                    f"{other.node} T{right} in view {other.number} ({', '.join(other.members)}). Both began "
                    "after both views had been installed, and neither view has the other's node: two sides went on."
                )
                facts = (one.node, one.number, other.node, other.number)
                yield Trouble(SPLIT, sentence, facts, (left, right), group="writes")


def _used_grants(grants: Sequence[State], reigns: Sequence[Reign]) -> list[State]:
    """The grants that were used, in order: a view with their number and members was installed later."""
    of_number: dict[int, list[Reign]] = {}
    for reign in reigns:
        of_number.setdefault(reign.number, []).append(reign)
    return [
        grant
        for grant in grants
        if any(
            reign.seq > grant.seq and set(reign.members) <= set(_members(grant))
            for reign in of_number.get(grant.key_id, ())
        )
    ]


def _two_grants(
    grants: Sequence[State], reigns: Sequence[Reign], restarts_ns: Sequence[int], grace_ns: int
) -> Iterator[Trouble]:
    """The first two grants that exclude each other, if any."""
    together = [*((grant.seq, _members(grant)) for grant in grants), *((each.seq, each.members) for each in reigns)]
    together.sort(key=lambda one: one[0])
    seqs = [seq for seq, _ in together]
    for place, later in enumerate(grants):
        # Only grants since the last restart are compared: earlier ones are excused.
        restarted_ns = max((ns for ns in restarts_ns if ns <= later.ns + grace_ns), default=-1)
        first = bisect_right(grants, restarted_ns, hi=place, key=lambda grant: grant.ns)
        for earlier in grants[first:place]:
            one, other = _members(earlier), _members(later)
            if not set(one).isdisjoint(other):
                continue
            between = together[bisect_right(seqs, earlier.seq) : bisect_left(seqs, later.seq)]
            if not any(not set(one).isdisjoint(each) and not set(other).isdisjoint(each) for _, each in between):
                sentence = (
                    f"{earlier.node} let {', '.join(one)} go on (view {earlier.key}), and then {', '.join(other)} "
                    f"(view {later.key}), though nodes of the two had not come together in between."
                )
                yield Trouble(SPLIT, sentence, ("grants", earlier.key, later.key), group="grants")
                return


def _writes_without_a_live_node(reigns: Sequence[Reign], crashes: Sequence[Window]) -> int:
    """The number of writes that were acknowledged in views that lack a live node."""
    first = {reign.node: reign.seq for reign in reversed(reigns)}
    last = {reign.node: reign.seq for reign in reigns}
    count = 0
    for reign in reigns:
        # A node that was in an earlier view, and installs a view later.
        others = [node for node in first if first[node] < reign.seq < last[node] and node not in reign.members]
        if any(not _is_struck(node, reign, crashes) for node in others):
            count += len(reign.writes)
    return count


def _is_struck(node: str, reign: Reign, crashes: Sequence[Window]) -> bool:
    """True if a crash had struck that node when the view was installed."""
    return any(node in crash.targets and overlaps(crash, reign.ns, reign.ns, 0) for crash in crashes)


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
