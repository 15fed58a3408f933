"""What the whole check says where outcomes or orders are unclear, against every reading of the history."""

from collections.abc import Sequence
from random import Random

import pytest
from msgspec.structs import replace

from checkers.history.registers import Initial, Order
from checkers.history.transactions import Operation, Store, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.columns import FAIL, INFO, NEVER, NOTHING
from tests.bench.axioms import ENGINE, MODELS, entangled, verdict
from tests.oracles.explained import explained
from tests.oracles.solved import solved
from tests.worlds.small_language import concurrent, sequential
from tests.worlds.tangled_histories import tangled


def found(operations: Sequence[Operation], model: str = "strict-serializable") -> set[str]:
    """The anomalies that break the model; none is unknown."""
    judgement = check_sources([to_transactions(operations)], ENGINE, Options(model=model))
    assert judgement.unknown == {}
    return {finding.anomaly for finding in judgement.findings}


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


@pytest.mark.parametrize("texts", [("rz aw1 ax1", "az1 ax2", "rz1 rw"), ("rz= ww1 wx1", "wz1 wx2", "rz=1 rw=")])
def test_a_model_is_said_to_hold_only_if_all_that_it_forbids_was_looked_for(texts: tuple[str, ...]) -> None:
    # The search names only a G2-item, as the order of x is unknown. Either order breaks snapshot isolation.
    operations = concurrent(*texts)
    assert verdicts(operations, "snapshot-isolation", "prefix") == {"snapshot-isolation": "invalid", "prefix": "valid"}
    judgement = check_sources([to_transactions(operations)], ENGINE, Options(model="prefix"))
    assert judgement.facts["not_ruled_out_strongest"] == ["prefix", "strong-read-committed"]


def test_nothing_is_said_to_hold_if_a_key_is_left_out() -> None:
    twice = [to_transactions(concurrent("ax1 ay1", "ax1", "ry1"))]
    for model in ("prefix", "read-committed", "serializable"):
        assert check_sources(twice, ENGINE, Options(model=model)).facts["not_ruled_out_strongest"] == []


@pytest.mark.parametrize(
    ("texts", "initial", "strongest"),
    [
        (("rx=7", "rx=8", "wy1"), Initial(), "strong-read-uncommitted"),  # One of them was not there at first.
        (("rx7", "rx87", "wy1"), Initial(), "strong-read-uncommitted"),
        (("!wx1", "rx=1"), Initial(), "strong-read-uncommitted"),  # A dirty read, unless x held 1 at first.
        (("rx=7", "wy1"), Initial(), "strong-read-committed"),
    ],
)
@pytest.mark.parametrize("model", ["read-uncommitted", "read-committed", "strict-serializable"])
def test_no_model_is_said_to_hold_of_which_dirty_reads_are_open(
    texts: tuple[str, ...], initial: Initial, strongest: str, model: str
) -> None:
    options = Options(model=model, initial=initial)
    named = check_sources([to_transactions(concurrent(*texts))], ENGINE, options).facts["not_ruled_out_strongest"]
    assert isinstance(named, list)
    assert [each for each in named if str(each).startswith("strong-read-")] in ([strongest], [])
    assert (strongest in named) or named == ["strict-serializable"]


def test_a_failed_reset_did_not_happen_and_leaves_its_register_clear() -> None:
    expected = {"strict-serializable": "invalid", "serializable": "valid"}
    assert verdicts([*reset(FAIL), *sequential("", "", "wx1", "rx=")[2:]], *expected) == expected
    assert verdict([to_transactions(reset(INFO))], "serializable") == "unknown"


def reset(outcome: int) -> list[Operation]:
    """A reset of x with that outcome, and a read of x that shows nothing."""
    empty, read = sequential("wx0", "rx=")
    after = empty.after if outcome == FAIL else NEVER
    return [replace(empty, outcome=outcome, after=after, mops=(Store(ord("x"), NOTHING),)), read]


@pytest.mark.parametrize("model", ["strict-serializable", "causal-cerone", "read-uncommitted"])
def test_a_history_without_chunks_has_no_finding(model: str) -> None:
    judgement = check_sources([], ENGINE, Options(model=model))
    assert (judgement.findings, judgement.unknown) == ((), {})


@pytest.mark.parametrize(
    ("texts", "model", "anomaly"),
    [
        # T3 sees T1 through T2, and read x as T0 had left it.
        (("wx1", "wx2", "rx=2 wy1", "ry=1 rx=1"), "causal-cerone", "causal-violation"),
        (("wx1", "wx2", "rx=2 wy1", "ry=1 rx=1"), "prefix", "causal-violation"),
        # T3 sees T1 and misses T2, and T4 sees T2 and misses T1.
        (("wx1", "wx2", "wy1", "rx=2 ry=", "ry=1 rx=1"), "prefix", "prefix-violation"),
    ],
)
def test_a_declared_order_of_versions_counts_for_the_axioms(texts: tuple[str, ...], model: str, anomaly: str) -> None:
    operations = [replace(one, commit=one.index) for one in concurrent(*texts)]
    for order, expected in ((Order(), set()), (Order(commits=True), {anomaly})):
        judgement = check_sources([to_transactions(operations)], ENGINE, Options(model=model, order=order))
        assert {finding.anomaly for finding in judgement.findings} == expected
        assert judgement.unknown == {}


