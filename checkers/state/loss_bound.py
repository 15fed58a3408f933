"""How much a restart of the whole cluster may lose: no more than the declared bound, and nothing reported as saved."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.engine.protocol import Context
from checkers.history.faults import disturbed
from checkers.history.generations import Restart
from checkers.history.intervals import Interval
from checkers.history.tables import Sample, samples, seconds, windows
from checkers.history.troubles import Trouble
from checkers.state.claims import Claims
from harness.core.columns import Int64s
from harness.core.promises import Bounds, Excuse

BEYOND: Final = "loss-beyond-bound"
_FAR_NS: Final = 1 << 62  # The end of a fault that was not healed, low enough that sums stay within int64.


def losses_of(history: Path, context: Context, claims: Claims) -> "Losses":
    """The losses that the restarts of a history may cause. Raises HistoryError if a file is damaged."""
    saved = Saved(samples(history, "saved-gci")["saved-gci"])
    return Losses(claims, saved, context.bounds, _quiet(history, context))


def _quiet(history: Path, context: Context) -> list[Interval]:
    """The intervals in which faults delayed saving."""
    of_nodes = (window for window in windows(history, context.excuses) if Excuse.SUBSCRIBERS not in window.excuse)
    return disturbed(of_nodes, context.bounds.grace_ns)


class Saved:
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


class Losses(Struct, frozen=True):
    """The losses that each restart may cause.

    When the cluster died is not recorded. It was alive when the last successful operation began, and when it last
    reported something as saved. The bound is counted back from the later of the two, without the time in which faults
    delayed saving.
    """

    claims: Claims
    saved: Saved
    bounds: Bounds
    quiet: Sequence[Interval]

    def beyond(self, count: int) -> tuple[list[Trouble], int]:
        """The losses of restart `count` that exceed the bound, and the number of witnesses."""
        restart, best = self.claims.restarts[count - 1], self.saved.before(self.claims.restarts[count - 1].seq)
        trouble = None if best is None else _gone_back(restart, best[0])
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


def _gone_back(restart: Restart, best: Sample) -> Trouble | None:
    if restart.restored >= best.value:
        return None
    sentence = (
        f"{best.node} reported at {seconds(best.ns)} that {best.value} was saved everywhere, but restart "
        f"{restart.number} of the whole cluster went back to {restart.restored}."
    )
    return Trouble(BEYOND, sentence, ("saved", best.value))
