"""What a terminal shows of many promises: each that tells something in a row, the others together."""

import io

from rich.console import Console

from harness.report.model import PromiseRow, Report
from harness.report.screen import PROMISES_SHOWN, show


def row(number: int, verdict: str, witnesses: int) -> PromiseRow:
    return PromiseRow(
        id=f"P{number}", verdict=verdict, witnesses=witnesses, text=f"promise number {number}", source="here"
    )


def screen(*promises: PromiseRow) -> str:
    report = Report(verdict="invalid", exit_code=1, reason="something", promises=promises)
    console = Console(file=io.StringIO(), width=200)
    show(console, report)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_few_promises_have_a_row_each() -> None:
    text = screen(*[row(number, "holds", 100 + number) for number in range(PROMISES_SHOWN)])
    assert all(f"promise number {number} " in text for number in range(PROMISES_SHOWN))


def test_of_many_promises_those_that_hold_share_a_line_with_the_least_witnessed() -> None:
    held = [row(number, "holds", 100 + number) for number in range(PROMISES_SHOWN)]
    text = screen(*held, row(50, "violated", 3), row(51, "unknown", 0), row(52, "not-exercised", 7))
    assert f"{PROMISES_SHOWN} promises hold, each witnessed 100 times or more (P0): P0, P1, " in text
    assert "1 not exercised (with so many witnesses): P52 (7)" in text
    assert "promise number 50" in text
    assert "promise number 51" in text
    assert "promise number 0" not in text
