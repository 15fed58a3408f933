"""The time of the operations and events that a finding names."""

from pathlib import Path
from typing import NamedTuple

from harness.core.record import Complete, Header, Invoke, Mark
from harness.core.verdict import Finding
from harness.record.journal import read_journal
from harness.record.store import JOURNAL


class Evidence(NamedTuple):
    """The time of what a finding names, in nanoseconds since the start of the load."""

    from_ns: int
    until_ns: int


def evidence_of(run: Path, finding: Finding) -> Evidence | None:
    """The time of the finding's operations and events; None if it names none, as if an event is missing."""
    ops, events = frozenset(finding.ops), frozenset(finding.events)
    times: list[int] = []
    start_ns = 0
    for number, record in enumerate(record for record in read_journal(run / JOURNAL) if not isinstance(record, Header)):
        if isinstance(record, Mark) and record.phase == "load":
            start_ns = record.time_ns
        if number in events or (isinstance(record, Invoke | Complete) and record.index in ops):
            times.append(record.time_ns)
    return Evidence(max(0, min(times) - start_ns), max(times) - start_ns) if times else None
