"""Collections of rows that change: the updates that tables, sources and views are made of.

Theory of operation. A collection is a multiset of rows for each timestamp. An update adds a row `diff` times from `ts`
on (a negative `diff` takes it away). The state at `ts` is the sum of all updates at or below `ts`.
1. The collection is readable at `since <= ts < upper`: no update below `upper` will be added any more, and those below
   `since` may have been moved to `since`, where they cancel out.
2. Both only rise.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from harness.core.record import Json


class Update(Struct, frozen=True):
    """A change of a collection by `diff` rows at `ts`. `rank` orders the rows of one key, and makes each unique."""

    key: Json
    value: Json
    rank: int
    ts: int
    diff: int


Row = tuple[Json, Json, int]  # Key, value and rank.


class Rows:
    """The readable part of a collection."""

    def __init__(self) -> None:
        self.since = 0
        self.upper = 0
        self._by_key: dict[Json, list[Update]] = {}

    def add(self, updates: Iterable[Update], upper: int) -> None:
        """Add updates that are all below `upper`, which becomes the collection's."""
        for update in updates:
            self._by_key.setdefault(update.key, []).append(update)
        self.upper = max(self.upper, upper)

    def compact(self, since: int) -> None:
        """Move the updates below `since` there, and drop updates that cancel out."""
        if since <= self.since:
            return
        self.since = since
        for key, updates in tuple(self._by_key.items()):
            kept = [update for update in updates if update.ts > since]
            counts: dict[Row, int] = {}
            for update in updates:
                if update.ts <= since:
                    row = (update.key, update.value, update.rank)
                    counts[row] = counts.get(row, 0) + update.diff
            old = [Update(*row, since, count) for row, count in counts.items() if count]
            self._by_key[key] = old + kept
            if not self._by_key[key]:
                del self._by_key[key]

    def updates(self, first: int) -> Iterator[Update]:
        """The updates at or above that timestamp, in no order."""
        for updates in self._by_key.values():
            for update in updates:
                if update.ts >= first:
                    yield update

    def keys(self) -> tuple[Json, ...]:
        """All keys with updates."""
        return tuple(self._by_key)

    def at(self, ts: int, key: Json) -> list[tuple[Row, int]]:
        """The rows of a key at a timestamp, by rank, each with the times it is there."""
        return held(update for update in self._by_key.get(key, ()) if update.ts <= ts)


def held(updates: Iterable[Update]) -> list[tuple[Row, int]]:
    """The rows that these updates add up to, by rank, each with the times it is there."""
    counts: dict[Row, int] = {}
    for update in updates:
        row = (update.key, update.value, update.rank)
        counts[row] = counts.get(row, 0) + update.diff
    return sorted(((row, count) for row, count in counts.items() if count), key=lambda each: each[0][2])


def values_of(rows: Iterable[tuple[Row, int]]) -> list[Json]:
    """The values of rows, repeated by their counts; rows with a negative count are left out."""
    return [row[1] for row, count in rows for _ in range(count)]


Tables = Mapping[str, Rows]
