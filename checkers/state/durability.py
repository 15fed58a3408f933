"""Restarts that lost or invented data, of the whole cluster at once.

Key by key and over all nodes together, the state that the nodes restored from disk must equal a replay of all
transactions up to the restored position. Acknowledged transactions beyond that position are void: they are legally
gone, as a whole, within the declared bound. Nodes that did not restore from disk show nothing. If the cluster dies
again before a node has shown what it restored, there is no evidence of that node's group.

Witnesses:
- lost-acknowledged and duplicate-elements: transactions that a restart had to keep and whose keys it showed;
- resurrected: those that it had to leave out;
- fractured-restore: both, and those of unclear outcome, with two elements or more;
- phantom-write: failed transactions;
- loss-beyond-bound: acknowledged transactions that were void, or just old enough to be safe (up to twice the bound),
  and each restart before which something was reported as saved.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from checkers.engine.protocol import Check, Context
from checkers.history.faults import disturbed
from checkers.history.generations import Restart
from checkers.history.intervals import Interval
from checkers.history.names import Names
from checkers.history.tables import Sample, samples, seconds, windows
from checkers.history.troubles import Trouble, findings
from checkers.state.claims import Claims, Fate
from checkers.state.contents import (
    Contents,
    Element,
    Sight,
    Sights,
    is_fractured,
    named,
    shown,
    wrong,
)
from checkers.words.anomalies import SHARED, Anomaly, Cause
from checkers.words.transactional import TRANSACTIONAL
from harness.core.columns import Bools, Int64s
from harness.core.promises import Bounds, Excuse
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

CHECKER = "durability"
LOST, RESURRECTED, FRACTURED = "lost-acknowledged", "resurrected", "fractured-restore"
PHANTOM, TWICE, BEYOND = "phantom-write", "duplicate-elements", "loss-beyond-bound"
ANOMALIES: Final = {
    LOST: SHARED[LOST],
    RESURRECTED: SHARED[RESURRECTED],
    FRACTURED: Anomaly(
        meaning="A restart of the whole cluster brought back a part of a transaction.", cause=Cause.PART
    ),
    PHANTOM: SHARED[PHANTOM],
    TWICE: TRANSACTIONAL[TWICE],
    BEYOND: Anomaly(
        meaning="A restart of the whole cluster lost more than the declared bound allows.", cause=Cause.LOSS
    ),
}
_FAR_NS: Final = 1 << 62  # The end of a fault that was not healed, low enough that sums stay within int64.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the restarts, each by itself. Raises HistoryError if the files of the history are damaged."""
    nodes, bounds = shown(history, context), context.bounds
    claims, contents = nodes.claims, Contents(nodes.restored, nodes.groups, nodes.claims)
    losses = _Losses(claims, _Saved(samples(history, "saved-gci")["saved-gci"]), bounds, _quiet(history, context))
    witnesses: Counter[str] = Counter(dict.fromkeys(ANOMALIES, 0))
    found: list[Finding] = []
    known: set[Element] = set()  # Elements that an earlier restart lost or brought back.
    for count, restart in enumerate(claims.restarts, 1):
        rows, is_meant = contents.rows_after(restart.number), claims.after(count)
        seen = contents.state(rows, count)
        witnesses.update(_witnesses(seen, claims, is_meant))
        sights, strangers = list(seen.striking(is_meant)), contents.strangers(rows)
        troubles = [*_replay_troubles(sights, strangers, claims, restart, known, context.name)]
        troubles += _doubled(contents, rows, restart, context.name)
        known.update(element for sight in sights for element in wrong(sight))
        known.update(strangers)
        beyond, chances = losses.beyond(count)
        witnesses[BEYOND] += chances
        found += findings(CHECKER, ANOMALIES, [*troubles, *beyond], scope=(CHECKER, restart.number))
    facts: dict[str, Json] = {"restarts": len(claims.restarts), "restored rows": len(nodes.restored.key)}
    return Judgement(checker=CHECKER, findings=tuple(found), witnesses=dict(witnesses), facts=facts)


