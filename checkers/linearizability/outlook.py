"""The outlook of a text: what the gets to come allow it to be now.

A text grows by appends until a put replaces it. So each get sees what some put wrote, or the initial text, and what was
appended since. For a configuration of the search this means:
1. It is hopeless if the get that is answered next does not begin with the present text, unless a put is left that could
   come before the answer and begin what it saw.
2. A text with which no get to come begins can only be replaced by a put. All such texts are equal: `UNSEEN`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from checkers.linearizability.models import State

UNSEEN: Final = ()


class Get(NamedTuple):
    """An answered get: the moment of its answer, its place, and the text that it saw."""

    end: int
    place: int
    text: str


class Put(NamedTuple):
    """A put: the moment of its invocation, its number among the answered or the unclear ones, and its text."""

    call: int
    number: int
    text: str


class Outlook:
    """The outlook on the gets that are answered until some moment; later ones make no configuration hopeless.

    `count` is the number of answered operations: all places are below it.
    """

    def __init__(
        self, gets: Iterable[Get], answered: Iterable[Put], unclear: Iterable[Put], *, until: int, count: int
    ) -> None:
        every = sorted(gets)
        self._answered, self._unclear = sorted(answered), sorted(unclear)
        self._gets = [get for get in every if get.end <= until]
        self._first = _first(self._gets, count)
        self._by_text = sorted((get.text, get.place) for get in every)
        self._puts: dict[int, tuple[int, int]] = {}  # For the place of a get, the puts that could begin its text.
        self._beginning: dict[str, int] = {}  # For a text, the places of the gets that begin with it.

    def seen(self, base: int, mask: int, used: int, state: State) -> State | None:
        """The state as the gets to come can tell it from others; None if one of them is impossible.

        All places below `base` are ordered, and those in `mask` behind it; of the unclear operations, those in `used`.
        """
        assert isinstance(state, str)
        get = self._next(base, mask)
        if get is None or get.text.startswith(state):
            return state
        answered, unclear = self._puts_of(get)
        if not answered >> base & ~mask and not unclear & ~used:
            return None
        return state if self._beginning_with(state) >> base & ~mask else UNSEEN

    def _next(self, base: int, mask: int) -> Get | None:
        """The get not ordered yet whose answer comes first."""
        for number in range(self._first[base], len(self._gets)):
            get = self._gets[number]
            if get.place >= base and not mask >> (get.place - base) & 1:
                return get
        return None

    def _puts_of(self, get: Get) -> tuple[int, int]:
        found = self._puts.get(get.place)
        if found is None:
            found = self._puts[get.place] = (_begin(self._answered, get), _begin(self._unclear, get))
        return found

    def _beginning_with(self, text: str) -> int:
        found = self._beginning.get(text)
        if found is None:
            found = 0
            for number in range(bisect_left(self._by_text, (text, 0)), len(self._by_text)):
                seen, place = self._by_text[number]
                if not seen.startswith(text):
                    break
                found |= 1 << place
            self._beginning[text] = found
        return found


def _first(gets: list[Get], count: int) -> list[int]:
    """For each base, the number of the first of the gets that is not below it."""
    numbers = {get.place: number for number, get in enumerate(gets)}
    first = [len(gets)] * (count + 1)
    for base in reversed(range(count)):
        first[base] = min(first[base + 1], numbers.get(base, len(gets)))
    return first


def _begin(puts: Iterable[Put], get: Get) -> int:
    """Those of the puts, as a bit set, that could begin the text of that get."""
    bits = 0
    for call, number, text in puts:
        if call > get.end:
            break
        if get.text.startswith(text):
            bits |= 1 << number
    return bits
