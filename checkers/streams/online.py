"""The stream rules while a run goes on: the same kernels, fed in batches, over the events that are still open.

S02 by position, S03, S05, S06, S07, S10 and S17: what a stream shows of itself, without its source. Each batch is
judged together with the events held from before. A violation is reported with the event that made it certain: the same
one however the stream is cut into batches, so that a run which stops there can be repeated.

Events that are not yet closed are held (`checkers.streams.online_state`). When an event comes back that was closed and
released, as happens after a subscriber resumed below its last watermark, all events before the batch are fetched again
(`recall`): only they decide if a row is late or a repetition. So each resume costs a look back, and a stream that
repeats rows inside its sessions costs one for each such batch.

Not seen here: everything that needs the source (events whose write failed are taken for events), S27 by the source's
order, and torn units of several positions, as these may still grow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from checkers.columns.index import is_kind
from checkers.history.streams import NO_WRITES
from checkers.history.units import unit_of
from checkers.streams.online_state import NOTHING_CLOSED, closed_up_to, joined, open_part, reopened, taken
from checkers.streams.rules.events.duplicate_event import duplicate_events
from checkers.streams.rules.events.order_inversion import order_inversions
from checkers.streams.rules.logs.zombie import zombie_events
from checkers.streams.rules.watermarks.late_event import late_events, regressions
from checkers.streams.rules.watermarks.missing_event import torn_units
from checkers.streams.task import BOUNDARY, DUPLICATE, INVERTED, LATE, REGRESS, TORN, ZOMBIE
from checkers.streams.view import StreamView, announced_view, defect, stream_view
from harness.core.columns import BACKFILL, NEVER, ROW, Deliveries, Int64s
from harness.core.promises import StreamContract

ONLINE = (LATE, BOUNDARY, REGRESS, INVERTED, DUPLICATE, TORN, ZOMBIE)

Recall = Callable[[int | None, int], Deliveries]
Breach = tuple[int, ...]  # A violation, as numbers that mean the same in every batch.


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken rule, and the event that made it certain; `seq` is its place in the journal."""

    anomaly: str
    subscriber: int
    seq: int
    ns: int


class Online:
    """Follows the streams of one run.

    `recall(subscriber, seq)` returns the events of that subscriber (None: of all) before that place of the journal, by
    time. It is called rarely, and returns all of them: nothing else that is held grows with the stream.
    """

    def __init__(self, contract: StreamContract, recall: Recall) -> None:
        self._contract = contract
        self._recall = recall
        self._is_apart = contract.wm_scope in ("session", "subscriber")
        self._logs: dict[int | None, _Log] = {}

    @property
    def held(self) -> int:
        """The number of events held."""
        return sum(len(log.state.kind) for log in self._logs.values())

    def feed(self, batch: Deliveries) -> tuple[Violation, ...]:
        """The violations of the next events, by time; `batch` continues the last one, subscribers mixed. O(n log n)."""
        found: list[Violation] = []
        if self._is_apart:
            for who in np.unique(batch.subscriber).tolist():
                found += self._log(who).feed(taken(batch, np.flatnonzero(batch.subscriber == who)))
        elif len(batch.kind):
            found += self._log(None).feed(batch)
        return tuple(sorted(found, key=lambda each: (each.seq, ONLINE.index(each.anomaly))))

    def _log(self, who: int | None) -> "_Log":
        if who not in self._logs:
            self._logs[who] = _Log(self._contract, lambda seq: self._recall(who, seq))
        return self._logs[who]


