"""Sweeps in folders, whose runs are made up: what a sign-off reads."""

from pathlib import Path

from harness.core.verdict import Verdict
from harness.report.model import Report
from tests.unit.campaign.made import made
from tests.unit.campaign.reports import finding, promise, report

RED = report(Verdict.INVALID, findings=(finding(),), promises=(promise("P1", verdict="violated"), promise("P2")))
RUNS = 8  # Enough of each kind of fault.


def green(store: Path, **options: object) -> Path:
    """The folder of a sweep in which nothing was found."""
    return made(store, *(report(history_sha256=f"{store.name} {seed}") for seed in range(RUNS)), **options)


def red(store: Path, count: int = 3, **options: object) -> Path:
    """The folder of a sweep of which `count` runs show a finding."""
    runs: list[Report] = [RED] * count + [report() for _ in range(RUNS - count)]
    return made(store, *runs, **options)
