"""Progress within the declared bounds, unless a fault excuses it.

A fault excuses delays from its start to the end of its grace. A fault that strikes only subscribers excuses no one
else: commits, and the streams of others, must not wait for a slow, dead or unreachable subscriber. A subscriber is also
excused while its user naps, and while it discards events for want of memory.

If watermarks rest without writes (`wm_idle`), a pause begins when the source has answered an operation with a position
that the last watermark does not cover: until then there was nothing to announce. It ends with a watermark of another
position: one that says the same again, as a keep-alive does, is no progress; nor is one of a partition, if there are
some of the whole stream.

The excused time is cut out of every pause between two watermarks of a session, and of every wait of a commit for an
epoch; the longest remaining piece counts. It is a `lag` if a fault of other subscribers was in force in it, else a
`stall`.

With `behind_ns` a watermark must also pass each write within that time after the write's answer, once its session has a
first watermark: it may not advance too slowly, either.

Witnesses:
- stall: pauses and waits with a piece that was not excused;
- lag: those of them during a fault of other subscribers that had an effect;
- stale-watermark: watermarks that passed an answered write, in a time that was not excused.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from checkers.columns.arrow import integers
from checkers.columns.files import read_columns
from checkers.columns.index import ascending
from checkers.engine.protocol import Check, Context
from checkers.history.faults import disturbed, is_among, span
from checkers.history.intervals import Interval, is_met, longest, merged, outside
from checkers.history.names import Dictionary
from checkers.history.tables import (
    MS,
    Mark,
    Session,
    phases,
    samples,
    seconds,
    sessions,
    windows,
)
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import NEVER, OK
from harness.core.promises import StreamContract
from harness.core.verdict import Judgement

CHECKER = "liveness"
STALL, LAG, STALE = "stall", "lag", "stale-watermark"
ANOMALIES: Final = {
    STALL: Anomaly(meaning="Nothing went on for longer than the system's declared bound.", cause=Cause.WAIT),
    LAG: Anomaly(
        meaning="The stream was further behind than is promised.", title="Stream too far behind", cause=Cause.WAIT
    ),
    STALE: Anomaly(
        meaning="The watermark stayed below an answered write for longer than the declared bound.", cause=Cause.WAIT
    ),
}
NAP_REACH_NS = 250 * MS  # A nap is probed every 100 ms; the user may sleep this long around a probe.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of waits. Raises HistoryError if the files of the history are damaged.

    Bounds that are not declared are not judged. Without a contract, watermarks are taken to advance without writes.
    """
    record = _Record(history, context)
    witnesses = dict.fromkeys(ANOMALIES, 0)
    troubles: list[Trouble] = []
    for who, kind, begin, end in (*record.pauses(), *record.waits()):
        excused, limit_ns = record.excused(who, kind), record.limit_ns(kind)
        pieces = outside(begin, end, excused)
        if limit_ns is None or not pieces:
            continue
        witnesses[STALL] += 1
        witnesses[LAG] += any(record.is_beside_others(who, piece, is_effective=True) for piece in pieces)
        if longest(pieces) > limit_ns:
            troubles.append(record.delay(who, kind, max(pieces, key=lambda piece: piece[1] - piece[0]), limit_ns))
    found, witnesses[STALE] = record.behind()
    troubles += found
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _trouble(anomaly: str, who: str, sentence: str, *facts: object) -> Trouble:
    return Trouble(anomaly, sentence, (who, *facts), group=who)


