"""The operations of a recorded run as a script, which carries out the same ones instead of drawing them anew."""

from pathlib import Path
from typing import NamedTuple

from harness.core.generators.scripted import Due, Script
from harness.core.record import Complete, Header, Invoke, Mark
from harness.core.seams import Invocation
from harness.core.verdict import Finding
from harness.record.journal import read_journal
from harness.record.store import JOURNAL


class Evidence(NamedTuple):
    """When what a finding names happened, in nanoseconds since the start of the load."""

    from_ns: int
    until_ns: int


def evidence_of(run: Path, finding: Finding) -> Evidence:
    """The time of the finding's operations and events; the whole run, if it names none."""
    ops, events = frozenset(finding.ops), frozenset(finding.events)
    times: list[int] = []
    start_ns = end_ns = 0
    for number, record in enumerate(record for record in read_journal(run / JOURNAL) if not isinstance(record, Header)):
        end_ns = record.time_ns
        if isinstance(record, Mark) and record.phase == "load":
            start_ns = record.time_ns
        if number in events or (isinstance(record, Invoke | Complete) and record.index in ops):
            times.append(record.time_ns)
    return Evidence(max(0, min(times, default=start_ns) - start_ns), max(times, default=end_ns) - start_ns)


def script_of(run: Path, clients: int) -> Script:
    """The operations of the run, each with the time at which it was due and the thread that carried it out.

    A thread goes on as a new process after info, and processes are numbered in that order. A final operation that was
    tried several times counts once. Raises HistoryError if there is no journal.
    """
    thread = {process: process for process in range(clients)}
    process_of: dict[int, int] = {}
    load: list[Due] = []
    final: dict[str, Invocation] = {}
    start_ns, is_final = 0, False
    for record in read_journal(run / JOURNAL):
        if isinstance(record, Mark):
            is_final = is_final or record.phase == "final"
            start_ns = record.time_ns if record.phase == "load" else start_ns
        elif isinstance(record, Invoke):
            process_of[record.index] = record.process
            if is_final:
                invocation = Invocation(f=record.f, value=record.value, mops=record.mops)
                final.setdefault(repr(invocation), invocation)
            else:
                at_ns = max(0, record.intended_ns - start_ns)
                load.append(Due(at_ns, thread[record.process], record.f, record.value, record.mops))
        elif isinstance(record, Complete) and record.outcome == "info":
            thread[len(thread)] = thread[process_of[record.index]]
    return Script(load=tuple(load), final=tuple(final.values()))
