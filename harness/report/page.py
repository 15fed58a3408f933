"""report.html: one file that opens offline, with the test, broken promises, their evidence, and how to repeat it.

All text is escaped by the template; control characters are visible. The page's policy allows its own style and script,
by their hashes, and no network. Without script the text is the same; script adds zoom, values under the pointer, and
copy buttons. The report's content is always complete; the drawings are thinned, and say so.
"""

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from os.path import relpath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from checkers.history.names import Forms, forms_of
from checkers.verdict.compose import changed_nothing
from harness.core.promises import Bounds, Naming
from harness.core.record import BUSY, Json
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.record.store import RunFile, sut_in
from harness.report.evidence import first_moment
from harness.report.findings.headlines import headline
from harness.report.findings.messages import TRACE_PAGE
from harness.report.findings.shown import Group, glossary, shown_groups
from harness.report.findings.story import DRAWN_MAX, Story, read_story
from harness.report.model import (
    WHERE,
    Report,
    allowed_anomalies,
    called,
    exactness,
    grouped_findings,
    how_decided,
    model_ends,
    models_in_words,
    next_steps,
    with_shrink,
)
from harness.report.pictures.plots import STRIP_ROW, Overview, fault_colours
from harness.report.pictures.scale import WIDTH
from harness.report.screen import Commands, commands, visible
from harness.report.shrunk import origin_of
from harness.scenario.sut import release

if TYPE_CHECKING:
    from jinja2 import Environment

TEXT_MAX: Final = 2_000  # The most characters of one value: a megabyte in a key must not make the page unreadable.
FLAG_MAX: Final = 4  # The most ranges of numbers on one flag.
NEAR: Final = 3.0  # Percent of the width: flags closer than this are merged.
STRIP: Final = {"violated": "✗", "unknown": "?", "not-exercised": "–", "holds": "✓"}  # Besides the colour.
ORDER: Final = ("violated", "unknown", "not-exercised", "holds")
CONSTANTS: Final = MappingProxyType(
    {
        "width": WIDTH,
        "strip_row": STRIP_ROW,
        "busy": BUSY,
        "drawn_max": DRAWN_MAX,
        "why_max": 3,  # The most pieces of evidence in the verdict's box; all are further down.
    }
)
PASSED: Final = ("valid", "invalid")  # The verdicts whose promises count as tested.
OUTCOME_WORDS: Final = {"ok": "ok", "fail": "fail", "info": "unknown"}
TITLES: Final = {
    "valid": "Every promise that was tested held.",
    "vacuous": "Not enough was tested.",
    "unknown": "A check could not decide.",
    "error": "The run failed before it could test anything; it says nothing about your system.",
    "invalid": "A promise was broken.",
}


@dataclass(frozen=True, slots=True)
class Guide:
    """A moment at which findings became visible, for the plots."""

    percent: float
    numbers: tuple[int, ...]

    @property
    def text(self) -> str:
        """The numbers of this moment's findings, as ranges; of many ranges the first ones."""
        stretches: list[list[int]] = []
        for number in sorted(self.numbers):
            if stretches and number == stretches[-1][-1] + 1:
                stretches[-1].append(number)
            else:
                stretches.append([number])
        texts = [f"{each[0]}–{each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in stretches]
        return ", ".join([*texts[:FLAG_MAX], *("…" for _ in texts[FLAG_MAX:][:1])])


def page(
    report: Report,
    history: Path | None = None,
    run_file: RunFile | None = None,
    *,
    source: str | None = None,
    command: str | None = None,
    problem: str = "There is no history to draw.",
    forms: Forms | None = None,
) -> str:
    """The page of a run, or of a foreign history, read from `source` and judged by `command`.

    Without `history` it has no drawings, and states the `problem`.
    """
    forms = forms or _forms(run_file)
    grouped = grouped_findings(report)
    story = Story(problem=problem, forms=forms)
    if history is not None:
        story = read_story(report, grouped, history, run_file, forms)
    repeating = [each for each in commands(report) if each[0] in ("again", "judge")] or (
        [("judge", command)] if command else []
    )
    found = shown_groups(report, grouped, story, run_file, repeating)
    kinds = story.overview.kinds if story.overview else ()
    return rendered(
        "page.html",
        fault_colours(kinds),
        {"hover": story.overview.hover if story.overview else {}, "reach": _reach(story.overview)},
        report=report,
        word=Verdict(report.verdict).word,
        title=headline(found[0].root.finding, forms) if found else TITLES[report.verdict],
        tested=_tested(report, run_file, source),
        origin=origin_of(report.run),
        has_trace=report.run is not None and os.path.isfile(os.path.join(report.run, TRACE_PAGE)),
        groups=found,
        finding_count=len(report.findings),
        glossary=glossary(report),
        story=story,
        guides=_guides(story, found),
        **CONSTANTS,
        kinds=kinds,
        windows=story.series.windows if story.series else (),
        **_promises(report),
        **_commands(report, found, repeating),
        facts=list(_facts(report)),
        notes=_notes(report),
        models=[", ".join(names) for names in (*model_ends(report), allowed_anomalies(report))],
        outcomes=_outcomes(report),
        excused=changed_nothing(report.excused, sum(row.planned for row in report.faults)),
    )


def _commands(report: Report, found: Sequence[Group], repeating: Commands) -> dict[str, object]:
    """The commands of a page: those to run next, and those that repeat the run or its judgement."""
    following = next_steps(report, found[0].root.closer if found else None) or _smaller(report, repeating)
    return {"next": following, "commands": repeating, "exactness": exactness(report)}


def _smaller(report: Report, repeating: Commands) -> Commands:
    """The command that makes a history from elsewhere with a broken promise small; else the one that judges it."""
    judge = repeating[-1:]
    is_stream = any("--stream" in command for _, command in judge)
    if report.run is not None or report.verdict != Verdict.INVALID.value or is_stream:
        return judge
    return [("make it small", with_shrink(command)) for _, command in judge]


def _outcomes(report: Report) -> list[tuple[str, int]]:
    return [(word, report.operations[kind]) for kind, word in OUTCOME_WORDS.items() if kind in report.operations]


def _promises(report: Report) -> dict[str, object]:
    """The values of the page's part about promises: a strip, their counts, a table by verdict, and the sources."""
    rows = report.promises
    return {
        "strip": [(row, called(report, row.id), STRIP[row.verdict]) for row in rows],
        "counts": [(word, count) for word in ORDER if (count := sum(row.verdict == word for row in rows))],
        "promises": sorted(rows, key=lambda row: ORDER.index(row.verdict)),
        "sources": list(dict.fromkeys(row.source for row in rows)),
        "places": {row.id: number for number, row in enumerate(rows, 1)},
        "called": {row.id: called(report, row.id) for row in rows},
        "signs": STRIP,
        "is_pass": report.verdict in PASSED,
        "in_words": "; ".join(filter(None, (how_decided(report), *models_in_words(report)))),
    }


def _forms(run_file: RunFile | None) -> Forms:
    """The forms of names in a run, or in a history without declarations."""
    if run_file is None:
        return forms_of(Naming(), None, Bounds())
    return forms_of(run_file.naming, run_file.stream, run_file.bounds)


def rendered(
    template: str, colours: Sequence[tuple[str, str]], values: Json, style_of: str | None = None, /, **names: object
) -> str:
    """A page of one of our templates, with style, script and values, and a policy that allows only these.

    `style_of` is a template with style for this page, made from the same names.
    """
    ours = environment("harness.report")
    style = ours.get_template("style.html").render(colours=list(enumerate(colours)))
    style += ours.get_template(style_of).render(**names) if style_of is not None else ""
    script = ours.get_template("script.html").render()
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {script_source()}; base-uri 'none'; "
        "form-action 'none'"
    )
    return ours.get_template(template).render(
        style=Markup(style),  # noqa: S704  Our own style and colours.
        script=Markup(script),  # noqa: S704
        policy=Markup(policy),  # noqa: S704
        values=_json_for_html(values),
        **names,
    )


