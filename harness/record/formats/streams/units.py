"""The units of a foreign stream, from their rows, begins and ends.

The ends count only where they stand among the rows, each right after the rows of its unit: in a file that has them
apart, the place of an end shows nothing, unless the lines name their topics.
"""

from harness.core.record import Json
from harness.record.formats.streams.holes import Holes
from harness.record.formats.streams.line import Content
from harness.record.formats.streams.topics import Topics


class Units:
    """What a first pass over the file collects about units, by their names in the file."""

    def __init__(self) -> None:
        self.numbers: dict[Json, int] = {}
        self._sizes: dict[Json, tuple[tuple[str, int], ...]] = {}
        self._collections: set[str] = set()
        self._last: Json = None  # The unit of the last row.
        self._left: dict[Json, None] = {}  # Units behind which another one came before their end.
        self._first: Json = None
        self._is_first_cut = False  # The file may begin inside its first unit.
        self._are_apart = False
        self._are_among = False
        self.topics = Topics()
        self.holes = Holes()
        self._announced: set[tuple[str, Json]] = set()
        self.again: list[tuple[str, Json]] = []  # The places of begins and ends that came before, with their units.

    @property
    def have_ends(self) -> bool:
        """True if ends of units stand among the rows."""
        return self.topics.are_apart or (self._are_among and not self._are_apart)

    def take(self, content: Content, place: str) -> None:
        """Note a row, a begin or an end."""
        if content.kind in ("unit", "begun"):
            if (content.kind, content.unit) in self._announced:
                self.again.append((place, content.unit))
            self._announced.add((content.kind, content.unit))
        self.topics.take(content, place)
        self.holes.take(content, place)
        if content.kind == "unit":
            self._end(content)
        elif content.unit is not None:
            self._go_on(content)
        if content.collection is not None:
            self._collections.add(content.collection)

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
        """True if that unit never ended, although a later one did, where ends stand among rows."""
        return self.have_ends and unit in self._left and unit not in self._sizes

    def number(self, unit: Json) -> int:
        """The number of a unit."""
        return self.numbers.setdefault(unit, len(self.numbers) + 1)

    def _go_on(self, content: Content) -> None:
        unit, is_begin = content.unit, content.kind == "begun"
        if self._first is None:
            self._first, self._is_first_cut = unit, not is_begin and content.ordinal not in (None, 1)
        if self._last not in (None, unit):
            self._left[self._last] = None
        self._last = unit
        if not is_begin:
            self._are_apart |= unit in self._sizes and self.numbers.get(unit) is None
            self.number(unit)

    def _end(self, content: Content) -> None:
        unit = content.unit
        if self._first is None:
            self._first, self._is_first_cut = unit, True
        if unit in self.numbers:
            self._are_among |= self._last == unit
            self._are_apart |= self._last != unit
        elif self._last not in (None, unit):
            self._left[self._last] = None
        self._sizes[unit] = content.sizes
