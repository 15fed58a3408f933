"""What the check says of histories by hand: names, sentences, what it does not know, and that it says so."""

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from checkers.engine.datasets import LocalEngine
from checkers.graph.residual import COMPONENTS
from checkers.history.names import Names
from checkers.history.transactions import Append, Mop, Operation, Read, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from checkers.words import models
from harness.core.columns import NEVER, OK
from harness.core.errors import HistoryError
from harness.core.verdict import Finding, Judgement
from tests.bench import generated
from tests.worlds.small_language import concurrent, sequential

ENGINE = LocalEngine(1)


def shown(identity: int) -> str:
    return chr(identity) if identity > 96 else str(identity)


def judged(operations: list[Operation], options: Options | None = None) -> Judgement:
    return check_sources([to_transactions(operations)], ENGINE, options or Options(name=Names(shown)))


def only(operations: list[Operation]) -> Finding:
    (finding,) = judged(operations).findings
    return finding


def names(operations: list[Operation]) -> set[str]:
    return {finding.anomaly for finding in judged(operations).findings}


@pytest.mark.parametrize(
    ("texts", "anomaly"),
    [
        (("ax1 ay1", "ax2 ay2", "rx12 ry21"), "G0"),
        (("ax1", "ax2 ay2", "ax3 ay1", "rx12 ry12"), "G0"),  # Nobody saw 3: it follows 2, the newest of all.
        (("ax1 ay1", "!ax9", "ax2 ay2", "rx192 ry21"), "G0"),  # Between 1 and 2 is what failed,
        (("ax1 ay1", "ax2 ay2", "rx192 ry21"), "G0"),  # or what nobody appended,
        (("ax1 ay1", "!ax9", "ax2 ay2", "rx19 ry21"), "G0"),  # or 2 came after both.
        (("ax1 ry1", "ay1 rx1"), "G1c"),
        (("ax1 ry1", "!ax9", "ay1 rx19"), "G1c"),
        (("ax1 ay1", "rx1 ry"), "G-single"),
        (("ax1", "!ax9", "ax2 ay5", "rx1 ry5", "rx192"), "G-single"),
        (("!ax9", "ax2 ay5", "rx ry5", "rx9"), "G-single"),
        (("ax1", "rx1 ry", "ay1", "ry1 rx"), "G-nonadjacent"),
        (("rx ay1", "ry ax1"), "G2-item"),
        (("1:ax1", "~ax2", "1:rx"), "G-single-process"),
        (("ax1", "rx"), "G-single-realtime"),
        (("rx1", "ax1"), "G1c-realtime"),
        (("!ax1", "rx1"), "G1a"),
        (("rx1 rx",), "internal"),
        (("ry ry", "rx1 rx"), "internal"),
        (("ax1 rx21 ax2",), "future-read"),
        (("rx1 ax1",), "future-read"),
        (("ax1", "rx11"), "duplicate-elements"),
        (("rx12", "rx21"), "incompatible-order"),
        (("ax1 ax2", "rx21"), "incompatible-order"),
        (("ax1 ax2", "rx2"), "incompatible-order"),
        (("!ax1", "~ax2", "ax3", "rx123"), "dirty-update"),
        (("rx ax1", "rx ax2"), "lost-update"),
    ],
)
def test_a_history_by_hand_has_its_anomaly(texts: tuple[str, ...], anomaly: str) -> None:
    make = sequential if anomaly.endswith(("-process", "-realtime")) else concurrent
    assert anomaly in names(make(*texts))


@pytest.mark.parametrize(
    "operations",
    [
        sequential("ax1 rx1", "rx1 ax2", "rx12"),
        concurrent("ax1", "rx", "rx1"),  # Before and after a concurrent append.
        sequential("~ax1", "rx", "rx1"),  # An unclear append takes effect when it likes,
        sequential("~ax1", "ax2", "rx2"),  # or never.
        sequential("!ax1", "rx"),
        concurrent("ax1", "ax2", "rx21"),
        sequential("ax1 rx?", "rx1"),
        concurrent("ax1 ax2 ax3", "rx123", "rx"),
        sequential("rx1"),  # Who wrote that, we do not know.
        concurrent("ax1", "rx91 ay1"),  # Nor who wrote 9, before 1: not T1, which came after that.
        concurrent("1:ax1", "1:rx"),  # A process that overlaps itself has no order.
        [],
    ],
)
def test_a_legal_history_has_no_finding(operations: list[Operation]) -> None:
    judgement = judged(operations)
    assert judgement.findings == ()
    assert judgement.unknown == {}


