"""Logs and rows against each other: guarantees G14, G23, G24, G25 and G26.

1. `engine-unlike-log`: a master's rows are what its table log gives, and its file log. A witness is a row.
2. `streams-differ`: the table log and the file log of a master have the same transactions, and the same order of rows
   under each key. A witness is a transaction.
3. `wrong-projection`: the filtered log is the full one without what it does not admit. A witness is a transaction with
   rows that are left out.
4. `loop`: no table log has a transaction of another server twice, or one of its own server that came back. A witness is
   an entry that was born elsewhere.
5. `diverged`: at rest the rows of a replica are what the logs of its sources give, without what it left out. A witness
   is a row.
6. `stopped-replica`: no server, and no observer, stops to replicate, as no log has anything that it cannot apply. A
   witness is a server.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from clusters.drizzle.checks.dumped import (
    FILTERED,
    FULL,
    LACKING,
    PEOPLE,
    TABLE,
    Held,
    Logged,
    Observed,
    Shown,
    Whole,
    changed,
    shown,
    wholes,
)
from clusters.drizzle.shape import ADMITTED, MASTERS, ONLY_LOCAL, OWN, SOURCES
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "log-agreement"
UNLIKE, DIFFER, PROJECTION = "engine-unlike-log", "streams-differ", "wrong-projection"
LOOP, DIVERGED, STOPPED = "loop", "diverged", "stopped-replica"
ANOMALIES: Final = {
    UNLIKE: "A master has other rows than its log gives.",
    DIFFER: "Two logs of a master do not have the same transactions.",
    PROJECTION: "The filtered log has other transactions than the admitted part of the full log.",
    LOOP: "A transaction is twice in a table log, or came back to where it was born.",
    DIVERGED: "At rest a replica has other rows than its sources' logs give.",
    STOPPED: "A server stopped replicating, because a log had what cannot be applied.",
}
Rows = tuple[dict[Json, list[Json]], dict[Json, Json]]


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all servers. Raises HistoryError if the history is damaged."""
    found = shown(history)
    if found is None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, LACKING))
    logs = {(master, name): log for master, name, log in found.logs()}
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    for master in MASTERS:
        table = found.tables.get(master, ())
        witnesses[UNLIKE] += sum(len(elements) for _, elements in found.held[master].lists)
        witnesses[DIFFER] += len(logs[master, FULL])
        witnesses[PROJECTION] += sum(each.rows() != each.rows(ADMITTED) for each in logs[master, FULL])
        witnesses[LOOP] += sum(each.origin != master for each in table)
        for name, given in ((TABLE, _replayed(table)), (FULL, _of(logs[master, FULL]))):
            troubles += _unlike(master, name, found.held[master], given)
        troubles += _differ(master, logs[master, FULL], logs[master, TABLE])
        troubles += _projection(master, logs[master, FULL], logs[master, FILTERED])
        troubles += _loops(master, table)
    for node, sources in SOURCES.items():
        held = found.held[node]
        witnesses[STOPPED] += 1
        if held.error is not None:
            troubles.append(Trouble(STOPPED, f"{node} stopped replicating: {held.error}.", (node,)))
            continue
        by_source = {source: _replayed(_due(found, node, source)) for source in sources}
        witnesses[DIVERGED] += sum(len(lists) for lists, _ in by_source.values())
        troubles += [each for source, rows in by_source.items() for each in _diverged(held, node, source, rows)]
        if node not in MASTERS:
            troubles += _surplus(held, node, {key for _, people in by_source.values() for key in people})
    for followed, seen in found.observed.items():
        witnesses[STOPPED] += 1
        troubles += _observed(followed, seen, len(found.files[followed, FULL].pieces))
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _observed(master: str, seen: Observed, count: int) -> Iterator[Trouble]:
    """5 and 6, for the observer."""
    if seen.error is not None:
        yield Trouble(STOPPED, f"The observer of {master} stopped: {seen.error}.", ("o1", master))
    elif seen.place < count:
        sentence = f"At rest the observer has {seen.place} of the {count} pieces of {master}."
        yield Trouble(DIVERGED, sentence, ("o1", master))


def _of(log: Sequence[Whole]) -> Rows:
    """The rows that a log gives: lists and people."""
    lists: dict[Json, list[Json]] = {}
    people: dict[Json, Json] = {}
    for whole in log:
        for key, element in whole.rows():
            lists.setdefault(key, []).append(element)
        for entry, changes in whole.statements:
            for change in changes if entry.table == PEOPLE else ():
                changed(people, change)
    return lists, people


def _replayed(table: Sequence[Logged]) -> Rows:
    return _of([whole for each in table for whole in wholes(each.pieces)])