class _Record:
    """The records of a history about time."""

    def __init__(self, history: Path, context: Context) -> None:
        bounds, contract = context.bounds, context.contract
        self._bounds = bounds
        self._sessions = context.facts.of((history, "sessions"), partial(sessions, history, Dictionary(history)))
        self._subscribers = tuple(dict.fromkeys(session.subscriber for session in self._sessions))
        self._faults = windows(history, {})  # Every fault excuses delays, whatever else it excuses.
        self._beside = [window for window in self._faults if is_among(window, self._subscribers)]
        self._probes = samples(history, "commit-blocked-ns", "user-lag")
        self._answered = _Issued(history, contract) if contract is not None else None
        self._issued = self._answered if contract is not None and contract.wm_idle == "rests" else None
        end = phases(history).get("end")
        self._end_ns: int | None = None if end is None else int(end["ns"])
        self._of_others: dict[tuple[str | None, bool], list[Interval]] = {}
        self._naps_ns: dict[str, list[int]] = {}
        for ns, node in sorted((sample.ns, sample.node) for sample in self._probes["user-lag"]):
            self._naps_ns.setdefault(node, []).append(ns)
        self._excused = {who: self._excuses(who) for who in self._subscribers}
        self._hard = disturbed((w for w in self._faults if w not in self._beside), bounds.grace_ns)

    def pauses(self) -> Iterator[tuple[str, str, int, int]]:
        """Pauses as (subscriber, "pause", begin, end): from each open or watermark to the next watermark or the close.

        The last session of a subscriber ends with the run. An earlier one without a close, because its subscriber died,
        ends with its last watermark.
        """
        last = {session.subscriber: session for session in self._sessions}
        for session in self._sessions:
            points = [mark for mark in session.marks if mark.kind in ("open", "watermark")]
            points = points if self._issued is None else _progress(points)
            ends = [mark.ns for mark in points[1:]]
            if session.marks[-1].kind == "close":
                ends.append(session.marks[-1].ns)
            elif last[session.subscriber] is session and self._end_ns is not None:
                ends.append(self._end_ns)
            for mark, end in zip(points, ends, strict=False):
                begin = mark.ns if self._issued is None else self._issued.begin_ns(mark)
                if begin is not None and begin < end:
                    yield session.subscriber, "pause", begin, end

    def waits(self) -> Iterator[tuple[str, str, int, int]]:
        """Waits of commits, as (node, "wait", begin, end)."""
        for sample in self._probes["commit-blocked-ns"]:
            yield sample.node, "wait", sample.ns - sample.value, sample.ns

    def limit_ns(self, kind: str) -> int | None:
        """The longest allowed time for that kind; None if none is declared."""
        return self._bounds.stall_ns if kind == "pause" else self._bounds.blocked_ns

    def excused(self, who: str, kind: str) -> list[Interval]:
        """The excused intervals of that subscriber or node."""
        return self._excused[who] if kind == "pause" else self._hard

    def is_beside_others(self, who: str, piece: Interval, *, is_effective: bool = False) -> bool:
        """True if a fault that struck only other subscribers was in force during that piece."""
        return is_met(*piece, self._others(who if who in self._subscribers else None, is_effective=is_effective))

    def _others(self, who: str | None, *, is_effective: bool) -> list[Interval]:
        """The intervals of faults that struck only subscribers, and not this one: with an effect, or with their grace.

        Computed once for each subscriber.
        """
        if (who, is_effective) not in self._of_others:
            struck = (w for w in self._beside if (w.effect or not is_effective) and not (who and w.touches(who)))
            grace_ns = 0 if is_effective else self._bounds.grace_ns
            self._of_others[who, is_effective] = disturbed(struck, grace_ns)
        return self._of_others[who, is_effective]

    def delay(self, who: str, kind: str, piece: Interval, limit_ns: int) -> Trouble:
        """The violation for that piece, which exceeds the limit: a lag or a stall."""
        is_lag = self.is_beside_others(who, piece)
        length, when = seconds(piece[1] - piece[0]), f"from {seconds(piece[0])} to {seconds(piece[1])}"
        what = f"{who} got no watermark" if kind == "pause" else f"A commit on {who} waited for an epoch"
        excuse = "while only other subscribers were struck by a fault" if is_lag else "though no fault was in force"
        sentence = f"{what} for {length}, {when}, {excuse}; {seconds(limit_ns)} is the bound."
        return _trouble(LAG if is_lag else STALL, who, sentence, kind, *piece)

    def behind(self) -> tuple[list[Trouble], int]:
        """Violations by watermarks that stayed below an answered write for too long; and the number of witnesses.

        The time counts from the answer, or from the first watermark after the last opening in the session, to the
        watermark that passes the write: until a stream has caught up with its source, only stalls count. Only
        watermarks of the whole stream count: of others it is not known which writes they pass.
        """
        limit_ns, answered = self._bounds.behind_ns, self._answered
        if limit_ns is None or answered is None:
            return [], 0
        troubles, witnesses = [], 0
        for session in self._sessions:
            points = [mark for mark in session.marks if mark.kind in ("open", "watermark") and mark.is_whole]
            caught_up_ns = points[0].ns if points else 0
            for before, mark in pairwise(points):
                if before.kind == "open":
                    caught_up_ns = mark.ns
                    continue
                since_ns = answered.since_ns(before)
                begin = None if since_ns is None else max(since_ns, caught_up_ns)
                if begin is None or begin >= mark.ns:
                    continue
                pieces = outside(begin, mark.ns, self._excused[session.subscriber])
                witnesses += bool(pieces)
                if longest(pieces) > limit_ns:
                    piece = max(pieces, key=lambda piece: piece[1] - piece[0])
                    troubles.append(self._behind(session.subscriber, piece, limit_ns))
        return troubles, witnesses

    def _behind(self, who: str, piece: Interval, limit_ns: int) -> Trouble:
        length, when = seconds(piece[1] - piece[0]), f"from {seconds(piece[0])} to {seconds(piece[1])}"
        sentence = (
            f"A write had been answered, and the watermark of {who} stayed below it for {length}, {when}, though no "
            f"fault was in force; {seconds(limit_ns)} is the bound."
        )
        return _trouble(STALE, who, sentence, *piece)

    def _excuses(self, who: str) -> list[Interval]:
        """The intervals in which the stream of that subscriber may rest."""
        struck = [w for w in self._faults if w.touches(who) or not is_among(w, self._subscribers)]
        spans = [span(window, self._bounds.grace_ns) for window in struck]
        spans += [(ns - NAP_REACH_NS, ns + NAP_REACH_NS) for ns in self._naps_ns.get(who, ())]
        for session in self._sessions:
            if session.subscriber == who:
                spans += _discarding(session)
        return merged(spans)