def test_no_component_is_too_late_to_be_searched() -> None:
    skews = [operation for at in range(COMPONENTS + 1) for operation in _skew(at)]
    begin, key = skews[-1].index + 2, COMPONENTS + 1
    mops: list[tuple[Mop, ...]] = [
        (Append(2 * key, 1),),
        (Read(2 * key, (1,)), Append(2 * key + 1, 1)),
        (Read(2 * key + 1, (1,)), Read(2 * key, ())),
    ]
    # Three transactions come after all pairs.
    larger = [Operation(begin + 2 * at, at, OK, begin + 2 * at + 1, each) for at, each in enumerate(mops)]
    judgement = judged([*skews, *larger], Options(model="snapshot-isolation"))
    assert [finding.anomaly for finding in judgement.findings] == ["G-single"]
    assert set(judgement.findings[0].ops) == {operation.index for operation in larger}


def _skew(at: int) -> Iterator[Operation]:
    for number, (one, other) in enumerate(((2 * at, 2 * at + 1), (2 * at + 1, 2 * at))):
        index = 4 * at + 2 * number
        yield Operation(index, number, OK, index + 1, (Read(one, ()), Append(other, 1)))


def test_two_updates_of_two_versions_are_no_lost_update_though_nobody_wrote_these() -> None:
    judgement = judged(concurrent("rx12", "rx1 ax3", "rx12 ax4"))
    assert [finding.anomaly for finding in judgement.findings] == ["G2-item"]  # T1 appended to more than it had seen.
    assert set(judgement.unknown) == {"G1a"}  # Of 1 and 2 not both were the whole list at first.


def test_the_next_transaction_of_a_process_that_misses_its_own_write_is_named_so() -> None:
    finding = only(sequential("1:ax1", "1:rx"))
    assert finding.anomaly == "G-single-process"
    assert finding.sentence == (
        "Process 1 ran T0 before T1; T1 read x as [], without 1, which T0 appended next (the longest read shows no 1, "
        "so it is newer). So T0 before T1 before T0: no order allows that."
    )


def test_a_cycle_gives_the_reason_of_each_step() -> None:
    (finding,) = judged(concurrent("ax1 ay1", "ax2 ay2", "rx12 ry21")).findings
    assert finding.ops == (0, 1, 2)  # T2 saw the order of both keys.
    assert [(step.source, step.relation, step.target) for step in finding.cycle] == [
        ("T0", "ww", "T1"),
        ("T1", "ww", "T0"),
    ]
    assert finding.cycle[0].sentence == "T1 appended 2 to x right after T0 appended 1 (as T2 saw)"


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("!ax1", "rx1"), "T1 read x as [1], but T0, which appended 1, failed."),
        (("rx1 rx",), "T0 read x as [], but it knew it as [1]."),
        (("ax1 rx",), "T0 read x as [], but it had itself appended [1]."),
        (("rx1 ax1",), "T0 read 1 in x before it appended it."),
        (("rx11",), "T0 read x with 1 in it twice: [1, 1]."),
        (
            ("rx123456", "rx13"),
            "T1 read x as [1, 3], and T0 read it as [1, 2, 3, 4, ...]: neither is the beginning of the other, "
            "as element 2 is 3 in the one and 2 in the other.",
        ),
        (
            ("rx122", "rx121"),
            "T1 read x as [1, 2, 1], and T0 read it as [1, 2, 2]: neither is the beginning of the other, "
            "as element 3 is 1 in the one and 2 in the other.",
        ),
        (
            ("rx12 rx21",),
            "T0 read x as [2, 1], and T0 read it as [1, 2]: neither is the beginning of the other, "
            "as element 1 is 2 in the one and 1 in the other.",
        ),
        (
            ("ax1 ay1 ax2", "rx213"),
            "T1 read x as [2, 1, 3], but T0 had appended more to it before it appended 2.",
        ),
        (("!ax1", "ax2", "rx12"), "T1 committed 2 in x on top of what T0 appended, which failed (as T2 saw)."),
    ],
)
def test_an_anomaly_without_cycle_is_a_sentence(texts: tuple[str, ...], sentence: str) -> None:
    assert sentence in {finding.sentence for finding in judged(concurrent(*texts)).findings}


