"""The report on a terminal: what was tested, what was found, the verdict, and the commands to run next.

At most LINES_MAX lines come before the verdict; `--verbose` shows all tables instead, as the page does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple

from rich.console import Console
from rich.text import Text

from checkers.verdict.compose import changed_nothing
from checkers.verdict.titles import title
from harness.core.verdict import Verdict
from harness.core.wording import counted
from harness.report.console.tables import tables
from harness.report.findings.headlines import headline
from harness.report.model import Report, called, grouped_findings, how_decided, models_in_words
from harness.report.screen import STYLES, commands, draw, plain, say, seen, suggest, wrapped
from harness.report.shrunk import origin_of

LINES_MAX = 12
FINDING_LINES = 3  # The most lines of one finding; the page has all of it.
NOTE_LINES = 2
CYCLE_MAX = 200  # The most characters of a cycle's sentence, which with its title are three lines.
NAMED_PROMISES = 2  # Up to this many promises each have a line.
STATES = {"violated": "violated", "unknown": "undecided", "holds": "held", "not-exercised": "not exercised"}


class Amount(NamedTuple):
    """How much to show: only the verdict and the commands if quiet; all tables if verbose."""

    is_quiet: bool = False
    is_verbose: bool = False


USUAL: Final = Amount()


def show_header(console: Console, lines: Iterable[tuple[str, str]]) -> int:
    """Print the header of a run, labels with their texts. Returns the number of lines."""
    shown = [line for label, text in lines for line in wrapped(console, text, label)]
    for line in shown:
        console.print(line, soft_wrap=True)
    return len(shown)


def show(console: Console, report: Report, amount: Amount = USUAL, *, used: int = 0) -> None:
    """Print the report. `used` lines of the LINES_MAX before the verdict have been printed already."""
    if amount.is_verbose:
        draw(console, *tables(report))
    elif not amount.is_quiet:
        for line in _body(console, report, LINES_MAX - used):
            console.print(line, soft_wrap=True)
    say(console, _verdict(report), is_whole=True)
    first = next((group[0].promise for group in grouped_findings(report)), None)  # The verdict names it, too.
    broken = next((row for row in report.promises if row.id == first and row.verdict == "violated"), None)
    if broken is not None and not amount.is_quiet and len(report.promises) > NAMED_PROMISES:
        say(console, broken.text, f"  {called(report, broken.id)}  ")
    if report.way_out is not None:
        say(console, report.way_out.sentence, "  ")
    for label, command in commands(report):
        suggest(console, label, command)
    origin = origin_of(report.run)
    if origin is not None:
        say(console, f"{origin}, from {origin.run}", "  shrunk  ")


def _body(console: Console, report: Report, most: int) -> Iterator[Text]:
    """At most that many lines, an empty one last: the work done, the promises, notes if they fit, the finding."""
    facts = [line for text in (*_done(report), *_promises(report)) for line in wrapped(console, text, "  ", most=2)]
    found = [line for text in _findings(report) for line in wrapped(console, text, "  ", most=FINDING_LINES)]
    notes = [wrapped(console, note, "  note  ", most=NOTE_LINES) for note in _notes(report)]
    room = most - len(facts) - len(found) - 2
    shown = list[Text]()
    for place, note in enumerate(notes):
        if len(shown) + len(note) > room:
            shown.append(plain(f"  {counted(len(notes) - place, 'note')} more: --verbose", "dim"))
            break
        shown += note
    yield from (*facts, *shown, *found)
    yield Text()


def _done(report: Report) -> Iterator[str]:
    """What the run or the judgement did, in numbers."""
    words = {"fail": "failed", "info": "unknown"}  # As in the tables.
    counts = ", ".join(f"{count:,} {words.get(kind, kind)}" for kind, count in report.operations.items())
    took = f"computed in {sum(report.seconds.values()):.1f} s" if report.seconds else ""
    yield "; ".join(filter(None, (f"{report.duration_s or 0:.1f} s: {counts} operations", took)))
    planned, effective = (sum(getattr(row, name) for row in report.faults) for name in ("planned", "effective"))
    if planned:
        kinds = ", ".join(row.kind.replace("-", " ") for row in report.faults)
        yield f"{effective} of {counted(planned, 'fault')} took effect: {kinds}"


def _promises(report: Report) -> Iterator[str]:
    """The promises: each in words if there are few, else their number by state."""
    rows = sorted(report.promises, key=lambda row: list(STATES).index(row.verdict))
    if len(rows) <= NAMED_PROMISES:
        for row in rows:
            yield f"{called(report, row.id)} {STATES[row.verdict]}, {counted(row.witnesses, 'witness')}: {row.text}"
    else:
        states = [(state, len(list(group))) for state, group in groupby(rows, key=lambda row: STATES[row.verdict])]
        yield f"{counted(len(rows), 'promise')}: {', '.join(f'{count} {state}' for state, count in states)}"
    if report.run is None:
        decided, models = how_decided(report), models_in_words(report)
        yield from filter(None, ("; ".join(filter(None, (decided, *models[:1]))), *models[1:]))


def _notes(report: Report) -> Iterator[str]:
    if report.excused:
        yield f"{changed_nothing(report.excused, sum(row.planned for row in report.faults))}."
    notes = report.facts.get("notes")
    for note in notes if isinstance(notes, list) else ():
        if note != report.reason:
            yield f"{note}"


def _findings(report: Report) -> Iterator[Text]:
    """The first finding in a sentence, and the number of the others."""
    grouped = grouped_findings(report)
    if not grouped:
        return
    root, *others = grouped[0]
    count = sum(each.count for each in (root, *others) if each.anomaly == root.anomaly)
    line = Text.assemble(plain(seen(report, root.anomaly, count), "bold"), plain(f": {headline(root, most=CYCLE_MAX)}"))
    yield line if root.promise else line.append("  (no promise forbids it)", "dim")
    left = Counter(
        title(each.anomaly, report.declared) for each in (*others, *(one for group in grouped[1:] for one in group))
    )
    left.pop(title(root.anomaly, report.declared), None)
    if left:
        yield plain(f"also seen: {', '.join(left)}", "dim")


def _verdict(report: Report) -> Text:
    verdict = Verdict(report.verdict)
    short = "not enough was tested: " if report.way_out is not None else ""
    word = plain(verdict.word, STYLES[report.verdict])
    return Text.assemble(word, plain(f"  {short}{report.reason} (exit {report.exit_code})"))
