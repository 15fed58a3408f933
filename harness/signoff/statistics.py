"""What counts of runs allow to say: intervals of rates, and the chance to have seen something."""

from typing import Final

import msgspec
from scipy.special import betaincinv

CONFIDENCE: Final = 0.95
PER: Final = 1_000  # Rates are told for that many runs.


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """`seen` of `runs` runs, with the interval of the rate at 95 %, from 0 to 1.

    The interval is Clopper's and Pearson's (Biometrika 26, 1934), which holds for every rate. For none seen, `high` is
    3 of `runs`: the one-sided bound at 95 %, slightly rounded up.
    """

    seen: int
    runs: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share that was seen."""
        return self.seen / self.runs if self.runs else 0.0

    @property
    def text(self) -> str:
        """The rate per 1,000 runs, in words."""
        if not self.runs:
            return "no run"
        if not self.seen:
            return f"below {_number(min(self.high * PER, PER))} (3 of {self.runs:,})"
        return f"{_number(self.value * PER)} ({_number(self.low * PER)} to {_number(self.high * PER)})"


def rate(seen: int, runs: int) -> Rate:
    """The rate with its interval. Without a run nothing is known: from 0 to 1."""
    tail = (1 - CONFIDENCE) / 2
    if not runs:
        return Rate(seen=0, runs=0, low=0.0, high=1.0)
    if not seen:
        return Rate(seen=0, runs=runs, low=0.0, high=min(1.0, 3 / runs))
    low = float(betaincinv(seen, runs - seen + 1, tail))
    high = 1.0 if seen == runs else float(betaincinv(seen + 1, runs - seen, 1 - tail))
    return Rate(seen=seen, runs=runs, low=low, high=high)


def chance_to_see(share: float, runs: int) -> float:
    """The probability that at least one of the runs shows what that share of runs shows."""
    return 1.0 - (1.0 - min(max(share, 0.0), 1.0)) ** runs


def _number(value: float) -> str:
    """Three digits, without needless zeros."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
