"""The output of commands: reports go to standard output, everything else to standard error."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console

from harness.core.verdict import Verdict
from harness.report.batch_page import batch_summary
from harness.report.github import add_summary, annotations, is_github
from harness.report.markdown import summary
from harness.report.model import Report, repetition, to_json
from harness.report.screen import STYLES, plain, show
from harness.run.batch import Batch

SHOWN = 3  # Runs of a batch for which the command that repeats them is shown.


def standard_error() -> Console:
    """For progress and notes: with --json, standard output has the document only."""
    return Console(stderr=True, highlight=False)


@contextmanager
def live_line(*, is_shown: bool) -> Iterator[Callable[[str], None] | None]:
    """A function that shows one line on standard error, replacing the last; None if nobody would see it."""
    console = standard_error()
    if not (is_shown and console.is_terminal):
        yield None
        return
    with console.status(plain("")) as status:
        yield lambda text: status.update(plain(text))


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n")


def print_report(report: Report, *, as_json: bool, is_quiet: bool, page: Path | None = None) -> int:
    """Show a report; returns its exit code. `page` is the path of a page written in addition to the run's own."""
    if as_json:
        sys.stdout.buffer.write(to_json(report))
    else:
        console = Console(highlight=False)
        show(console, report, is_quiet=is_quiet)
        if page is not None:
            console.print(plain(f"  open    {page}"), soft_wrap=True)
    tell_github([report], summary(report), as_json=as_json)
    return report.exit_code


def tell_github(reports: Sequence[Report], markdown: str, *, as_json: bool) -> None:
    """In a job of GitHub's, print annotations, and add the tables to the job's summary."""
    if not is_github(os.environ):
        return
    sys.stdout.flush()
    stream = sys.stderr if as_json else sys.stdout
    stream.writelines(f"{line}\n" for line in annotations(reports))
    stream.flush()
    add_summary(os.environ, markdown)


def print_batch(batch: Batch, *, as_json: bool) -> int:
    """Show the outcome of a batch; returns its exit code."""
    tell_github(batch.runs, batch_summary(batch.summary(), batch.runs), as_json=as_json)
    if as_json:
        print_json(batch)
        return batch.exit_code
    console = Console(highlight=False)
    if batch.stopped:
        console.print(plain(f"  stopped after {len(batch.runs)} of {batch.planned} runs: {batch.stopped}"))
    found = [{finding.anomaly for finding in report.findings if finding.promise} for report in batch.runs]
    for anomaly, count in sorted(Counter(name for names in found for name in names).items()):
        console.print(plain(f"  {anomaly:<28} in {count} of {len(batch.runs)} runs"))
    word = plain(Verdict(batch.verdict).word, STYLES[batch.verdict])
    console.print(word + plain(f"  {batch.reason} in {batch.seconds:g} s (exit {batch.exit_code})"), soft_wrap=True)
    if batch.page is not None:
        console.print(plain(f"  open    {batch.page}"), soft_wrap=True)
    for report in [report for report in batch.runs if report.verdict == batch.verdict][:SHOWN]:
        if report.run is not None and batch.exit_code:
            console.print(plain(f"  again   {repetition(report)}"), soft_wrap=True)
    return batch.exit_code
