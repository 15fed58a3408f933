"""The output of commands: reports go to standard output, everything else to standard error."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from harness.report.console.terminal import USUAL, Amount, show
from harness.report.github import add_summary, annotations, is_github
from harness.report.model import Report, to_json
from harness.report.screen import plain, say, suggest
from harness.run.live import WIDTH, Watcher, at_work

if TYPE_CHECKING:
    from rich.status import Status  # A console loads it when it shows one.

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

    def __init__(self, console: Console, status: "Status") -> None:
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


class _Working(Struct, frozen=True):
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
    tell_github([report], lambda: _tables(report), as_json=as_json)
    return report.exit_code


def _tables(report: Report) -> str:
    from harness.report.markdown import summary  # noqa: PLC0415  Its tables need what pages are made with.

    return summary(report)


def tell_github(reports: Sequence[Report], markdown: Callable[[], str], *, as_json: bool) -> None:
    """In a job of GitHub Actions, print annotations, and add the tables to the job's summary."""
    if not is_github(os.environ):
        return
    sys.stdout.flush()
    stream = sys.stderr if as_json else sys.stdout
    stream.writelines(f"{line}\n" for line in annotations(reports))
    stream.flush()
    add_summary(os.environ, markdown())
