"""A store over time: runs by verdict for each day, and how often each anomaly was seen."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from checkers.words.titles import title
from harness.core.verdict import Verdict
from harness.serve.index import STATES, Row

DAYS_MAX: Final = 60  # The number of bars: one for each of the latest days with runs.
HEIGHT: Final = 100.0  # The height of the tallest bar.
TESTED: Final = (Verdict.VALID.value, Verdict.INVALID.value, Verdict.UNKNOWN.value)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An anomaly of a cluster: seen in `runs` of the `tested` runs that were not vacuous. Times are UTC."""

    cluster: str
    anomaly: str
    name: str
    promises: tuple[str, ...]
    runs: int
    tested: int
    first: str
    last: str

    @property
    def rate(self) -> float:
        """The share of runs that show it."""
        return self.runs / self.tested if self.tested else 0.0


def trends(rows: Sequence[Row]) -> list[Trend]:
    """A trend for each cluster, the one with most runs first."""
    clusters = Counter(row.cluster for row in rows if row.began)
    return [
        _trend(name, [row for row in rows if row.began and row.cluster == name]) for name, _ in clusters.most_common()
    ]


def sightings(rows: Sequence[Row]) -> list[Sighting]:
    """The anomalies of each cluster: those that break a promise first, then by the number of runs."""
    found: dict[tuple[str, str], list[Row]] = {}
    tested = Counter(row.cluster for row in rows if row.state in TESTED)
    for row in rows:
        for anomaly in row.anomalies:
            found.setdefault((row.cluster, anomaly), []).append(row)
    every = [_sighting(cluster, anomaly, seen, tested[cluster]) for (cluster, anomaly), seen in found.items()]
    return sorted(every, key=lambda each: (not each.promises, -each.runs, each.cluster, each.anomaly))


def _sighting(cluster: str, anomaly: str, rows: Iterable[Row], tested: int) -> Sighting:
    rows = list(rows)
    times = [row.began for row in rows if row.began] or [""]
    promises = sorted(
        {each.promise for row in rows for each in row.findings if each.anomaly == anomaly and each.promise}
    )
    return Sighting(
        cluster=cluster,
        anomaly=anomaly,
        name=title(anomaly),
        promises=tuple(promises),
        runs=len(rows),
        tested=max(tested, len(rows)),
        first=min(times),
        last=max(times),
    )


def _trend(cluster: str, rows: Sequence[Row]) -> Trend:
    days: dict[str, Counter[str]] = {}
    for row in rows:
        days.setdefault((row.began or "")[:10], Counter())[row.state] += 1
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
