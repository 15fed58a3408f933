"""Moments of commit as a proof that reads, known versions and real time have no cycle: on both sides of its limits."""

import pytest

from checkers.axioms import levels, moments
from checkers.axioms.execution import Execution
from checkers.axioms.levels import is_ordered
from checkers.axioms.moments import guesses, has_moments
from checkers.graph.edges import REALTIME
from checkers.history.transactions import Load, Operation, Store, to_transactions
from harness.core.columns import OK
from tests.bench import generated
from tests.unit.checkers.axioms.test_ladder import of


def chain(length: int, *, is_closed: bool = False, last_ends: int | None = None) -> Execution:
    """Transactions that run at one moment, each of which reads from the next one, the last one from none.

    With `is_closed` the last one reads from the first. `last_ends` is the end of the last one, if not that of all.
    """
    ends = [length] * (length - 1) + [length if last_ends is None else last_ends]
    reads = [(Load(at + 1, 1),) for at in range(length - 1)] + [(Load(0, 1),) if is_closed else ()]
    return of(
        to_transactions(
            [
                Operation(at, at, OK, end, (Store(at, 1), *read))
                for at, (end, read) in enumerate(zip(ends, reads, strict=True))
            ]
        )
    )


@pytest.mark.parametrize("length", [2, moments._PASSES, moments._PASSES + 1, 200])
def test_a_chain_of_reads_has_moments_if_it_is_short_enough_to_be_followed(length: int) -> None:
    assert has_moments(chain(length)) == (length <= moments._PASSES)
    assert is_ordered(chain(length), REALTIME)


@pytest.mark.parametrize("length", [2, 9, 200])
def test_a_cycle_of_reads_has_no_moments(length: int) -> None:
    assert not has_moments(chain(length, is_closed=True))
    assert not is_ordered(chain(length, is_closed=True), REALTIME)


def test_moments_are_the_answer_of_the_search_for_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that ended before the writer of what it shows began, with readers between them or without."""
    late = [
        of(
            to_transactions(
                [
                    Operation(0, 0, OK, end, (Load(0, 1),)),
                    Operation(1, 1, OK, 9, (Store(0, 1), Load(1, 1))),
                    Operation(2, 2, OK, 9, (Store(1, 1),)),
                ]
            )
        )
        for end in (1, 2, 3)
    ]
    answers = [is_ordered(each, REALTIME) for each in late]
    assert [has_moments(each) for each in late] == answers == [False, False, True]
    monkeypatch.setattr(levels, "has_moments", lambda _: False)
    assert [is_ordered(each, REALTIME) for each in late] == answers


@pytest.mark.parametrize("is_list", [True, False])
def test_versions_are_in_the_same_order_if_their_moments_need_more_bits(
    is_list: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = generated.transactions(500, seed=7)
    history = of(lists if is_list else generated.registers_of(lists))
    narrow = next(guesses(history))
    monkeypatch.setattr(moments, "_BITS", 0)
    wide = next(guesses(history))
    assert narrow.install.tolist() == wide.install.tolist()
    assert narrow.commit.tolist() == wide.commit.tolist()
