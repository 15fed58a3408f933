"""Registers that held at first what was written later as well: no system reads what will be written only later."""

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.registers import Initial
from checkers.history.transactions import to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.verdict import Judgement
from tests.worlds.small_language import concurrent, sequential

ENGINE = LocalEngine(1)
OPEN, DECLARED = Initial(), Initial(is_declared=True)


def judged(texts: tuple[str, ...], model: str, initial: Initial = OPEN, *, in_turn: bool = True) -> Judgement:
    operations = (sequential if in_turn else concurrent)(*texts)
    return check_sources([to_transactions(operations)], ENGINE, Options(model=model, initial=initial))


EARLY = [
    ("rx=1 wx1",),  # The transaction writes again what it has read.
    ("rx=1 wx1", "rx=1"),
    ("rx=1 wx1 wx2",),
    ("wx2", "rx=1 wx1", "rx=2"),
]


@pytest.mark.parametrize("model", ["read-committed", "read-atomic", "serializable", "strict-serializable"])
@pytest.mark.parametrize("texts", EARLY)
def test_what_was_read_before_its_only_write_was_there_at_first(texts: tuple[str, ...], model: str) -> None:
    judgement = judged(texts, model)
    assert judgement.findings == ()
    assert judgement.unknown
    assert all("held it at first" in reason for reason in judgement.unknown.values())


@pytest.mark.parametrize(
    "texts",
    EARLY,
)
def test_if_registers_are_declared_to_be_empty_it_was_not_there(texts: tuple[str, ...]) -> None:
    judgement = judged(texts, "strict-serializable", DECLARED)
    assert "future-read" in {finding.anomaly for finding in judgement.findings}


@pytest.mark.parametrize("first", ["rx=", "rx=9"])
def test_if_a_read_shows_what_was_there_at_first_nothing_else_was(first: str) -> None:
    judgement = judged((first, "rx=1 wx1"), "strict-serializable")
    assert {finding.anomaly for finding in judgement.findings} == {"future-read"}


def test_a_read_of_another_transaction_may_show_the_write_wherever_it_stands_in_the_file() -> None:
    for in_turn, model in ((True, "strong-session-serializable"), (False, "strict-serializable")):
        judgement = judged(("rx=1", "wx1"), model, in_turn=in_turn)
        assert (judgement.findings, judgement.unknown) == ((), {})
    (finding,) = judged(("rx=1", "wx1"), "strict-serializable").findings
    assert finding.anomaly == "G1c-realtime"


@pytest.mark.parametrize("failed", ["!wx1", "~wx1"])
def test_what_another_transaction_tried_to_write_as_well_has_two_writers(failed: str) -> None:
    judgement = judged((failed, "rx=1 wx1"), "read-committed", in_turn=False)
    assert judgement.findings == ()
    assert "future-read" in judgement.unknown


def test_other_registers_are_judged_still() -> None:
    judgement = judged(("rx=1 wx1", "ry= wz1", "rz= wy1"), "serializable", in_turn=False)
    assert [finding.anomaly for finding in judgement.findings] == ["G2-item"]


@pytest.mark.parametrize("texts", [("rx=1 wy2", "ry=1 wx2", "wx1 wy1"), ("wx1 wy1", "rx=1 wy2", "ry=1 wx2")])
def test_what_was_written_was_not_there_at_first_unless_it_was_read_before(texts: tuple[str, ...]) -> None:
    skew = judged(texts, "serializable", in_turn=False)
    assert [finding.anomaly for finding in skew.findings] == ["G2-item"]
