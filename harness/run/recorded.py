"""The operations of a recorded run as a script, for a run that repeats them instead of drawing new ones."""

from pathlib import Path

from harness.core.generators.scripted import Due, Script
from harness.core.record import Complete, Invoke, Mark
from harness.core.seams import Invocation
from harness.record.journal import read_journal
from harness.record.store import JOURNAL


def script_of(run: Path, clients: int) -> Script:
    """The operations of the run, each with the time at which it was due and the thread that carried it out.

    After info a thread goes on as a new process; processes are numbered in that order. A final operation that was tried
    several times counts once. Raises HistoryError if there is no journal.
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