@pytest.mark.parametrize("second", [1, 2])
def test_writes_at_one_position_come_after_all_at_lower_ones(second: int) -> None:
    # Whichever of T1 and T2 the reader sees, it sees a write of x after that of T0.
    texts = ("wx1", "wx2 wy1", "wx3 wz1", "ry=1 rx=1" if second == 1 else "rz=1 rx=1")
    operations = [replace(one, commit=min(one.index, 1)) for one in concurrent(*texts)]
    options = Options(model="read-atomic", order=Order(commits=True))
    judgement = check_sources([to_transactions(operations)], ENGINE, options)
    assert ({finding.anomaly for finding in judgement.findings}, judgement.unknown) == ({"non-monotonic-view"}, {})


def test_more_writes_at_neighbouring_positions_than_can_be_paired_leave_their_register_out() -> None:
    texts = [f"wx{number} wy{number}" for number in range(1, 301)]
    operations = [replace(one, commit=one.index % 2) for one in concurrent(*texts)]
    options = Options(model="read-atomic", order=Order(commits=True))
    judgement = check_sources([to_transactions(operations)], ENGINE, options)
    assert judgement.findings == ()
    assert judgement.unknown["fractured-read"] == (
        "equal-commits: too many writes of 120 share a position (T0 among them) to be ordered; nothing follows for 2 "
        "such keys"
    )


def test_commits_that_contradict_what_was_read_leave_no_model_proved() -> None:
    # T1 read what T0 wrote, and committed its reset before it. Of versions by value that reset has no place.
    operations = [replace(one, commit=1 - one.index) for one in concurrent("wx1", "rx=1 wx2")]
    operations[1] = replace(operations[1], mops=(*operations[1].mops[:1], Store(operations[0].mops[0].key, NOTHING)))
    for model in ("read-committed", "read-atomic", "causal-cerone", "serializable"):
        options = Options(model=model, order=Order(commits=True))
        judgement = check_sources([to_transactions(operations)], ENGINE, options)
        assert (judgement.findings, bool(judgement.unknown)) == ((), True)
        assert all(why.startswith("unnamed-cycle: ") for why in judgement.unknown.values())


def test_a_write_without_an_answer_has_no_place_by_its_position_alone() -> None:
    operations = [replace(one, commit=one.index) for one in sequential("~wx1", "rx= wx2")]
    for model in ("update-atomic", "parallel-snapshot-isolation", "snapshot-isolation"):
        judgement = check_sources(
            [to_transactions(operations)], ENGINE, Options(model=model, order=Order(commits=True))
        )
        assert (judgement.findings, judgement.unknown) == ((), {})


def test_of_nothing_and_a_value_that_nobody_wrote_one_was_not_there_at_first() -> None:
    for model in ("read-committed", "serializable"):
        operations = sequential("rx=9 wy1", "rx= ry=1")
        assert check_sources([to_transactions(operations)], ENGINE, Options(model=model)).unknown


@pytest.mark.parametrize("model", ["read-uncommitted", "strong-read-uncommitted"])
def test_what_only_a_read_that_disagrees_shows_has_no_place(model: str) -> None:
    operations = concurrent("ax1 rx1 ay1", "ay2 ax2 rx2", "ry21")
    assert found(operations, model) == set()
    assert "incompatible-order" in found(operations)


def test_what_is_unclear_follows_what_its_process_did_and_nothing_follows_it() -> None:
    assert found(sequential("1:rx1", "1:~ax1")) == {"G1c-process"}
    assert found(sequential("1:~ax1", "1:rx", "rx1")) == set()
    assert found(sequential("1:ax1", "1:~ay1", "1:rx", "rx1")) >= {"G-single-process"}


def test_who_sees_an_unclear_write_sees_what_its_process_had_done_before() -> None:
    operations = sequential("1:wx1", "1:~wy1", "2:ry=1 rx=")
    assert found(operations, "strong-session-causal") == {"causal-violation-process"}
    assert found(operations, "causal-cerone") == set()


def test_longer_histories_with_several_troubles_are_neither_accused_nor_passed() -> None:
    assert [line for seed in range(20) for line in entangled(seed, lists=bool(seed % 2))] == []


def test_the_formula_says_what_all_readings_of_a_history_say() -> None:
    for seed in range(200):
        operations = tangled(Random(seed), most=4, troubles=("unclear", "failed", "reset", "unwritten"))
        assert solved(operations, MODELS.values()) == explained(operations, MODELS.values()), seed