def link_to(run: str | None, folder: Path) -> str:
    """The link to a run's page from a page in that folder; empty if the run is not kept."""
    return quote(relpath(Path(run) / "report.html", folder)) if run else ""


@cache  # To compile the templates takes a quarter of a second, which a campaign spends once.
def environment(*rooms: str) -> "Environment":
    """The templates of these packages, in order of precedence. All text is escaped; control characters are visible."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  Most commands need none.

    found = Environment(
        loader=ChoiceLoader([PackageLoader(room, "templates") for room in rooms]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["lines"] = _lines
    found.filters["counted"] = counted
    return found


def script_source() -> str:
    """The hash of our pages' script, in the form of a content policy."""
    return _source(environment("harness.report").get_template("script.html").render())


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _json_for_html(values: Json) -> Markup:
    """JSON that no HTML parser can take for the start or end of an element."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


def _finalized(value: object) -> object:
    """A template's output for a value: text is cut, with control characters visible; our own markup stays as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value) if len(value) <= TEXT_MAX else f"{visible(value[:TEXT_MAX])} … ({len(value):,} characters)"


def _lines(text: str) -> Markup:
    """Text of several lines, with control characters visible and its line breaks kept."""
    return Markup("\n").join(map(visible, text.split("\n")))


def _reach(drawn: Overview | None) -> list[Json]:
    """The data for stretching each plot; null for a plot that is not stretched."""
    return [plot.reach and [list(each) for each in plot.reach] for plot in drawn.plots] if drawn is not None else []


def _guides(story: Story, found: Sequence[Group]) -> list[Guide]:
    """The moments of the groups in the plots; groups that are too close share a flag."""
    if story.series is None or story.overview is None:
        return []
    guides = list[Guide]()
    roots = [group.root for group in found if group.root.number <= DRAWN_MAX]
    moments = [(first_moment(story.series, root.finding), root.number) for root in roots]
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
        return f"{source or 'a recorded history'}{model}."
    options, script = run_file.options, run_file.options.get("script")
    clients, rate, time_s = options.get("clients"), _number(options.get("rate")), _number(options.get("time_s"))
    work = counted(clients, "client") if isinstance(clients, int) else f"{clients} clients"
    if isinstance(script, dict):
        work += f" with {counted(_length(script), 'operation')} of a script"
    else:
        work += f" at {rate} operations a second for {time_s} s"
    faults = ", ".join(dict.fromkeys(step.package for step in run_file.plan.steps)) or "none"
    sut = release(sut_in(run_file))
    named = f"{sut}: " if sut else ""
    where = f"{run_file.cluster} {WHERE[run_file.runtime]}, workload {run_file.workload}"
    return f"{named}{where}: {work}, with faults: {faults}."


def _length(script: Mapping[str, Json]) -> int:
    """The number of operations in a script, as run.json has it."""
    return sum(len(part) for part in script.values() if isinstance(part, list))


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
