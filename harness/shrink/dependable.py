"""In containers no run is repeated exactly: which small case shows the symptom dependably, and how often.

A candidate that shows it in half of its runs passes many a trial by chance, and the search makes hundreds of trials. So
the smallest case is measured anew at the end, and if it shows the symptom too rarely, the search's earlier cases are.
"""

from collections.abc import Callable, Sequence
from math import ceil, log
from typing import Final, NamedTuple

from harness.shrink.case import Case

MISSED: Final = 0.05  # The chance that a test does not fail though the symptom is as frequent as was measured.


class Shown(NamedTuple):
    """A case showed the symptom in `hits` of `runs` runs."""

    hits: int
    runs: int

    def repetitions(self) -> int:
        """The runs that show the symptom at least once, but for a chance of MISSED.

        The symptom's frequency is Laplace's estimate, as no hundred runs tell whether it is exactly 1.
        """
        frequency = (self.hits + 1) / (self.runs + 2)
        return max(1, ceil(log(MISSED) / log(1 - frequency)))


def dependable(path: Sequence[Case], hits: Callable[[Case], int], runs: int, rate: float) -> tuple[Case, Shown]:
    """The last case of the path that shows the symptom in at least `rate` of `runs` runs, as `hits` counts them.

    `path` begins with the recorded run. The steps back along it double, as each costs `runs` runs; the recorded run is
    the result if no other case is dependable.
    """
    place, step = len(path) - 1, 1
    while True:
        shown = Shown(hits(path[place]), runs)
        if place == 0 or shown.hits >= rate * runs:
            return path[place], shown
        place, step = max(0, place - step), step * 2