def test_a_dirty_update_names_what_failed_behind_the_ok_one_before() -> None:
    found = judged(concurrent("ax4", "!ax1", "ax2", "!ax3", "rx1234")).findings
    assert {finding.anomaly: finding.ops for finding in found}["dirty-update"] == (0, 3, 4)


def test_the_reader_of_an_order_is_among_the_evidence_for_what_rests_on_it() -> None:
    dirty = {finding.anomaly: finding.ops for finding in judged(concurrent("!ax1", "ax2", "rx12")).findings}
    assert dirty == {"G1a": (0, 2), "dirty-update": (0, 1, 2)}
    (unseen,) = judged(sequential("ax1", "rx1", "ax2", "rx1")).findings
    assert unseen.ops == (2, 3, 1)  # T1 was the first of those who saw nothing behind 1.
    assert "T2 appended next (the longest read shows no 2, so it is newer)" in unseen.sentence


def test_a_key_with_an_element_appended_twice_is_unknown_and_the_others_are_judged() -> None:
    twice = judged(concurrent("ax1", "ax1", "rx1"))
    assert twice.findings == ()
    assert twice.unknown["G-single"] == (
        "duplicate-appends: 1 was appended to x more than once (T0); nothing follows for 1 such key"
    )
    assert "internal" not in twice.unknown
    beside = judged(concurrent("ax1", "ax1", "rx1", "ry ay1", "ry ay2"))
    assert {finding.anomaly for finding in beside.findings} == {"lost-update", "G2-item"}


def test_a_failed_append_beside_another_one_of_its_element_explains_nothing() -> None:
    assert judged(sequential("!ax1", "ax1", "rx1")).unknown == {}
    assert judged(sequential("!ax1", "!ax1", "rx1")).unknown  # Nobody knows which of the two was read.


def test_who_lost_an_update_and_to_whom_is_told() -> None:
    lost = next(f for f in judged(concurrent("rx ax1", "ry", "rx ax2")).findings if f.anomaly == "lost-update")
    assert lost.ops == (0, 2)


@pytest.mark.parametrize(
    "texts",
    [
        ("rx12", "rx8 ax3", "rx9 ax4"),  # What two saw is in no order, and not the same.
        ("rx12", "rx1 ax3", "rx9 ax4"),  # What one saw is, and what the other saw is not.
    ],
)
def test_updates_of_different_versions_are_not_lost(texts: tuple[str, ...]) -> None:
    assert "lost-update" not in names(concurrent(*texts))
    assert "lost-update" in names(concurrent(*texts, texts[-1].replace("4", "5")))


def test_what_failed_has_no_order_to_be_seen_in() -> None:
    assert names(concurrent("!ax1 ax2", "rx21")) == {"G1a", "G1b"}


def test_an_empty_graph_is_valid_unless_elles_convention_is_asked_for() -> None:
    operations = sequential("!ax1", "rx")
    assert judged(operations).unknown == {}
    asked = judged(operations, Options(model="read-committed", is_empty_unknown=True))
    assert asked.unknown["G0"].startswith("empty-transaction-graph")