def _quiet(history: Path, context: Context) -> list[Interval]:
    """The intervals in which faults delayed saving."""
    of_nodes = (window for window in windows(history, context.excuses) if Excuse.SUBSCRIBERS not in window.excuse)
    return disturbed(of_nodes, context.bounds.grace_ns)


def _witnesses(seen: Sights, claims: Claims, is_meant: Bools) -> Mapping[str, int]:
    of_fate = np.bincount(seen.fate[is_meant & seen.is_whole], minlength=len(Fate)).tolist()
    may_break = is_meant & seen.is_whole & (seen.fate != Fate.FAILED) & (claims.size > 1)
    return {
        LOST: of_fate[Fate.KEPT],
        TWICE: of_fate[Fate.KEPT],
        RESURRECTED: of_fate[Fate.VOID],
        PHANTOM: of_fate[Fate.FAILED],
        FRACTURED: int(np.count_nonzero(may_break)),
    }


def _replay_troubles(
    seen: Sequence[Sight],
    strangers: Sequence[Element],
    claims: Claims,
    restart: Restart,
    known: Set[Element],
    name: Names,
) -> Iterator[Trouble]:
    """Violations: elements that the restored state wrongly has or lacks, except those in `known`."""
    went = _went(restart)
    for sight in seen:
        op = sight.claim.transaction.index
        epoch = claims.shown(sight.claim.epoch) if sight.claim.epoch is not None else "unknown"
        present = tuple(each for each in sight.present if each not in known)
        absent = tuple(each for each in sight.absent if each not in known)
        if sight.fate is Fate.KEPT and absent:
            said = "was acknowledged" if sight.claim.is_acknowledged else "was delivered to a subscriber"
            text = f"T{op} {said} in epoch {epoch}, but {named(absent, name)} gone {went}."
            yield Trouble(LOST, text, (op,), (op,))
        if sight.fate is Fate.VOID and present:
            cause = claims.restarts[int(claims.left_out[sight.row])]
            left = f", and restart {cause.number} left it out" if cause is not restart else ""
            text = f"T{op} committed in epoch {epoch}{left}, but {named(present, name)} there {went}."
            yield Trouble(RESURRECTED, text, (op,), (op,))
        if sight.fate is Fate.FAILED and present:
            text = f"T{op} certainly failed, but {named(present, name)} there {went}."
            yield Trouble(PHANTOM, text, (op,), (op,))
        if is_fractured(sight) and sight.fate is not Fate.FAILED and (present if sight.fate is Fate.VOID else absent):
            text = (
                f"Of T{op} (epoch {epoch}) {named(sight.present, name)} there {went}, {named(sight.absent, name)} not."
            )
            yield Trouble(FRACTURED, text, (op,), (op,))
    for element in strangers:
        if element not in known:
            text = f"Nobody ever appended it, but {named((element,), name)} there {went}."
            yield Trouble(PHANTOM, text, (name(element[0]), name(element[1])))


def _doubled(contents: Contents, rows: Int64s, restart: Restart, name: Names) -> Iterator[Trouble]:
    """Violations: elements that a node restored twice."""
    for node, element in contents.twice(rows):
        text = f"On {node} {named((element,), name)} there twice {_went(restart)}."
        yield Trouble(TWICE, text, (node, name(element[0]), name(element[1])))


def _went(restart: Restart) -> str:
    return f"after restart {restart.number} of the whole cluster, which restored {restart.restored}"


class _Saved:
    """The reports of what was saved, in order."""

    def __init__(self, reports: Sequence[Sample]) -> None:
        self._reports = reports
        self._seq = np.array([report.seq for report in reports], np.int64)
        value = np.array([report.value for report in reports], np.int64)
        highest = np.maximum.accumulate(value)
        is_higher = np.append(True, highest[1:] > highest[:-1])[: len(value)]
        self._best = np.maximum.accumulate(np.where(is_higher, np.arange(len(value)), 0))
        self._latest_ns = np.maximum.accumulate(np.array([report.ns for report in reports], np.int64))

    def before(self, seq: int) -> tuple[Sample, int] | None:
        """The first report of the highest value before that position, and the time of the last report before it.

        None if there is no report before it.
        """
        place = int(np.searchsorted(self._seq, seq)) - 1
        return None if place < 0 else (self._reports[int(self._best[place])], int(self._latest_ns[place]))


