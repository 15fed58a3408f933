"""What contradicts the definition of a history breaks every model: own writes missed, reads of the future."""

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.registers import Initial
from checkers.history.transactions import Operation, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.verdict import Judgement
from tests.worlds.small_language import concurrent


def judged(operations: list[Operation], options: Options) -> Judgement:
    return check_sources([to_transactions(operations)], LocalEngine(1), options)


@pytest.mark.parametrize("model", ["read-uncommitted", "read-committed", "monotonic-atomic-view", "CC", "serializable"])
@pytest.mark.parametrize(
    ("texts", "anomaly"),
    [
        (("wx1 rx=",), "missed-own-write"),
        (("wx1 rx=2", "wx2"), "missed-own-write"),
        (("ax1 rx12", "ax2"), "missed-own-write"),
        (("rx= rx=1 wx1",), "future-read"),
        (("rx=2 rx= rx=1 wx1", "wx2"), "future-read"),
        (("wx1", "rx=2"), "unwritten-read"),
    ],
)
def test_no_model_allows_what_is_no_history(texts: tuple[str, ...], anomaly: str, model: str) -> None:
    judgement = judged(concurrent(*texts), Options(model=model, initial=Initial(is_declared=True)))
    found = {finding.anomaly for finding in judgement.findings}
    restated = judgement.facts["restated_anomalies"]
    assert isinstance(restated, dict)
    assert anomaly in found | restated.keys()
    assert judgement.facts["ruled_out_weakest"] == ["read-uncommitted"]


@pytest.mark.parametrize(
    "texts",
    [
        ("rx=1 rx=2", "wx1", "wx2"),  # Two versions, none of them its own: repeatable read forbids that.
        ("wx1 rx=1 wx2 rx=2",),
        ("ax2 rx12", "ax1"),
        ("rx ax2 rx12", "ax1"),  # The own append extended what another transaction had appended in between.
        ("rx=1 wx2 rx=2", "wx1"),
    ],
)
def test_a_transaction_that_sees_its_own_writes_breaks_no_weak_model(texts: tuple[str, ...]) -> None:
    judgement = judged(concurrent(*texts), Options(model="monotonic-atomic-view"))
    assert judgement.findings == ()
    allowed = judgement.facts["allowed_anomalies"]
    assert isinstance(allowed, dict)
    assert "missed-own-write" not in allowed


def test_a_value_that_was_read_before_it_was_written_may_have_been_there_at_first() -> None:
    judgement = judged(concurrent("rx=2 rx=1 wx1", "wx2"), Options(model="read-committed"))
    assert judgement.findings == ()
    assert "written-again" in judgement.unknown["G1a"]


@pytest.mark.parametrize(
    ("texts", "is_dirty"),
    [
        (("wx1 rx=1 rx=2 wx3", "rx=1 wx2"), True),
        (("wx1 wx3 rx=2 wx4", "rx=1 wx2 rx=3 wx5"), True),
        (("wx1 rx=1 rx=2 wx3", "wx2"), False),  # Nothing shows that T1 wrote after T0.
        (("wx1 rx=1 rx=2", "rx=1 wx2"), False),  # T0 wrote nothing later.
        (("rx=2 wx1", "wx2 wx3"), False),  # A dirty read, and no dirty write.
        (("wx1", "rx=1 wx2", "rx=2 wx3"), False),
    ],
)
def test_reads_prove_that_the_writes_of_a_register_interleave(texts: tuple[str, ...], is_dirty: bool) -> None:
    judgement = judged(concurrent(*texts), Options(prohibited=(frozenset({"G0"}),)))
    assert {finding.anomaly for finding in judgement.findings} == ({"G0"} if is_dirty else set())
    assert all("their writes interleave" in finding.sentence for finding in judgement.findings)
