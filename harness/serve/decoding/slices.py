"""Slices of a run's history to download: a span of time, or the records of a finding, always with whole operations."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Footer, Header, Invoke, Record
from harness.record.formats.edn.exchange import write_edn_history
from harness.record.formats.jsonl import write_jsonl
from harness.record.formats.parquet.limits import values_size
from harness.record.formats.parquet.parquet import is_history, records_of
from harness.record.formats.parquet.schema import SCHEMAS
from harness.record.formats.parquet.validation import validate
from harness.record.journal import read_journal
from harness.record.store import HISTORY, JOURNAL, require_plain
from harness.serve.decoding.child import RECORD_MAX
from harness.serve.decoding.requests import Format, Part, Span

OPEN_MAX: Final = 500_000  # The most operations open at once, and
COLUMNS_MAX: Final = 8 << 20  # the most bytes of columns without a journal: more would take too much memory here.


def write_slice(run: Path, form: Format, wanted: Span | Part | None, path: Path) -> None:
    """Write that slice of a run's history into the file at `path`; the whole history if `wanted` is None.

    Raises HistoryError if the history cannot be read.
    """
    require_plain(run)
    write = write_jsonl if form == "jsonl" else write_edn_history
    write(sliced(lambda: _records(run), wanted), path)


def sliced(records: Callable[[], Iterator[Record]], wanted: Span | Part | None) -> Iterator[Evidence]:
    """The evidence of that slice, in order. An operation has both its invocation and its completion in it, or neither.

    `records` is called twice for a span: the first time to find the operations that reach into it.
    """
    evidence = (each for each in records() if not isinstance(each, Header | Footer))
    if wanted is None:
        return evidence
    if isinstance(wanted, Part):
        ops, events = set(wanted.ops), set(wanted.events)
        return (each for place, each in enumerate(evidence) if _index(each) in ops or place in events)
    ops = _reaching_into(evidence, wanted)
    again = (each for each in records() if not isinstance(each, Header | Footer))
    return (each for each in again if _is_inside(each, wanted, ops))


def _reaching_into(evidence: Iterator[Evidence], span: Span) -> set[int]:
    """The operations that were open at some moment of the span. One that never completed stays open."""
    found = set[int]()
    for each in evidence:
        if isinstance(each, Invoke) and each.time_ns <= span.to_ns:
            found.add(each.index)
            if len(found) > OPEN_MAX:
                raise HistoryError(f"more than {OPEN_MAX:,} operations are open at once; use seamark export")
        elif isinstance(each, Complete) and each.time_ns < span.from_ns:
            found.discard(each.index)
    return found


def _is_inside(each: Evidence, span: Span, ops: set[int]) -> bool:
    if isinstance(each, Invoke | Complete):
        return each.index in ops
    return span.from_ns <= each.time_ns <= span.to_ns


def _index(each: Evidence) -> int | None:
    return each.index if isinstance(each, Invoke | Complete) else None


def _records(run: Path) -> Iterator[Record]:
    if (run / JOURNAL).is_file():
        return read_journal(run / JOURNAL, RECORD_MAX)
    if is_history(run / HISTORY):
        return _records_of(run / HISTORY)
    raise HistoryError(f"{run.name} has no history yet")


def _records_of(history: Path) -> Iterator[Record]:
    """The records in Parquet files, which are in memory as a whole: so there must be few."""
    left = COLUMNS_MAX
    for name in SCHEMAS:
        left -= values_size(history / f"{name}.parquet", left)
    validate(history)
    return records_of(history)
