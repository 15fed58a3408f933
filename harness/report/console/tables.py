"""The report on a terminal with all its tables: what `--verbose` shows above the verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from checkers.verdict.compose import changed_nothing
from harness.report.model import (
    PromiseRow,
    Report,
    allowed_anomalies,
    called,
    grouped_findings,
    how_decided,
    models_in_words,
)
from harness.report.screen import hanging, plain, seen

FINDINGS_SHOWN = 5
PROMISES_SHOWN = 12
SHARED = ("holds", "not-exercised")
PROMISE_STYLES = {"violated": "red", "holds": "green", "unknown": "yellow", "not-exercised": "yellow"}


def tables(report: Report) -> Iterable[Text | Table]:
    """The lines and tables of a whole report, without its verdict."""
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
    models, allowed, decided = "; ".join(models_in_words(report)), allowed_anomalies(report), how_decided(report)
    if models or allowed or decided:
        yield Text()
    for label, text in (("decided", decided), ("models", models), ("permitted", ", ".join(allowed))):
        if text:
            yield hanging(f"  {label:<10}", plain(text))


def _findings(report: Report) -> Iterable[Text | Table]:
    """One sentence for each event, with the names of the other findings that show it below."""
    grouped = grouped_findings(report)
    for root, *others in grouped[:FINDINGS_SHOWN]:
        yield Text()
        counts = Counter[str]()
        for each in (root, *others):
            counts[each.anomaly] += each.count
        first, *also = (seen(report, anomaly, count) for anomaly, count in counts.items())
        line = Text.assemble(plain(first, "bold"), plain(f": {root.sentence}"))
        yield hanging("  ", line if root.promise else line.append("  (no promise forbids it)", "dim"))
        if also:
            yield hanging("    also as  ", plain("; ".join(also), "dim"))
    left = sum(map(len, grouped[FINDINGS_SHOWN:]))
    if left:
        yield plain(f"  and {left} more in the report")
