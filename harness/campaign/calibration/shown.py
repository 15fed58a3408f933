"""A calibration as a page, as a table in Markdown, and as lines on a terminal."""

from collections.abc import Iterator
from typing import Final

from checkers.verdict.titles import title as title_of
from harness.campaign.calibration.document import BugCell, Calibration, CorrectCell
from harness.core.wording import counted
from harness.report.markdown import table
from harness.report.page import rendered

PAGE_FILE: Final = "calibration.html"
HEAD: Final = ("bug", "rate", "95 %", "seeds", "found by", "checks", "clients alone")


def calibration_page(calibration: Calibration) -> str:
    """The page: one row for each bug, with its rate and interval drawn."""
    return rendered(
        "calibration.html",
        (),
        {"hover": {}},
        calibration=calibration,
        drawn=drawn_sentences(calibration),
        rows=[(cell, title_of(cell.anomaly) if cell.anomaly else None, seeds_shown(cell)) for cell in calibration.bugs],
        alarms=sum(each.false_alarms for each in calibration.correct),
        share=_share,
    )


def calibration_markdown(calibration: Calibration) -> str:
    """docs/calibration.md: a table for each cluster."""
    text = [
        "# Calibration: how soon the checks find each bug",
        "",
        "Drawn seeds and faults, until enough runs show a bug. The rate comes from inverse sampling,",
        "(hits - 1) / (runs - 1), with Clopper and Pearson's interval. *seeds*: this number of seeds gives an even",
        "chance of finding the bug; *scripted only*: no seed shows the bug, but its schedule does. *checks*: the",
        "watermark graph, the rules of streams, both, or others. *clients alone*: checks of client operations find",
        "more than without the bug. The pages of [promises](promises.md) describe each bug.",
        "",
        "`seamark calibrate CLUSTER --seed SEED --hits SHOWN --runs MADE` measures a cluster, with the numbers of the",
        "line below its heading. The [defaults](sweeps.md#calibration-do-the-checks-see) are 0, 5 and 200.",
        "",
    ]
    for each, drawn in zip(calibration.samplings, drawn_sentences(calibration), strict=True):
        cells = [cell for cell in calibration.bugs if cell.cluster == each.cluster]
        text += [f"## {each.cluster}", "", drawn, "", *table(HEAD, [_row(cell) for cell in cells]), ""]
    return "\n".join([*text, *(f"{correct_sentence(each)}\n" for each in calibration.correct)])


def drawn_sentences(calibration: Calibration) -> list[str]:
    """For each cluster how its runs were drawn."""
    return [
        f"{each.cluster}: seeds from {each.seed:,} on, {each.time_s:g} s of load"
        f"{'' if each.workload is None else f' of {each.workload} workload'}, until {each.hits_max} runs show a bug or "
        f"{each.runs_max} are made; {', '.join(f'{name} {version}' for name, version in each.versions.items())}."
        for each in calibration.samplings
    ]


def _row(cell: BugCell) -> tuple[str, ...]:
    return (
        f"`{cell.bug}`",
        f"{cell.hits} of {cell.runs}: {_share(cell.rate)}",
        f"{_share(cell.interval.low)} to {_share(cell.interval.high)}",
        seeds_shown(cell),
        f"{cell.anomaly} ({cell.promise})" if cell.anomaly else "–",
        cell.found_by,
        "yes" if cell.is_client_more else "no",
    )


def lines(calibration: Calibration) -> Iterator[str]:
    """The lines for a terminal."""
    for cell in calibration.bugs:
        interval = f"{_share(cell.interval.low)} to {_share(cell.interval.high)}"
        hits = f"{cell.hits} of {cell.runs}"
        found = f"{cell.anomaly} ({cell.promise}), {cell.found_by}" if cell.anomaly else ""
        numbers = f"{hits:>11}  {_share(cell.rate):>7}  {interval:<18}{seeds_shown(cell):<14}"
        yield f"  {cell.cluster:<12}{cell.bug:<28}{numbers}{found}"
    yield from (f"  {correct_sentence(each)}" for each in calibration.correct)


def correct_sentence(each: CorrectCell) -> str:
    """The false alarms of a cluster without a bug, with a bound of their rate."""
    most = f"below {_share(each.interval.high)} at 95 %"
    if each.false_alarms:
        most = f"at least {_share(each.interval.low)}"
    alarms, runs = counted(each.false_alarms, "false alarm"), counted(each.runs, "run")
    return f"{each.cluster} without a bug: {alarms} in {runs}, {most}."


def seeds_shown(cell: BugCell) -> str:
    """The median number of seeds, or how else the bug is shown."""
    if cell.median_seeds is not None:
        return str(cell.median_seeds)
    return {"found": "scripted only", "not found": "not shown"}.get(cell.scripted or "", "no schedule")


def _share(rate: float) -> str:
    return f"{rate * 100:.3g} %"
