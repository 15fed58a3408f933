"""Seeded randomness in named streams: integers and tables only, so that every computer draws the same.

Each purpose has its own stream, keyed by blake2b(seed, name): one draw more in the workload cannot change the
network's behaviour. A stream counts its draws; the positions of all streams are part of a run's unseed.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

T = TypeVar("T")

# -ln(1 - (2i + 1) / 128) in thousandths, for i in 0..63: a table, as libm differs between machines.
_EXPONENTIAL_PERMILLE = (
    8, 24, 40, 56, 73, 90, 107, 125, 143, 161, 179, 198, 217, 237, 257, 277, 298, 319, 341, 363, 386, 409, 433, 458,
    483, 508, 535, 562, 589, 618, 647, 678, 709, 741, 774, 809, 845, 882, 920, 960, 1002, 1045, 1091, 1138, 1188, 1241,
    1297, 1356, 1418, 1485, 1556, 1633, 1717, 1808, 1908, 2019, 2144, 2287, 2454, 2655, 2906, 3243, 3753, 4852,
)  # fmt: skip
_EXPONENTIAL_MEAN_PERMILLE = sum(_EXPONENTIAL_PERMILLE) // len(_EXPONENTIAL_PERMILLE)


class Stream:
    """One sequence of draws. `position` counts them."""

    __slots__ = ("_bits", "name", "position")

    def __init__(self, seed: int, name: str) -> None:
        digest = blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
        self.name = name
        self.position = 0
        self._bits = Random(int.from_bytes(digest, "big")).getrandbits  # noqa: S311  Repeatable is the point.

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound). Raises ValueError if `bound` is not positive."""
        if bound <= 0:
            raise ValueError(f"stream {self.name!r}: bound {bound} is not positive")
        width = (bound - 1).bit_length()
        while True:
            self.position += 1
            drawn = self._bits(width)
            if drawn < bound:
                return drawn

    def between(self, low: int, high: int) -> int:
        """A uniform integer in [low, high], both ends included."""
        return low + self.below(high - low + 1)

    def chance(self, numerator: int, denominator: int) -> bool:
        """True in `numerator` of `denominator` cases."""
        return self.below(denominator) < numerator

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`, each as likely."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different positions of `items`, in random order."""
        return self.shuffled(items)[:count]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A new list with the same items in random order (Fisher and Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result

    def exponential(self, mean: int) -> int:
        """A non-negative integer with an approximately exponential distribution (64 steps, at most 4.9 means)."""
        return mean * _EXPONENTIAL_PERMILLE[self.below(64)] // _EXPONENTIAL_MEAN_PERMILLE

    def exponentials(self, least: int, mean: int) -> Callable[[], int]:
        """A function that draws `least + exponential(mean)`: faster, for those who draw for each message."""
        steps = tuple(least + mean * permille // _EXPONENTIAL_MEAN_PERMILLE for permille in _EXPONENTIAL_PERMILLE)
        bits = self._bits

        def draw() -> int:
            self.position += 1  # As `below(64)`: six bits are never too many.
            return steps[bits(6)]

        return draw


class Draw:
    """All random streams of one seed. Two requests for a name get the same stream."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        """The stream of that name, created on first use."""
        if name not in self._streams:
            self._streams[name] = Stream(self.seed, name)
        return self._streams[name]

    def positions(self) -> dict[str, int]:
        """The number of draws of each stream, sorted by name."""
        return {name: self._streams[name].position for name in sorted(self._streams)}
