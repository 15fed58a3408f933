"""What a server shows at the end of a run: its logs and rows, for the checks.

`file-log` and `table-log` have all pieces as they stand there. `pieces`, `source-log`, `replica-state` and `skipped`
have the forms that the checks of replication read in any history.
"""

from collections.abc import Iterator, Sequence

from clusters.drizzle.logs.assembly import Assembly, BadPieces
from clusters.drizzle.logs.engine import Engine
from clusters.drizzle.logs.file_log import FileLog, Head
from clusters.drizzle.messages import Committed, Entry, Piece
from clusters.drizzle.shape import MASTERS, PEOPLE, SOURCES, file_source, source_name
from harness.core.machine import Dump, NodeId
from harness.core.record import Json


def file_log(node: NodeId, log: FileLog, threshold: int) -> Iterator[Dump]:
    """A file log: the threshold of its pieces, the heads of its records, and its pieces."""
    if node not in MASTERS:
        return
    name = f"{node} {log.name}"
    heads = [[each.offset, each.length] for each in log.records if isinstance(each, Head)]
    yield Dump(object="file-log", key=name, value=[threshold, heads, [*map(_piece, log.pieces)]])
    yield Dump(object="pieces", key=name, value=[*map(framed, log.pieces)])
    if name == file_source(node):
        yield Dump(object="source-log", key=name, value=[*_finals(log.pieces)])


def table_log(node: NodeId, log: Sequence[Committed]) -> Iterator[Dump]:
    """The table log: the transactions that committed, in the order in which they became visible."""
    if node not in MASTERS:
        return
    whole = [
        [each.commit, each.trx, each.origin, each.origin_commit, [*map(_piece, each.pieces)]] for each in log
    ]  # fmt: skip
    yield Dump(object="table-log", key=node, value=whole)
    pieces = [piece for each in log if each.origin == node for piece in each.pieces]
    yield Dump(object="pieces", key=f"{node} table", value=[*map(framed, pieces)])
    for source, chosen in ((node, log), (f"{node} local", [each for each in log if each.origin == node])):
        units = [[each.commit, _name(each), _rows(each.pieces)] for each in chosen]
        yield Dump(object="source-log", key=source, value=units)


def _name(entry: Committed) -> str:
    """A transaction's name: where it was born, and its id there."""
    return f"{entry.origin}:{entry.pieces[0].trx if entry.pieces else entry.trx}"


def rows(node: NodeId, engine: Engine, error: str | None) -> Iterator[Dump]:
    """The rows of a server, and how replication stands there."""
    lists: Json = [[key, list(held)] for key, held in sorted(engine.lists.items(), key=str)]
    people: Json = [[key, value] for key, value in sorted(engine.people.items(), key=str)]
    versions: Json = [[table, version] for table, version in sorted(engine.versions.items())]
    yield Dump(object="rows", key=node, value=[lists, people, versions, error])
    if node not in MASTERS:
        yield Dump(object="replica-state", key=node, value=[positions(node, engine), lists])
        left_out: Json = [[source_name(node, source), position] for source, position in engine.left_out]
        yield Dump(object="skipped", key=node, value=left_out)


def positions(node: NodeId, engine: Engine) -> Json:
    """The positions of a server in the logs of its sources."""
    return [[source_name(node, source), engine.positions.get(source, 0)] for source in SOURCES[node]]


def _finals(pieces: Sequence[Piece]) -> Iterator[list[object]]:
    """The transactions of a file log, each at the place of its last piece."""
    opened: dict[int, list[Piece]] = {}
    for place, piece in enumerate(pieces, start=1):
        opened.setdefault(piece.trx, []).append(piece)
        if piece.is_end:
            yield [place, f"{piece.server}:{piece.trx}", _rows(opened.pop(piece.trx))]


def _rows(pieces: Sequence[Piece]) -> list[list[Json]]:
    """The rows of lists that a transaction appends, as far as its pieces fit together."""
    whole = Assembly()
    for piece in pieces:
        try:
            whole.add(piece)
        except BadPieces:
            break
    return [[change.key, change.value] for entry, changes in whole.rows if entry.table != PEOPLE for change in changes]


def framed(piece: Piece) -> list[object]:
    """A piece for the check of framing."""
    return [f"{piece.server}:{piece.trx}", piece.segment, piece.is_end, [_symbol(entry) for entry in piece.entries]]


def _symbol(entry: Entry) -> str:
    """The entry's name for the check of framing."""
    match entry.kind:
        case "rollback-statement":
            return "cancel"
        case "rollback-to":
            return "undo"
        case "rollback":
            return "rollback"
        case _:
            is_first = entry.segment == 1
            return ("whole" if is_first else "last") if entry.is_end else ("open" if is_first else "more")


def _piece(piece: Piece) -> list[object]:
    entries = [
        [
            *(each.kind, each.table, each.segment, each.is_end, each.version, each.keep),
            [[change.verb, change.key, change.value, change.after] for change in each.changes],
        ]
        for each in piece.entries
    ]
    return [piece.server, piece.trx, piece.segment, piece.is_end, piece.start_ns, entries]
