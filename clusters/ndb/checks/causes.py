"""Gap markers and disconnections without a cause: guarantees G14, G27 and G29.

A gap marker without a cause is a false alarm. Each cause must leave this evidence before the marker reached the user:
- "inconsistent": a data node marked that epoch as missing, after its group had dropped buffered rows up to that epoch
  or beyond (or the node joined later than the epoch), and after a node of that group was lost. Dropped rows alone are
  harmless while the node that publishes them lives.
- "out-of-memory": the subscriber's buffer was full, once for each marker.
- "disconnected": a data node ended the subscription; or nodes, or links of the subscriber, were struck.
- "cluster-failure": the cluster was restarted as a whole; or every data node was struck, or the subscriber.
"Before" reaches back to the first sign of an epoch that may be missing, because a slow user learns of it late.

A subscriber may be disconnected for one of two reasons only. It lags by more than the declared number of epochs (or a
node that takes over from another announces many old ones to it at once). Or its link broke, which takes a fault of the
link or of one of its ends.

Witnesses: for false-gap, gap markers, and sessions during which a node was lost; for spurious-disconnect,
disconnections, and faults that slowed a subscriber.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.index import ascending
from checkers.engine.protocol import Check, Context
from checkers.history.faults import overlaps
from checkers.history.names import Dictionary, epoch_name
from checkers.history.tables import (
    Mark,
    Session,
    State,
    Window,
    first_reports,
    samples,
    seconds,
    sessions,
    states,
    windows,
)
from checkers.history.troubles import Trouble, judgement
from checkers.state.written import Written, written_in
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OK
from harness.core.promises import Excuse
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER = "causes"
FALSE_GAP, SPURIOUS = "false-gap", "spurious-disconnect"
ANOMALIES: Final = {
    FALSE_GAP: Anomaly(meaning="A gap marker without a loss.", cause=Cause.EVENT),
    SPURIOUS: Anomaly(meaning="A subscriber was disconnected for no reason that is declared.", cause=Cause.REFUSED),
}
CAUSES = ("inconsistent", "out-of-memory", "disconnected", "cluster-failure")


def check(history: Path, context: Context) -> Judgement:
    """The judgement of gap markers and disconnections. Raises HistoryError if the history is damaged."""
    record = _Record(history, context)
    return judgement(
        CHECKER,
        ANOMALIES,
        (*record.markers(), *record.disconnections()),
        record.witnesses(),
        facts={"gaps": len(record.gaps), "disconnections": len(record.found["disconnect"])},
        scope=(),
    )


class _Record:
    """The records of a history about gaps and disconnections."""

    def __init__(self, history: Path, context: Context) -> None:
        names = Dictionary(history)
        self._bounds = context.bounds
        self._nodes = tuple(node for group in context.bounds.groups for node in group)
        self._faults = windows(history, context.excuses)
        self._striking = [each for each in self._faults if each.excuse & (Excuse.NODES | Excuse.LINKS)]
        self._sessions = context.facts.of((history, "sessions"), partial(sessions, history, names))
        self._next_ns = {
            (one.subscriber, one.number): other.marks[0].ns
            for one, other in pairwise(self._sessions)
            if one.subscriber == other.subscriber
        }
        self.found = states(history, names, "missing", "disconnect", "restart", "view")
        self._probes = samples(history, "out-of-buffer", "event-buffer-full")
        written = written_in(history, context.facts)
        self._restarts = first_reports(self.found["restart"])
        self._alive_ns = _alive_ns(written, [restart.seq for restart in self._restarts])
        self._epochs, self._since_ns = self._first_signs(written)
        self.gaps = [
            (s, mark) for s in self._sessions for mark in s.marks if mark.kind == "gap" and mark.cause in CAUSES
        ]

    def markers(self) -> Iterator[Trouble]:
        """Gap markers without a cause."""
        full: dict[str, int] = {}
        for session, gap in self.gaps:
            match gap.cause:
                case "inconsistent":
                    reason = self._no_missing_rows(gap)
                case "out-of-memory":
                    full[session.subscriber] = full.get(session.subscriber, 0) + 1
                    reason = self._no_full_buffer(session.subscriber, gap, full[session.subscriber])
                case "disconnected":
                    reason = self._no_disconnection(session, gap)
                case _:
                    reason = self._no_cluster_failure(session, gap)
            if reason is not None:
                sentence = (
                    f"{session.subscriber} received a gap marker ({gap.cause}) at {seconds(gap.ns)} in session "
                    f"{session.number}, from {self._shown(gap.position)} on, but {reason}."
                )
                facts = (session.subscriber, session.number, gap.cause, gap.position)
                yield Trouble(FALSE_GAP, sentence, facts, group=session.subscriber)

    def disconnections(self) -> Iterator[Trouble]:
        """Disconnections without a cause."""
        for state in self.found["disconnect"]:
            match state.value:
                case ["lagging", int(behind), *_] if self._bounds.records is not None:
                    if behind > self._bounds.records or self._has_taken_over(state.node, state.ns):
                        continue
                    reason = f"as lagging by {behind} epochs, and {self._bounds.records} are allowed"
                case ["link", *_]:
                    if self._is_link_struck(state):
                        continue
                    reason = "as its link had ended, but no fault had struck the link or either end of it"
                case _:
                    continue
            subscriber = str(state.key)
            sentence = f"{state.node} disconnected {subscriber} at {seconds(state.ns)} {reason}."
            yield Trouble(SPURIOUS, sentence, (subscriber, state.node, state.position), group=subscriber)

    def witnesses(self) -> dict[str, int]:
        """The number of chances to see each of the two anomalies."""
        losses = self._losses_ns()
        spans = [(session.marks[0].ns, self._end_ns(session)) for session in self._sessions]
        lived_through = sum(bisect_right(losses, end) - bisect_right(losses, begin) for begin, end in spans)
        subscribers = dict.fromkeys(session.subscriber for session in self._sessions)
        slowing = [w for w in self._faults if Excuse.SUBSCRIBERS in w.excuse and w.effect]
        slowed = [w for w in slowing if any(map(w.touches, subscribers))]
        return {
            FALSE_GAP: len(self.gaps) + lived_through,
            SPURIOUS: len(self.found["disconnect"]) + len(slowed),
        }

    # The reason why a marker has no cause; None if it has one.

    def _no_missing_rows(self, gap: Mark) -> str | None:
        marked = [
            state
            for state in self.found["missing"]
            if state.ns <= gap.ns and (gap.position is None or state.position == gap.position)
        ]
        if not marked:
            return "no data node had marked that epoch as missing"
        reasons = [self._no_lost_buffer(state) for state in marked]
        return None if None in reasons else reasons[0]

    def _no_lost_buffer(self, missing: State) -> str | None:
        group = self._group(missing.node)
        position = missing.position if missing.position is not None else -1
        dropped = [p for p in self._probes["out-of-buffer"] if p.node in group and p.ns <= missing.ns]
        if not any(probe.value >= position for probe in dropped) and not self._has_joined_after(missing):
            return f"the group of {missing.node}, which marked it, had dropped no buffered rows of it"
        views = self._views_of(missing.node, missing.ns)
        if views and all(set(group) <= members for _, members in views):
            return f"{missing.node}, which marked it, had lost no node of its group"
        return None

    def _no_full_buffer(self, subscriber: str, gap: Mark, count: int) -> str | None:
        before = [p for p in self._probes["event-buffer-full"] if p.node == subscriber and p.ns <= gap.ns]
        if len(before) >= count:
            return None
        if count == 1:
            return "its buffer had not been full"
        return f"its buffer had been full {len(before)} times before, and this is marker {count}"

    def _no_disconnection(self, session: Session, gap: Mark) -> str | None:
        # A node may end a session before it opens, as nodes learn of it one after the other.
        mine = [s for s in self._sessions if s.subscriber == session.subscriber]
        before = [s.marks[0] for s in mine if s.number < session.number]
        ends = [end for end in self.found["disconnect"] if end.key == session.subscriber and end.ns <= gap.ns]
        ended = any(all(_is_later(end, opened) for opened in before) for end in ends)
        struck = (session.subscriber, *self._nodes)
        is_struck = any(any(map(window.touches, struck)) for window in self._faults_before(gap))
        if ended or is_struck or self._is_restarting(gap):
            return None
        return "no data node had ended its subscription, and no fault had struck a node or its links"

    def _no_cluster_failure(self, session: Session, gap: Mark) -> str | None:
        faults = self._faults_before(gap)
        is_struck = any(window.touches(session.subscriber) for window in faults)
        lost = [node for node in self._nodes if any(window.touches(node) for window in faults)]
        if self._is_restarting(gap) or is_struck or len(lost) == len(self._nodes):
            return None
        return "the cluster was not restarted as a whole, and not all data nodes had been struck"

    # The surrounding events: faults, restarts, views.

    def _faults_before(self, gap: Mark) -> list[Window]:
        """Crashes, pauses and partitions between the first sign of an epoch that may be missing and the marker."""
        since_ns = min(self._first_sign_ns(gap.position), gap.ns)
        return [each for each in self._striking if overlaps(each, since_ns, gap.ns, self._bounds.grace_ns)]

    def _is_restarting(self, gap: Mark) -> bool:
        """True if the whole cluster was down at some moment of that time: from its last success to its restart."""
        since_ns = min(self._first_sign_ns(gap.position), gap.ns) - self._bounds.grace_ns
        return any(
            restart.key != 0 and alive_ns <= gap.ns and since_ns <= restart.ns
            for restart, alive_ns in zip(self._restarts, self._alive_ns, strict=True)
        )

    def _is_link_struck(self, state: State) -> bool:
        ends = (state.node, str(state.key))
        return any(
            overlaps(window, state.ns, state.ns, self._bounds.grace_ns) and any(map(window.touches, ends))
            for window in self._faults
        )

    def _first_signs(self, written: Written) -> tuple[list[int], list[int]]:
        """Epochs in ascending order, and for each the time when it, or a higher one, was first seen."""
        rows = np.flatnonzero((written.outcome == OK) & (written.epoch != NEVER))
        marks = [mark for session in self._sessions for mark in session.marks if mark.kind == "watermark"]
        shown = [(mark.position, mark.ns) for mark in marks if mark.position is not None]
        epoch = np.append(written.epoch[rows], np.array([position for position, _ in shown], np.int64))
        seen_ns = np.append(written.complete_ns[rows], np.array([ns for _, ns in shown], np.int64))
        order = ascending(epoch)
        earliest_ns = np.minimum.accumulate(seen_ns[order][::-1])[::-1]
        return epoch[order].tolist(), earliest_ns.tolist()

    def _first_sign_ns(self, position: int | None) -> int:
        """The time when that epoch, or a higher one, was first seen; 0 for an unknown epoch, NEVER if none was seen."""
        if position is None:
            return 0
        place = bisect_left(self._epochs, position)
        return self._since_ns[place] if place < len(self._since_ns) else NEVER

    def _losses_ns(self) -> list[int]:
        """The times when a view was installed that lacks a member of the previous view."""
        by_number: dict[int, State] = {}
        for view in self.found["view"]:
            by_number.setdefault(view.key_id, view)
        ordered = [by_number[key] for key in sorted(by_number)]
        members = [(set(_list(view.value)), view.ns) for view in ordered]
        return sorted(ns for (before, _), (after, ns) in pairwise(members) if before - after)

    def _end_ns(self, session: Session) -> int:
        """The end of a session; NEVER if no record shows it."""
        closing = session.marks[-1]
        if closing.kind == "close":
            return closing.ns
        return self._next_ns.get((session.subscriber, session.number), NEVER)

    def _views_of(self, node: str, until_ns: int) -> list[tuple[State, set[str]]]:
        """The views that a node has installed, in order, each with its members."""
        views = (view for view in self.found["view"] if view.node == node and view.ns <= until_ns)
        return [(view, set(_list(view.value))) for view in views]

    def _has_taken_over(self, node: str, ns: int) -> bool:
        """True if a node of the same group left its view lately: the node then announces old epochs again, at once."""
        group = set(self._group(node))
        views = self._views_of(node, ns)
        return any(
            later.ns >= ns - self._bounds.grace_ns and not group.isdisjoint(before - after)
            for (_, before), (later, after) in pairwise(views)
        )

    def _group(self, node: str) -> tuple[str, ...]:
        return next((group for group in self._bounds.groups if node in group), (node,))

    def _has_joined_after(self, missing: State) -> bool:
        """True if that epoch was over before the node was a full member again.

        A node that joins keeps nothing for its peer from the time before. The view that adds it is followed by a view
        of the same members, which makes it a full one.
        """
        views = self._views_of(missing.node, missing.ns)
        others = [view.key_id for view in self.found["view"] if missing.node not in _list(view.value)]
        for place, (view, members) in enumerate(views):
            before = views[place - 1][0].key_id if place else -1
            if any(before < number < view.key_id for number in others):
                full = next((later for later, same in views[place + 1 :] if same == members), None)
                known = NEVER if full is None or full.position is None else full.position
                if missing.position is not None and missing.position <= known:
                    return True
        return False

    def _shown(self, position: int | None) -> str:
        if position is None:
            return "an unknown epoch"
        return f"epoch {epoch_name(self._bounds.saved_bits or None)(position)}"


def _alive_ns(written: Written, before: Sequence[int]) -> list[int]:
    """For each position the last begin of a successful operation that ended before it; 0 without such an operation."""
    rows = np.flatnonzero(written.outcome == OK)
    rows = rows[ascending(written.complete_seq[rows])]
    latest_ns = np.append(0, np.maximum.accumulate(written.invoke_ns[rows]))
    result: list[int] = latest_ns[np.searchsorted(written.complete_seq[rows], np.array(before, np.int64))].tolist()
    return result


def _is_later(end: State, opened: Mark) -> bool:
    """True if a session may have ended there after that opening, by time or by epoch: users learn of openings late."""
    is_higher = end.position is not None and opened.position is not None and opened.position <= end.position
    return is_higher or opened.ns <= end.ns


def _list(value: Json) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
