"""Evidence that two sides went on at once: guarantee G25 of the NDB model.

Two nodes are on different sides while the view that each has installed lacks the other node. Such views may legally
follow each other: nodes that were cut off and stopped may restart the cluster once the others are gone. So a finding
takes two acknowledged writes, one by each node. Both must *begin* after both views were installed, and end before
either node installed another view: then neither view had ended when the other began. Writes in flight when a view was
installed may still be answered.

An arbitrator must not let two disjoint sets of nodes go on either, unless nodes of both came together in between, or
the whole cluster was restarted. Only grants that were used count: another may have been lost before it arrived.

Witnesses: acknowledged writes of a node whose view lacked a live node (one that no crash had struck and that installed
another view later), and grants that were used in a partition.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from checkers.engine.protocol import Check, Context
from checkers.history.faults import overlaps
from checkers.history.names import Dictionary
from checkers.history.tables import State, Transaction, Window, states, transactions, windows
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import NEVER, OK
from harness.core.promises import Excuse
from harness.core.verdict import Judgement

CHECKER = "authority"
SPLIT = "split-brain"
ANOMALIES = (SPLIT,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reign:
    """A view on one node, from its installation to the installation of the next."""

    node: str
    number: int
    members: tuple[str, ...]
    seq: int
    ns: int
    end_seq: int  # NEVER for the last.
    writes: tuple[Transaction, ...]  # Acknowledged writes that began and ended within it.

    def after(self, seq: int) -> Transaction | None:
        """The first write that began after that position in the journal."""
        return next((write for write in self.writes if write.invoke_seq > seq), None)


def check(history: Path, context: Context) -> Judgement:
    """The judgement of views, grants and acknowledged writes. Raises HistoryError if they are damaged."""
    found = states(history, Dictionary(history), "view", "grant", "restart")
    views = [view for view in found["view"] if isinstance(view.key, int) and isinstance(view.value, list)]
    reigns = _reigns(views, [t for t in transactions(history) if t.outcome == OK and t.node is not None])
    faults = windows(history, context.excuses)
    used = _used_grants(found["grant"], reigns)
    restarts_ns = [restart.ns for restart in found["restart"] if restart.key != 0]
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


def _reigns(views: Sequence[State], writes: Sequence[Transaction]) -> list[Reign]:
    """Every view of every node, in order of installation."""
    of_node: dict[str, list[State]] = {}
    for view in views:
        of_node.setdefault(view.node, []).append(view)
    begun = {node: [view.seq for view in installed] for node, installed in of_node.items()}
    inside: dict[tuple[str, int], list[Transaction]] = {}
    for write in writes:
        starts = begun.get(write.node or "", [])
        place = bisect_right(starts, write.invoke_seq)
        if place and place == bisect_right(starts, write.complete_seq):
            inside.setdefault((write.node or "", place - 1), []).append(write)
    reigns = [
        Reign(
            node=node,
            number=view.key_id,
            members=_members(view),
            seq=view.seq,
            ns=view.ns,
            end_seq=installed[place + 1].seq if place + 1 < len(installed) else NEVER,
            writes=tuple(inside.get((node, place), ())),
        )
        for node, installed in of_node.items()
        for place, view in enumerate(installed)
    ]
    return sorted(reigns, key=lambda reign: reign.seq)


def _members(state: State) -> tuple[str, ...]:
    return tuple(map(str, state.value)) if isinstance(state.value, list) else ()


def _both_sides(reigns: Sequence[Reign]) -> Iterator[Trouble]:
    """Each two such writes."""
    acting = [reign for reign in reigns if reign.writes]
    for place, one in enumerate(acting):
        for other in acting[place + 1 :]:
            if one.node == other.node or other.node in one.members or one.node in other.members:
                continue
            left, right = one.after(other.seq), other.after(one.seq)
            if left is not None and right is not None:
                sentence = (
                    f"{one.node} acknowledged T{left.index} in view {one.number} ({', '.join(one.members)}), and "
                    f"{other.node} T{right.index} in view {other.number} ({', '.join(other.members)}). Both began "
                    "after both views had been installed, and neither view has the other's node: two sides went on."
                )
                facts = (one.node, one.number, other.node, other.number)
                yield Trouble(SPLIT, sentence, facts, (left.index, right.index), group="writes")


def _used_grants(grants: Sequence[State], reigns: Sequence[Reign]) -> list[State]:
    """Grants that were used: a view of their number and members was installed later. In their order."""
    return [
        grant
        for grant in grants
        if any(
            reign.number == grant.key_id and reign.seq > grant.seq and set(reign.members) <= set(_members(grant))
            for reign in reigns
        )
    ]


def _two_grants(
    grants: Sequence[State], reigns: Sequence[Reign], restarts_ns: Sequence[int], grace_ns: int
) -> Iterator[Trouble]:
    """The first two grants that exclude each other, if there are any."""
    for place, later in enumerate(grants):
        for earlier in grants[:place]:
            one, other = _members(earlier), _members(later)
            between = [_members(grant) for grant in grants if earlier.seq < grant.seq < later.seq]
            between += [reign.members for reign in reigns if earlier.seq < reign.seq < later.seq]
            is_joined = any(not set(one).isdisjoint(each) and not set(other).isdisjoint(each) for each in between)
            is_restarted = any(earlier.ns <= ns <= later.ns + grace_ns for ns in restarts_ns)
            if set(one).isdisjoint(other) and not is_joined and not is_restarted:
                sentence = (
                    f"{earlier.node} let {', '.join(one)} go on (view {earlier.key}), and then {', '.join(other)} "
                    f"(view {later.key}), though nodes of the two had not come together in between."
                )
                yield Trouble(SPLIT, sentence, ("grants", earlier.key, later.key), group="grants")
                return


def _writes_without_a_live_node(reigns: Sequence[Reign], crashes: Sequence[Window]) -> int:
    """The number of writes that were acknowledged in views that lack a live node."""
    known = tuple(dict.fromkeys(reign.node for reign in reigns))
    count = 0
    for reign in reigns:
        others = [node for node in known if node not in reign.members]
        if any(_is_alive(node, reign, reigns, crashes) for node in others):
            count += len(reign.writes)
    return count


def _is_alive(node: str, reign: Reign, reigns: Sequence[Reign], crashes: Sequence[Window]) -> bool:
    """True if it was in an earlier view, no crash struck it, and it installs a view again later."""
    has_been = any(each.node == node and each.seq < reign.seq for each in reigns)
    comes_back = any(each.node == node and each.seq > reign.seq for each in reigns)
    was_struck = any(node in crash.targets and overlaps(crash, reign.ns, reign.ns, 0) for crash in crashes)
    return has_been and comes_back and not was_struck


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