class _Log:
    """The events that are judged together: those of one subscriber, or of all."""

    def __init__(self, contract: StreamContract, recall: Callable[[int], Deliveries]) -> None:
        self._contract = contract
        self._recall = recall
        self._floor = NOTHING_CLOSED
        self._told: set[tuple[str, Breach]] = set()
        self._is_defect = False
        self.state = joined()

    def feed(self, batch: Deliveries) -> list[Violation]:
        """The violations in the batch. A stream that cannot be judged has none: the end of the run reports that."""
        self._is_defect = self._is_defect or defect(batch, self._contract) is not None
        if self._is_defect:
            self.state = joined()
            return []
        came = batch.position[is_kind(batch.kind, (ROW, BACKFILL))]
        if np.any(came <= self._floor):
            self.state, self._floor = reopened(self._recall(int(batch.seq[0])), int(came.min()), self._contract)
        held = len(self.state.kind)
        whole = joined(self.state, batch)
        view = stream_view(whole, NO_WRITES, self._contract)
        result = [_violation(name, whole, row) for name, rows in _broken(view) for row in rows[rows >= held].tolist()]
        result += self._new(whole, held)
        self._floor = max(self._floor, closed_up_to(view))
        self.state = open_part(view, self._floor)
        return result

    def _new(self, whole: Deliveries, held: int) -> Iterator[Violation]:
        """Violations of an earlier event by a later one, each with the event that made it certain."""
        for anomaly, breach in sorted(self._breaches(whole) - self._told):
            low, high = held, len(whole.kind)  # It shows with the first `high` events, and not with the first `low`.
            while high - low > 1:
                middle = (low + high) // 2
                is_there = (anomaly, breach) in self._breaches(taken(whole, np.arange(middle)))
                low, high = (low, middle) if is_there else (middle, high)
            self._told.add((anomaly, breach))
            yield _violation(anomaly, whole, high - 1)

    def _breaches(self, deliveries: Deliveries) -> set[tuple[str, Breach]]:
        torn, acts = torn_in(deliveries, self._contract), zombies_in(deliveries, self._contract, self._floor)
        return {(TORN, unit) for unit in torn} | {(ZOMBIE, act) for act in acts}


def torn_in(deliveries: Deliveries, contract: StreamContract) -> set[Breach]:
    """The torn units of a stream that the rule finds without a source: their scope, and their own number."""
    if contract.atomic_unit == "none" or (contract.atomic_unit == "epoch" and contract.position != "epoch"):
        return set()
    deliveries = _narrow(deliveries)
    view = announced_view(deliveries, contract)
    writes = view.writes
    if len(writes.op) == 0:
        return set()
    ruling = torn_units(view)
    span = writes.span if contract.unit_scope == "partition" else np.zeros(len(writes.op), np.int64)
    unit = unit_of(writes, contract)
    return {
        (*_scope(deliveries, mark, contract), int(unit[write]), int(span[write]))
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }


def zombies_in(deliveries: Deliveries, contract: StreamContract, floor: int = NOTHING_CLOSED) -> set[Breach]:
    """The rows above the floor that an owner added to a log which it no longer owned."""
    if contract.epochs != "owners" or contract.position == "epoch":
        return set()
    d = deliveries
    rows = zombie_events(stream_view(d, NO_WRITES, contract)).watermark
    columns = (d.span, d.position, d.epoch, d.key, d.ordinal, d.value)
    return {tuple(int(column[row]) for column in columns) for row in rows[d.position[rows] > floor].tolist()}


def _narrow(deliveries: Deliveries) -> Deliveries:
    """The stream without the names of units with rows of several positions: these are several units, or still grow."""
    rows = np.flatnonzero(is_kind(deliveries.kind, (ROW, BACKFILL)) & (deliveries.unit != NEVER))
    unit = deliveries.unit.copy()
    _, first, name = np.unique(unit[rows], return_index=True, return_inverse=True)
    is_other = deliveries.position[rows] != deliveries.position[rows[first]][name]
    unit[rows[np.bincount(name[is_other], minlength=len(first))[name] > 0]] = NEVER
    return replace(deliveries, unit=unit)


def _broken(view: StreamView) -> Iterator[tuple[str, Int64s]]:
    """The rules that judge each event as it comes, and the events that broke them."""
    late, boundary = late_events(view)
    yield LATE, late.row
    yield BOUNDARY, boundary.row
    yield REGRESS, regressions(view).watermark
    yield INVERTED, order_inversions(view).watermark
    yield DUPLICATE, duplicate_events(view).watermark


def _scope(deliveries: Deliveries, row: int, contract: StreamContract) -> Breach:
    """The identity of a scope in all batches."""
    names = {"session": ("subscriber", "session"), "subscriber": ("subscriber",), "partition": ("span",), "global": ()}
    return tuple(int(getattr(deliveries, name)[row]) for name in names[contract.wm_scope])


def _violation(anomaly: str, deliveries: Deliveries, row: int) -> Violation:
    return Violation(
        anomaly=anomaly,
        subscriber=int(deliveries.subscriber[row]),
        seq=int(deliveries.seq[row]),
        ns=int(deliveries.ns[row]),
    )
