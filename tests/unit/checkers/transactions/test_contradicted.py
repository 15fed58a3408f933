"""Lists on whose order reads disagree: it is known as far as all agree, and proves nothing after that."""

from collections.abc import Sequence

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import Operation, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from tests.worlds.small_language import concurrent

ENGINE = LocalEngine(1)


def names(operations: Sequence[Operation]) -> set[str]:
    return {finding.anomaly for finding in check_sources([to_transactions(operations)], ENGINE).findings}


@pytest.mark.parametrize(
    "texts",
    [
        ("rx12", "rx21 ry1", "ax2 ay1"),  # T1 had seen 2.
        ("rx12", "rx21", "rx31 ry", "ax2 ay1"),  # T2 saw x end with 1, not with 2: it precedes T3 by both keys.
        ("ax1 ay1", "ax2 ay2", "rx12", "rx2", "ry21"),
        ("ax1 ay1", "ax2 ay2", "ax3", "rx312", "rx32", "ry21"),
    ],
)
def test_of_an_order_that_reads_contradict_no_cycle_is_claimed(texts: tuple[str, ...]) -> None:
    operations = concurrent(*texts)
    assert names(operations) == {"incompatible-order"}
    judgement = check_sources([to_transactions(operations)], ENGINE, Options(model="read-uncommitted"))
    assert (judgement.findings, judgement.unknown) == ((), {})
    assert judgement.facts["ruled_out_weakest"] == ["read-committed"]


@pytest.mark.parametrize(
    "texts",
    [
        ("ax1 ay1", "ax2 ay2", "rx12", "ry21"),
        # All agree that 1 comes first, and so before what T3 alone shows, or nobody.
        ("ax1 ay1", "ax2 ay2", "ax3", "rx132", "rx12", "ry21"),
        ("ax1 ay1", "ax2 ay2", "ax3 ax4", "rx134", "rx12", "ry21"),
        ("ax1 ay1", "ax2 ay2", "ax3", "ax4", "rx13", "rx14", "ry21"),
    ],
)
def test_what_all_reads_agree_on_is_an_order_of_versions(texts: tuple[str, ...]) -> None:
    judgement = check_sources([to_transactions(concurrent(*texts))], ENGINE, Options(model="read-uncommitted"))
    assert [finding.anomaly for finding in judgement.findings] == ["G0"]


def test_who_saw_what_all_agree_on_misses_what_comes_after_it_in_any_order() -> None:
    assert names(concurrent("rx1 ry1", "rx12", "rx13", "ax3 ay1")) == {"incompatible-order", "G-single"}


def test_a_promise_that_allows_contradictions_gets_no_proof_from_the_axioms() -> None:
    operations = concurrent("ax1 ay1", "ax2", "rx12", "rx2", "rx1 ry")
    options = Options(prohibited=(frozenset({"fractured-read"}),))
    judgement = check_sources([to_transactions(operations)], ENGINE, options)
    assert judgement.findings == ()
    assert all(why.startswith("contradicted-order: ") for why in judgement.unknown.values())
