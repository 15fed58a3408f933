"""The form of the logs: guarantees G11, G12, G15, G16, G17, G18 and G30.

1. `log-order`: if a transaction had been answered before another one was invoked, the logs have them in this order. A
   witness is a transaction of a log that was acknowledged.
2. `commit-id`: the table log's commit ids rise by one from entry to entry. A witness is an entry.
3. `bad-record`: each record of a file log begins where the one before ends, and has its piece. A witness is a record.
4. `oversize-piece`: no piece has more rows than the threshold. A witness is a piece with that many rows.
5. `reused-id`: no two transactions of a log have one id. A witness is a transaction.
6. `changed-context`: all pieces of a transaction name one start. A witness is a piece after the first.
7. `wrong-version`: rows have the version that their table has in the log by then. A witness is a schema change.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from clusters.drizzle.checks.dumped import LACKING, FileLog, Logged, Op, Piece, Whole, ops, shown
from harness.core.columns import NEVER
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "log-form"
ORDER, COMMIT, RECORD, SIZE = "log-order", "commit-id", "bad-record", "oversize-piece"
REUSED, CONTEXT, VERSION = "reused-id", "changed-context", "wrong-version"
ANOMALIES: Final = {
    ORDER: "A log has a transaction before another one that had been answered before it was invoked.",
    COMMIT: "The commit ids of a table log do not rise by one.",
    RECORD: "A file log has a record that is not whole, or not where its offset is.",
    SIZE: "A piece has more rows than the threshold allows.",
    REUSED: "Two transactions in a log have one id.",
    CONTEXT: "The pieces of a transaction name different starts.",
    VERSION: "Rows in a log have another version than their table has by then.",
}


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all logs. Raises HistoryError if the history is damaged."""
    found = shown(history)
    if found is None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, LACKING))
    by_element = {element: op for op in ops(history) for _, element in op.appends}
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    for (master, name), file in found.files.items():
        where = f"the {name} log of {master}"
        troubles += [*_records(where, file), *_pieces(where, file.pieces), *_sizes(where, file)]
        witnesses[RECORD] += len(file.heads)
        witnesses[SIZE] += sum(_size(piece) == file.threshold for piece in file.pieces)
        witnesses[CONTEXT] += sum(piece.segment > 1 for piece in file.pieces)
        witnesses[REUSED] += len({piece.id for piece in file.pieces})
    for master, table in found.tables.items():
        witnesses[COMMIT] += len(table)
        troubles += _commits(master, table)
    for master, name, log in found.logs():
        where = f"the {name} log of {master}"
        witnessed, out_of_order = _order(where, log, by_element)
        witnesses[ORDER] += witnessed
        changes, versions = _versions(where, log)
        witnesses[VERSION] += changes
        troubles += [*out_of_order, *versions]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _order(where: str, log: Sequence[Whole], by_element: dict[Json, Op]) -> tuple[int, list[Trouble]]:
    """The witnesses of 1, and the violations: each transaction is compared with the one invoked last before it."""
    last: Op | None = None
    witnesses, troubles = 0, []
    for whole in log:
        op = next((by_element[element] for _, element in whole.rows() if element in by_element), None)
        if op is None:
            continue
        ended = op.row["complete_ns"] if op.row["outcome"] == 0 else NEVER
        witnesses += ended != NEVER
        if last is not None and ended < last.row["invoke_ns"]:
            sentence = (
                f"In {where} T{last.number} comes before T{op.number}, although T{op.number} had been answered before "
                f"T{last.number} was invoked."
            )
            troubles.append(Trouble(ORDER, sentence, (where, op.number, last.number), (op.number, last.number)))
        if last is None or op.row["invoke_ns"] > last.row["invoke_ns"]:
            last = op
    return witnesses, troubles


def _commits(master: str, table: Sequence[Logged]) -> Iterator[Trouble]:
    """2."""
    for one, other in pairwise(table):
        if other.commit <= one.commit:
            sentence = f"The table log of {master} has commit id {other.commit} after {one.commit}."
            yield Trouble(COMMIT, sentence, (master, one.commit, other.commit))


def _records(where: str, file: FileLog) -> Iterator[Trouble]:
    """3: the first violation of a file."""
    due = 0
    for at, (offset, length) in enumerate(file.heads):
        if at >= len(file.pieces):
            yield Trouble(RECORD, f"Record {at} of {where}, at {offset}, is not whole.", (where, at))
            return
        if offset != due or length != _size(file.pieces[at]) + 1:
            yield Trouble(RECORD, f"Record {at} of {where} has offset {offset}, and begins at {due}.", (where, at))
            return
        due += length


def _sizes(where: str, file: FileLog) -> Iterator[Trouble]:
    """4."""
    for piece in file.pieces:
        if _size(piece) > file.threshold:
            sentence = (
                f"Piece {piece.segment} of {piece.server}:{piece.trx} in {where} has {_size(piece)} rows, and the "
                f"threshold is {file.threshold}."
            )
            yield Trouble(SIZE, sentence, (where, piece.trx, piece.segment))


def _pieces(where: str, pieces: Sequence[Piece]) -> Iterator[Trouble]:
    """5 and 6."""
    first: dict[tuple[str, int], Piece] = {}
    for piece in pieces:
        name = f"{piece.server}:{piece.trx}"
        before = first.setdefault(piece.id, piece)
        if piece is not before and piece.segment == 1:
            yield Trouble(REUSED, f"In {where} two transactions have the id {name}.", (where, piece.trx))
        elif before.start_ns != piece.start_ns:
            sentence = (
                f"In {where} piece {piece.segment} of {name} names the start {piece.start_ns}, and its first piece "
                f"{before.start_ns}."
            )
            yield Trouble(CONTEXT, sentence, (where, piece.trx, piece.segment))


def _versions(where: str, log: Sequence[Whole]) -> tuple[int, list[Trouble]]:
    """The witnesses of 7, and the violations."""
    versions: dict[str, int] = {}
    witnesses, troubles = 0, []
    for whole in log:
        for entry, _ in whole.statements:
            if entry.kind == "ddl":
                witnesses += 1
                versions[entry.table] = versions.get(entry.table, 0) + 1
            if entry.version != versions.get(entry.table, 0):
                sentence = (
                    f"Transaction {whole.name} in {where} has version {entry.version} of {entry.table}, which has "
                    f"version {versions.get(entry.table, 0)} there by then."
                )
                troubles.append(Trouble(VERSION, sentence, (where, whole.name)))
    return witnesses, troubles


def _size(piece: Piece) -> int:
    return sum(len(entry.changes) for entry in piece.entries)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
