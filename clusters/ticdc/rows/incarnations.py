"""Incarnations of a row: a flashback ends one and begins the next, which has a name of its own.

Theory of operation. A flashback makes lists shorter, and histories know lists that only grow. So clients call a row k
until its first flashback, k@1 from then on, and k@2 after the second one.
1. A flashback writes the elements that the row had at its timestamp, then a mark. Later transactions append after it.
2. The mark is the first element of the new incarnation: there it stands for the flashback, which appends it. What is
   before the mark was restored; what the flashback undid is kept in the mark.
3. An incarnation has its elements for good: one that has ended can still be read, and nobody can append to it. One that
   has not begun is empty.
"""

from typing import Final, cast

from clusters.ticdc.rows.messages import Elements
from clusters.ticdc.shape import INCARNATION, Key
from harness.core.record import Json

_NUMBER: Final = "flashback"  # The keys of a mark.
_TO: Final = "to"
_UNDONE: Final = "undone"


def name(key: Key, incarnation: int) -> Key:
    """The name by which clients know that incarnation of the row."""
    return f"{key}@{incarnation}" if incarnation else key


def named(key: Json) -> int:
    """The incarnation that a client's key names."""
    found = INCARNATION.fullmatch(key) if isinstance(key, str) else None
    return int(found[2]) if found is not None else 0


def incarnation(elements: Elements) -> int:
    """The present incarnation of a row with this value."""
    return sum(isinstance(element, dict) for element in elements)


def restored(before: Elements, after: Elements, number: Json, to_ts: int) -> Elements:
    """The value that a flashback to `to_ts` writes: `after` is that of then, `before` the one that it replaces."""
    return (*after, {_NUMBER: number, _TO: to_ts, _UNDONE: list(before)})


def view(elements: Elements, wanted: int) -> Elements:
    """The elements of one incarnation of a row with this value (invariant 3)."""
    places = _marks(elements)
    if wanted > len(places):
        return ()
    if wanted < len(places):
        return view(tuple(cast("list[Json]", _mark(elements, places[wanted])[_UNDONE])), wanted)
    if not places:
        return elements
    begin = places[-1]
    return (_mark(elements, begin)[_NUMBER], *elements[begin + 1 :])


def brought_back(elements: Elements, wanted: int) -> tuple[int, Elements] | None:
    """The timestamp to which a flashback went that began this incarnation, and what it brought back; None without."""
    places = _marks(elements)
    if not 0 < wanted <= len(places):
        return None
    place = places[wanted - 1]
    return cast("int", _mark(elements, place)[_TO]), view(elements[:place], wanted - 1)


def _marks(elements: Elements) -> list[int]:
    return [place for place, element in enumerate(elements) if isinstance(element, dict)]


def _mark(elements: Elements, place: int) -> dict[str, Json]:
    return cast("dict[str, Json]", elements[place])
