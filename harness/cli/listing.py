"""`seamark list`: the runs in the store, latest first."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from harness.cli.output import print_json
from harness.core.command import seamark
from harness.core.errors import HistoryError
from harness.core.verdict import Verdict
from harness.record.store import list_runs as stored_runs
from harness.report.model import read_report
from harness.report.screen import STYLES, plain

UNJUDGED = "not judged"
UNREADABLE = "unreadable"


def list_runs(
    store: Annotated[Path, typer.Option(help="The folder in which runs are kept.")] = Path("store"),
    limit: Annotated[int, typer.Option(min=1, help="How many to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """List the runs in the store, the latest first. Exits with 4 if a report among them cannot be read."""
    runs = stored_runs(store)[:limit]
    if as_json:
        rows = [{"run": os.fsencode(run).decode("utf-8", "backslashreplace")} | _essence(run) for run in runs]
        print_json(rows)
        return Verdict.ERROR.exit_code if any("unreadable" in row for row in rows) else 0
    console = Console(highlight=False)
    if not runs:
        console.print(plain(f"{store} holds no run yet: seamark run"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("run", "verdict", "reason"):
        table.add_column(heading, overflow="fold")
    code = 0
    for run in runs:
        try:
            report = read_report(run)
        except HistoryError as error:
            table.add_row(plain(str(run)), UNREADABLE, plain(str(error)))
            code = Verdict.ERROR.exit_code
            continue
        if report is None:
            table.add_row(plain(str(run)), UNJUDGED, plain(seamark("check", run)))
        else:
            word = plain(Verdict(report.verdict).word, STYLES[report.verdict])
            table.add_row(plain(str(run)), word, plain(report.reason))
    if runs:
        console.print(table)
    return code


def _essence(run: Path) -> dict[str, object]:
    """The list's fields of a run: empty if it was not judged; the reason if its report cannot be read."""
    try:
        report = read_report(run)
    except HistoryError as error:
        return {"unreadable": str(error)}
    if report is None:
        return {}
    kept = ("verdict", "exit_code", "reason", "clause", "seed", "cluster", "bugs", "started_utc")
    return {name: value for name, value in msgspec.to_builtins(report).items() if name in kept}
