"""A report as Markdown: the issue to file for a finding, and the tables of a job's summary."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from checkers.history.names import Forms
from checkers.verdict.titles import title
from harness.core.verdict import Verdict
from harness.report.evidence import Row
from harness.report.exclusions import Exclusion
from harness.report.model import FindingRow, Report, called
from harness.report.pictures.members import PLAIN, member
from harness.report.screen import Commands, commands, visible

CELL_MAX: Final = 400
COMMAND_MAX: Final = 8_192
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#|<>~@&$])")


def escaped(text: str, most: int = CELL_MAX) -> str:
    """Text that Markdown shows literally: without markup, links, mentions or hidden characters."""
    shown = visible(text[:most]) + (f" … ({len(text):,} characters)" if len(text) > most else "")
    text = _SPECIAL.sub(r"\\\1", shown).replace("\\<", "&lt;").replace("\\&", "&amp;").replace("\\@", "&#64;")
    return text.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def code(text: str, most: int = CELL_MAX) -> str:
    """Text between backticks, for a cell of a table as well."""
    return _fenced(visible(text[:most]).replace("|", "¦"))


def command(text: str) -> str:
    """A command between backticks, unchanged: dropping a character could end the quotes of a word in it."""
    return _fenced(visible(text)) if len(text) <= COMMAND_MAX else f"too long to be shown ({len(text):,} characters)"


def _fenced(text: str) -> str:
    """Text between more backticks than it has in succession."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{text}{space}{fence}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; its cells are Markdown."""
    lines = [f"| {' | '.join(headings)} |", f"|{' --- |' * len(headings)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def issue(
    report: Report,
    finding: FindingRow,
    rows: Sequence[Row],
    excluded: Sequence[Exclusion] = (),
    *,
    repeating: Commands,
    forms: Forms = PLAIN,
) -> str:
    """The issue to file for a finding. `repeating` is the command that shows it again."""
    promise = next((each for each in report.promises if each.id == finding.promise), None)
    lines = [f"### {escaped(title(finding.anomaly, report.declared))}: {escaped(finding.sentence)}", ""]
    if promise is not None:
        lines.append(
            f"Breaks **{escaped(called(report, promise.id))}**: {escaped(promise.text)} ({escaped(promise.source)})"
        )
    else:
        lines.append("No promise forbids it.")
    times = "once" if finding.count == 1 else f"{finding.count:,} times"
    known = f"fingerprint {code(finding.fingerprint)}; check {escaped(finding.checker)}"
    lines += ["", f"Seen {times}; {known}."]
    if finding.cycle:
        lines += ["", "**Why this is impossible**", ""]
        lines += [
            f"{number}. {escaped(member(step.source, forms))} comes before {escaped(member(step.target, forms))} "
            f"({step.relation}): "
            f"{escaped(step.sentence)}"
            for number, step in enumerate(finding.cycle, 1)
        ]
        lines.append(f"{len(finding.cycle) + 1}. So each comes before itself: a contradiction.")
    if rows:
        cells = [(str(row.number), row.when, escaped(row.where), escaped(row.what)) for row in rows]
        lines += ["", "**Evidence**", "", *table(("", "when", "where", "what"), cells)]
    if excluded:
        lines += ["", "**What it is not**", ""]
        lines += [
            f"- {each.explanation}: {'excluded' if each.is_excluded else 'not excluded'}, {escaped(each.because)}"
            for each in excluded
        ]
    return "\n".join([*lines, "", "**To repeat it**", "", *_repeated(report, repeating), ""])


def _repeated(report: Report, repeating: Commands) -> list[str]:
    known = (
        ("cluster", report.cluster),
        ("workload", report.workload),
        ("seed", None if report.seed is None else str(report.seed)),
        ("planted bugs", ", ".join(report.bugs) or None),
        ("plan", report.plan_sha256),
        ("history", report.history_sha256),
        *report.versions.items(),
    )
    facts = [f"- {escaped(name)}: {code(value)}" for name, value in known if value]
    return [*(f"- {label}: {command(text)}" for label, text in repeating), *facts]


def summary(report: Report) -> str:
    """The tables of a run: verdict, promises, faults, findings."""
    word = Verdict(report.verdict).word
    where = " ".join(escaped(each) for each in (report.cluster or "history", report.workload or "") if each)
    seed = "" if report.seed is None else f", seed {report.seed}"
    lines = [f"## {word}: {escaped(report.reason)}", "", f"{where}{seed} (exit {report.exit_code})", ""]
    if report.findings:
        found = [
            (
                escaped(title(each.anomaly, report.declared)),
                escaped(called(report, each.promise)),
                str(each.count),
                escaped(each.sentence),
            )
            for each in report.findings[:20]
        ]
        lines += [*table(("anomaly", "breaks", "times", "what happened"), found), ""]
        if len(report.findings) > len(found):
            lines += [f"and {len(report.findings) - len(found)} more in report.html", ""]
    if report.promises:
        rows = sorted(report.promises, key=lambda each: each.verdict != "violated")
        held = [
            (escaped(called(report, each.id)), escaped(each.text), each.verdict, f"{each.witnesses:,}") for each in rows
        ]
        lines += [*table(("promise", "", "verdict", "witnesses"), held), ""]
    if report.faults:
        faults = [
            (escaped(each.kind), *(f"{n:,}" for n in (each.planned, each.effective, each.ok, each.fail, each.info)))
            for each in report.faults
        ]
        lines += [*table(("fault", "planned", "took effect", "ok", "fail", "unknown"), faults), ""]
    lines += [f"- {label}: {command(text)}" for label, text in commands(report)]
    return "\n".join([*lines, ""])
