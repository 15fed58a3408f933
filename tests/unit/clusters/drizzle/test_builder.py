"""Messages of drawn transactions, put together again: without a bug they have exactly what the transaction did."""

from random import Random

import msgspec
import pytest

from checkers.replication.framing import Piece as Framed
from checkers.replication.framing import judged
from clusters.drizzle import planted
from clusters.drizzle.logs.assembly import Assembly, BadPieces
from clusters.drizzle.logs.streams import Filter
from clusters.drizzle.master.builder import Builder, LogRefused, Mark
from clusters.drizzle.messages import Change, Piece
from clusters.drizzle.shape import ADMITTED
from clusters.drizzle.show import framed
from harness.core.machine import NodeId
from tests.amount import FIRST_SEED, count

TABLES = ("lists", "queues", "private")
Statements = list[tuple[str, tuple[Change, ...]]]


def drawn(seed: int, *bugs: str) -> tuple[list[Piece], Statements | None, Builder]:
    """The pieces of a drawn transaction, and the statements that it has in the end; None if it was rolled back."""
    draw = Random(seed)
    sent: list[Piece] = []

    def send(piece: Piece) -> bool:
        sent.append(piece)
        return True

    ids = iter(range(1, 99))
    builder = Builder(NodeId("m1"), frozenset(bugs), draw.randint(2, 4), lambda: next(ids), send, lambda: 7)
    builder.reset()
    done: Statements = []
    savepoints: list[tuple[Mark, int]] = []
    element = iter(range(1000))
    for _ in range(draw.randint(1, 12)):
        match draw.choice(("rows", "rows", "rows", "rows", "fail", "savepoint", "back")):
            case "savepoint":
                savepoints.append((builder.mark(), len(done)))
            case "back" if savepoints:
                mark, length = draw.choice(savepoints)
                savepoints = [each for each in savepoints if each[1] <= length]
                del done[length:]
                builder.rollback_to(mark)
            case ("rows" | "fail") as kind:
                table = draw.choice(TABLES)
                changes = tuple(Change("insert", 0, next(element)) for _ in range(draw.choice((1, 1, 1, 2, 3, 9))))
                for change in changes:
                    builder.add(table, 0, change)
                if kind == "fail":
                    builder.fail_statement()
                else:
                    builder.end_statement()
                    done.append((table, changes))
    is_commit = draw.random() < 0.7
    last = builder.last_piece() if is_commit else builder.rollback_piece()
    if last is not None:
        builder.finish(last)
    return sent, done if is_commit else None, builder


def assembled(pieces: list[Piece]) -> Statements | None:
    """The statements that a reader gets; None if the transaction was rolled back. Raises BadPieces."""
    whole = Assembly()
    ended = [whole.add(piece) for piece in pieces]
    if ended != [False] * (len(pieces) - 1) + [True]:
        raise BadPieces("no end")
    return None if whole.is_rolled_back else [(entry.table, changes) for entry, changes in whole.rows]


def complaint(pieces: list[Piece], done: Statements | None) -> str | None:
    """The reason why these pieces are not the transaction, if they are not."""
    if not pieces:
        return "nothing was sent" if done else None
    if [*judged("log", msgspec.convert([framed(piece) for piece in pieces], list[Framed]))]:
        return "the framing is broken"
    try:
        found = assembled(pieces)
    except BadPieces as reason:
        return str(reason)
    return None if found == done else f"{found} was sent"


def seeds() -> range:
    return range(FIRST_SEED, FIRST_SEED + count(400))


def test_a_drawn_transaction_is_what_its_pieces_have() -> None:
    cut = 0
    for seed in seeds():
        pieces, done, _ = drawn(seed)
        assert complaint(pieces, done) is None, (seed, pieces)
        cut += len(pieces) > 1
    assert cut > len(seeds()) // 3


def test_the_filter_passes_on_exactly_what_it_admits() -> None:
    for seed in seeds():
        pieces, done, _ = drawn(seed)
        kept = Filter(frozenset())
        passed = [each for piece in pieces if (each := kept.pass_on(piece)) is not None]
        due = None if done is None else [each for each in done if each[0] in ADMITTED]
        if passed:
            assert complaint(passed, due) is None, (seed, passed)
        else:
            assert not due, (seed, pieces)


@pytest.mark.parametrize(
    "bug",
    [
        planted.ROLLBACK_BY_STATEMENT_SEG,
        planted.EMPTY_FINAL_DROPPED,
        planted.SAVEPOINT_COPY,
        planted.STMT_ERROR_SEGMENTED_IGNORED,
        planted.FINAL_WITH_OPEN_STMT,
    ],
)
def test_a_wrong_rule_shows_in_drawn_transactions(bug: str) -> None:
    assert any(complaint(*drawn(seed, bug)[:2]) is not None for seed in seeds())


def test_a_piece_that_a_log_refuses_is_not_sent() -> None:
    builder = Builder(NodeId("m1"), frozenset(), 1, lambda: 5, lambda _: False, lambda: 7)
    builder.add("lists", 0, Change("insert", 0, 1))
    with pytest.raises(LogRefused):
        builder.add("lists", 0, Change("insert", 0, 2))
    assert (builder.has_sent, builder.rollback_piece()) == (False, None)
