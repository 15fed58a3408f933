"""The report on a terminal: about 25 lines, the worst findings near the end, commands last.

Text from histories, nodes and plans is shown with control characters made visible, and never read as markup.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from checkers.words.compose import changed_nothing
from checkers.words.titles import title
from harness.core.command import seamark
from harness.core.verdict import Verdict
from harness.report.model import (
    PromiseRow,
    Report,
    allowed_anomalies,
    called,
    grouped_findings,
    how_decided,
    model_ends,
    repetition,
    smaller,
)
from harness.report.shrunk import origin_of

Commands = list[tuple[str, str]]  # (label, command to type)

FINDINGS_SHOWN = 5
PROMISES_SHOWN = 12
SHARED = ("holds", "not-exercised")
STYLES = {
    "invalid": "bold red",
    "error": "bold magenta",
    "vacuous": "bold yellow",
    "unknown": "bold yellow",
    "valid": "bold green",
}
PROMISE_STYLES = {"violated": "red", "holds": "green", "unknown": "yellow", "not-exercised": "yellow"}


def visible(text: str) -> str:
    """`text` with every control, format and surrogate character shown as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def plain(text: str, style: str = "") -> Text:
    """`text` for the library rich: without markup, with all characters visible."""
    return Text(visible(text), style)


def show_header(console: Console, lines: Iterable[str]) -> None:
    """Print the header lines, the seed first."""
    for line in lines:
        console.print(plain(line), soft_wrap=True)


def show(console: Console, report: Report, *, is_quiet: bool = False) -> None:
    """Print the whole report; if quiet, only the verdict and the commands."""
    if not is_quiet:
        console.print(Group(*_body(report)))
    console.print(_verdict_line(report), soft_wrap=True)
    if report.way_out is not None:
        console.print(plain(f"  {report.way_out.sentence}"), soft_wrap=True)
    for label, command in commands(report):
        console.print(Text(f"  {label:<8}") + plain(command), soft_wrap=True)
    origin = origin_of(report.run)
    if origin is not None:
        console.print(plain(f"  shrunk  {origin}, from {origin.run}"), soft_wrap=True)


def commands(report: Report) -> Commands:
    """The commands to run next, as (label, command)."""
    command = repetition(report)
    if command is None:
        return []
    page = shlex.quote(f"{report.run}/report.html")
    small = next(filter(None, (smaller(report, each) for each in report.findings)), None)
    shrink = [] if small is None else [("smaller", small)]
    more = [] if report.way_out is None or report.way_out.command is None else [("more", report.way_out.command)]
    return [*more, ("open", page), ("again", command), *shrink, ("judge", seamark("check", report.run))]


def _body(report: Report) -> Iterable[Text | Table]:
    words = {"info": "unknown"}  # As in the tables.
    operations = "  ".join(f"{words.get(kind, kind)} {count:,}" for kind, count in report.operations.items())
    took = ", ".join(f"{what} took {seconds:.1f} s" for what, seconds in report.seconds.items())
    took += {"local": " in threads", "spark": " on Spark"}.get(report.engine or "", "")  # "check" is the last.
    yield hanging("  ", plain(f"{report.duration_s or 0:.1f} s  {operations}    {took}"))
    if report.faults:
        yield Text()
        yield _fault_table(report)
    if report.goals:
        unmet = [name for name, count in report.goals.items() if count == 0]
        met = len(report.goals) - len(unmet)
        yield Text()
        missed = f"; not reached: {', '.join(unmet)}" if unmet else ""
        yield hanging("  goals     ", plain(f"{met} of {len(report.goals)} rare situations reached{missed}"))
    notes = report.facts.get("notes")
    for note in notes if isinstance(notes, list) else ():
        if note != report.reason:
            yield hanging("  note      ", plain(f"{note}"))
    if report.excused:
        excused = changed_nothing(report.excused, sum(row.planned for row in report.faults))
        yield hanging("  note      ", plain(f"{excused}."))
    if report.promises:
        yield Text()
        yield from _promises(report)
    yield from _models(report)
    yield from _findings(report)
    yield Text()


