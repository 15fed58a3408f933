"""report.html: the report as one page that opens offline, without script."""

import json
from collections.abc import Iterator

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.core.verdict import Verdict
from harness.report.model import Report
from harness.report.screen import commands, visible

TEXT_MAX = 2_000  # Characters of one value; a megabyte in a key must not make the page unreadable.


def page(report: Report) -> str:
    """The page. All text is escaped; control characters are visible."""
    environment = Environment(
        loader=PackageLoader("harness.report", "."), autoescape=True, undefined=StrictUndefined, finalize=_shown
    )
    return environment.get_template("page.html").render(
        report=report,
        word=Verdict(report.verdict).word,
        title=report.findings[0].sentence if report.findings else _plain_title(report),
        commands=commands(report),
        facts=list(_facts(report)),
    )


def _shown(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = (
        visible(str(value)) if len(value) < TEXT_MAX else visible(value[:TEXT_MAX]) + f" … ({len(value):,} characters)"
    )
    return type(value)(text)  # Keeps what jinja2 has marked as safe.


def _plain_title(report: Report) -> str:
    return {
        "valid": "Every promise that was tested held.",
        "vacuous": "Too little was tested to say anything.",
        "unknown": "A check could not decide.",
        "error": "The harness failed; the system was not judged.",
        "invalid": "A promise was broken.",
    }[report.verdict]


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    """What else is known, as (name, JSON)."""
    shown = {"findings", "promises", "faults", "goals", "excused", "operations", "reason", "verdict", "exit_code"}
    for name, value in msgspec.to_builtins(report).items():
        if name not in shown and value not in (None, [], {}):
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
