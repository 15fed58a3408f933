"""What all commands print with: text without markup and with all characters visible, lines that break between words.

Text from histories, nodes and plans is shown with control characters made visible, and never read as markup. A command
stays one line, so that it can be copied, or goes on in lines that a shell joins.
"""

import re
import shlex

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from checkers.verdict.titles import title
from harness.core.command import seamark
from harness.report.model import Report, next_steps, repetition, smaller

Commands = list[tuple[str, str]]  # (label, command to type)

WORDS_MIN = 20  # The least columns for text: a narrower terminal breaks the lines itself.
STYLES = {
    "invalid": "bold red",
    "error": "bold magenta",
    "vacuous": "bold yellow",
    "unknown": "bold yellow",
    "valid": "bold green",
}


def visible(text: str) -> str:
    """`text` with every control, format and surrogate character shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def plain(text: str, style: str = "") -> Text:
    """`text` for the library rich: without markup, with all characters visible."""
    return Text(visible(text), style)


def say(console: Console, text: str | Text, label: str = "", *, is_whole: bool = False) -> None:
    """Print text after its label. Lines break between words, and further lines begin below the text.

    `is_whole`: where there is no terminal, as in a log, the text stays one line.
    """
    if is_whole and not console.is_terminal:
        console.print(Text(label) + (text if isinstance(text, Text) else plain(text)), soft_wrap=True)
        return
    for line in wrapped(console, text, label):
        console.print(line, soft_wrap=True)


def wrapped(console: Console, text: str | Text, label: str = "", *, most: int | None = None) -> list[Text]:
    """The lines of the text after its label and its own indent. A word that is too long for a line is not broken.

    Of more than `most` lines the last one ends with an ellipsis.
    """
    whole = text if isinstance(text, Text) else plain(text)
    indent = len(whole.plain) - len(whole.plain.lstrip(" "))
    label, whole = label + " " * indent, whole[indent:]
    width = max(WORDS_MIN, console.width - len(label))
    lines = list(whole.divide(_breaks(whole.plain, width)))
    if most is not None and len(lines) > most:
        lines = lines[:most]
        lines[-1].rstrip()
        lines[-1].truncate(width - 2)
        lines[-1].append(" …")
    for line in lines:
        line.rstrip()
    return [Text(label if place == 0 else " " * len(label)) + line for place, line in enumerate(lines)]


def _breaks(text: str, width: int) -> list[int]:
    """The places before words at which a text breaks into lines of at most `width` columns, where words allow that."""
    places, start = list[int](), 0
    for word in re.finditer(r"\S+", text):
        if word.start() > start and cell_len(text[start : word.end()]) > width:
            places.append(start := word.start())
    return places


def suggest(console: Console, label: str, command: str) -> None:
    """Print a command after its label. On a narrow terminal it goes on in further lines that a shell joins."""
    before = f"  {label:<7} "
    words = command.split(" ")
    if not console.is_terminal or len(before) + len(command) <= console.width or shlex.split(command) != words:
        console.print(plain(f"{before}{command}"), soft_wrap=True)
        return
    line = before
    for word in words:
        if len(line) + len(word) + 3 > console.width and line.strip():
            console.print(plain(f"{line.rstrip()} \\"), soft_wrap=True)
            line = " " * (len(before) + 2)
        line += f"{word} "
    console.print(plain(line.rstrip()), soft_wrap=True)


def draw(console: Console, *parts: RenderableType) -> None:
    """Print tables and texts without blanks at the ends of lines, which a log would keep."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    for line in captured.get().splitlines():
        console.file.write(f"{line.rstrip()}\n")


def hanging(label: str, text: Text) -> Table:
    """The text after its label; further lines begin below the text, not below the label."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label), text)
    return grid


def commands(report: Report) -> Commands:
    """The commands to run next, as (label, command)."""
    command = repetition(report)
    if command is None:
        return []
    page = shlex.quote(f"{report.run}/report.html")
    small = next(filter(None, (smaller(report, each) for each in report.findings)), None)
    shrink = [] if small is None else [("smaller", small)]
    way_out = dict(next_steps(report)).get("test more") if report.way_out is not None else None
    more = [] if way_out is None else [("more", way_out)]
    return [*more, ("open", page), ("again", command), *shrink, ("judge", seamark("check", report.run))]


def seen(report: Report, anomaly: str, count: int) -> str:
    """The name of an anomaly for people, and how often the report shows it if more than once."""
    return title(anomaly, report.declared) + (f", {count:,} times" if count > 1 else "")
