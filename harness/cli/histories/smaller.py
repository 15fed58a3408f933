"""The files that `seamark check` writes of a finding: the smallest part of a history that has it, and its cycle."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from checkers.verdict.titles import title
from harness.cli.histories.several import is_one
from harness.core.command import seamark
from harness.core.errors import ScenarioError
from harness.core.record import StreamEvent
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.judging.engines import EngineFor
from harness.record.formats.load import load
from harness.record.formats.parquet.rows import numbered_records
from harness.record.ownership import temporary_folder
from harness.report.findings.headlines import headline
from harness.report.model import Report, with_shrink
from harness.report.pictures.dot import dot
from harness.report.screen import say, suggest
from harness.run.checking import Answerable, answer, command_of
from harness.shrink.history import EDN, Small, Tell, shrunk


class Files(NamedTuple):
    """The requested files: the smallest part of a history, and the cycle."""

    small: Path | None = None
    cycle: Path | None = None

    def require(self, histories: Sequence[Path]) -> None:
        """Raise ScenarioError unless they are of one history, new, and have names for their formats."""
        if any(self) and not is_one(histories):
            raise ScenarioError("--shrink and --cycle are of one history: name one")
        if self.small is not None:
            _require_name(self.small, EDN, ".jsonl")
        if self.cycle is not None:
            _require_name(self.cycle, ".dot")


def _require_name(out: Path, *suffixes: str) -> None:
    if out.exists():
        raise ScenarioError(f"{out}: it already exists, and is not overwritten; choose another name, or remove it")
    if not out.parent.is_dir():
        raise ScenarioError(f"{out}: cannot be written: there is no folder {out.parent}")
    if out.suffix not in suffixes:
        raise ScenarioError(f"{out}: let the name end with {' or '.join(suffixes)}, which is the format")


def require_history(ready: Answerable) -> None:
    """Raise ScenarioError for a run of ours, which `seamark shrink` makes small, or a stream in a foreign format."""
    if ready.run is not None:
        raise ScenarioError(f"--shrink is for histories from elsewhere; a run: {seamark('shrink', ready.run)}")
    if ready.form is not None:
        raise ScenarioError(
            "--shrink and --stream exclude each other: a part of a stream shows losses that the whole never had"
        )


def small_history(ready: Answerable, report: Report, out: Path, engine: EngineFor, tell: Tell) -> Small | None:
    """Write the smallest part of the judged history to `out`; None if no promise was broken."""
    question = ready.question
    finding = next((each for each in report.findings if each.promise is not None), None)
    if finding is None:
        return None
    with temporary_folder("shrink") as folder:
        records = numbered_records(load(question.path, folder, is_hashed=False).history)
    if out.suffix == EDN and any(isinstance(each, StreamEvent) for each in records.values()):
        raise ScenarioError(f"{out}: EDN has no stream events: let the name end with .jsonl")

    def judged(path: Path) -> Report:
        part = msgspec.structs.replace(question, path=path, html=None)
        return answer(msgspec.structs.replace(ready, question=part), engine, lambda _: None)

    return shrunk(records, finding, out, judged, tell)


def suggest_small(ready: Answerable, report: Report, console: Console) -> None:
    """Suggest the command that makes a history from elsewhere small, if a promise is broken in it."""
    if report.verdict == Verdict.INVALID.value and ready.run is None and ready.form is None:
        suggest(console, "smaller", with_shrink(command_of(ready.question, ready.question.path)))


def write_cycle(report: Report, out: Path, console: Console) -> None:
    """Write the first cycle among the findings, and show the file's name."""
    finding = next((each for each in report.findings if each.cycle), None)
    if finding is None:
        say(console, f"no finding is a cycle, so {out} was not written", "  ")
        return
    try:
        out.write_text(dot(finding), encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{out}: cannot be written ({error.strerror}); choose another with --cycle") from None
    suggest(console, "cycle", str(out))


def show_small(made: Small | None, out: Path, ready: Answerable, console: Console) -> None:
    """Show the sizes before and after, the finding, and the command that judges the part."""
    if made is None:
        say(console, f"no promise is broken, so {out} was not written", "  ")
        return
    (ops, events), (ops_left, events_left) = made.before, made.after
    sizes = [f"{ops_left:,} of {counted(ops, 'operation')}"]
    sizes += [f"{events_left:,} of {counted(events, 'stream event')}"] if events else []
    name = title(made.finding.anomaly, made.report.declared)
    say(console, f"SHRUNK  {name}: {', '.join(sizes)}, in {counted(made.tries, 'try')}")
    say(console, headline(made.finding), "  ")
    suggest(console, "small", str(out))
    suggest(console, "judge", command_of(ready.question, out))
