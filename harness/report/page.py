"""report.html: one file that opens offline, with the test, the broken promises, their evidence, and the command to
repeat it.

All text is escaped by the template; control characters are visible. The page's policy allows its own style and script,
by their hashes, and no network. Without script the text is the same; script adds zoom, values under the pointer, and
copy buttons. The report's content is always complete; the drawings are thinned, and say so.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from checkers.history.names import epoch_name
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.core.verdict import Verdict
from harness.record.store import RunFile
from harness.report.evidence import PLAIN, Positions, Slice, choice, first_moment, slices
from harness.report.exclusions import Exclusion, Writes, exclusions, read_writes
from harness.report.markdown import issue
from harness.report.model import WHERE, FindingRow, PromiseRow, Report, allowed_anomalies, model_ends
from harness.report.pictures.cycle import Drawing, cycle_drawing
from harness.report.pictures.plots import STRIP_ROW, Overview, fault_colours, in_force, overview
from harness.report.pictures.scale import WIDTH, duration
from harness.report.pictures.timeline import Timeline, timeline
from harness.report.planned import Planned, planned_steps, read_refusals
from harness.report.screen import Commands, commands, visible
from harness.report.series import Series, read_series
from harness.report.track_record import TrackRecord, track_records
from harness.runtimes.containers.lateness import BUSY

TEXT_MAX: Final = 2_000  # Characters of one value: a megabyte in a key must not make the page unreadable.
DRAWN_MAX: Final = 12  # Findings with drawings; the others have their sentence, proof and fingerprint.
HEADLINE_MAX: Final = 260  # Characters: a longer sentence goes below the title.
SENTENCE_MAX: Final = 800  # Characters: a longer sentence of a cycle appears in its steps only.
FLAG_MAX: Final = 4  # Ranges of numbers on one flag.
NAMED_MAX: Final = 4  # Members of a cycle in a headline; if there are more, one fewer is named.
FAULTS_NAMED: Final = 4  # Faults during a finding; if there are more, only the kinds are named.
NEAR: Final = 3.0  # Percent of the width: flags closer than this are merged.
AFTERMATH_NS: Final = 1_000_000_000
ORDER: Final = ("violated", "unknown", "not-exercised", "holds")
OUTCOME_WORDS: Final = {"ok": "ok", "fail": "fail", "info": "unknown"}
TITLES: Final = {
    "valid": "Every promise that was tested held.",
    "vacuous": "Too little was tested to say anything.",
    "unknown": "A check could not decide.",
    "error": "The harness failed: this run clears the system of nothing.",
    "invalid": "A promise was broken.",
}


@dataclass(frozen=True, slots=True)
class Guide:
    """A moment in the plots at which findings became visible."""

    percent: float
    numbers: tuple[int, ...]

    @property
    def text(self) -> str:
        """The finding numbers of this moment, as ranges; if there are many ranges, the first ones."""
        stretches: list[list[int]] = []
        for number in sorted(self.numbers):
            if stretches and number == stretches[-1][-1] + 1:
                stretches[-1].append(number)
            else:
                stretches.append([number])
        texts = [f"{each[0]}–{each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in stretches]
        return ", ".join([*texts[:FLAG_MAX], *("…" for _ in texts[FLAG_MAX:][:1])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A finding as shown on the page."""

    finding: FindingRow
    sentence: str  # Its sentence; for a very long one, the headline, as the proof has its parts.
    promise: PromiseRow | None
    anchor: str
    drawing: Drawing | None
    found: Slice | None
    picture: Timeline | None
    faults: tuple[str, ...]  # In force during the finding.
    excluded: tuple[Exclusion, ...]
    track: TrackRecord | None
    issue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All parts of a report that need the history. `problem`: why there are no drawings."""

    series: Series | None = None
    overview: Overview | None = None
    planned: tuple[Planned, ...] = ()
    writes: Writes = field(default_factory=Writes)
    slices: Mapping[int, Slice] = field(default_factory=dict)  # Around the findings, by their number.
    problem: str | None = None


def page(
    report: Report,
    history: Path | None = None,
    run_file: RunFile | None = None,
    *,
    source: str | None = None,
    command: str | None = None,
    problem: str = "There is no history to draw.",
) -> str:
    """The page of a run, or of a history from elsewhere, read from `source` and judged by `command`.

    Without `history` it has no drawings, and states the `problem`.
    """
    story = _story(report, history, run_file) if history is not None else Story(problem=problem)
    repeating = commands(report) or ([("judge", command)] if command else [])
    shown = _shown_findings(report, story, run_file, repeating)
    guides = _guides(report, story)
    styles = fault_colours(story.overview.kinds if story.overview else ())
    return rendered(
        "page.html",
        styles,
        {
            "hover": story.overview.hover if story.overview else {},
            "reach": _reach(story.overview),
        },
        report=report,
        word=Verdict(report.verdict).word,
        title=headline(report.findings[0]) if report.findings else TITLES[report.verdict],
        tested=_tested(report, run_file, source),
        shown=shown,
        story=story,
        guides=guides,
        width=WIDTH,
        strip_row=STRIP_ROW,
        busy=BUSY,
        drawn_max=DRAWN_MAX,
        kinds=story.overview.kinds if story.overview else (),
        windows=story.series.windows if story.series else (),
        promises=sorted(report.promises, key=lambda row: ORDER.index(row.verdict)),
        commands=repeating,
        facts=list(_facts(report)),
        notes=_notes(report),
        models=[", ".join(names) for names in (*model_ends(report), allowed_anomalies(report))],
        outcomes=[(word, report.operations[kind]) for kind, word in OUTCOME_WORDS.items() if kind in report.operations],
    )


def headline(finding: FindingRow) -> str:
    """The title of a finding: its sentence, or a short form for a long cycle."""
    if not finding.cycle or len(finding.sentence) <= HEADLINE_MAX:
        return finding.sentence
    names = list(dict.fromkeys(step.source for step in finding.cycle))
    rest = len(names) - (NAMED_MAX - 1)
    named = [*names[: NAMED_MAX - 1], f"{rest} more"] if len(names) > NAMED_MAX else names
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else f"{named[0]}"
    return f"{listed} form a cycle: each comes before the next, so each comes before itself."


def rendered(template: str, colours: Sequence[tuple[str, str]], values: Json, **names: object) -> str:
    """A page of one of our templates, with style, script and values, and a policy that allows only these."""
    environment = Environment(
        loader=PackageLoader("harness.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["lines"] = _lines
    style = environment.get_template("style.html").render(colours=list(enumerate(colours)))
    script = environment.get_template("script.html").render()
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'; "
        "form-action 'none'"
    )
    return environment.get_template(template).render(
        style=Markup(style),  # noqa: S704  Our own style and colours.
        script=Markup(script),  # noqa: S704
        policy=Markup(policy),  # noqa: S704
        values=_json_for_html(values),
        **names,
    )


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _json_for_html(values: Json) -> Markup:
    """JSON that no HTML parser can take for the start or end of an element."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _finalized(value: object) -> object:
    """A template's output for a value: text with control characters visible, truncated. Our own markup is unchanged."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value) if len(value) <= TEXT_MAX else f"{visible(value[:TEXT_MAX])} … ({len(value):,} characters)"


def _lines(text: str) -> Markup:
    """Text of several lines, with its line breaks, which are ours, kept."""
    return Markup("\n").join(map(visible, text.split("\n")))


def _story(report: Report, history: Path, run_file: RunFile | None) -> Story:
    """The content of the drawings. If a history cannot be drawn, the page appears without drawings."""
    try:
        series = read_series(history, run_file)
        found = _slices(report, history, series, _positions(run_file))
        planned = _planned(history, series, run_file)
        writes = read_writes(history) if found else Writes()
    except HistoryError as error:
        return Story(problem=f"The history cannot be drawn: {error}")
    stream = run_file.stream if run_file is not None else None
    is_closed = stream is not None and stream.closed == "<="
    drawn = overview(series, is_closed=is_closed, planned=planned, broken=_broken(report, series))
    return Story(series=series, overview=drawn, planned=planned, writes=writes, slices=found)


def _broken(report: Report, series: Series) -> dict[str, list[int]]:
    """The events that show the drawn findings, by subscriber."""
    named = [seq for finding in report.findings[:DRAWN_MAX] for seq in finding.events]
    result: dict[str, list[int]] = {}
    for place in np.flatnonzero(np.isin(series.event_seq, np.array(named, np.int64))).tolist():
        name = series.subscribers[int(series.event_subscriber[place])]
        result.setdefault(name, []).append(int(series.event_seq[place]))
    return result


def _reach(drawn: Overview | None) -> list[Json]:
    """The data for stretching each plot; null for a plot that is not stretched."""
    return [plot.reach and [list(each) for each in plot.reach] for plot in drawn.plots] if drawn is not None else []


def _planned(history: Path, series: Series, run_file: RunFile | None) -> tuple[Planned, ...]:
    if run_file is None:
        return ()
    return planned_steps(run_file.plan, series.windows, read_refusals(history), series.phases.get("load", 0))


def _shown_findings(report: Report, story: Story, run_file: RunFile | None, repeating: Commands) -> list[Shown]:
    promises = {row.id: row for row in report.promises}
    shown = []
    for number, (finding, track) in enumerate(zip(report.findings, track_records(report), strict=True), 1):
        found = story.slices.get(number)
        excluded = _excluded(report, finding, story, found, run_file) if found else ()
        operations = {invoke.index: (invoke, complete) for invoke, complete in found.operations} if found else {}
        shown.append(
            Shown(
                finding=finding,
                sentence=finding.sentence if len(finding.sentence) <= SENTENCE_MAX else headline(finding),
                promise=promises.get(finding.promise or ""),
                anchor=f"f{number}",
                drawing=cycle_drawing(finding.cycle, operations),
                found=found,
                picture=_picture(found, story) if found else None,
                faults=_faults(found, story) if found else (),
                excluded=excluded,
                track=track,
                issue=issue(report, finding, found.rows if found else (), excluded, repeating=repeating),
            )
        )
    return shown


def _excluded(
    report: Report, finding: FindingRow, story: Story, found: Slice, run_file: RunFile | None
) -> tuple[Exclusion, ...]:
    if story.series is None:
        return ()
    return exclusions(report, finding, found, series=story.series, writes=story.writes, run_file=run_file)


def _positions(run_file: RunFile | None) -> Positions:
    if run_file is None or run_file.stream is None or run_file.stream.position != "epoch":
        return PLAIN
    name = epoch_name(run_file.bounds.saved_bits)
    return Positions("epoch", lambda epoch: f"{name(epoch)} ({epoch})")  # Some checks use the one, some the other.


def _slices(report: Report, history: Path, series: Series, positions: Positions) -> dict[int, Slice]:
    """The evidence of each finding that names records, by the finding's number."""
    every = {n: choice(series, finding, f"f{n}") for n, finding in enumerate(report.findings[:DRAWN_MAX], 1)}
    chosen = {number: each for number, each in every.items() if each is not None}
    found = slices(history, list(chosen.values()), is_order=series.is_order, positions=positions)
    return dict(zip(chosen, found, strict=True))


