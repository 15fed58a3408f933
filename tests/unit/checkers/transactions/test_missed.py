"""Sentences about writes that update atomic does not allow to miss (G-UA), in lists."""

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.names import Names
from checkers.history.transactions import to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.verdict import Finding
from tests.worlds.small_language import concurrent


def shown(identity: int) -> str:
    return chr(identity) if identity > 96 else str(identity)


def only(*texts: str) -> Finding:
    options = Options(model="update-atomic", name=Names(shown))
    (finding,) = check_sources([to_transactions(concurrent(*texts))], LocalEngine(1), options).findings
    return finding


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (
            ("ax1 ay1", "ax2 ry", "ax3", "rx132", "ry1"),
            "T1 read y as [], without 1, which T0 appended next (as T4 saw); T1 appended 2 to x after T0 appended 1 "
            "(as T3 saw). So T1 before T0 before T1: no order allows that.",
        ),
        (
            ("ax1 ay1", "ax2 ry", "rx12", "ry1"),
            "T1 read y as [], without 1, which T0 appended next (as T3 saw); T1 appended 2 to x right after T0 "
            "appended 1 (as T2 saw). So T1 before T0 before T1: no order allows that.",
        ),
    ],
)
def test_a_missed_write_is_told_by_the_order_of_a_list_if_that_is_known(texts: tuple[str, ...], sentence: str) -> None:
    finding = only(*texts)
    assert (finding.anomaly, finding.sentence) == ("G-UA", sentence)


def test_a_missed_write_of_a_list_without_a_known_order_is_told_by_all_orders() -> None:
    # Nobody read x or y: whichever of the two appends to x came later, its transaction missed the other's.
    finding = only("ax1 ay1 rz", "ax2 az1 ry")
    assert finding.sentence.startswith("Whatever the order of the versions of x, ")
    assert any("in one order of versions" in step.sentence for step in finding.cycle)
