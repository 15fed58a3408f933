"""The units of a foreign stream, from their rows, begins and ends.

The ends count only where they stand among the rows, each right after the rows of its unit: in a file that has them
apart, the place of an end shows nothing, unless the lines name their topics.
"""

from collections.abc import Iterator, Sequence

from harness.core.record import Json
from harness.record.formats.streams.topics import Run, Topics


class Holes:
    """Transactions that lack a row: a row's number among those of its table jumps, on the only partition of that table.

    A topic that was compacted has honest holes. From the first key on that came twice it was not: the earlier row of
    the key would be gone.
    """

    def __init__(self) -> None:
        self._keys: dict[str, set[int] | None] = {}  # By partition; None once a key came twice.
        self._is_judged: dict[tuple[Json, str], bool] = {}  # By transaction and table.
        self._highest: dict[tuple[Json, str], int] = {}
        self._spans: dict[str, set[str]] = {}
        self._found: dict[tuple[Json, str], int] = {}

    def take(self, run: Run) -> None:
        """Note the rows of a run, if their transaction numbers them and their lines name the partition."""
        table, span = run.collection, run.span
        if table is None or span is None:
            return
        self._spans.setdefault(table, set()).add(span)
        if run.numbers and run.unit is not None:
            unit = (run.unit, table)
            is_judged = self._is_judged.setdefault(unit, self._keys.get(span, ()) is None)
            highest = self._highest.get(unit, 0)
            for at, number in enumerate(run.numbers, run.at):
                if is_judged and number > highest + 1:
                    self._found.setdefault(unit, at)
                highest = max(highest, number)
            self._highest[unit] = highest
        self._note_keys(span, run.keys)

    def _note_keys(self, span: str, new: Sequence[int]) -> None:
        keys = self._keys.setdefault(span, set())
        if keys is None:
            return
        size = len(keys)
        keys.update(new)
        if len(keys) < size + len(new):
            self._keys[span] = None

    def found(self) -> Iterator[tuple[int, Json]]:
        """The number of the row behind each hole, and the transaction."""
        for (unit, table), at in self._found.items():
            if len(self._spans[table]) == 1:
                yield at, unit


class Units:
    """What the pass over a file collects about units, by their names in the file."""

    def __init__(self, *, is_settled: bool = False) -> None:
        self._is_settled = is_settled
        self.numbers: dict[Json, int] = {}
        self._sizes: dict[Json, tuple[tuple[str, int], ...]] = {}
        self._collections: set[str] = set()
        self._last: Json = None  # The unit of the last row.
        self._left: dict[Json, None] = {}  # Units behind which another one came before their end.
        self._first: Json = None
        self._is_first_cut = False  # The file may begin inside its first unit.
        self._are_apart = False
        self._are_among = False
        self.topics = Topics(is_settled=is_settled)
        self.holes = Holes()
        self._announced: set[tuple[str, Json]] = set()
        self.again: list[tuple[int, Json]] = []  # The numbers of begins and ends that came before, and their units.

    @property
    def have_ends(self) -> bool:
        """True if ends of units stand among the rows."""
        return self.topics.are_apart or (self._are_among and not self._are_apart)

    def take(self, run: Run) -> None:
        """Note a run of rows, a begin or an end."""
        if run.kind in ("unit", "begun"):
            if (run.kind, run.unit) in self._announced:
                self.again.append((run.at, run.unit))
            self._announced.add((run.kind, run.unit))
        self.topics.take(run)
        self.holes.take(run)
        if run.kind == "unit":
            self._end(run)
        elif run.unit is not None:
            self._go_on(run)
        if run.collection is not None:
            self._collections.add(run.collection)

    def size(self, unit: Json) -> int | None:
        """The number of a unit's rows in this file's tables, if its end reports it."""
        if self.topics.are_apart:
            if not self.topics.has_passed(unit, (name for name, count in self._sizes.get(unit, ()) if count)):
                return None
        elif unit is None or self._are_apart or (unit == self._first and self._is_first_cut):
            return None
        sizes = self._sizes.get(unit, ())
        return sum(count for name, count in sizes if name in self._collections) or None

    def counts_end(self, unit: Json) -> bool:
        """True if the end of that unit is an event: of its rows, or of rows that never came."""
        if self._are_apart:
            return False
        return unit in self.numbers or (self._are_among and self.size(unit) is not None)

    def is_endless(self, unit: Json) -> bool:
        """True if that unit never ended, although a later one did, where ends stand among rows.

        Or although all was at rest: then the last one had to end, too.
        """
        is_over = unit in self._left or (self._is_settled and unit is not None and unit == self._last)
        return self.have_ends and is_over and unit not in self._sizes

    def number(self, unit: Json) -> int:
        """The number of a unit."""
        return self.numbers.setdefault(unit, len(self.numbers) + 1)

    def _go_on(self, run: Run) -> None:
        unit, is_begin = run.unit, run.kind == "begun"
        if self._first is None:
            self._first, self._is_first_cut = unit, not is_begin and run.ordinal not in (None, 1)
        if self._last not in (None, unit):
            self._left[self._last] = None
        self._last = unit
        if not is_begin:
            self._are_apart |= unit in self._sizes and self.numbers.get(unit) is None
            self.number(unit)

    def _end(self, run: Run) -> None:
        unit = run.unit
        if self._first is None:
            self._first, self._is_first_cut = unit, True
        if unit in self.numbers:
            self._are_among |= self._last == unit
            self._are_apart |= self._last != unit
        elif self._last not in (None, unit):
            self._left[self._last] = None
        self._sizes[unit] = run.sizes
