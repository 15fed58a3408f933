"""An example for each rule that a log breaks, with the facts for its sentence."""

from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.runs import distinct
from checkers.history.streams import StreamLog
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import NEVER, Int64s

NO_TIME: Final = -1


class Sight(Struct, frozen=True, kw_only=True):
    """An event of a log, as plain numbers; NEVER stands for a missing one."""

    kind: int
    seq: int
    ns: int
    session: int
    key: int
    value: int
    position: int
    unit: int = NEVER
    unit_rows: int = NEVER


class Missed(Struct, frozen=True, kw_only=True):
    """A write that had not arrived, or the write that an event should show.

    `came` is its first delivery after the watermark, in the watermark's scope, if there was one.
    """

    op: int
    key: int
    value: int
    position: int
    came: Sight | None


class Example(Struct, frozen=True, kw_only=True):
    """The first violation of a rule by one subscriber, and the number of violations."""

    anomaly: str
    subscriber: str
    count: int
    watermark: Sight  # For a rule without watermarks, the event that broke it.
    event: Sight | None
    missed: Missed | None
    partition: str | None = None  # That of the watermark.

    def untimed(self) -> "Example":
        """The same example, of a history that has no times."""
        missed = self.missed
        if missed is not None and missed.came is not None:
            missed = replace(missed, came=replace(missed.came, ns=NO_TIME))
        event = None if self.event is None else replace(self.event, ns=NO_TIME)
        return replace(self, watermark=replace(self.watermark, ns=NO_TIME), event=event, missed=missed)


def examples_of(anomaly: str, log: StreamLog, view: StreamView, ruling: Ruling) -> list[Example]:
    """One example for each subscriber with a violation in the ruling."""
    who = view.deliveries.subscriber[ruling.watermark]
    return [_example(anomaly, log, view, ruling, np.flatnonzero(who == each)) for each in distinct(who).tolist()]


def sight_of(view: StreamView, row: int) -> Sight:
    """The event at that row of the log."""
    d = view.deliveries
    return Sight(
        kind=int(d.kind[row]),
        seq=int(d.seq[row]),
        ns=int(d.ns[row]),
        session=int(d.session[row]),
        key=int(d.key[row]),
        value=int(d.value[row]),
        position=int(d.position[row]),
        unit=int(d.unit[row]),
        unit_rows=int(d.unit_rows[row]),
    )


def _example(anomaly: str, log: StreamLog, view: StreamView, ruling: Ruling, places: Int64s) -> Example:
    """The example of the violations at those places of the ruling, which are one subscriber's, earliest first."""
    first = int(places[0])
    watermark, row, write = (int(column[first]) for column in (ruling.watermark, ruling.row, ruling.write))
    span = int(view.deliveries.span[watermark])
    return Example(
        anomaly=anomaly,
        subscriber=log.subscribers[int(view.deliveries.subscriber[watermark])],
        count=len(places),
        watermark=sight_of(view, watermark),
        event=sight_of(view, row) if row >= 0 else None,
        missed=_missed(view, watermark, write) if write >= 0 else None,
        partition=log.spans[span] if 0 <= span < len(log.spans) else None,
    )


def _missed(view: StreamView, watermark: int, write: int) -> Missed:
    w, place = view.writes, int(np.searchsorted(view.expected, write))
    is_expected = write in view.expected
    came = np.flatnonzero((view.match == place) & is_expected & (view.scope == view.scope[watermark]))
    return Missed(
        op=int(w.op[write]),
        key=int(w.key[write]),
        value=int(w.value[write]),
        position=int(w.position[write]),
        came=sight_of(view, int(came[0])) if len(came) and came[0] > watermark else None,
    )
