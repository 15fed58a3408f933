"""Slow, obvious oracles for runs of Drizzle: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. It rests on the table logs and file logs that the
masters show, on the rows of all servers, and on what clients asked for and got.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from harness.core.record import Complete, Evidence, Invoke, Json, State

MASTERS = ("m1", "m2")
PRIVATE = ("private", "private2")


class Run:
    """What the records of a run hold, sorted out."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self.asked = {each.index: each for each in evidence if isinstance(each, Invoke)}
        self.ended = {each.index: each for each in evidence if isinstance(each, Complete)}
        shown: dict[tuple[str, Json], Any] = {
            (each.object, each.key): each.value for each in evidence if isinstance(each, State)
        }
        self.shown = shown

    def file(self, master: str, name: str = "file") -> list[Any]:
        """The pieces of a file log."""
        pieces: list[Any] = self.shown["file-log", f"{master} {name}"][2]
        return pieces


def complaints(evidence: Sequence[Evidence]) -> dict[str, list[str]]:
    """The sentences of each oracle that has any."""
    run = Run(evidence)
    if ("rows", "m1") not in run.shown:
        return {"rest": ["the run did not come to rest"]}
    oracles = {"pieces": _pieces, "clients": _clients, "rows": _rows, "replicas": _replicas, "filter": _filter}
    found = {name: list(oracle(run)) for name, oracle in oracles.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def kept(pieces: Sequence[Any]) -> list[tuple[str, list[Any]]] | None:
    """The statements of one transaction that count, each as its table and changes; None if it was rolled back."""
    statements: list[tuple[str, list[Any], bool]] = []
    for piece in pieces:
        for kind, table, number, is_end, _, keep, changes in piece[5]:
            is_open = bool(statements) and not statements[-1][2]
            if kind == "rollback":
                return None
            if kind in ("rollback-statement", "rollback-to"):
                if is_open:
                    statements.pop()
                if kind == "rollback-to":
                    statements = statements[:keep]
            elif is_open and number > 1:
                statements[-1] = (table, statements[-1][1] + changes, is_end)
            else:
                statements.append((table, list(changes), is_end))
    return [(table, changes) for table, changes, _ in statements]


def transactions(pieces: Sequence[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """The transactions that ended, by id, with all their pieces, in the order of their last pieces."""
    for at, piece in enumerate(pieces):
        if piece[3]:
            yield tuple(piece[:2]), [each for each in pieces[: at + 1] if each[:2] == piece[:2]]


def listed(statements: list[tuple[str, list[Any]]], *, without: tuple[str, ...] = ()) -> list[tuple[Json, Json]]:
    """The elements that these statements append."""
    return [
        (change[1], change[2])
        for table, changes in statements
        for change in changes
        if change[0] == "insert" and table not in without
    ]


def _pieces(run: Run) -> Iterator[str]:
    """Pieces are numbered from 1, end once, and are of one transaction alone."""
    for master in MASTERS:
        for name in ("file", "filtered"):
            pieces = run.file(master, name)
            for trx in {tuple(piece[:2]) for piece in pieces}:
                own = [piece for piece in pieces if tuple(piece[:2]) == trx]
                if [piece[2] for piece in own] != list(range(1, len(own) + 1)):
                    yield f"{master} {name}: the pieces of {trx} have the numbers {[piece[2] for piece in own]}"
                if [piece[3] for piece in own] != [False] * (len(own) - 1) + [True]:
                    yield f"{master} {name}: {trx} does not end with its last piece"
                if len({piece[4] for piece in own}) > 1:
                    yield f"{master} {name}: {trx} has several starts"


def _clients(run: Run) -> Iterator[str]:
    """What clients appended is in the log: all of it if it was acknowledged, and nothing that was refused."""
    logged: dict[Json, list[tuple[Json, Json]]] = {}
    for master in MASTERS:
        for _, pieces in transactions(run.file(master)):
            rows = listed(kept(pieces) or [])
            logged.update({element: rows for _, element in rows})
    due: set[Json] = set()
    for index, asked in run.asked.items():
        rows = [(mop.key, mop.value) for mop in asked.mops or () if mop.f == "append"]
        due.update(element for _, element in rows)
        outcome = run.ended[index].outcome if index in run.ended else "info"
        there = [logged[element] for _, element in rows if element in logged]
        if outcome == "fail" and there:
            yield f"T{index} was refused, and is in the log"
        if outcome == "ok" and rows and not there:
            yield f"T{index} is not in the log"
        if any(each != rows for each in there):
            yield f"T{index} appended {rows}, and the log has {there[0]}"
    for element in logged:
        if element not in due:
            yield f"the log has {element}, which nobody appended"


def replay(pieces_of: Sequence[Sequence[Any]]) -> dict[Json, list[Json]]:
    """The lists that these transactions give."""
    lists: dict[Json, list[Json]] = {}
    for pieces in pieces_of:
        for key, element in listed(kept(pieces) or []):
            lists.setdefault(key, []).append(element)
    return lists


def _rows(run: Run) -> Iterator[str]:
    """At rest each server has the lists that the table logs give."""
    table = {master: run.shown["table-log", master] for master in MASTERS}
    for node, (lists, _, _, error) in ((key, value) for (name, key), value in run.shown.items() if name == "rows"):
        if error is not None:
            yield f"{node} stopped: {error}"
            continue
        skipped = {tuple(each) for each in run.shown.get(("skipped", node), [])}
        sources = {"m1": ["m1"], "m2": ["m2"], "r1": ["m1"], "r2": ["m1", "m2"]}[str(node)]
        due: dict[Json, list[Json]] = {}
        for source in sources:
            chosen = [
                entry[4]
                for entry in table[source]
                if (node != "r2" or entry[2] == source) and (f"{source} local", entry[0]) not in skipped
            ]
            due |= replay(chosen)
        if dict(lists) != due:
            yield f"{node} has {lists}, and its sources' logs give {due}"


def _replicas(run: Run) -> Iterator[str]:
    """Each read on a replica is the state after some number of transactions of each source."""
    for index, asked in run.asked.items():
        if asked.f != "replica-read" or index not in run.ended or run.ended[index].outcome != "ok":
            continue
        value: Any = run.ended[index].value
        for source, position in value[0]:
            skipped = {tuple(each) for each in run.shown.get(("skipped", run.ended[index].node), [])}
            units = [unit for unit in run.shown["source-log", source] if (source, unit[0]) not in skipped]
            known = {key for unit in units for key, _ in unit[2]}
            shown = {key: held for key, held in value[1] if key in known and held}
            due: dict[Json, list[Json]] = {}
            for at, _, rows in units:
                for key, element in rows if at <= position else ():
                    due.setdefault(key, []).append(element)
            asked_for = {key for key, _ in value[1]}
            if shown != {key: held for key, held in due.items() if key in asked_for}:
                yield f"T{index} shows {shown} at {position} of {source}, and not {due}"


def _filter(run: Run) -> Iterator[str]:
    """The filtered log has the rows of the full one, in order, but those of private tables."""
    for master in MASTERS:
        full = [listed(kept(pieces) or [], without=PRIVATE) for _, pieces in transactions(run.file(master))]
        less = [listed(kept(pieces) or []) for _, pieces in transactions(run.file(master, "filtered"))]
        if [each for each in full if each] != [each for each in less if each]:
            yield f"the filtered log of {master} is not the full one without private rows"