def _progress(points: Sequence[Mark]) -> list[Mark]:
    """The openings and watermarks of a session that show progress: of the whole stream, if any watermark is."""
    has_whole = any(mark.kind == "watermark" and mark.is_whole for mark in points)
    result: list[Mark] = []
    for mark in points:
        is_again = mark.kind == "watermark" and bool(result) and mark.position == result[-1].position
        if (mark.is_whole or not has_whole) and not (is_again and mark.is_whole):
            result.append(mark)
    return result


def _discarding(session: Session) -> Iterator[Interval]:
    """The intervals from each gap marker to the next open of the same session."""
    begun: int | None = None
    for mark in session.marks:
        if mark.kind == "gap" and begun is None:
            begun = mark.ns
        elif mark.kind == "open" and begun is not None:
            yield begun, mark.ns
            begun = None


class _Issued:
    """The positions issued by a source whose watermarks rest without writes, and when it answered with them."""

    def __init__(self, history: Path, contract: StreamContract) -> None:
        self._is_inclusive = contract.closed == "<="
        ops = read_columns(history / "ops.parquet", ["commit_ts", "complete_ns"], outcome=[OK])
        position, answered_ns = integers(ops["commit_ts"], NEVER), integers(ops["complete_ns"])
        order = ascending(position)
        order = order[position[order] != NEVER]
        self._positions = position[order].tolist()
        self._soonest_ns = np.minimum.accumulate(answered_ns[order][::-1])[::-1].tolist()

    def begin_ns(self, mark: Mark) -> int | None:
        """The time from which a watermark after that mark was due; None if none was, or if this cannot be known."""
        since_ns = self.since_ns(mark)
        return None if since_ns is None else max(mark.ns, since_ns)

    def since_ns(self, mark: Mark) -> int | None:
        """The time of the first answer above the mark's position; None if there was none, or if this cannot be known.

        The writes that a partition's watermark passes are not known.
        """
        if mark.position is None or not mark.is_whole:
            return None
        search = bisect_right if self._is_inclusive else bisect_left
        place = search(self._positions, mark.position)
        return self._soonest_ns[place] if place < len(self._positions) else None


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