def _unlike(master: str, name: str, held: Held, given: Rows) -> Iterator[Trouble]:
    """1: what the log gives is there, and under the keys of the log nothing else."""
    lists, people = dict(held.lists), dict(held.people)
    for key in [*dict.fromkeys((*given[0], *(key for key in lists if name == TABLE)))]:
        there, due = [*lists.get(key, ())], given[0].get(key, [])
        if there != due:
            sentence = f"{master} has {there} under {key}, and its {name} log gives {due}."
            yield Trouble(UNLIKE, sentence, (master, name, str(key)))
            return
    if name == TABLE and people != given[1]:
        key = next(key for key in (*people, *given[1]) if people.get(key, ...) != given[1].get(key, ...))
        sentence = f"{master} has other people than its {name} log gives: '{key}' is one of them."
        yield Trouble(UNLIKE, sentence, (master, name, "people"))


def _differ(master: str, full: Sequence[Whole], table: Sequence[Whole]) -> Iterator[Trouble]:
    """2."""
    one, other = ({whole.id: whole for whole in log} for log in (full, table))
    for name, there, lacking in ((FULL, one, other), (TABLE, other, one)):
        for trx in there:
            if trx not in lacking:
                where = TABLE if name == FULL else FULL
                sentence = f"The {name} log of {master} has {trx[0]}:{trx[1]}, and the {where} log does not."
                yield Trouble(DIFFER, sentence, (master, name, trx))
                return
    lists, others = _of(full)[0], _of(table)[0]
    for key, elements in lists.items():
        if others.get(key) != elements:
            sentence = f"Under {key} the file log of {master} has {elements}, and the table log {others.get(key)}."
            yield Trouble(DIFFER, sentence, (master, str(key)))
            return


def _projection(master: str, full: Sequence[Whole], filtered: Sequence[Whole]) -> Iterator[Trouble]:
    """3."""
    due = [(whole.id, whole.rows(ADMITTED)) for whole in full if whole.rows(ADMITTED)]
    there = [(whole.id, whole.rows()) for whole in filtered if whole.rows()]
    for at in range(max(len(due), len(there))):
        one, other = due[at] if at < len(due) else None, there[at] if at < len(there) else None
        if one != other:
            names = [f"{each[0][0]}:{each[0][1]}" if each is not None else "nothing" for each in (one, other)]
            sentence = f"Transaction {at} of the filtered log of {master} is {names[1]}, and should be {names[0]}."
            yield Trouble(PROJECTION, sentence, (master, at))
            return


def _loops(master: str, table: Sequence[Logged]) -> Iterator[Trouble]:
    """4."""
    seen: dict[tuple[str, int], Logged] = {}
    for each in table:
        before = seen.setdefault((each.origin, each.origin_commit), each)
        is_back = each.origin == master and each.commit != each.origin_commit
        names = {piece.server for piece in each.pieces}
        if before is not each or is_back or (each.origin == master and names - {master}):
            sentence = (
                f"The table log of {master} has at {each.commit} what was born at {each.origin} as "
                f"{each.origin_commit}, in pieces of {', '.join(sorted(names))}."
            )
            yield Trouble(LOOP, sentence, (master, each.commit))
            return


def _due(found: Shown, node: str, source: str) -> list[Logged]:
    """What a server applies of a source's table log."""
    left_out = {position for name, position in found.skipped.get(node, ()) if name.split(" ")[0] == source}
    table = [each for each in found.tables.get(source, ()) if each.origin != node and each.commit not in left_out]
    return [each for each in table if each.origin == source] if node in ONLY_LOCAL else table


def _diverged(held: Held, node: str, source: str, given: Rows) -> Iterator[Trouble]:
    """5: the first row that is not what the source's log gives."""
    lists, people = dict(held.lists), dict(held.people)
    for key, due in given[0].items():
        if [*lists.get(key, ())] != due:
            sentence = f"At rest {node} has {[*lists.get(key, ())]} under {key}, and the log of {source} gives {due}."
            yield Trouble(DIVERGED, sentence, (node, source, str(key)))
            return
    for key, value in given[1].items():
        if key not in people or people[key] != value:
            there = repr(people[key]) if key in people else "nothing"
            sentence = f"At rest {node} has {there} for the person '{key}', and the log of {source} gives {value!r}."
            yield Trouble(DIVERGED, sentence, (node, source, str(key)))
            return


def _surplus(held: Held, node: str, due: set[Json]) -> Iterator[Trouble]:
    """5: the first person that no log gives, but for those that were inserted on the replica itself."""
    for key, value in held.people:
        if key not in due and value != OWN:
            yield Trouble(DIVERGED, f"At rest {node} has the person '{key}', which no log gives.", (node, str(key)))
            return


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
