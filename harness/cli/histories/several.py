"""Judges several histories: one line each, one exit code, and the worst verdict decides."""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console

from harness.cli.output import print_json
from harness.core.errors import ScenarioError, SeamarkError
from harness.core.verdict import EXIT_USAGE, Verdict
from harness.core.wording import counted
from harness.record.formats.load import UnknownFormat, stored_in
from harness.record.formats.parquet.parquet import is_history
from harness.record.ownership import temporary_folder
from harness.record.store import is_run
from harness.report.model import Report
from harness.report.screen import STYLES, plain, say

STANDARD_INPUT: Final = Path("-")
Judged = Callable[[Path], Report]


class Input(NamedTuple):
    """A history to judge. `is_named`: the command line names it; others were found in a folder that it names."""

    path: Path
    is_named: bool = True


class Outcome(NamedTuple):
    """The judgement of one input: its report, or the error that prevented one."""

    input: Input
    report: Report | None = None
    error: SeamarkError | None = None

    @property
    def is_skipped(self) -> bool:
        """True if a folder contains the file by chance: it is in no format of histories."""
        return isinstance(self.error, UnknownFormat) and not self.input.is_named

    @property
    def message(self) -> str | None:
        """The text of the error."""
        return None if self.error is None else str(self.error)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if the command line named something that is no history."""
        if self.report is not None:
            return Verdict(self.report.verdict)
        return None if isinstance(self.error, ScenarioError) else Verdict.ERROR


def inputs(paths: Sequence[Path]) -> list[Input]:
    """The histories that the paths name: a folder that is neither a run nor a history stands for those in it."""
    found = list[Input]()
    for path in paths:
        if _is_folder(path) and not _is_whole(path):
            found += [Input(each, is_named=False) for each in _inside(path)]
        else:
            found.append(Input(path))
    return found


def is_one(paths: Sequence[Path]) -> bool:
    """True if the command line names one history, whose whole report is shown."""
    return len(paths) == 1 and (not _is_folder(paths[0]) or _is_whole(paths[0]) or not any(_inside(paths[0])))


@contextmanager
def standard_input(path: Path) -> Iterator[Path]:
    """`path`, or for "-" a file with what standard input holds: a history is read twice."""
    if path != STANDARD_INPUT:
        yield path
        return
    with temporary_folder("check") as folder:
        copy = folder / "standard input"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield copy
        except SeamarkError as error:
            raise type(error)(str(error).replace(str(copy), copy.name)) from None


def judge_each(named: Sequence[Input], judged: Judged, *, as_json: bool) -> int:
    """Judge each input, and print a line for each. Returns the exit code.

    The worst counts: a broken promise, then an input that is no history, an error, a vacuous one, an undecided one.
    """
    console, outcomes = Console(highlight=False), list[Outcome]()
    for each in named:
        outcomes.append(_outcome(each, judged))
        if not as_json and not outcomes[-1].is_skipped:
            _print(console, outcomes[-1])
    counting = [one for one in outcomes if not one.is_skipped]
    if as_json:
        print_json([{"path": str(one.input.path), "report": one.report, "error": one.message} for one in counting])
    if not counting:
        raise ScenarioError("no file in these folders is in a format of histories: docs/history-format.md")
    skipped = sum(each.is_skipped for each in outcomes)
    if skipped and not as_json:
        say(console, f"{counted(skipped, 'file')} skipped: in no format of histories", "  ")
    code = _exit_code([each.verdict for each in counting])
    if not as_json:
        say(console, f"{counted(len(counting), 'input')} (exit {code})", "  ")
    return code


def _outcome(each: Input, judged: Judged) -> Outcome:
    try:
        return Outcome(each, report=judged(each.path))
    except SeamarkError as error:
        return Outcome(each, error=error)


def _print(console: Console, outcome: Outcome) -> None:
    verdict = outcome.verdict
    word = plain("NO HISTORY", "bold red") if verdict is None else plain(verdict.word, STYLES[verdict.value])
    told = outcome.report.reason if outcome.report is not None else f"{outcome.error}"
    word.pad_right(14 - len(word.plain))
    text = told if told.startswith(str(outcome.input.path)) else f"{outcome.input.path}  {told}"
    say(console, word + plain(text), is_whole=True)


def _exit_code(verdicts: Sequence[Verdict | None]) -> int:
    """The exit code of all: that of a finding, else 64 for an input that is no history, else the worst verdict's."""
    known = [verdict for verdict in verdicts if verdict is not None]
    worst = min(known, key=list(Verdict).index, default=None)
    if worst is not Verdict.INVALID and len(known) < len(verdicts):
        return EXIT_USAGE
    return EXIT_USAGE if worst is None else worst.exit_code


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # Its name is too long; the error comes when it is judged.


def _is_whole(folder: Path) -> bool:
    return is_run(folder) or is_history(folder) or is_history(folder / "history") or stored_in(folder) is not None


def _inside(folder: Path) -> Iterator[Path]:
    """The runs, the histories and the files in a folder, in order of their names. Links are not followed."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir() and not _is_whole(path):
            yield from _inside(path)
        else:
            yield path
