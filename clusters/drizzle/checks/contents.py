"""What the logs of a master hold, against what clients did: guarantees G2, G3, G8, G9, G10, G13 and G31.

For each log of a master, the file logs and the table log:
1. `unlogged-commit`: a transaction that was acknowledged is there with its last piece, if the log admits its tables. A
   witness is such a transaction.
2. `phantom-commit`: a transaction that is there was not refused to its client. A witness is a transaction there.
3. No row counts there that was undone by an error (`failed-row`), a savepoint (`savepoint-row`) or a rollback
   (`abandoned-row`). A witness is an operation that undoes rows so, and has an end.
4. `wrong-content`: a transaction has the rows of its operation, all of them, once, in their order. Witness as in 2.
5. `noise`: no change of a person leaves it as it was. A witness is a change of a person.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import shown_list
from checkers.history.troubles import Trouble, judgement
from clusters.drizzle.checks.dumped import FILTERED, LACKING, PEOPLE, Op, Whole, changed, ops, shown
from clusters.drizzle.scripts import ABANDONED, FAILED, TAKEN_BACK
from clusters.drizzle.shape import ADMITTED, master_of, table_of
from harness.core.columns import FAIL, INFO, OK
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "log-contents"
UNLOGGED, PHANTOM = "unlogged-commit", "phantom-commit"
FAILED_ROW, SAVEPOINT_ROW, ABANDONED_ROW = "failed-row", "savepoint-row", "abandoned-row"
WRONG, NOISE = "wrong-content", "noise"
ANOMALIES: Final = {
    UNLOGGED: "A log lacks a transaction that was acknowledged.",
    PHANTOM: "A log has a transaction that was refused.",
    FAILED_ROW: "A log has a row of a statement that failed.",
    SAVEPOINT_ROW: "A log has a row that was taken back to a savepoint.",
    ABANDONED_ROW: "A log has a row of a transaction that was rolled back.",
    WRONG: "A transaction in a log has other rows than its operation.",
    NOISE: "A log has an update that changes nothing.",
}
# How undone elements begin, and the operations that have such.
UNDONE: Final = {
    FAILED_ROW: (FAILED, ("failing", "failing-last")),
    SAVEPOINT_ROW: (TAKEN_BACK, ("undone",)),
    ABANDONED_ROW: (ABANDONED, ("abandoned",)),
}


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all logs. Raises HistoryError if the history is damaged."""
    found = shown(history)
    if found is None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, LACKING))
    operations = ops(history)
    by_element = {element: op for op in operations for _, element in op.appends}
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    for anomaly, (_, names) in UNDONE.items():
        witnesses[anomaly] = sum(op.row["f"] in names and op.row["outcome"] != INFO for op in operations)
    for master, name, log in found.logs():
        tables = ADMITTED if name == FILTERED else None
        own = [op for op in operations if master_of(op.appends[0][0]) == master]
        where = f"the {name} log of {master}"
        troubles += _unlogged(where, log, own, by_element, tables)
        for whole in log:
            troubles += _content(where, whole, by_element, tables)
        changes, noise = _noise(where, log)
        troubles += noise
        witnesses[UNLOGGED] += sum(op.row["outcome"] == OK for op in own)
        witnesses[PHANTOM] += len(log)
        witnesses[WRONG] += len(log)
        witnesses[NOISE] += changes
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _due(op: Op, tables: frozenset[str] | None) -> list[tuple[Json, Json]]:
    """The rows of an operation that a log with these tables has."""
    return [(key, element) for key, element in op.appends if tables is None or table_of(key) in tables]


def _unlogged(
    where: str, log: Sequence[Whole], own: Sequence[Op], by_element: dict[Json, Op], tables: frozenset[str] | None
) -> Iterator[Trouble]:
    """1."""
    there = {by_element[element].number for whole in log for _, element in whole.rows() if element in by_element}
    for op in own:
        if op.row["outcome"] == OK and op.number not in there and _due(op, tables):
            sentence = f"T{op.number} was acknowledged, and {where} does not have it."
            yield Trouble(UNLOGGED, sentence, (where, op.number), (op.number,))


def _content(where: str, whole: Whole, by_element: dict[Json, Op], tables: frozenset[str] | None) -> Iterator[Trouble]:
    """2 to 4, for one transaction."""
    found = whole.rows()
    for anomaly, (begin, _) in UNDONE.items():
        undone = [element for _, element in found if str(element).startswith(begin)]
        if undone:
            sentence = f"Transaction {whole.name} in {where} has the row '{undone[0]}', which never counted."
            yield Trouble(anomaly, sentence, (where, whole.name))
    kept = [(key, element) for key, element in found if element in by_element]
    if not kept:
        return
    op = by_element[kept[0][1]]
    if op.row["outcome"] == FAIL:
        sentence = f"Transaction {whole.name} in {where} is T{op.number}, which was refused."
        yield Trouble(PHANTOM, sentence, (where, whole.name), (op.number,))
    due = _due(op, tables)
    if kept != due:
        sentence = (
            f"Transaction {whole.name} in {where} has {shown_list([str(element) for _, element in kept])}, and "
            f"T{op.number} appended {shown_list([str(element) for _, element in due])}."
        )
        yield Trouble(WRONG, sentence, (where, whole.name), (op.number,))


def _noise(where: str, log: Sequence[Whole]) -> tuple[int, list[Trouble]]:
    """The witnesses of 5, and the violations."""
    people: dict[Json, Json] = {}
    witnesses, troubles = 0, []
    for whole in log:
        for entry, changes in whole.statements:
            for change in changes if entry.table == PEOPLE else ():
                witnesses += 1
                before = dict(people)
                changed(people, change)
                if people == before:
                    sentence = f"Transaction {whole.name} in {where} gives '{change.key}' the value that it had."
                    troubles.append(Trouble(NOISE, sentence, (where, whole.name)))
    return witnesses, troubles


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