def _picture(found: Slice, story: Story) -> Timeline | None:
    if story.series is None or story.overview is None:
        return None
    return timeline(found, story.series, story.overview.kinds)


def _faults(found: Slice, story: Story) -> tuple[str, ...]:
    """The faults in force during the finding, and those that had just ended: their aftermath counts."""
    windows = in_force(story.series.windows if story.series else (), found.first_ns - AFTERMATH_NS, found.last_ns)
    if len(windows) > FAULTS_NAMED:
        counts = Counter(window.kind for window in windows)
        return tuple(f"{kind} ({count} time{'s' * (count > 1)})" for kind, count in counts.items())
    texts = list[str]()
    for window in windows:
        ended = f", ended {duration(found.first_ns - window.end_ns)} before" if window.end_ns < found.first_ns else ""
        texts.append(f"{window.kind} of {window.targets}{ended}")
    return tuple(dict.fromkeys(texts))


def _guides(report: Report, story: Story) -> list[Guide]:
    """The moments of the findings in the plots; findings that are too close share a flag."""
    if story.series is None or story.overview is None:
        return []
    guides = list[Guide]()
    moments = [(first_moment(story.series, finding), n) for n, finding in enumerate(report.findings[:DRAWN_MAX], 1)]
    for ns, number in sorted((ns, number) for ns, number in moments if ns is not None):
        percent = story.overview.axis.percent(ns)
        if guides and percent - guides[-1].percent < NEAR:
            guides[-1] = Guide(guides[-1].percent, (*guides[-1].numbers, number))
        else:
            guides.append(Guide(percent, (number,)))
    return guides


def _tested(report: Report, run_file: RunFile | None, source: str | None) -> str:
    """A sentence on what was tested."""
    if run_file is None:
        model = f", judged as {report.model}" if report.model else ""
        called = f", {source}" if source else ""
        return f"a history from elsewhere{called}{model}."
    options = run_file.options
    clients, rate, time_s = (_number(options.get(name)) for name in ("clients", "rate", "time_s"))
    faults = ", ".join(dict.fromkeys(step.package for step in run_file.plan.steps)) or "none"
    return (
        f"{run_file.cluster} {WHERE[run_file.runtime]}, workload {run_file.workload}: "
        f"{clients} clients at {rate} operations a second for {time_s} s, with faults: {faults}."
    )


def _number(value: Json) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _notes(report: Report) -> list[str]:
    notes = report.facts.get("notes")
    return [str(note) for note in notes if note != report.reason] if isinstance(notes, list) else []


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    shown = {
        "findings",
        "promises",
        "faults",
        "goals",
        "excused",
        "operations",
        "reason",
        "verdict",
        "exit_code",
        "drawn",
    }
    for name, value in msgspec.to_builtins(report).items():
        if name not in shown and value not in (None, [], {}):
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
