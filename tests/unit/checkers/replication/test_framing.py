"""The pieces of transactions in logs: what must be found, what must not, and legal oddities."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from checkers.engine.protocol import Context
from checkers.replication import framing
from checkers.replication.framing import Piece, judged
from harness.core.errors import HistoryError
from harness.core.record import State
from harness.record.formats.parquet.parquet import write_history
from tests.amount import count
from tests.oracles.replication import faults_of
from tests.worlds.run_cases import ENGINE, anomalies

Told = list[tuple[str, int, bool, tuple[str, ...]]]
WHOLE = ("whole",)
CASES: dict[str, tuple[Told, list[str]]] = {
    "one piece": ([("a", 1, True, WHOLE)], []),
    "pieces of two transactions, mixed": (
        [("a", 1, False, ("open",)), ("b", 1, False, WHOLE), ("a", 2, True, ("last",)), ("b", 2, True, ())],
        [],
    ),
    "a statement that was cut, and cancelled": (
        [("a", 1, False, ("whole", "open")), ("a", 2, False, ("more",)), ("a", 3, True, ("cancel", "whole"))],
        [],
    ),
    "a rollback of what was open": ([("a", 1, False, ("open",)), ("a", 2, True, ("rollback",))], []),
    "an empty last piece": ([("a", 1, False, WHOLE), ("a", 2, True, ())], []),
    "back to a savepoint over a cut": ([("a", 1, False, ("open",)), ("a", 2, True, ("undo", "whole"))], []),
    "a hole": ([("a", 1, False, WHOLE), ("a", 3, True, WHOLE)], ["piece-order"]),
    "a number twice": ([("a", 1, False, WHOLE), ("a", 1, True, WHOLE)], ["piece-order"]),
    "no first piece": ([("a", 2, True, ("rollback",))], ["piece-order"]),
    "a piece after the last one": ([("a", 1, True, WHOLE), ("a", 2, True, WHOLE)], ["piece-after-end"]),
    "never ended": ([("a", 1, False, WHOLE)], ["open-unit"]),
    "ended inside a statement": ([("a", 1, False, ("open",)), ("a", 2, True, ("more",))], ["broken-framing"]),
    "a statement begins inside another": ([("a", 1, False, ("open",)), ("a", 2, True, WHOLE)], ["broken-framing"]),
    "continued what was not cut": ([("a", 1, False, WHOLE), ("a", 2, True, ("last",))], ["broken-framing"]),
    "something after a rollback": ([("a", 1, True, ("rollback", "whole"))], ["broken-framing"]),
}
# PostgreSQL streams transactions in progress in blocks; an abort may be that of a subtransaction.
BLOCKS = {
    "start": "idle",
    "moves": [
        *[["idle", "stream-start", "streaming"], ["streaming", "change", "streaming"]],
        *[["streaming", "stream-stop", "idle"], ["idle", "stream-abort", "idle"], ["idle", "stream-commit", "done"]],
    ],
    "ends": ["idle", "done"],
}


def history(folder: Path, pieces: Any, automaton: Any = None) -> Path:
    records = [State(1, "m1", "pieces", "log", [[*piece[:3], [*piece[3]]] for piece in pieces])]
    if automaton is not None:
        records.append(State(1, "m1", "framing", None, automaton))
    write_history(records, folder)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_the_pieces_of_a_log(tmp_path: Path, case: str) -> None:
    pieces, expected = CASES[case]
    assert anomalies(framing.check(history(tmp_path, pieces), Context(engine=ENGINE))) == expected
    assert sorted(faults_of(pieces)) == expected


def test_a_history_may_bring_an_automaton_of_its_own(tmp_path: Path) -> None:
    good = [("7", 1, False, ("stream-start", "change", "stream-stop")), ("7", 2, True, ("stream-commit",))]
    bad = [("7", 1, False, ("stream-start", "change")), ("7", 2, True, ("stream-commit",))]
    found = [
        framing.check(history(tmp_path / name, pieces, BLOCKS), Context(engine=ENGINE))
        for name, pieces in (("good", good), ("bad", bad))
    ]
    assert [anomalies(each) for each in found] == [[], ["broken-framing"]]
    assert found[0].witnesses == {"piece-order": 1, "piece-after-end": 1, "broken-framing": 4, "open-unit": 1}
    assert found[1].findings[0].sentence == "The log log has 'stream-commit' in 7, piece 2, streaming."


def test_a_log_of_another_form_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="pieces of log"):
        framing.check(history(tmp_path, [("a", "one", True, ())]), Context(engine=ENGINE))


def test_drawn_logs_are_judged_as_the_oracle_judges_them() -> None:
    symbols = ("whole", "whole", "open", "more", "last", "cancel", "undo", "rollback")
    kinds = set()
    for seed in range(count(300)):
        draw = Random(seed)
        pieces: Told = []
        for unit in ("a", "b"):
            pieces_of = draw.randint(1, 3)
            for number in range(1, pieces_of + 1):
                told = draw.randint(1, 3) if draw.random() < 0.1 else number
                is_last = (number == pieces_of) != (draw.random() < 0.1)
                pieces.append((unit, told, is_last, tuple(draw.choices(symbols, k=draw.randint(0, 2)))))
        expected = faults_of(pieces)
        found = {each.anomaly for each in judged("log", [Piece(*piece) for piece in pieces])}
        assert found == expected, (seed, pieces)
        kinds |= expected
    assert len(kinds) == 4