@dataclass(frozen=True, slots=True)
class _Losses:
    """The losses that each restart may cause.

    When the cluster died is not recorded. It was alive when the last successful operation began, and when it last
    reported something as saved. The bound is counted back from the later of the two, without the time in which faults
    delayed saving.
    """

    claims: Claims
    saved: _Saved
    bounds: Bounds
    quiet: Sequence[Interval]

    def beyond(self, count: int) -> tuple[list[Trouble], int]:
        """The losses of restart `count` that exceed the bound, and the number of witnesses."""
        restart, best = self.claims.restarts[count - 1], self.saved.before(self.claims.restarts[count - 1].seq)
        trouble = None if best is None else _saved_trouble(restart, best[0])
        troubles, witnesses = [] if trouble is None else [trouble], 0 if best is None else 1
        loss_ns = self.bounds.loss_ns
        if loss_ns is None:
            return troubles, witnesses
        rows, age_ns = self._ages(count, 0 if best is None else best[1])
        is_void = self.claims.left_out[rows] < count
        is_beyond = is_void & (age_ns > loss_ns)
        witnesses += int(np.count_nonzero(is_void | ((loss_ns < age_ns) & (age_ns <= 2 * loss_ns))))
        places = np.flatnonzero(is_beyond).tolist()
        return [*troubles, *(self._trouble(int(rows[at]), int(age_ns[at]), restart) for at in places)], witnesses

    def _ages(self, count: int, alive_ns: int) -> tuple[Int64s, Int64s]:
        """The acknowledged transactions that restart `count` might have lost, and the undisturbed time of each.

        That is the time from its answer to the last sign of life in which no fault delayed saving.
        """
        claims, written = self.claims, self.claims.written
        is_done = claims.is_ok & (written.complete_seq < claims.restarts[count - 1].seq)
        alive_ns = max(alive_ns, int(written.invoke_ns[is_done].max(initial=0)))
        is_there = (claims.home >= 0) & (claims.home < count) & (claims.left_out >= count - 1)
        rows = np.flatnonzero(is_done & is_there)
        begin_ns = np.minimum(written.complete_ns[rows], alive_ns)
        quiet_ns = self._disturbed_ns(np.array([alive_ns])) - self._disturbed_ns(begin_ns)
        return rows, alive_ns - begin_ns - quiet_ns

    def _disturbed_ns(self, until_ns: Int64s) -> Int64s:
        """For each of those times the length of the disturbed intervals before it, in ns."""
        begin = np.array([begin_ns for begin_ns, _ in self.quiet], np.int64)
        end = np.array([min(end_ns, _FAR_NS) for _, end_ns in self.quiet], np.int64)
        place = np.searchsorted(begin, until_ns)
        whole = np.concatenate(([0], np.cumsum(end - begin)))[place]
        return whole - np.maximum(0, np.append(0, end)[place] - until_ns)

    def _trouble(self, row: int, age_ns: int, restart: Restart) -> Trouble:
        op, complete_ns = int(self.claims.written.index[row]), int(self.claims.written.complete_ns[row])
        sentence = (
            f"T{op} was acknowledged at {seconds(complete_ns)}, {seconds(age_ns)} before the cluster failed, faults "
            f"not counted, yet restart {restart.number} left it out: at most {seconds(self.bounds.loss_ns or 0)} may "
            "be lost."
        )
        return Trouble(BEYOND, sentence, (op,), (op,))


def _saved_trouble(restart: Restart, best: Sample) -> Trouble | None:
    if restart.restored >= best.value:
        return None
    sentence = (
        f"{best.node} reported at {seconds(best.ns)} that {best.value} was saved everywhere, but restart "
        f"{restart.number} of the whole cluster went back to {restart.restored}."
    )
    return Trouble(BEYOND, sentence, ("saved", best.value))


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
