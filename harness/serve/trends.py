"""A store over time: runs by verdict for each day, and how often each anomaly was seen, by release."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from checkers.verdict.titles import title
from harness.serve.index import STATES
from harness.serve.tally import Shown, Tally

DAYS_MAX: Final = 60  # The number of bars: one for each of the latest days with runs.
HEIGHT: Final = 100.0  # The height of the tallest bar.


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a bar: the runs of one verdict."""

    state: str
    count: int
    top: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The runs of one day (UTC), worst verdict on top."""

    date: str
    count: int
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The runs of the day in words."""
        counts = ", ".join(f"{each.count} {STATES[each.state]}" for each in self.parts)
        return f"{self.date}: {self.count} runs, {counts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The days of one cluster; `most` is the number of runs of its fullest day."""

    cluster: str
    days: tuple[Day, ...]
    most: int
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rate:
    """Some runs of all runs that were not vacuous."""

    runs: int
    tested: int

    @property
    def share(self) -> float:
        """The share of runs, from 0 to 1."""
        return self.runs / self.tested if self.tested else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An anomaly of a cluster, over all its releases and by release. Times are UTC."""

    cluster: str
    anomaly: str
    name: str
    promises: tuple[str, ...]
    rate: Rate
    releases: tuple[tuple[str, Rate], ...]  # By name; empty if no run declares a release.
    first: str
    last: str


def trends(tally: Tally) -> list[Trend]:
    """A trend for each cluster, the one with most runs first."""
    runs = Counter[str]()
    for (cluster, _), states in tally.days.items():
        runs[cluster] += states.total()
    return [
        _trend(name, {date: states for (cluster, date), states in tally.days.items() if cluster == name})
        for name, _ in runs.most_common()
    ]


def sightings(tally: Tally) -> list[Sighting]:
    """The anomalies of each cluster: those that break a promise first, then by the number of runs."""
    names = dict.fromkeys((kind.cluster, anomaly) for kind, anomaly in tally.shown)
    every = [_sighting(tally, cluster, anomaly) for cluster, anomaly in names]
    return sorted(every, key=lambda each: (not each.promises, -each.rate.runs, each.cluster, each.anomaly))


def _sighting(tally: Tally, cluster: str, anomaly: str) -> Sighting:
    total, rates = Shown(), dict[str, Rate]()
    for kind, tested in sorted(tally.tested.items()):
        if kind.cluster == cluster:
            rates[kind.release] = Rate(0, tested)
    for (kind, name), each in tally.shown.items():
        if (kind.cluster, name) == (cluster, anomaly):
            total.add(each.runs, each.promises, each.first, each.last)
            tested = rates.get(kind.release, Rate(0, 0)).tested
            rates[kind.release] = Rate(each.runs, max(tested, each.runs))
    return Sighting(
        cluster=cluster,
        anomaly=anomaly,
        name=title(anomaly),
        promises=tuple(sorted(total.promises)),
        rate=Rate(total.runs, sum(each.tested for each in rates.values())),
        releases=tuple(rates.items()) if any(rates) else (),
        first=total.first,
        last=total.last,
    )


def _trend(cluster: str, days: dict[str, Counter[str]]) -> Trend:
    shown = sorted(days.items())[-DAYS_MAX:]
    most = max(counts.total() for _, counts in shown)
    states = tuple(each for each in STATES if any(counts[each] for _, counts in shown))
    return Trend(
        cluster=cluster,
        days=tuple(Day(date=date, count=counts.total(), parts=tuple(_parts(counts, most))) for date, counts in shown),
        most=most,
        states=states,
    )


def _parts(counts: Counter[str], most: int) -> Iterator[Part]:
    top = HEIGHT * (1 - counts.total() / most)
    for state in STATES:
        if counts[state]:
            height = HEIGHT * counts[state] / most
            yield Part(state=state, count=counts[state], top=round(top, 2), height=round(height, 2))
            top += height
