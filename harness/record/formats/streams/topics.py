"""Units whose begins and ends came on a topic of their own: each topic has an order, and there is none between topics.

So a unit can be judged once every partition of its tables has passed it: once a row of a later unit came there. A file
may have a partition from anywhere on, also if it begins with a snapshot, which may be taken at any time: only the
offset 0 shows that nothing came before. If all was at rest at the end of the recording, every partition has passed
every unit.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness.core.record import Json
from harness.record.formats.streams.line import Content


class Run(NamedTuple):
    """Neighbouring rows of one unit, partition and table, or one begin or end of a unit ("begun", "unit").

    `at`: the number of the first of them in the file, from 0. `ordinal`: the first row's place in its unit.
    `is_first`, `has_first`: the first of them, or any, is the first message of its partition.
    """

    kind: str
    at: int = 0
    unit: Json = None
    span: str | None = None
    collection: str | None = None
    ordinal: int | None = None
    is_first: bool = False
    has_first: bool = False
    sizes: tuple[tuple[str, int], ...] = ()


class Topics:
    """What the pass over a file collects about begins, ends, and the partitions of rows."""

    def __init__(self, *, is_settled: bool = False) -> None:
        self._is_settled = is_settled
        self._ends: dict[str | None, None] = {}
        self._rows: dict[str | None, dict[Json, None]] = {}  # The units with rows, by partition.
        self._order: dict[Json, int] = {}  # Units in the order in which they began.
        self._ends_at: dict[Json, int] = {}  # The number of each end.
        self._cut: set[Json] = set()  # Units whose beginning the file may lack.
        self._whole: set[str | None] = set()  # Partitions that the file has from their first message on.
        self._spans_of: dict[str, set[str | None]] = {}  # The partitions with rows of each table.
        self._reach: dict[str | None, tuple[int, int]] = {}

    def take(self, run: Run) -> None:
        """Note a run of rows, a begin or an end."""
        if run.is_first:
            self._whole.add(run.span)
        if run.kind in ("unit", "begun"):
            if run.kind == "unit":
                self._ends_at.setdefault(run.unit, run.at)
                self._cut |= set() if self._ends or run.is_first else {run.unit}
            self._ends[run.span] = None
            self._order.setdefault(run.unit, len(self._order))
            return
        if run.collection is not None:
            self._spans_of.setdefault(run.collection, set()).add(run.span)
        units = self._rows.setdefault(run.span, {})
        if run.unit is not None:
            if not units and run.span not in self._whole and run.ordinal not in (None, 1):
                self._cut.add(run.unit)
            units[run.unit] = None
        if run.has_first:
            self._whole.add(run.span)

    @property
    def are_apart(self) -> bool:
        """True if lines name their topics, and ends have one of their own."""
        named = {*self._ends, *self._rows}
        return bool(self._ends) and bool(self._rows) and None not in named and not self._ends.keys() & self._rows.keys()

    def has_passed(self, unit: Json, tables: Iterable[str]) -> bool:
        """True if each partition of those tables shows a later unit, and the file has this one from its begin on."""
        spans = set().union(*(self._spans_of.get(table, set()) for table in tables))
        place = self._order.get(unit)
        if place is None or unit in self._cut or not spans:
            return False
        return all(low <= place < high for low, high in map(self._reached, spans))

    def _reached(self, span: str | None) -> tuple[int, int]:
        """The first and the last unit of that partition, by their places in the order."""
        if span not in self._reach:
            known = [self._order[each] for each in self._rows[span] if each in self._order]
            low = -1 if span in self._whole else min(known, default=-1)
            self._reach[span] = low, len(self._order) if self._is_settled else max(known, default=-1)
        return self._reach[span]

    def in_disorder(self, contents: Iterator[tuple[int, Content]]) -> Iterator[tuple[int, Content]]:
        """A commit for each begin or end that is not where it belongs: an end directly follows its begin.

        One of -1 rows stands for an end in a wrong place, one of 0 rows for an end that never came. Begins and ends
        that come again after a restart are in order with what came before them.
        """
        last: Content | None = None
        number = 0
        seen: set[tuple[str, Json]] = set()
        for number, content in contents:
            if content.kind not in ("unit", "begun"):
                continue
            if last is None and content.kind == "unit" and self._ends.keys() <= self._whole:
                yield number, Content("commit", unit=content.unit, unit_rows=-1)
            is_new = (content.kind, content.unit) not in seen
            seen.add((content.kind, content.unit))
            if is_new and last is not None and last.unit != content.unit:
                if content.kind == "unit":
                    yield number, Content("commit", unit=content.unit, unit_rows=-1)
                elif last.kind == "begun" and last.unit not in self._ends_at:
                    yield number, Content("commit", unit=last.unit, unit_rows=0)
                elif last.kind == "begun" and ("unit", last.unit) in seen:
                    yield number, Content("commit", unit=last.unit, unit_rows=-1)
            last = content
        if self._is_settled and last is not None and last.kind == "begun" and last.unit not in self._ends_at:
            yield number, Content("commit", unit=last.unit, unit_rows=0)

    def ended(self) -> Iterator[tuple[int, Json]]:
        """The units that ended, each with the number of its end."""
        return ((number, unit) for unit, number in self._ends_at.items())
