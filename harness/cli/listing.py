"""`seamark list`: the runs in the store, latest first."""

import os
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from harness.cli.output import print_json
from harness.core.command import seamark
from harness.core.errors import HistoryError, ScenarioError
from harness.core.verdict import Verdict
from harness.record.store import RUN_FILE, STORE, began_utc, read_run_file
from harness.record.store import list_runs as stored_runs
from harness.report.model import read_report
from harness.report.screen import STYLES, plain, say

UNJUDGED = "not judged"
UNREADABLE = "unreadable"


def list_runs(
    store: Annotated[Path, typer.Option(help="The folder in which runs are kept.")] = STORE,
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """List the runs in the store, the latest first. Exits with 4 if a report among them cannot be read."""
    if store.exists() and not store.is_dir():
        raise ScenarioError(f"{store}: is a file, and a store is a folder: name one with --store")
    runs = stored_runs(store)[:limit]
    if as_json:
        rows = [{"run": os.fsencode(run).decode("utf-8", "backslashreplace")} | _essence(run) for run in runs]
        print_json(rows)
        return Verdict.ERROR.exit_code if any("unreadable" in row for row in rows) else 0
    console = Console(highlight=False)
    if not runs:
        console.print(plain(f"{store} holds no run yet; make one with seamark run"))
    lines = [_line(run) for run in runs]
    for run, line in zip(runs, lines, strict=True):
        bugs = f"  bug {', '.join(line.bugs)}" if line.bugs else ""
        seed = "" if line.seed is None else f"  seed {line.seed}"
        began = (line.began_utc or "").replace("T", " ").replace("Z", " UTC")
        say(console, line.verdict + plain(f"  {began}{seed}{bugs}"))
        say(console, plain(f"  {run}  {line.reason}", "dim"), is_whole=True)
    return Verdict.ERROR.exit_code if any(line.verdict.plain == UNREADABLE for line in lines) else 0


class _Line(NamedTuple):
    """The fields of a run that are shown."""

    verdict: Text
    began_utc: str | None
    seed: int | None
    bugs: tuple[str, ...]
    reason: str


def _line(run: Path) -> _Line:
    try:
        report = read_report(run)
        if report is not None:
            verdict = plain(Verdict(report.verdict).word, STYLES[report.verdict])
            return _Line(verdict, report.started_utc, report.seed, report.bugs, report.reason)
        run_file = read_run_file(run / RUN_FILE)
        return _Line(plain(UNJUDGED), began_utc(run), run_file.seed, run_file.bugs, seamark("check", run))
    except HistoryError as error:
        return _Line(plain(UNREADABLE), began_utc(run), None, (), str(error))


def _essence(run: Path) -> dict[str, object]:
    """The fields of a run for the list: none if it was not judged; only the reason if its report cannot be read."""
    try:
        report = read_report(run)
    except HistoryError as error:
        return {"unreadable": str(error)}
    if report is None:
        return {}
    kept = ("verdict", "exit_code", "reason", "clause", "seed", "cluster", "bugs", "started_utc")
    return {name: value for name, value in msgspec.to_builtins(report).items() if name in kept}
