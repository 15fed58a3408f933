"""The stream rules while a run goes on: those that need no source, judged again over all events so far.

A violation is reported with the event that made it certain: the same one however the stream is cut into batches, so
that a run which stops there can be repeated. docs/decisions/online-checking.md says why the whole stream is judged
again, and what that costs.

Not seen here: everything that needs the source (events of failed writes count as events), the source's own order of
versions, and torn units of several positions, as these may still grow.
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import is_kind
from checkers.columns.table import concat, empty, take
from checkers.history.streams import NO_WRITES
from checkers.history.units import unit_of
from checkers.streams.catalogue import RULES
from checkers.streams.rule import OfKeys, OfLog, OfUnits, Rule
from checkers.streams.view import Ruling, StreamView, defect, stream_view
from harness.core.columns import BACKFILL, NEVER, ROW, Deliveries
from harness.core.promises import StreamContract

ONLINE: Final[Mapping[str, Rule]] = {name: rule for name, rule in RULES.items() if rule.is_online}

Breach = tuple[str, tuple[int, ...]]  # A rule, and numbers that identify the violation while the stream grows.


class Violation(Struct, frozen=True, kw_only=True):
    """A broken rule, and the event that made it certain; `seq` is the event's place in the journal."""

    anomaly: str
    subscriber: int
    seq: int
    ns: int


class Online:
    """The streams of one run, with all their events so far; `wanted` are the rules to judge."""

    def __init__(self, contract: StreamContract, wanted: frozenset[str] = frozenset(ONLINE)) -> None:
        self._contract, self._wanted = contract, tuple(name for name in ONLINE if name in wanted)
        self._is_apart = contract.wm_scope in ("session", "subscriber")
        self._logs: dict[int | None, _Log] = {}

    def feed(self, batch: Deliveries) -> Iterator[Violation]:
        """The violations in the next events, by time; `batch` continues the previous one, subscribers mixed.

        O(n log n) for the n events so far; and for each event that makes violations certain as much again, times the
        logarithm of the batch. So take no more violations than are needed: the next batch reports the rest.
        """
        if self._is_apart:
            for who in np.unique(batch.subscriber).tolist():
                self._log(who).add(take(batch, batch.subscriber == who))
        else:
            self._log(None).add(batch)
        found = [log.new() for log in self._logs.values()]
        return merge(*found, key=lambda each: (each.seq, self._wanted.index(each.anomaly)))

    def _log(self, who: int | None) -> "_Log":
        return self._logs.setdefault(who, _Log(self._contract, self._wanted))


class _Log:
    """Events that are judged together: those of one subscriber, or of all."""

    def __init__(self, contract: StreamContract, wanted: tuple[str, ...]) -> None:
        self._contract, self._wanted = contract, wanted
        self._whole = empty(Deliveries)
        self._judged = 0  # The first `_judged` events show the breaches in `_known`, and no others.
        self._known: set[Breach] = set()
        self._is_defect = False

    def add(self, batch: Deliveries) -> None:
        """Add the next events.

        A stream that cannot be judged has no violations here; the check after the run reports it.
        """
        self._is_defect = self._is_defect or defect(batch, self._contract) is not None
        self._whole = empty(Deliveries) if self._is_defect else concat([self._whole, batch])

    def new(self) -> Iterator[Violation]:
        """The violations in events that were not judged before."""
        count = len(self._whole.kind)
        while count > self._judged and (new := self._shown(count)):
            # Something shows with the first `high` events, and not with the first `low`.
            low, high = self._judged, count
            while high - low > 1:
                middle = (low + high) // 2
                if shown := self._shown(middle):
                    high, new = middle, shown
                else:
                    low = middle
            self._judged = high
            self._known |= new
            yield from (self._violation(anomaly, high - 1) for anomaly, _ in sorted(new, key=self._order))
        self._judged = count

    def _order(self, breach: Breach) -> tuple[int, tuple[int, ...]]:
        return self._wanted.index(breach[0]), breach[1]

    def _shown(self, count: int) -> set[Breach]:
        """The breaches that the first `count` events show, apart from those that are known."""
        return set(breaches(take(self._whole, slice(count)), self._contract, self._wanted)) - self._known

    def _violation(self, anomaly: str, row: int) -> Violation:
        d = self._whole
        return Violation(anomaly=anomaly, subscriber=int(d.subscriber[row]), seq=int(d.seq[row]), ns=int(d.ns[row]))


def breaches(deliveries: Deliveries, contract: StreamContract, wanted: tuple[str, ...]) -> Iterator[Breach]:
    """All breaches of those rules that the events show. No later event undoes a breach."""
    view = stream_view(deliveries, NO_WRITES, contract)
    for name in wanted:
        match ONLINE[name].scope:
            case OfKeys(judge=judge):
                yield from ((name, (row,)) for row in judge(view).row.tolist())
            case OfLog(judge=judge):
                yield from ((name, (row,)) for row in judge(view).watermark.tolist())
            case OfUnits(judge=judge, units=units) if contract.atomic_unit != "epoch" or contract.position == "epoch":
                of = units(stream_view(_narrow(deliveries), NO_WRITES, contract))
                yield from ((name, unit) for unit in _units(of, judge(of)))
            case _:
                pass


def _units(view: StreamView, ruling: Ruling) -> Iterator[tuple[int, ...]]:
    """The torn units, each as its scope, number and partition."""
    writes, contract = view.writes, view.contract
    unit, d = unit_of(writes, contract), view.deliveries
    names = {"session": ("subscriber", "session"), "subscriber": ("subscriber",), "partition": ("span",), "global": ()}
    scope = [getattr(d, name) for name in names[contract.wm_scope]]
    for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True):
        span = int(writes.span[write]) if contract.unit_scope == "partition" else 0
        yield *(int(column[mark]) for column in scope), int(unit[write]), span


def _narrow(deliveries: Deliveries) -> Deliveries:
    """The stream without unit numbers that rows of several positions share: these are several units, or still grow."""
    rows = np.flatnonzero(is_kind(deliveries.kind, (ROW, BACKFILL)) & (deliveries.unit != NEVER))
    unit = deliveries.unit.copy()
    _, first, name = np.unique(unit[rows], return_index=True, return_inverse=True)
    is_other = deliveries.position[rows] != deliveries.position[rows[first]][name]
    unit[rows[np.bincount(name[is_other], minlength=len(first))[name] > 0]] = NEVER
    return replace(deliveries, unit=unit)
