"""The page of a hunt: its finding, the features that its runs reached, and whether new ones still appear."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers.verdict.titles import title as title_of
from harness.campaign.page import TITLES
from harness.core.verdict import Verdict
from harness.hunt.document import EVERY, Hunt, Trophy
from harness.hunt.rows import Row
from harness.report.page import link_to, rendered

PAGE_FILE: Final = "page.html"
MEMBERS_MAX: Final = 60
BAR, GAP, HEIGHT = 14, 4, 64  # The size of the chart in pixels.


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The number of features that one hundred of runs reached first."""

    x: int
    y: float
    height: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A bar for each hundred of runs."""

    width: int
    height: int
    bar: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """A run from which another was made by a change."""

    number: int
    origin: str
    seed: int
    steps: int


def hunt_page(hunt: Hunt, rows: Sequence[Row], folder: Path) -> str:
    """The page as HTML, to be written into `folder`: its links are relative to that folder."""
    found = hunt.found
    return rendered(
        "hunt.html",
        (),
        {"hover": {}},
        hunt=hunt,
        word=Verdict(hunt.verdict).word,
        title=TITLES[hunt.verdict],
        name=title_of(found.anomaly) if found else "",
        links=_links(found, folder) if found else [],
        versions=", ".join(f"{name} {version}" for name, version in hunt.versions.items()),
        chart=_chart(hunt.new),
        lineage=_lineage(rows, found.number) if found else [],
        members=hunt.corpus[:MEMBERS_MAX],
        left_out=max(0, len(hunt.corpus) - MEMBERS_MAX),
        duration=_duration,
    )


def _links(found: Trophy, folder: Path) -> list[tuple[str, str]]:
    """The pages of the run and, if there is one, of the shrunk run: for each a text and its link."""
    runs = (("the run", found.run), ("the shrunk run", found.small))
    return [(text, link_to(run, folder)) for text, run in runs if run]


def _chart(new: Sequence[int]) -> Chart:
    highest = max((count.bit_length() for count in new), default=0) or 1
    bars = []
    for place, count in enumerate(new):
        height = round(HEIGHT * count.bit_length() / highest, 1)
        label = f"runs {place * EVERY + 1} to {(place + 1) * EVERY}: {count:,} new"
        bars.append(Bar(x=place * (BAR + GAP), y=round(HEIGHT - height, 1), height=height, label=label))
    return Chart(width=max(1, len(bars) * (BAR + GAP)), height=HEIGHT, bar=BAR, bars=tuple(bars))


def _lineage(rows: Sequence[Row], number: int) -> list[Ancestor]:
    """The run, its parent, and so on, up to a run without a parent."""
    by_number = {row.number: row for row in rows}
    found: list[Ancestor] = []
    while (row := by_number.get(number)) is not None and row.case is not None:
        steps = len(row.case.plan.steps)
        found.append(Ancestor(number=number, origin=row.origin, seed=row.case.scenario.seed, steps=steps))
        if not row.parents:
            break
        number = row.parents[0]
    return found


def _duration(seconds: float) -> str:
    """A time for people: hours and minutes, or minutes and seconds."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
