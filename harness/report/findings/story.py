"""The parts of a page that come from the history: the plots of the whole run, and the evidence of each finding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from checkers.history.names import Forms
from harness.core.errors import HistoryError
from harness.record.store import RunFile
from harness.report.evidence import Slice, choice, first_moment, slices
from harness.report.exclusions import Writes, read_writes
from harness.report.model import FindingRow, Report
from harness.report.pictures.members import PLAIN
from harness.report.pictures.plots import Overview, overview
from harness.report.planned import Planned, planned_steps, read_refusals
from harness.report.series import Series, read_series

DRAWN_MAX: Final = 12  # The most findings with their evidence; others have only sentence, proof and fingerprint.
PICTURES_MAX: Final = 3  # The most groups with a drawing of the moments around their root.


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All parts of a report that need the history. `problem`: why there are no drawings."""

    series: Series | None = None
    overview: Overview | None = None
    planned: tuple[Planned, ...] = ()
    writes: Writes = field(default_factory=Writes)
    slices: Mapping[int, Slice] = field(default_factory=dict)  # The evidence of findings, by their number.
    drawn: frozenset[int] = frozenset()  # The findings with the moments around them.
    problem: str | None = None
    forms: Forms = PLAIN


def read_story(
    report: Report, grouped: Sequence[Sequence[FindingRow]], history: Path, run_file: RunFile | None, forms: Forms
) -> Story:
    """The content of the drawings; without drawings if the history cannot be drawn.

    `grouped` are the report's findings, by the event that they show.
    """
    numbers = {id(finding): number for number, finding in enumerate(report.findings, 1)}
    drawn = frozenset(numbers[id(group[0])] for group in grouped[:PICTURES_MAX])
    try:
        series = read_series(history, run_file)
        moments = [first_moment(series, each) for each in report.findings[:DRAWN_MAX] if each.promise]
        series = replace(series, found_ns=max((ns for ns in moments if ns is not None), default=0))
        found = _slices(report, history, series, forms, drawn)
        planned = _planned(history, series, run_file)
        writes = read_writes(history) if found else Writes()
    except HistoryError as error:
        return Story(problem=f"The history cannot be drawn: {error}", forms=forms)
    stream = run_file.stream if run_file is not None else None
    is_closed = stream is not None and stream.closed == "<="
    plots = overview(series, is_closed=is_closed, planned=planned, broken=_broken(report, series))
    return Story(series=series, overview=plots, planned=planned, writes=writes, slices=found, drawn=drawn, forms=forms)


def _slices(report: Report, history: Path, series: Series, forms: Forms, drawn: frozenset[int]) -> dict[int, Slice]:
    """The evidence of each finding that names records, by its number; if it is `drawn`, also the records around."""
    every = {
        number: choice(series, finding, f"f{number}", is_alone=number not in drawn)
        for number, finding in enumerate(report.findings, 1)
        if number <= DRAWN_MAX or number in drawn
    }
    chosen = {number: each for number, each in every.items() if each is not None}
    found = slices(history, list(chosen.values()), is_order=series.is_order, forms=forms)
    return dict(zip(chosen, found, strict=True))


def _broken(report: Report, series: Series) -> dict[str, list[int]]:
    """The events that show the first findings, by subscriber."""
    named = [seq for finding in report.findings[:DRAWN_MAX] for seq in finding.events]
    result: dict[str, list[int]] = {}
    for place in np.flatnonzero(np.isin(series.event_seq, np.array(named, np.int64))).tolist():
        name = series.subscribers[int(series.event_subscriber[place])]
        result.setdefault(name, []).append(int(series.event_seq[place]))
    return result


def _planned(history: Path, series: Series, run_file: RunFile | None) -> tuple[Planned, ...]:
    if run_file is None:
        return ()
    return planned_steps(run_file.plan, series.windows, read_refusals(history), series.phases.get("load", 0))
