"""One page for many runs of one scenario, sorted by findings, with links to the pages of the runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkers.verdict.groups import rank
from checkers.verdict.titles import meaning, title
from harness.core.verdict import Verdict
from harness.report.findings.headlines import headline
from harness.report.markdown import escaped, table
from harness.report.model import FindingRow, Report, WayOut, called, repetition, smaller
from harness.report.page import STRIP, TITLES, link_to, rendered
from harness.report.screen import Commands

LINKS_MAX: Final = 8  # The most runs that are named with a class of findings; the list of runs has all.
NEXT_MAX: Final = 3  # The most commands in the first screen.
PROMISE_WORDS: Final = ("violated", "unknown", "not-exercised", "holds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The outcome of a whole batch. `stopped` is the reason why not all planned runs were begun.

    `way_out` is what to run after a batch without a finding.
    """

    verdict: str
    exit_code: int
    reason: str
    clause: str | None
    planned: int
    stopped: str | None
    seconds: float
    way_out: WayOut | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """A class of findings over all runs: seen `times` times, in `runs`."""

    anomaly: str
    name: str
    meaning: str
    promises: tuple[str, ...]
    sentence: str
    headline: str
    times: int
    runs: tuple[tuple[str, str], ...]  # The text of a link, and its target.
    run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseSum:
    """A promise's results over all runs."""

    id: str
    name: str
    text: str
    source: str
    counts: tuple[tuple[str, int], ...]
    witnesses: int


def batch_page(summary: Summary, reports: Sequence[Report], folder: Path) -> str:
    """The page, to be written into `folder`: its links are relative to that folder."""
    classes, sums = _classes(reports, folder), list(_promises(reports))
    broken = _broken(classes)
    return rendered(
        "batch.html",
        (),
        {"hover": {}},
        summary=summary,
        word=Verdict(summary.verdict).word,
        title=broken.headline if broken else TITLES[summary.verdict],
        broken=broken,
        next=_next(reports, summary.way_out),
        promised=[row for row in sums if broken and row.name in broken.promises],
        first=reports[0] if reports else None,
        workloads=sorted({report.workload for report in reports if report.workload}),
        classes=classes,
        promises=sums,
        sources=list(dict.fromkeys(row.source for row in sums)),
        strip=[(row, STRIP[row.counts[0][0]]) for row in sums],
        faults=list(_faults(reports)),
        rows=[(Verdict(report.verdict), report, link_to(report.run, folder)) for report in _sorted(reports)],
        count=len(reports),
    )


def batch_summary(summary: Summary, reports: Sequence[Report]) -> str:
    """The content of `batch_page` as Markdown, for the summary of a job."""
    lines = [f"## {Verdict(summary.verdict).word}: {escaped(summary.reason)}", ""]
    if summary.stopped:
        lines += [f"stopped after {len(reports)} of {summary.planned} runs: {escaped(summary.stopped)}", ""]
    classes = _classes(reports, Path())
    if classes:
        cells = [
            (
                escaped(each.name),
                escaped(", ".join(each.promises) or "none"),
                f"{each.run_count} of {len(reports)}",
                escaped(each.sentence),
            )
            for each in classes
        ]
        lines += [*table(("anomaly", "breaks", "runs", "for instance"), cells), ""]
    sums = sorted(_promises(reports), key=lambda each: each.counts[0][0] != "violated")
    promised = [
        (
            escaped(each.name),
            escaped(each.text),
            ", ".join(f"{word} {count}" for word, count in each.counts),
            f"{each.witnesses:,}",
        )
        for each in sums
    ]
    lines += [*table(("promise", "", "runs", "witnesses"), promised), ""] if promised else []
    faults = [(escaped(kind), *(f"{number:,}" for number in numbers)) for kind, numbers in _faults(reports)]
    lines += [*table(("fault", "planned", "took effect", "ok", "fail", "unknown"), faults), ""] if faults else []
    return "\n".join([*lines, ""])


def _next(reports: Sequence[Report], way_out: WayOut | None) -> Commands:
    """For each class of findings that breaks a promise the command that makes its first run small, or repeats it.

    Without one, the way out of the batch.
    """
    first: dict[str, tuple[Report, FindingRow]] = {}
    for report in reports:
        for finding in report.findings:
            if finding.promise is not None:
                first.setdefault(finding.anomaly, (report, finding))
    found = [
        (
            f"{title(finding.anomaly, report.declared)}, seed {report.seed}",
            smaller(report, finding) or repetition(report),
        )
        for report, finding in list(first.values())[:NEXT_MAX]
    ]
    if not found and way_out is not None:
        found = [("test more", way_out.command)]
    return [(label, command) for label, command in found if command is not None]


def _broken(classes: Sequence[Class]) -> Class | None:
    """The class with which the page opens; None if no promise was broken."""
    return classes[0] if classes and classes[0].promises else None


def _classes(reports: Sequence[Report], folder: Path) -> list[Class]:
    """The classes: broken promises first, causes before consequences, then by runs that show them, and occurrences."""
    found: dict[str, list[tuple[Report, FindingRow]]] = {}
    declared = {name: record for report in reports for name, record in report.declared.items()}
    for report in reports:
        for finding in report.findings:
            found.setdefault(finding.anomaly, []).append((report, finding))
    classes = []
    for anomaly, pairs in found.items():
        runs = list({id(report): report for report, _ in pairs}.values())
        pairs.sort(key=lambda pair: pair[1].promise is None)
        classes.append(
            Class(
                anomaly=anomaly,
                name=title(anomaly, declared),
                meaning=meaning(anomaly, declared),
                promises=tuple(dict.fromkeys(called(report, each.promise) for report, each in pairs if each.promise)),
                sentence=pairs[0][1].sentence,
                headline=headline(pairs[0][1]),
                times=sum(finding.count for _, finding in pairs),
                runs=tuple((f"seed {report.seed}", link_to(report.run, folder)) for report in runs[:LINKS_MAX]),
                run_count=len(runs),
            )
        )
    return sorted(
        classes,
        key=lambda each: (not each.promises, rank(each.anomaly, declared), -each.run_count, -each.times, each.anomaly),
    )


def _promises(reports: Sequence[Report]) -> Iterator[PromiseSum]:
    rows = {row.id: row for report in reports for row in report.promises}
    for row in rows.values():
        every = [each for report in reports for each in report.promises if each.id == row.id]
        counts = [(word, sum(each.verdict == word for each in every)) for word in PROMISE_WORDS]
        yield PromiseSum(
            id=row.id,
            name=called(next(report for report in reports if row in report.promises), row.id),
            text=row.text,
            source=row.source,
            counts=tuple((word, count) for word, count in counts if count),
            witnesses=sum(each.witnesses for each in every),
        )


def _faults(reports: Sequence[Report]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each kind of fault: steps planned, steps with effect, and operations ended meanwhile (ok, fail, unknown)."""
    for kind in dict.fromkeys(row.kind for report in reports for row in report.faults):
        rows = [row for report in reports for row in report.faults if row.kind == kind]
        columns = zip(*((row.planned, row.effective, row.ok, row.fail, row.info) for row in rows), strict=True)
        yield kind, tuple(map(sum, columns))


def _sorted(reports: Sequence[Report]) -> list[Report]:
    """The reports, worst verdict first; within a verdict, equal findings are together."""
    order = [verdict.value for verdict in Verdict]

    def place(report: Report) -> tuple[int, str, int]:
        return order.index(report.verdict), report.findings[0].anomaly if report.findings else "", report.seed or 0

    return sorted(reports, key=place)
