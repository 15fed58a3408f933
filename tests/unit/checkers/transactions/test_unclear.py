"""What the whole check says where outcomes or orders are unclear, against every reading of the history."""

import pytest

from checkers.history.transactions import Operation, to_transactions
from tests.bench.axioms import MODELS, verdict
from tests.oracles.explained import explained
from tests.worlds.small_language import concurrent


def verdicts(operations: list[Operation], *names: str) -> dict[str, str]:
    """Our answers, none of which contradicts brute force."""
    answers = {name: verdict([to_transactions(operations)], name) for name in names}
    right = explained(operations, [MODELS[name] for name in names])
    assert all(answer != ("invalid" if MODELS[name] in right else "valid") for name, answer in answers.items()), answers
    return answers


@pytest.mark.parametrize("outcome", ["", "~"])
def test_an_unclear_append_that_no_read_shows_has_an_order_if_its_transaction_is_seen(outcome: str) -> None:
    # T1 is seen by z. If its append to x came before that of T0, then T0 missed z; if after it, then T2 missed w.
    operations = concurrent("rz aw1 ax1", outcome + "az1 ax2", "rz1 rw")
    expected = {"snapshot-isolation": "invalid", "parallel-snapshot-isolation": "invalid", "update-atomic": "valid"}
    assert verdicts(operations, *expected) == expected
