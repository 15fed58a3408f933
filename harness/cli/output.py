"""The output of commands: reports go to standard output, everything else to standard error."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Self

import msgspec
from rich.console import Console
from rich.status import Status
from rich.text import Text

from checkers.verdict.groups import rank
from checkers.verdict.titles import title
from harness.core.verdict import FAILED, Verdict
from harness.report.batch_page import batch_summary
from harness.report.console.terminal import USUAL, Amount, show
from harness.report.github import add_summary, annotations, is_github
from harness.report.markdown import summary
from harness.report.model import Report, repetition, to_json
from harness.report.screen import STYLES, plain, say, suggest
from harness.run.batch import Batch
from harness.run.live import WIDTH, Watcher, at_work
from harness.scenario.command import at_hand

ANOMALIES = 4  # The most anomalies of a batch with a line each.
SHOWN = 3  # The most runs whose command is shown if no run of a batch has a finding.
EVERY_S = 10.0  # The time before the first line of progress in a log; each further one takes twice as long, up to
EVERY_MAX_S = 300.0  # this: a short command stays short in the log, and a long one shows that it lives.
SPINNER = 2  # The columns before the line that changes.


def standard_error() -> Console:
    """A console on standard error, for progress and notes: with --json, standard output has only the document."""
    return Console(stderr=True, highlight=False)


@contextmanager
def resumable(how: str) -> Iterator[None]:
    """Say how to go on if Ctrl-C or SIGTERM ends what is in this context."""
    try:
        yield
    except KeyboardInterrupt:
        suggest(standard_error(), "go on", how)
        raise


@contextmanager
def watched(*, is_shown: bool) -> Iterator[Watcher | None]:
    """A display for the progress of a run on standard error; None if it is not shown.

    A terminal has one line that changes; where lines stay, as in a log, a line that has changed is printed after 10 s,
    and then ever more rarely.
    """
    console = standard_error()
    if not is_shown:
        yield None
    elif console.is_terminal and not console.is_dumb_terminal:
        with console.status(plain("")) as status:
            yield _OnTerminal(console, status)
    else:
        with _InLog(console) as log:
            yield log


class _OnTerminal:
    """A display with one line that changes."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console, self._status = console, status

    @property
    def width(self) -> int:
        return max(20, self._console.width - SPINNER)

    def line(self, text: str) -> None:
        self._status.update(_one_line(text))

    def work(self, what: str, since_s: float) -> None:
        self._status.update(_Working(what, since_s))

    def note(self, text: str) -> None:
        say(self._console, f"  {text}", is_whole=True)


@dataclass(frozen=True, slots=True)
class _Working:
    """A line about the work in progress. Its seconds go on each time it is shown."""

    what: str
    since_s: float

    def __rich__(self) -> Text:
        return _one_line(at_work(self.what, self.since_s))


def _one_line(text: str) -> Text:
    """The text as a line that ends with an ellipsis if the terminal is narrower."""
    line = plain(text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


class _InLog:
    """A display that prints the latest line now and then, if it has changed, while the context lasts."""

    def __init__(self, console: Console) -> None:
        self._console, self._is_over = console, Event()
        self._latest: Callable[[], str] | None = None
        self.width = WIDTH
        self._thread = Thread(target=self._print, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def line(self, text: str) -> None:
        self._latest = lambda: text

    def work(self, what: str, since_s: float) -> None:
        self._latest = partial(at_work, what, since_s)

    def note(self, text: str) -> None:
        say(self._console, f"  {text}", is_whole=True)

    def _print(self) -> None:
        printed = None
        every_s = EVERY_S
        while not self._is_over.wait(every_s):
            every_s = min(2 * every_s, max(EVERY_S, EVERY_MAX_S))
            text = None if self._latest is None else self._latest()
            if text is not None and text != printed:
                say(self._console, text, is_whole=True)
                printed = text


def print_json(document: object) -> None:
    """Print one JSON document to standard output."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n")


def print_report(
    report: Report, *, as_json: bool, amount: Amount = USUAL, used: int = 0, page: Path | None = None
) -> int:
    """Show a report; returns its exit code.

    `used` lines have been printed above it, `page` is the path of a page written in addition to the run's own.
    """
    if as_json:
        sys.stdout.buffer.write(to_json(report))
    else:
        console = Console(highlight=False)
        show(console, report, amount, used=used)
        if page is not None:
            suggest(console, "open", str(page))
    tell_github([report], summary(report), as_json=as_json)
    return report.exit_code


def tell_github(reports: Sequence[Report], markdown: str, *, as_json: bool) -> None:
    """In a job of GitHub Actions, print annotations, and add the tables to the job's summary."""
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
        say(console, f"stopped after {len(batch.runs)} of {batch.planned} runs: {batch.stopped}", "  ")
    found = [{finding.anomaly for finding in report.findings if finding.promise} for report in batch.runs]
    counts = Counter(name for names in found for name in names)
    own = {name: record for report in batch.runs for name, record in report.declared.items()}
    ordered = sorted(counts, key=lambda name: (rank(name, own), name))
    for anomaly in ordered[:ANOMALIES]:
        say(console, f"{title(anomaly, own)}  in {counts[anomaly]} of {len(batch.runs)} runs", "  ")
    if len(ordered) > ANOMALIES:
        say(console, f"also seen: {', '.join(title(each, own) for each in ordered[ANOMALIES:])}", "  ")
    word = plain(Verdict(batch.verdict).word, STYLES[batch.verdict])
    say(console, word + plain(f"  {batch.reason} in {batch.seconds:g} s (exit {batch.exit_code})"), is_whole=True)
    if batch.way_out is not None and batch.exit_code:
        say(console, batch.way_out.sentence, "  ")
    if batch.page is not None:
        suggest(console, "open", batch.page)
    if batch.way_out is not None and batch.way_out.command is not None:
        suggest(console, "more", at_hand(batch.way_out.command, [run.code for run in batch.runs if run.code]))
    for report in _to_repeat(batch):
        command = report.anywhere or repetition(report)
        if command is not None:
            suggest(console, f"seed {report.seed}", at_hand(command, [report.code] if report.code else []))
    return batch.exit_code


def _to_repeat(batch: Batch) -> list[Report]:
    """The runs with a finding; if there is none, the first ones with the batch's verdict. None of a pass."""
    red = [report for report in batch.runs if report.verdict in FAILED]
    worst = [report for report in batch.runs if report.verdict == batch.verdict and batch.exit_code]
    return red or worst[:SHOWN]
