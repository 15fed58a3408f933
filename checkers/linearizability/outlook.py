"""Pruning of the search for a text: states that contradict a get which is still to be ordered.

A text grows by appends until a put replaces it. So each get sees the text of some put, or the initial text, followed by
the appends since then. For a configuration of the search this means:
1. It is hopeless if the text seen by the next get to be answered does not begin with the present text, unless a put is
   left that could come before that answer and begin the text seen.
2. If only one operation can have written a piece of the text that a get saw, then the text after that operation is the
   seen text up to the end of that piece.
3. A text that begins no future get's text can only be replaced by a put. All such texts are equal: `UNSEEN`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from checkers.linearizability.models import State

UNSEEN: Final = ()
_INITIAL: Final = None


class Get(NamedTuple):
    """An answered get: the journal position of its answer, its place, and the text that it saw."""

    end: int
    place: int
    text: str


class Change(NamedTuple):
    """A put or an append: the journal position of its invocation, its text, and its number.

    The number of an answered operation is its place; that of an unclear one is -1 minus its bit in a bit set.
    """

    call: int
    text: str
    number: int


class Operations(NamedTuple):
    """All operations on a text with the initial value `initial`. The answered ones have the places from 0 up."""

    initial: str
    answered: int
    gets: list[Get]
    puts: list[Change]
    appends: list[Change]


class _Pieces:
    """For each piece of text the numbers of the changes that can have written it."""

    def __init__(self, writers: Iterable[tuple[str, int | None]]) -> None:
        self._numbers: dict[str, list[int | None]] = {}
        for text, number in writers:
            if text:  # An empty text leaves no piece.
                self._numbers.setdefault(text, []).append(number)
        self._lengths = sorted(set(map(len, self._numbers)))
        self.longest = max(self._lengths, default=0)

    def next(self, text: str, at: int) -> list[tuple[int | None, int]]:
        """The changes that can have written the text from `at` on, each with the end of its piece."""
        ends = [at + length for length in self._lengths if at + length <= len(text)]
        return [(number, end) for end in ends for number in self._numbers.get(text[at:end], ())]


class Outlook:
    """The constraints from gets that are answered until some moment; later gets make no configuration hopeless."""

    def __init__(self, operations: Operations, *, until: int) -> None:
        self._puts = sorted(operations.puts)
        self._gets = sorted(get for get in operations.gets if get.end <= until)
        self._first = _first(self._gets, operations.answered)
        self._left = _left(sorted({get.text for get in self._gets}), operations)
        self._by_text = sorted((get.text, get.place) for get in operations.gets)
        self._putting: dict[int, tuple[int, int]] = {}  # For the place of a get, the puts that could begin its text.
        self._beginning: dict[str, int] = {}  # For a text, the places of the gets whose text begins with it.

    def allows(self, number: int, state: State) -> bool:
        """True if the operation of that number may leave that state (rule 2)."""
        text, length = self._left.get(number, (state, len(state)))
        return len(state) == length and (text is state or text[:length] == state)

    def seen(self, base: int, mask: int, used: int, state: State) -> State | None:
        """The state, or UNSEEN if no future get can tell it from others (rule 3); None if it is hopeless (rule 1).

        Ordered are all places below `base`, those in `mask` from there on, and the unclear operations in `used`.
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
        """Of the gets not ordered yet, the one whose answer comes first."""
        for number in range(self._first[base], len(self._gets)):
            get = self._gets[number]
            if get.place >= base and not mask >> (get.place - base) & 1:
                return get
        return None

    def _puts_of(self, get: Get) -> tuple[int, int]:
        """The puts that could begin the text of that get, as bit sets of answered and of unclear ones."""
        found = self._putting.get(get.place)
        if found is None:
            puts = self._puts[: bisect_left(self._puts, (get.end,))]
            numbers = [put.number for put in puts if get.text.startswith(put.text)]
            answered = sum(1 << number for number in numbers if number >= 0)
            found = answered, sum(1 << -1 - number for number in numbers if number < 0)
            self._putting[get.place] = found
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


def _first(gets: Sequence[Get], count: int) -> list[int]:
    """For each base the number of the first get in `gets` whose place is not below it."""
    numbers = {get.place: number for number, get in enumerate(gets)}
    first = [len(gets)] * (count + 1)
    for base in reversed(range(count)):
        first[base] = min(first[base + 1], numbers.get(base, len(gets)))
    return first


def _left(texts: Sequence[str], operations: Operations) -> dict[int, tuple[str, int]]:
    """For each operation that must leave a certain text (rule 2): a text that begins with it, and its length.

    Each of the sorted `texts` is split into pieces, as long as only one operation can have written the next piece.
    Pieces of the previous text are reused where both texts are equal as far as any piece can reach.
    """
    begin, follow = _pieces(operations)
    longest = max(begin.longest, follow.longest)
    left: dict[int, tuple[str, int]] = {}
    starts: list[int] = []
    at, before = 0, ""
    for text in texts:
        while starts and not _are_alike(before, text, starts[-1] + longest):
            at = starts.pop()
        while len(found := (follow if at else begin).next(text, at)) == 1:
            starts.append(at)
            number, at = found[0]
            if number is not _INITIAL:
                left.setdefault(number, (text, at))
        before = text
    return left


def _are_alike(one: str, other: str, length: int) -> bool:
    return length <= len(one) and other.startswith(one[:length])


def _pieces(operations: Operations) -> tuple[_Pieces, _Pieces]:
    """The pieces that can begin a text, and those that can follow.

    An append can begin a text that may have been empty.
    """
    appends = [(append.text, append.number) for append in operations.appends]
    puts = [(put.text, put.number) for put in operations.puts]
    is_empty_first = not operations.initial or any(not text for text, _ in puts)
    begin = _Pieces([(operations.initial, _INITIAL), *puts, *(appends if is_empty_first else ())])
    return begin, _Pieces(appends)
