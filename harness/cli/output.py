"""Where commands speak: a report on standard output, everything else on standard error."""

import sys

import msgspec
from rich.console import Console

from harness.report.model import Report, to_json
from harness.report.screen import show


def standard_error() -> Console:
    """For progress and notes: with --json, standard output has the document only."""
    return Console(stderr=True, highlight=False)


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n")


def print_report(report: Report, *, as_json: bool, is_quiet: bool) -> int:
    """Show a report; returns its exit code."""
    if as_json:
        sys.stdout.buffer.write(to_json(report))
    else:
        show(Console(highlight=False), report, is_quiet=is_quiet)
    return report.exit_code