def hanging(label: str, text: Text) -> Table:
    """The text after its label; further lines begin below the text, not below the label."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label), text)
    return grid


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", width=0)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right", overflow="fold")
    return table


def _fault_table(report: Report) -> Table:
    table = _table("fault", "planned", "took effect", "ok", "fail", "unknown")
    table.columns[1].no_wrap = True
    for row in report.faults:
        counts = (row.planned, row.effective, row.ok, row.fail, row.info)
        table.add_row("", plain(row.kind), *(f"{count:,}" for count in counts))
    return table


def _promises(report: Report) -> Iterable[Text | Table]:
    """One row per promise. If there are many, those that hold, or were not exercised, share a line."""
    rows = report.promises
    if len(rows) <= PROMISES_SHOWN:
        yield _promise_table(report, rows)
        return
    telling = [row for row in rows if row.verdict not in SHARED]
    if telling:
        yield _promise_table(report, telling)
    held = [row for row in rows if row.verdict == "holds"]
    if held:
        least = min(held, key=lambda row: row.witnesses)
        fewest = f"fewest witnesses: {least.witnesses:,} ({least.id})"
        names = ", ".join(called(report, row.id) for row in held)
        yield hanging("  ", plain(f"{len(held)} promises hold; {fewest}: {names}"))
    idle = [f"{row.id} ({row.witnesses})" for row in rows if row.verdict == "not-exercised"]
    if idle:
        yield hanging("  ", plain(f"{len(idle)} not exercised (witnesses in brackets): {', '.join(idle)}"))


def _promise_table(report: Report, rows: Sequence[PromiseRow]) -> Table:
    table = _table("promise", "", "verdict", "witnesses")
    table.columns[2].justify = "left"
    for row in rows:
        style = PROMISE_STYLES.get(row.verdict, "")
        table.add_row(
            "", plain(called(report, row.id)), plain(row.text), plain(row.verdict, style), f"{row.witnesses:,}"
        )
    return table


def _models(report: Report) -> Iterable[Text | Table]:
    """The models that the transactions rule out or leave possible, and the anomalies that the promised model allows."""
    out, left = model_ends(report)
    allowed, decided = allowed_anomalies(report), how_decided(report)
    if out or left or allowed or decided:
        yield Text()
    if decided:
        yield plain(f"  how it was decided   {decided}")
    if out:
        yield hanging("  models ruled out     ", plain(f"{', '.join(out)} (the weakest)"))
    if left:
        yield hanging("  models not ruled out ", plain(f"{', '.join(left)} (the strongest)"))
    if allowed:
        yield hanging("  seen, and permitted  ", plain(", ".join(allowed)))


def _findings(report: Report) -> Iterable[Text | Table]:
    """One sentence for each event, with the names of the other findings that show it below."""
    grouped = grouped_findings(report)
    for root, *others in grouped[:FINDINGS_SHOWN]:
        yield Text()
        counts = Counter[str]()
        for each in (root, *others):
            counts[each.anomaly] += each.count
        first, *also = (_seen(anomaly, count) for anomaly, count in counts.items())
        line = Text.assemble(plain(first, "bold"), plain(f": {root.sentence}"))
        yield hanging("  ", line if root.promise else line.append("  (no promise forbids it)", "dim"))
        if also:
            yield hanging("    also as  ", plain("; ".join(also), "dim"))
    left = sum(map(len, grouped[FINDINGS_SHOWN:]))
    if left:
        yield plain(f"  and {left} more in the report")


def _seen(anomaly: str, count: int) -> str:
    """The name of an anomaly for people, and how often it was seen if more than once."""
    return title(anomaly) + (f", {count:,} times" if count > 1 else "")


def _verdict_line(report: Report) -> Text:
    verdict = Verdict(report.verdict)
    word = plain(verdict.word, STYLES[report.verdict])
    short = "not enough was tested: " if report.way_out is not None else ""
    return Text.assemble(word, plain(f"  {short}{report.reason} (exit {report.exit_code})"))