@pytest.mark.parametrize(
    ("operations", "model", "is_unknown"),
    [
        (sequential("ax1"), "strict-serializable", True),  # One operation is in no order.
        (sequential("ax1", "ay1"), "strict-serializable", False),
        (sequential("ax1", "ay1"), "read-committed", True),  # This model has no order of time.
        (concurrent("ax1 ay1", "rx1 ry"), "read-committed", False),  # As many wr as rw,
        (concurrent("ax1", "ax2", "rx12"), "read-committed", False),  # or as ww.
    ],
)
def test_by_elles_convention_an_order_of_time_is_a_dependency(
    operations: list[Operation], model: str, is_unknown: bool
) -> None:
    asked = judged(operations, Options(model=model, is_empty_unknown=True))
    assert bool(asked.unknown) == is_unknown


def test_the_model_that_was_asked_for_is_told() -> None:
    assert judged(sequential("ax1"), Options(model="serializable")).facts["model"] == "serializable"
    assert judged(sequential("ax1"), Options(prohibited=(frozenset({"G0"}),))).facts["model"] is None


def test_element_zero_has_its_name() -> None:
    reason = judged(concurrent("ax0", "ax0", "rx0")).unknown["G-single"]
    assert reason.startswith("duplicate-appends: 0 was appended to x")


def test_a_residual_graph_that_is_too_large_is_searched_in_part_and_says_so() -> None:
    whole = generated.transactions(2_000, seed=4, stale_permille=1000)
    part = check_sources([whole], ENGINE, Options(residual_edges=500))
    assert part.findings
    edges = part.facts["residual_edges"]
    assert isinstance(edges, int)
    assert 250 < edges <= 500  # No more is left out than must be.
    assert {reason.split(":")[0] for reason in part.unknown.values()} == {"residual-too-large"}
    found = {finding.anomaly for finding in part.findings}
    assert not found & set(part.unknown)
    assert check_sources([whole], ENGINE).unknown == {}


def test_a_residual_graph_of_just_so_many_edges_as_may_be_searched_is_searched_whole() -> None:
    whole = [to_transactions(concurrent("rx ay1", "ry ax1"))]
    edges = check_sources(whole, ENGINE).facts["residual_edges"]
    assert isinstance(edges, int)
    assert check_sources(whole, ENGINE, Options(residual_edges=edges)).unknown == {}
    assert check_sources(whole, ENGINE, Options(residual_edges=edges - 1)).unknown != {}


def test_a_weaker_model_allows_what_it_allows_and_says_what_it_saw() -> None:
    operations = concurrent("rx ay1", "ry ax1")
    judgement = judged(operations, Options(model="snapshot-isolation"))
    assert judgement.findings == ()
    assert judgement.facts["allowed_anomalies"] == {"G2-item": 1}
    assert judgement.facts["ruled_out_weakest"] == ["repeatable-read"]


def test_a_cycle_that_restates_another_by_time_is_told_only_if_it_breaks_more() -> None:
    # T1 precedes T2 by time, and by what it did not see of it: both ways T2 closes a cycle.
    lost = sequential("ax1", "rx1 ax2", "rx1 ax3")
    assert names(lost) == {"lost-update", "G2-item"}
    assert judged(lost).facts["restated_anomalies"] == {"G-single-realtime": 1}
    skew = sequential("rx ay1", "ry ax1")
    assert names(skew) == {"G2-item", "G-single-realtime"}
    only_time = judged(lost, Options(prohibited=(frozenset({"G-single-realtime"}),)))
    assert [finding.anomaly for finding in only_time.findings] == ["G-single-realtime"]


@pytest.mark.parametrize(
    ("broken", "other", "texts", "anomaly"),
    [
        ("garbage-read", "serializable", ("wx1 wy1", "wx2 wy2", "rx=1 ry=2", "rz=9"), "fractured-read"),
        ("garbage-read", "serializable", ("rx12", "rx1 ax3", "rx12 ax4"), "G1a"),
        ("serializable", "cursor-stability", ("ax1 ay1", "rx1 ry"), "G-cursor"),
        ("lost-update", "G-single-realtime", ("ax1", "rx1 ax2", "rx1 ax3"), "G-single-realtime"),
    ],
)
def test_a_broken_promise_leaves_no_other_undecided(
    broken: str, other: str, texts: tuple[str, ...], anomaly: str
) -> None:
    make = sequential if anomaly.endswith("-realtime") else concurrent
    prohibited = tuple(
        models.prohibited((name,)) if name in models.MODELS else frozenset({name}) for name in (broken, other)
    )
    judgement = judged(make(*texts), Options(prohibited=prohibited))
    found = {finding.anomaly for finding in judgement.findings}
    assert found & models.prohibited((), prohibited[0])
    assert anomaly in found or anomaly in judgement.unknown


