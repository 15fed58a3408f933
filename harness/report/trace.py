"""trace.html: a trace as a space-time diagram on one page, which opens offline and has no script."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers.history.names import Forms
from harness.core.trace import Window
from harness.report.evidence import PLAIN
from harness.report.page import environment
from harness.report.pictures.diagram import LANE, chosen_messages, diagram, time_text
from harness.report.pictures.moments import Moment, gather, read_contents, read_trace

CONTENT_MAX: Final = 400  # The most characters of a message in its title.
NOTABLE_MAX: Final = 300


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


@dataclass(frozen=True, slots=True)
class TracePage:
    """The page, and a sentence on how much of the trace it shows."""

    html: str
    shown: str


def trace_page(trace: Path, window: Window, traced: Traced) -> TracePage:
    """The page of a trace file. All text is escaped; control characters are visible."""
    found = gather(read_trace(trace), traced.forms)
    messages, shown = chosen_messages(found)
    read_contents(read_trace(trace), messages, most=CONTENT_MAX)
    template = environment("harness.report").get_template("trace.html")
    html = template.render(
        traced=traced,
        window=str(window),
        picture=diagram(found, messages, window, traced.subscribers),
        lane_height=LANE,
        shown=shown,
        counts=sorted(found.counts.items()),
        notable=[_row(moment) for moment in found.notable[:NOTABLE_MAX]],
        notable_count=len(found.notable),
    )
    return TracePage(html, shown)


def _row(moment: Moment) -> tuple[str, str, str, str]:
    return time_text(moment.ns), moment.node or "", moment.kind, moment.text
