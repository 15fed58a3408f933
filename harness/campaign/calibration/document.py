"""calibration.json as a value: for each planted bug how soon drawn seeds show it, and which check finds it.

Seeds count up until some number of them show the bug, or a limit is reached: inverse sampling, whose unbiased estimate
of the rate is (hits - 1) / (runs - 1). Intervals are Clopper and Pearson's exact ones, of 95 %.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from harness.core.errors import ScenarioError
from harness.record.bounded import Amount, Count, Seed, Share
from harness.record.documents import read_document

CALIBRATION_SCHEMA: Final = 2
CALIBRATION_FILE: Final = "calibration.json"
CALIBRATION: Final = "calibration"  # The folder of calibrations in a store.
CONFIDENCE: Final = 0.95


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a rate, from 0 to 1, at 95 %."""

    low: Share
    high: Share


class BugCell(msgspec.Struct, frozen=True, kw_only=True):
    """One planted bug. `hits` of `runs` showed it; in `errors` more the harness failed.

    `median_seeds`: with a chance of one half at least one of this many drawn seeds shows it; None: no seed did.
    `promise`, `anomaly` and `checker` are those of the first finding in most hits. `graph`, `rules`, `client` and
    `state` count the hits in which the watermark graph, a rule of streams, a check of client operations, or one of
    stored state found something. `is_client_more`: checks of client operations alone find more than without the bug.
    `scripted`: if no seed showed it, the result of its schedule; the findings are then those of that one run.
    """

    cluster: str
    bug: str
    description: str
    key: str
    runs: Count
    hits: Count
    errors: Count
    rate: Share
    interval: Interval
    median_seeds: Count | None
    promise: str | None
    anomaly: str | None
    checker: str | None
    graph: Count
    rules: Count
    client: Count
    state: Count
    is_client_more: bool
    scripted: Literal["found", "not found", "no schedule"] | None = None

    @property
    def found_by(self) -> str:
        """The kinds of checks that find it: watermark graph, stream rules, checks of clients, of the final state."""
        names = {"graph": self.graph, "rules": self.rules, "client": self.client, "state": self.state}
        return ", ".join(name for name, count in names.items() if count) or "–"


class CorrectCell(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster without a bug. `false_alarms` of `runs` broke a promise; `interval` is that of their rate."""

    cluster: str
    key: str
    runs: Count
    false_alarms: Count
    errors: Count
    client: Count
    interval: Interval
    seeds: tuple[int, ...] = ()  # The seeds of the false alarms.


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the runs of one cluster were drawn: seeds from `seed` on, with `time_s` s of load each.

    A bug's runs end when `hits_max` show it, or after `runs_max`. `workload` is that of all runs, or "any"; None: the
    cluster's first, with plans of one style. `versions` are those of Seamark and of what it runs on.
    """

    cluster: str
    versions: dict[str, str]
    time_s: Amount
    seed: Seed = 0
    workload: str | None = None
    runs_max: Count
    hits_max: Count


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a calibration: for each cluster how its runs were drawn, its bugs, and its runs without a bug."""

    schema: int = CALIBRATION_SCHEMA
    samplings: tuple[Sampling, ...]
    bugs: tuple[BugCell, ...]
    correct: tuple[CorrectCell, ...]


Of = TypeVar("Of", bound=Sampling | BugCell | CorrectCell)  # What a calibration has of a cluster.


def merged(now: Calibration, before: Calibration) -> Calibration:
    """Both: the clusters of `before` in their order, then new ones. A cluster that `now` has is taken from it whole."""
    clusters = [each.cluster for each in now.samplings]
    order = list(dict.fromkeys([*(each.cluster for each in before.samplings), *clusters]))

    def together(new: Iterable[Of], old: Iterable[Of]) -> tuple[Of, ...]:
        kept = (each for each in old if each.cluster not in clusters)
        return tuple(sorted((*new, *kept), key=lambda each: order.index(each.cluster)))

    return Calibration(
        samplings=together(now.samplings, before.samplings),
        bugs=together(now.bugs, before.bugs),
        correct=together(now.correct, before.correct),
    )


def interval_of(hits: int, runs: int) -> Interval:
    """The exact interval of a rate; without any run from 0 to 1."""
    if not runs:
        return Interval(low=0.0, high=1.0)
    from scipy.stats import binomtest  # noqa: PLC0415  It takes a second and 60 MB, which every command would pay.

    found = binomtest(hits, runs).proportion_ci(CONFIDENCE, method="exact")
    return Interval(low=round(float(found.low), 5), high=round(float(found.high), 5))


def rate_of(hits: int, runs: int, *, is_stopped_by_hit: bool) -> float:
    """The rate. It is unbiased even if the last run is the hit that ended the sampling."""
    if is_stopped_by_hit and runs > 1:
        return round((hits - 1) / (runs - 1), 5)
    return round(hits / runs, 5) if runs else 0.0


def median_seeds(rate: float) -> int | None:
    """How many drawn seeds contain a hit with a chance of one half; None at a rate of zero."""
    if rate <= 0:
        return None
    return 1 if rate >= 0.5 else math.ceil(math.log(0.5) / math.log1p(-rate))


def worse(now: Calibration, before: Calibration) -> list[str]:
    """A sentence for each cell that became worse beyond its interval: a bug found less often, or a false alarm."""
    cells = {(cell.cluster, cell.bug): cell for cell in before.bugs}
    found = []
    for cell in now.bugs:
        was = cells.get((cell.cluster, cell.bug))
        if was is not None and cell.rate < was.interval.low:
            rates = f"a rate of {cell.rate:.3g}, below {was.interval.low:.3g} to {was.interval.high:.3g}"
            found.append(f"{cell.cluster} {cell.bug}: {cell.hits} of {cell.runs} runs show it, {rates}")
        elif was is not None and cell.scripted == "not found" != was.scripted:
            found.append(f"{cell.cluster} {cell.bug}: its schedule no longer shows it")
    for each in now.correct:
        if each.false_alarms:
            seeds = ", ".join(map(str, each.seeds[:5]))
            share = f"{each.false_alarms} of {each.runs} runs without a bug are red"
            found.append(f"{each.cluster}: {share}: seeds {seeds}")
    return found


def calibration_at(path: Path) -> Calibration:
    """The calibration that a command line names. Raises ScenarioError if there is none, HistoryError as below."""
    if not path.is_file():
        raise ScenarioError(f"{path}: there is no such file; seamark calibrate writes {CALIBRATION_FILE}")
    return read_calibration(path)


def read_calibration(path: Path) -> Calibration:
    """A calibration.json. Raises HistoryError that names the file and what is wrong."""
    return read_document(path, Calibration, "a calibration", CALIBRATION_SCHEMA)