def test_each_anomaly_has_witnesses_where_it_could_have_been_seen() -> None:
    judgement = judged(concurrent("ax1 rx1", "ax2 ax3", "!ay1", "ry", "rx123", "rx ay2", "ry2"))
    assert judgement.witnesses["internal"] == 1
    assert judgement.witnesses["future-read"] == 0
    assert judgement.witnesses["G1a"] == 2
    assert judgement.witnesses["G1b"] == 3
    assert judgement.witnesses["G0"] == judgement.witnesses["G0-realtime"] == 1
    nothing = judged(sequential("ax1"))
    assert set(nothing.witnesses.values()) == {0}


def test_a_fingerprint_tells_one_anomaly_from_another() -> None:
    one, same = only(sequential("ax1", "rx")), only(sequential("ax1", "rx", "rx1"))
    other = only(sequential("ay1", "ry1", "ax1", "rx"))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


def test_an_index_that_is_too_large_is_refused() -> None:
    whole = to_transactions(sequential("ax1"))
    with pytest.raises(HistoryError, match=r"index must lie between 0 and 2147483645$"):
        check_sources([replace(whole, index=np.array([2**31]))], ENGINE)
    far = 2**31 - 3  # The last that has room for an end.
    assert not check_sources([replace(whole, index=np.array([far]), after=np.array([far + 1]))], ENGINE).findings
    with pytest.raises(HistoryError, match="index must lie between"):
        check_sources([replace(whole, index=np.array([far + 1]), after=np.array([far + 2]))], ENGINE)


@pytest.mark.parametrize("texts", [("ry12", "ry9 rx1", "ay0 ax1"), ("ry12", "ry9 rx", "ay2 ax1")])
def test_a_read_that_ends_with_what_is_nowhere_is_in_no_order(texts: tuple[str, ...]) -> None:
    # 9 is neither the newest of y, before 0, nor after 2: T1 and T2 stand in one order only, by x.
    assert names(concurrent(*texts)) == {"incompatible-order"}


def test_an_end_that_needs_more_than_31_bits_is_still_an_end_and_later_than_any_beginning() -> None:
    skew = [replace(operation, after=1 << 40) for operation in concurrent("ax1 ry", "ay1 rx")]
    assert names(skew) == {"G2-item"}
    *early, late = (replace(operation, after=1 << 40) for operation in concurrent("ax1", "rx1", "rx"))
    beside = judged([*early, replace(late, index=(1 << 31) - 3)], Options(slice_ids=1 << 31))
    assert beside.findings == ()


@pytest.mark.parametrize("after", [NEVER, 0])
def test_an_ok_operation_without_a_proper_end_is_refused(after: int) -> None:
    whole = to_transactions(sequential("ax1"))
    with pytest.raises(HistoryError, match="did not end after it began"):
        check_sources([replace(whole, after=np.array([after]))], ENGINE)


def test_a_large_correct_history_is_strictly_serializable() -> None:
    judgement = check_sources(generated.halves(generated.transactions(30_000, seed=11)), ENGINE)
    assert judgement.findings == ()
    assert judgement.unknown == {}
    assert judgement.facts["windows"] == 0


def test_a_count_of_stale_reads_counts_the_reads() -> None:
    """Of one component, in which every one of them is part of a cycle in real time."""
    finding = only(sequential("ax1", "rx", "rx", "rx", "rx1"))
    assert (finding.anomaly, finding.count) == ("G-single-realtime", 3)


def test_a_write_skew_of_two_is_one() -> None:
    assert only(concurrent("rx ay1", "ry ax1")).count == 1
