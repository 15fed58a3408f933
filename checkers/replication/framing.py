"""The pieces of units in a log: a small automaton, given as data, reads those of each unit.

A state `pieces` (its key names the log) is a list of pieces in the order of the log: [unit, number, is_last, symbols].
A state `framing` with the key of the log, or with key null for all logs, is the automaton; without one it is that of
STATEMENTS below. Pieces of different units may be mixed.
1. `piece-order`: the pieces of a unit have the numbers 1, 2, ... without a hole, a repetition, or a way back.
2. `piece-after-end`: a unit has one last piece, and nothing after it.
3. `broken-framing`: the automaton has a move for each symbol, and ends in one of its `ends` with the last piece.
4. `open-unit`: when all is at rest, each unit has its last piece.
Witnesses: for 1 and 2 pieces after the first, or of units with an end; for 3 symbols; for 4 units of several pieces.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import State, states
from checkers.history.troubles import Trouble, judgement
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "framing"
ORDER, AFTER, BROKEN, OPEN = "piece-order", "piece-after-end", "broken-framing", "open-unit"
ANOMALIES: Final = {
    ORDER: "A piece of a transaction is missing in a log, or is there twice or too early.",
    AFTER: "A log has a piece of a transaction that had ended there.",
    BROKEN: "The pieces of a transaction do not fit together.",
    OPEN: "A transaction never ends in a log, although all is at rest.",
}


class Automaton(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The allowed orders of symbols: `moves` are [state, symbol, next state]; a unit may end in a state of `ends`."""

    start: str
    moves: tuple[tuple[str, str, str], ...]
    ends: tuple[str, ...]


# Statements that may be cut: whole, or open, then any number of more, then last. `cancel` takes back the one that is
# open, `undo` several, and perhaps the open one; `rollback` takes back all and is the last symbol.
STATEMENTS: Final = Automaton(
    start="between",
    moves=(
        ("between", "whole", "between"),
        ("between", "open", "inside"),
        ("inside", "more", "inside"),
        ("inside", "last", "between"),
        ("inside", "cancel", "between"),
        ("inside", "undo", "between"),
        ("between", "undo", "between"),
        ("inside", "rollback", "over"),
        ("between", "rollback", "over"),
    ),
    ends=("between", "over"),
)


class Piece(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One piece of a unit."""

    unit: Json
    number: int
    is_last: bool
    symbols: tuple[str, ...]


class _Unit:
    """How far a unit has come."""

    def __init__(self, start: str) -> None:
        self.state: str | None = start  # None: it is broken.
        self.count = 0
        self.is_over = False


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all logs. Raises HistoryError if a record is not what the module's text has."""
    found = states(history, Dictionary(history), "pieces", "framing")
    automata = {state.key: _automaton(history, state) for state in found["framing"]}
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    for state in {state.key_id: state for state in found["pieces"]}.values():
        try:
            pieces = msgspec.convert(state.value, list[Piece])
        except msgspec.ValidationError as error:
            raise HistoryError(f"{history}: pieces of {state.key}: {error}") from None
        automaton = automata.get(state.key) or automata.get(None) or STATEMENTS
        troubles += judged(str(state.key), pieces, automaton)
        later = sum(piece.number > 1 for piece in pieces)
        symbols = sum(len(piece.symbols) for piece in pieces)
        ends = sum(piece.is_last for piece in pieces)
        for name, count in ((ORDER, later), (AFTER, ends), (BROKEN, symbols), (OPEN, later)):
            witnesses[name] += count
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _automaton(history: Path, state: State) -> Automaton:
    try:
        return msgspec.convert(state.value, Automaton)
    except msgspec.ValidationError as error:
        raise HistoryError(f"{history}: framing of {state.key}: {error}") from None


def judged(log: str, pieces: list[Piece], automaton: Automaton = STATEMENTS) -> Iterator[Trouble]:
    """The violations in one log, whose pieces are given in its order; of each unit the first of each kind."""
    moves = {(state, symbol): after for state, symbol, after in automaton.moves}
    units: dict[Json, _Unit] = {}
    for piece in pieces:
        unit = units.setdefault(_hashable(piece.unit), _Unit(automaton.start))
        if unit.is_over:
            yield _trouble(AFTER, log, piece, f"has piece {piece.number} of {piece.unit} after its last piece")
            continue
        unit.count += 1
        if piece.number != unit.count:
            yield _trouble(ORDER, log, piece, f"has piece {piece.number} of {piece.unit} as its piece {unit.count}")
            unit.count = piece.number
        for symbol in piece.symbols if unit.state is not None else ():
            before, unit.state = unit.state, moves.get((str(unit.state), symbol))
            if unit.state is None:
                yield _trouble(BROKEN, log, piece, f"has '{symbol}' in {piece.unit}, piece {piece.number}, {before}")
                break
        unit.is_over = piece.is_last
        if piece.is_last and unit.state is not None and unit.state not in automaton.ends:
            yield _trouble(BROKEN, log, piece, f"has the last piece of {piece.unit}, which is {unit.state}")
    for piece in {
        _hashable(piece.unit): piece for piece in pieces if not units[_hashable(piece.unit)].is_over
    }.values():
        yield _trouble(OPEN, log, piece, f"has {piece.number} pieces of {piece.unit}, and not the last one")


def _trouble(anomaly: str, log: str, piece: Piece, what: str) -> Trouble:
    return Trouble(anomaly, f"The log {log} {what}.", (log, str(piece.unit), piece.number))


def _hashable(value: Json) -> Json:
    return value if isinstance(value, str | int) else str(value)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
