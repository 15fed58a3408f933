"""The check against the trial of all serial orders, which knows nothing of graphs: histories of up to six transactions.

SEAMARK_FUZZ_COUNT is the number of histories of each kind, SEAMARK_FUZZ_SEED where their seeds begin. A failure names
its seed. Of lists the check must find out exactly which histories have an order; of registers it must accuse none that
has one.
"""

from collections.abc import Callable
from random import Random

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.registers import ORDER, Order, Trust
from checkers.history.transactions import Operation, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from checkers.words import models
from tests.amount import FIRST_SEED, count
from tests.oracles.serial_orders import has_serial_order
from tests.worlds import histories
from tests.worlds.registers import transactions as register_transactions

COUNT = count(100)
ENGINE = LocalEngine(1)
STRICT = "strict-serializable"
# In these nothing was there before the history began.
FORBIDDEN = {model: models.prohibited((model,), ("garbage-read",)) for model in ("serializable", STRICT)}
ENOUGH = 200  # From so many histories on the share of those without an order must be fair.

Make = Callable[..., list[Operation]]
Spoil = Callable[[Random, list[Operation]], list[Operation]]


def drawn(seed: int, correct: Make, stale: Make, spoiled: Spoil) -> list[Operation]:
    """A history, in most of which something may be wrong."""
    draw = Random(seed)
    make = draw.choice((correct, stale))
    operations = make(draw, count=draw.randint(2, 6), keys=draw.randint(1, 2), processes=draw.randint(2, 4))
    return operations if draw.random() < 0.6 else spoiled(draw, operations)


def is_accused(operations: list[Operation], model: str, order: Order = ORDER) -> bool | None:
    """Does the check find that the history breaks the model? None where it does not know."""
    options = Options(prohibited=(FORBIDDEN[model],), order=order)
    judgement = check_sources([to_transactions(operations)], ENGINE, options)
    return True if judgement.findings else None if judgement.unknown else False


@pytest.mark.parametrize("model", FORBIDDEN)
def test_a_history_of_lists_is_accused_iff_it_has_no_serial_order(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    decided = accused = 0
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        operations = drawn(seed, histories.correct, histories.stale, histories.spoiled)
        answer = is_accused(operations, model)
        if answer is not None:
            has_order = has_serial_order(operations, in_real_time=model == STRICT)
            assert answer != has_order, f"seed {seed}: {operations}"
            decided, accused = decided + 1, accused + answer
    with capsys.disabled():
        print(f" {accused} of {decided} histories of lists are not {model}", end=" ")
    assert COUNT < ENOUGH or 0.2 < accused / decided < 0.8


@pytest.mark.parametrize("model", FORBIDDEN)
def test_a_history_of_registers_with_a_serial_order_is_not_accused(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = (ORDER, Order(process=Trust.GIVEN, real_time=Trust.GIVEN)) if model == STRICT else (ORDER,)
    guilty = accused = 0
    for seed in range(FIRST_SEED, FIRST_SEED + COUNT):
        operations = drawn(
            seed, register_transactions.correct, register_transactions.stale, register_transactions.spoiled
        )
        answers = [is_accused(operations, model, order) for order in orders]
        if not has_serial_order(operations, in_real_time=model == STRICT):
            guilty, accused = guilty + 1, accused + (answers[0] is True)
        else:
            assert True not in answers, f"seed {seed}: {operations}"
    with capsys.disabled():
        print(f" {accused} of {guilty} histories of registers that are not {model} are accused", end=" ")
    assert COUNT < ENOUGH or accused > guilty / 2
