"""`seamark replay`: the same run once more, and whether it was the same."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from harness.cli.output import print_json
from harness.core.errors import ScenarioError
from harness.core.verdict import Verdict
from harness.replay import Difference, Repetition, repeat
from harness.report.screen import plain
from harness.store import find_run, read_report, read_run_file


def replay(
    run: Annotated[Path, typer.Argument(help="A run's directory in the store, or its run.json.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Repeat a simulated run from its run.json and compare every record. Exits as the run did, if it is exact."""
    folder = find_run(run)
    run_file = read_run_file(folder / "run.json")
    if run_file.runtime != "sim":
        raise ScenarioError(f"{folder}: a run in {run_file.runtime} cannot be repeated exactly; run its plan again")
    repetition = repeat(folder)
    code = _code(folder, repetition)
    if as_json:
        print_json(msgspec.to_builtins(repetition) | {"exact": repetition.is_exact, "exit_code": code})
    else:
        _show(Console(highlight=False), folder, repetition)
    return code


def _code(folder: Path, repetition: Repetition) -> int:
    """The stored verdict's code, if the run was repeated exactly; else the harness has broken its own promise."""
    if not repetition.is_exact:
        return Verdict.ERROR.exit_code
    report = read_report(folder)
    return report.exit_code if report is not None else Verdict.UNKNOWN.exit_code


def _show(console: Console, folder: Path, repetition: Repetition) -> None:
    if repetition.is_exact:
        console.print(plain(f"exact  history {repetition.history_sha256}  unseed {repetition.unseed}"))
        report = read_report(folder)
        verdict = f"{Verdict(report.verdict).word}  {report.reason}" if report else "not judged: seamark check it"
        console.print(plain(f"       {verdict}"))
        return
    console.print(plain(f"DIFFERENT  {folder} was not repeated", "bold red"))
    if repetition.difference is None:
        console.print(
            plain(f"  the history is the same, the unseed is not: {repetition.unseed_before}, now {repetition.unseed}")
        )
    else:
        _show_difference(console, repetition.difference)


def _show_difference(console: Console, difference: Difference) -> None:
    for record in difference.before:
        console.print(plain(f"            {record}", "dim"))
    console.print(plain(f"  record {difference.record}, the first that differs"))
    console.print(plain(f"    was     {difference.first}"))
    console.print(plain(f"    is now  {difference.second}"))
    console.print(plain(f"  nodes that differ by the next second: {', '.join(difference.nodes) or 'none'}"))
    console.print(plain(f"  random streams that moved: {', '.join(difference.streams) or 'none'}"))
