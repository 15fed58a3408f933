"""The features that a hunt has reached so far, and the runs that reached one first: those are the ones to change."""

import msgspec

from harness.core.draw import Stream
from harness.hunt.rows import Row, Tried
from harness.shrink.case import Case

ONE = 1_000_000  # The weight of a feature that one run reached; others weigh less.
MOMENTS = 24  # The number of rarest features of a run at which a fault may be aimed.


class Entry(msgspec.Struct):
    """A run that reached some feature first: the numbers of those features, with their times."""

    number: int
    case: Case
    new: dict[int, int]
    chosen: int = 0  # How often it was changed.


class Corpus:
    """All features, and the runs that reached one first."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.runs = 0
        self.numbers: dict[str, int] = {}  # The number of each feature.
        self.counts: list[int] = []  # By number: how many runs reached it.
        self.first: list[int] = []  # By number: which run was the first.

    def noted(self, case: Case, tried: Tried, **about: object) -> Row:
        """The row of a run. Its features count from now on."""
        new = {feature: at_ns for feature, at_ns in tried.features.items() if feature not in self.numbers}
        for feature in new:
            self.numbers[feature] = len(self.numbers)
        reached = tuple(self.numbers[feature] for feature in tried.features)
        fields = {
            "number": self.runs,
            "report": tried.report,
            "new": new,
            "reached": reached,
            "case": case if new or tried.report.findings else None,
        }
        row = msgspec.convert(fields | about, Row, from_attributes=True)
        self._count(row)
        return row

    def problem(self, row: Row, key: str) -> str | None:
        """Why a stored row cannot be that of the next run, whose case has that key; None if it can."""
        if row.number != self.runs or row.key != key:
            return f"run {row.number} is not the one that this Seamark makes"
        if not self.numbers.keys().isdisjoint(row.new):
            return "a feature that it reached first was reached before"
        total, own = len(self.numbers) + len(row.new), frozenset(row.reached)
        if len(own) < len(row.reached) or not own.issuperset(range(len(self.numbers), total)):
            return "the features that it reached first are not among those that it reached, or one is there twice"
        if own and max(own) >= total:
            return f"it reached feature {max(own)}, and there are {total}"
        if (row.case is None) == bool(row.new or row.report.findings):
            return "its case is missing" if row.case is None else "it has a case, and nothing for it to show"
        return None if row.case is None or row.case.key() == key else "its case is another one's"

    def restored(self, row: Row) -> None:
        """Count the features of a stored row."""
        for feature in row.new:
            self.numbers[feature] = len(self.numbers)
        self._count(row)

    def parent(self, stream: Stream) -> Entry:
        """A random entry, with more weight if its new features are rare, and if it was chosen less often."""
        weights = [self._weight(entry) for entry in self.entries]
        place = stream.below(sum(weights))
        for entry, weight in zip(self.entries, weights, strict=True):
            place -= weight
            if place < 0:
                entry.chosen += 1
                return entry
        raise AssertionError("a draw below the sum of all weights lies in one of them")

    def moments(self, entry: Entry) -> tuple[int, ...]:
        """The times at which the entry's run reached its rarest features."""
        rarest = sorted(entry.new, key=lambda feature: (self.counts[feature], feature))[:MOMENTS]
        return tuple(sorted({entry.new[feature] for feature in rarest}))

    def _weight(self, entry: Entry) -> int:
        return 1 + sum(ONE // self.counts[feature] ** 2 for feature in entry.new) // (1 + entry.chosen)

    def _count(self, row: Row) -> None:
        self.counts += [0] * len(row.new)
        self.first += [row.number] * len(row.new)
        for feature in row.reached:
            self.counts[feature] += 1
        self.runs += 1
        if row.new and row.case is not None:
            new = {self.numbers[feature]: at_ns for feature, at_ns in row.new.items()}
            self.entries.append(Entry(row.number, row.case, new))
