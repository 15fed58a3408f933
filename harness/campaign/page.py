"""The page of a sweep, and the summary of a CI job: the verdict, findings, cells, nights, faults and promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from checkers.verdict.titles import meaning
from checkers.verdict.titles import title as title_of
from harness.campaign.document import Sweep
from harness.campaign.exposure import ORDER
from harness.campaign.ledger.rows import KEPT, Row, final_rows
from harness.campaign.way_out import more_seeds, way_out
from harness.core.command import seamark
from harness.core.verdict import Verdict
from harness.report.markdown import command, escaped, table
from harness.report.model import WHERE
from harness.report.page import STRIP, link_to, rendered
from harness.report.screen import Commands
from harness.scenario.sut import release

PAGE_FILE: Final = "page.html"
NIGHTS_MAX: Final = 60  # The most bars and rows; sweep.json of each night is kept.
NEXT_MAX: Final = 3  # The most commands in the first screen; sweep.json has one for each red run.
KEPT_MAX: Final = 200
TROUBLE_MAX: Final = 50
TITLES: Final = {
    "valid": "Every promise that was tested held, in every run.",
    "vacuous": "Too little was tested to say anything.",
    "unknown": "A check could not decide.",
    "error": "The harness failed before enough was tested; the sweep says nothing about your system.",
    "invalid": "A promise was broken.",
}
BAR, GAP, HEIGHT = 14, 4, 64  # The size of the chart in pixels.


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One of the sweeps with this name."""

    began: str
    verdict: str
    word: str
    runs: int
    red: int
    findings: int
    new: int
    recovery_s: float | None
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A part of a bar: the share of a night's runs with one verdict."""

    x: float
    y: float
    width: float
    height: float
    verdict: str
    is_faint: bool
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The bars of all nights, the latest on the right."""

    width: int
    height: int
    bars: tuple[Bar, ...]


def sweep_page(sweep: Sweep, rows: Sequence[Row], earlier: Sequence[Sweep], folder: Path) -> str:
    """The page, to be written into `folder`: its links are relative to that folder."""
    shown = [*earlier, sweep][-NIGHTS_MAX:]
    kept = [row.report for row in final_rows(rows) if row.report.run is not None and row.report.verdict in KEPT]
    promises = sorted(sweep.promises, key=lambda each: ORDER.index(each.verdict))
    return rendered(
        "sweep.html",
        (),
        {"hover": {}},
        sweep=sweep,
        word=Verdict(sweep.verdict).word,
        title=_title(sweep),
        began=_began(sweep),
        release=release(sweep.sut),
        next=_next(sweep, rows, earlier),
        way_out=way_out(sweep),
        versions=", ".join(f"{name} {version}" for name, version in sweep.versions.items()),
        findings=[
            (title_of(each.anomaly), meaning(each.anomaly), each, link_to(each.first_run, folder))
            for each in sweep.findings
        ],
        cells=[(cell, Verdict(cell.verdict).word, _counts(cell.counts)) for cell in sweep.cells],
        nights=[_night(each, folder) for each in reversed(shown)],
        left_out=len(earlier) + 1 - len(shown),
        chart=_chart(shown),
        clusters=len({cell.cluster for cell in sweep.cells}),
        promises=promises,
        sources=list(dict.fromkeys(each.source for each in promises)),
        signs=STRIP,
        kept=[(report, Verdict(report.verdict).word, link_to(report.run, folder)) for report in kept[:KEPT_MAX]],
        kept_left=max(0, len(kept) - KEPT_MAX),
        trouble_max=TROUBLE_MAX,
        where=WHERE,
        seconds=_seconds,
        duration=_duration,
    )


def _red_commands(sweep: Sweep) -> Commands:
    """The commands that repeat the first red runs."""
    return [(f"seed {red.seed}, {red.workload}", red.command) for red in sweep.red[:NEXT_MAX]]


def _next(sweep: Sweep, rows: Sequence[Row], earlier: Sequence[Sweep]) -> Commands:
    """The commands to run next: for the first red runs, for a sweep that tested too little, or for a green one."""
    change = way_out(sweep)
    if sweep.red:
        return _red_commands(sweep)
    if change is not None and change.command is not None:
        return [("then, again", change.command)]
    found = [("other seeds", more_seeds(sweep, min((row.seed for row in rows), default=0)))]
    if earlier and earlier[-1].folder is not None and sweep.folder is not None:
        return [("sign off", seamark("signoff", earlier[-1].folder, sweep.folder)), *found]
    return found


def sweep_summary(sweep: Sweep) -> str:
    """The same content as Markdown, for the summary of a CI job, with violations first."""
    lines = [f"## {Verdict(sweep.verdict).word}: {escaped(sweep.reason)}", ""]
    found = [
        (
            escaped(title_of(each.anomaly)),
            "new" if each.is_new else f"since {each.first_seen[:10]}",
            escaped(each.promise or "none"),
            f"{each.runs:,} of {each.judged:,}",
            escaped(each.sentence),
        )
        for each in sweep.findings
    ]
    lines += [*table(("anomaly", "", "breaks", "runs", "for instance"), found), ""] if found else []
    commands = [f"- {escaped(words)}: {command(text)}" for words, text in _red_commands(sweep)]
    lines += ["To repeat:", "", *commands, ""] if commands else []
    cells = [
        (
            escaped(f"{cell.cluster} {cell.workload}"),
            escaped(cell.faults),
            cell.runtime,
            Verdict(cell.verdict).word,
            ", ".join(f"{number:,} {word}" for _, word, number in _counts(cell.counts)),
        )
        for cell in sweep.cells
    ]
    lines += [*table(("cell", "faults", "runtime", "verdict", "runs"), cells), ""]
    promises = [
        (escaped(f"{each.cluster} {each.id}"), escaped(each.text), each.verdict, f"{each.witnesses:,}")
        for each in sorted(sweep.promises, key=lambda each: ORDER.index(each.verdict))
    ]
    lines += [*table(("promise", "", "over all runs", "witnesses"), promises), ""] if promises else []
    faults = [
        (escaped(f"{each.cluster} {each.kind}"), f"{each.planned:,}", f"{each.effective:,}", f"{each.met:,}")
        for each in sweep.faults
    ]
    lines += [*table(("fault", "planned", "took effect", "operations met"), faults), ""] if faults else []
    return "\n".join([*lines, escaped(sweep.rule, len(sweep.rule)), ""])


def _title(sweep: Sweep) -> str:
    broken = [each for each in sweep.findings if each.promise]
    if sweep.verdict != Verdict.INVALID.value or not broken:
        return TITLES[sweep.verdict]
    first = broken[0]
    return f"{title_of(first.anomaly)} in {first.runs:,} of {first.judged:,} runs: {first.sentence}"


def _counts(counts: dict[str, int]) -> list[tuple[str, str, int]]:
    return [(each.value, each.word, counts[each.value]) for each in Verdict if counts.get(each.value)]


def _began(sweep: Sweep) -> str:
    return sweep.started_utc.replace("T", " ").removesuffix("Z")


def _night(sweep: Sweep, folder: Path) -> Night:
    own = Path(sweep.folder).name if sweep.folder else ""
    recoveries = [cell.numbers.recovery_s_worst for cell in sweep.cells]
    return Night(
        began=_began(sweep),
        verdict=sweep.verdict,
        word=Verdict(sweep.verdict).word,
        runs=sweep.runs,
        red=sweep.counts.get(Verdict.INVALID.value, 0),
        findings=len(sweep.findings),
        new=sum(each.is_new for each in sweep.findings),
        recovery_s=max((each for each in recoveries if each is not None), default=None),
        link="" if own == folder.name else quote(f"../{own}/{PAGE_FILE}"),
    )


def _chart(sweeps: Sequence[Sweep]) -> Chart:
    """Bars of equal height. The worst verdict is at the bottom, where bars can be compared."""
    bars = []
    for place, sweep in enumerate(sweeps):
        total, bottom = sum(sweep.counts.values()), float(HEIGHT)
        for code, word, number in _counts(sweep.counts):
            height = HEIGHT * number / total
            bottom -= height
            bars.append(
                Bar(
                    x=place * (BAR + GAP),
                    y=round(bottom, 2),
                    width=BAR,
                    height=round(height, 2),
                    verdict=code,
                    is_faint=code == Verdict.VALID.value,
                    label=f"{_began(sweep)}: {number:,} {word}",
                )
            )
    return Chart(width=max(1, len(sweeps)) * (BAR + GAP), height=HEIGHT, bars=tuple(bars))


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g} s"


def _duration(value: float) -> str:
    """A duration in seconds, minutes or hours, whichever is easiest to read."""
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
