"""trace.html: a trace as a space-time diagram on one page, which opens offline and needs no script."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers.history.names import Forms
from harness.core.errors import HistoryError
from harness.core.trace import Window
from harness.core.verdict import Verdict
from harness.report.evidence import Slice, choice, first_moment, slices
from harness.report.findings.decisive import decisive
from harness.report.findings.headlines import headline
from harness.report.findings.messages import BYTES_MAX
from harness.report.model import Report, called, grouped_findings, next_steps, repetition
from harness.report.page import rendered
from harness.report.pictures.diagram import LANE, chosen_messages, diagram, is_quiet, time_text
from harness.report.pictures.members import PLAIN
from harness.report.pictures.moments import Moment, gather, read_contents, read_trace
from harness.report.screen import Commands
from harness.report.series import read_series

CONTENT_MAX: Final = 400  # The most characters of a message in its title.
NOTABLE_MAX: Final = 300
WIDER: Final = 4  # Times the window that the page suggests next.


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The finding that a trace shows: its number, its place in the report, and its evidence."""

    verdict: str
    word: str
    title: str
    promise: str | None  # Its id and text.
    anchor: str
    found: Slice


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """The run and window of a trace."""

    run: str
    cluster: str
    seed: int
    bugs: tuple[str, ...]
    subscribers: tuple[str, ...]
    is_exact: bool  # False: the trace is of a repetition that differs from the run.
    forms: Forms = PLAIN
    report: Report | None = None
    about: About | None = None


@dataclass(frozen=True, slots=True)
class TracePage:
    """The page, and a sentence on how much of the trace it shows."""

    html: str
    shown: str


def trace_page(trace: Path, window: Window, traced: Traced) -> TracePage:
    """The page of a trace file. All text is escaped; control characters are visible."""
    found = gather(read_trace(trace), traced.forms)
    if traced.about is not None and trace.stat().st_size <= BYTES_MAX:
        decisive(list(read_trace(trace)), traced.about.found).mark(found)
    messages, shown = chosen_messages(found)
    read_contents(read_trace(trace), messages, most=CONTENT_MAX)
    found_ns = None if traced.about is None else traced.about.found.last_ns
    picture = diagram(found, messages, window, traced.subscribers, found_ns=found_ns)
    html = rendered(
        "trace.html",
        (),
        {"hover": {}},
        "trace_style.html",
        traced=traced,
        about=traced.about,
        window=str(window),
        picture=picture,
        lane_height=LANE,
        shown=shown,
        quiet=sorted({each.type for each in messages.values() if is_quiet(each.type)}),
        next=_next(traced, window),
        counts=sorted(found.counts.items()),
        notable=[_row(moment) for moment in found.notable[:NOTABLE_MAX]],
        notable_count=len(found.notable),
    )
    return TracePage(html, shown)


def about(report: Report, history: Path, window: Window, forms: Forms) -> About | None:
    """The first finding of a run that became visible in that window; None if there is none, or no history."""
    try:
        series = read_series(history, None)
        for group in grouped_findings(report):
            finding = group[0]
            chosen, seen_ns = choice(series, finding, "f", is_alone=True), first_moment(series, finding)
            if chosen is not None and seen_ns is not None and window.from_ns <= seen_ns <= window.to_ns:
                (found,) = slices(history, [chosen], is_order=series.is_order, forms=forms)
                promise = next((row for row in report.promises if row.id == finding.promise), None)
                return About(
                    verdict=report.verdict,
                    word=Verdict(report.verdict).word,
                    title=headline(finding, forms),
                    promise=None if promise is None else f"{called(report, promise.id)} {promise.text}",
                    anchor=f"f{report.findings.index(finding) + 1}",
                    found=found,
                )
    except HistoryError:
        return None
    return None


def _next(traced: Traced, window: Window) -> Commands:
    """The commands to run after looking at the trace: make the run small, and show more of it."""
    if traced.report is None:
        return []
    again, half_ns = repetition(traced.report), (window.to_ns - window.from_ns) * (WIDER - 1) // 2
    wider = Window(from_ns=max(0, window.from_ns - half_ns), to_ns=window.to_ns + half_ns)
    return [*next_steps(traced.report), *([("show more", f"{again} --trace {wider}")] if again else [])]


def _row(moment: Moment) -> tuple[str, str, str, str]:
    return time_text(moment.ns), moment.node or "", moment.kind, moment.text
