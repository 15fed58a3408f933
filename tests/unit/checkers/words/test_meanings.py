"""Models in a sentence: each has one, and the order that a name adds is said."""

import pytest

from checkers.words.meanings import meaning
from checkers.words.models import MODELS


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_a_sentence(model: str) -> None:
    assert meaning(model).endswith(".")
    assert ("real time" in meaning(model)) == (model.startswith("strong-") and "-session-" not in model)


def test_a_session_model_is_the_same_with_the_order_of_clients() -> None:
    assert meaning("SER") == "Transactions have the effect of some serial order."
    assert meaning("strong-session-serializable") == f"{meaning('SER')} All of it agrees with the order of each client."
    assert "before it, whole" in meaning("update-atomic")
    assert meaning("PRAM") == "The consistency model PRAM holds."
