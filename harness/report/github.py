"""Output for GitHub's runners: an annotation for each class of finding, and the tables in the job's summary.

A runner reads commands such as `::error title=...::...` from a step's output, and shows at most ten per step.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from checkers.verdict.titles import title
from harness.core.verdict import Verdict
from harness.report.model import Report, repetition
from harness.report.screen import visible

ANNOTATIONS_MAX: Final = 10
RUNS_MAX: Final = 3  # The most runs of a class whose command is in its annotation; the log has all.
TEXT_MAX: Final = 900  # Characters of a sentence with its commands; the commands are never cut.
SUMMARY_MAX: Final = 900_000  # The most bytes of a summary: a runner refuses one of more than a mebibyte.


def is_github(environment: Mapping[str, str]) -> bool:
    """True inside a step of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def annotations(reports: Sequence[Report]) -> list[str]:
    """Lines that annotate a job, the worst first: one for each class of finding, and for each verdict but a pass."""
    found = [*_findings(reports), *_others(reports)]
    if len(found) <= ANNOTATIONS_MAX:
        return found
    left = len(found) - ANNOTATIONS_MAX + 1
    return [*found[: ANNOTATIONS_MAX - 1], _command("warning", "seamark", f"{left} more are in the report")]


def _findings(reports: Sequence[Report]) -> Iterator[str]:
    """Errors for broken promises, warnings for findings that no promise forbids."""
    classes: dict[tuple[bool, str], list[Report]] = {}
    sentences: dict[tuple[bool, str], str] = {}
    for report in reports:
        for finding in report.findings:
            name = (finding.promise is None, finding.anomaly)
            sentences.setdefault(name, finding.sentence)
            runs = classes.setdefault(name, [])
            if not runs or runs[-1] is not report:
                runs.append(report)
    for name, runs in sorted(classes.items(), key=lambda each: each[0]):
        is_allowed, anomaly = name
        share = f" in {len(runs)} of {len(reports)} runs" if len(reports) > 1 else ""
        commands = [command for run in runs[:RUNS_MAX] if (command := run.anywhere or repetition(run)) is not None]
        again = f" Repeat it: {' or '.join(commands)}" if commands else ""
        yield _command(
            "warning" if is_allowed else "error",
            f"{title(anomaly, runs[0].declared)}{share}",
            _shortened(sentences[name], TEXT_MAX - len(again)) + again,
        )


def _others(reports: Sequence[Report]) -> Iterator[str]:
    for verdict in (Verdict.ERROR, Verdict.VACUOUS, Verdict.UNKNOWN):
        runs = [report for report in reports if report.verdict == verdict.value]
        if runs:
            share = f" in {len(runs)} of {len(reports)} runs" if len(reports) > 1 else ""
            level = "error" if verdict is Verdict.ERROR else "warning"
            yield _command(level, f"{verdict.word}{share}", _shortened(runs[0].reason, TEXT_MAX))


def _command(level: str, name: str, text: str) -> str:
    """A command; no part of its text can be read as another command."""
    name = _escaped(_shortened(name, TEXT_MAX)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{_escaped(text)}"


def _shortened(text: str, length: int) -> str:
    """At most about `length` characters of a text, and not so few that it has no meaning."""
    length = max(length, TEXT_MAX // 3)
    return text if len(text) <= length else f"{text[:length]}..."


def _escaped(text: str) -> str:
    return visible(text).replace("%", "%25")


def add_summary(environment: Mapping[str, str], markdown: str) -> None:
    """Append to the job's summary, if there is one. A summary that cannot be written is not a failure."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    content = markdown.encode("utf-8", "backslashreplace")
    if len(content) > SUMMARY_MAX:
        content = content[:SUMMARY_MAX].rsplit(b"\n", 1)[0] + b"\n\n(cut here; report.html has all of it)\n"
    try:
        with Path(path).open("ab") as file:
            file.write(content)
    except OSError:
        return
