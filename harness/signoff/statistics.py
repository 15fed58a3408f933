"""Statistics of runs: rates with their intervals, and the chance that some runs show a bug."""

from typing import Final

import msgspec

from harness.campaign.calibration.document import interval_of
from harness.record.bounded import Count, Share

PER: Final = 1_000  # Rates are given per this many runs.


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """`seen` of `runs` runs, with the 95 % interval of the rate (Clopper and Pearson), from 0 to 1.

    If none is seen, `high` is 3 / `runs`: the one-sided bound at 95 %, slightly rounded up.
    """

    seen: Count
    runs: Count
    low: Share
    high: Share

    @property
    def value(self) -> float:
        """The share of runs that showed it."""
        return self.seen / self.runs if self.runs else 0.0

    @property
    def text(self) -> str:
        """The rate as it is read aloud: "2 of 16 runs (95 %: 1.6 to 38 %)"."""
        return f"{self.seen:,} of {self.runs:,} runs ({self.interval})" if self.runs else "no run"

    @property
    def interval(self) -> str:
        """The interval in percent: "95 %: 1.6 to 38 %"."""
        low, high = (number(100 * share, digits=2) for share in (self.low, self.high))
        return f"95 %: {low} to {high} %"


def rate(seen: int, runs: int) -> Rate:
    """The rate with its interval; without a run from 0 to 1."""
    if runs and not seen:
        return Rate(seen=0, runs=runs, low=0.0, high=min(1.0, 3 / runs))
    found = interval_of(seen, runs)
    return Rate(seen=seen, runs=runs, low=found.low, high=found.high)


def chance_to_see(share: float, runs: int) -> float:
    """The probability that at least one of `runs` runs shows what each shows with probability `share`."""
    return 1.0 - (1.0 - min(max(share, 0.0), 1.0)) ** runs


def percent(chance: float) -> str:
    """A probability for people. It is never shown as 100 %."""
    shown = 100 * min(chance, 0.999)
    return f"{shown:.1f} %" if chance > 0.99 else f"{shown:.0f} %"


def number(value: float, digits: int = 3) -> str:
    """The number with that many digits, without needless zeros."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"
