"""Replicas that name their position in the source's log: do the rows agree, and is everything accounted for?

A state with a position has exactly what the log has up to there, without what the replica says that it left out.
1. `false-position`: a list has an element from behind the position, or lacks one from before it. A witness is a state
   with a position and a list.
2. `left-out`: up to the position nothing of a transaction is there, and the replica does not show that it left it
   out. `never-left-out`: it shows so, and rows of the transaction are there. These are judged at the end, in the states
   that show all keys of the log. A witness is a transaction in such a state; of a false gap one that was left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from checkers.replication.sources import Log, Seen, replication, shown
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "positions"
FALSE, SILENT, NO_GAP = "false-position", "left-out", "never-left-out"
ANOMALIES: Final = {
    FALSE: "A replica's position in its source's log, and its rows, contradict each other.",
    SILENT: "A replica is past a transaction that it lacks, and does not show that it left it out.",
    NO_GAP: "A replica shows that it left a transaction out, and has rows of it.",
}


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all states with positions. Raises HistoryError if the history is damaged."""
    found = replication(history)
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    for seen in found.seen:
        for source, position in seen.positions:
            log, whole = found.log_for(seen.replica, source), found.logs.get(source)
            if log is None or whole is None or position is None:
                continue
            witnesses[FALSE] += any(key in log.keys for key, _ in seen.lists)
            troubles += _false(log, seen, position)
            if seen.op is None:
                left_out = found.skipped.get((seen.replica, source), frozenset())
                witnesses[SILENT] += sum(unit.position <= position for unit in whole.units)
                witnesses[NO_GAP] += len(left_out)
                troubles += gaps(whole, seen, position, left_out)
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _false(log: Log, seen: Seen, position: int) -> Iterator[Trouble]:
    """1: one violation for each state."""
    for key, elements in seen.lists:
        if key not in log.keys:
            continue
        due = tuple(element for element, place in log.keys[key] if log.units[place].position <= position)
        if due != elements:
            sentence = (
                f"{seen.begun} shows {shown(elements)} under {key} at position {position} of {log.source}, where "
                f"the log has {shown(due)} by then."
            )
            yield Trouble(FALSE, sentence, (seen.replica, seen.op, log.source), () if seen.op is None else (seen.op,))
            return


def gaps(log: Log, seen: Seen, position: int, left_out: frozenset[int]) -> Iterator[Trouble]:
    """2, for the state of a replica at the end."""
    lists: dict[Json, frozenset[str]] = {key: frozenset(map(repr, elements)) for key, elements in seen.lists}
    for unit in log.units:
        known = [(key, element) for key, element in unit.rows if key in lists]
        there = [(key, element) for key, element in known if repr(element) in lists[key]]
        where = f"transaction {unit.name} of {log.source}, at {unit.position}"
        if unit.position in left_out and there:
            key, element = there[0]
            sentence = f"{seen.replica} shows that it left out {where}, and has {element} under {key}, of it."
            yield Trouble(NO_GAP, sentence, (seen.replica, log.source, unit.position))
        elif unit.position <= position and unit.position not in left_out and known and not there:
            sentence = f"{seen.replica} is at {position} of {log.source}, has nothing of {where}, and shows no gap."
            yield Trouble(SILENT, sentence, (seen.replica, log.source, unit.position))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
