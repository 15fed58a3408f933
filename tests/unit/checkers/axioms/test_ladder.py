"""Models by their axioms: drawn histories against brute force, cases by hand, budgets, and the cost of a weak store."""

import sys
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from checkers.axioms import clocks, reach, weak
from checkers.axioms.accesses import accesses, union
from checkers.axioms.execution import Execution, execution
from checkers.axioms.ladder import RUNGS, UNWRITTEN, Rung, answers
from checkers.axioms.levels import Level
from checkers.axioms.orders import forced, polygraph
from checkers.axioms.orders.cycles import Contradiction
from checkers.axioms.orders.polygraph import Unsolved
from checkers.axioms.weak import Axiom
from checkers.engine.datasets import LocalEngine
from checkers.graph.edges import PROCESS, REALTIME
from checkers.history.stretches import Stretches
from checkers.history.transactions import Append, Load, Operation, Read, Source, Store, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.columns import FAIL, INFO, NEVER, NOTHING, OK
from tests.bench.axioms import TIMES, axiom_of, disagreements, holds, misjudged, verdict
from tests.oracles import axioms
from tests.oracles.explained import Model
from tests.oracles.solved import solved
from tests.worlds.drawn_transactions import cut
from tests.worlds.small_language import concurrent
from tests.worlds.troubled_histories import troubled
from tests.worlds.weak_histories import drawn
from tests.worlds.weak_stores import causal

SEED = 20261123
Mops = tuple[Append | Load | Read | Store, ...]


def of(*sources: Source, is_declared: bool = False) -> Execution:
    return execution(union([accesses(source) for source in sources]), is_declared=is_declared)


def history(*transactions: Mops) -> list[Operation]:
    return [Operation(2 * at, at, OK, 2 * at + 1, mops) for at, mops in enumerate(transactions)]


@pytest.mark.parametrize("lists", [True, False])
def test_drawn_histories_are_judged_as_brute_force_judges_them(lists: bool) -> None:
    print(f"seed {SEED}")
    seen = Counter[tuple[Rung, bool]]()
    for number in range(150):
        draw = Random(SEED + number)
        operations = drawn(draw, lists=lists)
        ours = of(*cut(draw, operations), is_declared=True)
        for rung in RUNGS:
            expected = axioms.holds(operations, axiom_of(rung), TIMES[rung.order])
            assert holds(ours, rung) == expected, (SEED + number, rung, operations)
            seen[rung, expected] += 1
    assert all(seen[rung, verdict] > 5 for rung in RUNGS for verdict in (True, False))


@pytest.mark.parametrize("lists", [True, False])
def test_what_is_unclear_is_neither_accused_nor_passed_against_brute_force(lists: bool) -> None:
    print(f"seed {SEED}")
    seen = set[str]()
    for number in range(12):
        assert list(misjudged(SEED + number, lists=lists)) == []
        seen.add(verdict([to_transactions(troubled(Random(SEED + number), lists=lists))], "serializable"))
    assert seen >= {"valid", "invalid"}


@pytest.mark.parametrize("lists", [True, False])
def test_a_rung_that_holds_implies_those_below(lists: bool) -> None:
    print(f"seed {SEED}")
    compared = 0
    for number in range(60):
        ours = of(to_transactions(drawn(Random(SEED - number), lists=lists)))
        verdicts = {rung: holds(ours, rung) for rung in RUNGS}
        for rung, other in ((a, b) for a in RUNGS for b in RUNGS if a.implies(b) and verdicts[a]):
            assert verdicts[other], (SEED - number, rung, other)
            compared += 1
    assert compared > 500


def test_write_skew_on_registers_is_found_though_no_order_of_versions_is_known() -> None:
    skew = history((Store(0, 1), Store(1, 1)), (Load(0, 1), Store(1, 2)), (Load(1, 1), Store(0, 2)))
    broken = polygraph.decided(of(to_transactions(skew)), Level.SERIAL, 0)
    assert isinstance(broken, Contradiction)
    (finding,) = check_sources([to_transactions(skew)], LocalEngine(1), Options(model="serializable")).findings
    assert finding.anomaly == "G2-item"
    assert set(finding.ops) == {0, 2, 4}


def test_an_update_of_a_version_that_both_had_read_is_no_snapshot() -> None:
    lost = history((Store(0, 1),), (Load(0, 1), Store(0, 2)), (Load(0, 1), Store(0, 3)))
    assert not holds(of(to_transactions(lost)), Rung(Level.PARALLEL, 0))
    assert holds(of(to_transactions(lost)), Rung(Level.PREFIX, 0))


def test_reading_an_old_but_whole_state_breaks_no_model_without_time() -> None:
    old = history((Store(0, 1),), (Load(0, 1), Store(0, 2)), (Load(0, NOTHING),))
    assert all(holds(of(to_transactions(old)), rung) for rung in RUNGS if rung.order != REALTIME)
    assert not holds(of(to_transactions(old)), Rung(Level.SERIAL, REALTIME))


def test_the_finding_of_a_fractured_read_says_who_saw_what() -> None:
    fractured = history((Append(0, 1), Append(1, 1)), (Read(0, (1,)), Read(1, ())))
    (finding,) = check_sources([to_transactions(fractured)], LocalEngine(1), Options(model="read-atomic")).findings
    assert finding.sentence == (
        "T2 read 0 as [1], and T0 appended 1; T0 wrote 1, but T2 read it in its initial state. "
        "No order of commits allows that."
    )
    assert [step.relation for step in finding.cycle] == ["wr", "rw"]


@pytest.mark.parametrize(
    ("texts", "broken"),
    [
        # T1 appended to x after T0, as its own read of x shows, and misses what T0 appended to y.
        (("ax1 ay1", "ax2 rx12 ry"), {"non-monotonic-view", "fractured-read", "causal-violation"}),
        # By the time of its read of y it need not have seen T0.
        (("ax1 ay1", "ax2 ry rx12"), {"fractured-read", "causal-violation"}),
        (("ax1 ay1", "ax2 ry ax3 rx123"), {"fractured-read", "causal-violation"}),
        (("ax1 ay1", "ax2 rx12 ry1"), set()),
        # It may have seen nothing of the others.
        (("ay1", "ax2 rx2 ry"), set()),
        (("ax1 ay1", "ax2 ax3 rx23 ry"), set()),
        # T2 sees T0 through T1, by the element before its own.
        (("ay1", "ry1 ax1", "ax2 rx12 ry"), {"causal-violation"}),
        # Before its append it has read another version than after it.
        (("ax1 ay1", "rx ax2 rx12"), {"fractured-read", "causal-violation"}),
        (("ax1 ay1", "rx1 ax2 rx2"), {"non-monotonic-view", "fractured-read", "causal-violation"}),
    ],
)
def test_a_list_read_after_own_appends_shows_what_they_extended(texts: tuple[str, ...], broken: set[str]) -> None:
    operations = concurrent(*texts)
    ours = of(to_transactions(operations))
    for axiom in Axiom:
        assert holds(ours, Rung(axiom, 0)) == axioms.holds(operations, axiom.value) == (axiom.value not in broken)


@pytest.mark.parametrize("text", ["ax2 ax3 rx13", "ax2 ax3 rx132", "ax2 rx1", "ax2 rx21", "wx2 rx12", "~ax2 rx12"])
def test_a_list_that_does_not_end_with_just_all_own_elements_says_nothing(text: str) -> None:
    assert accesses(to_transactions(concurrent("ax1 ay1", text))).reads.op.tolist() == []


def test_what_own_appends_extended_was_there_at_first_or_has_no_clear_writer() -> None:
    # Nobody appended 9: if it was there at first, a store that showed T1 the first state had no 9 for it.
    first = of(to_transactions(concurrent("ax1 rx91", "rx9")))
    assert (first.left_out, first.views.is_assumed.tolist()) == (0, [True, True])
    assert of(to_transactions(concurrent("ax1 rx91", "rx"))).left_out == 1
    assert of(to_transactions(concurrent("ax1 ay1", "ax1 rx11 ry"))).left_out == 1
    own = of(to_transactions(concurrent("ax1 rx1 ax1 rx11", "ax2 rx32 ax3")))
    assert (own.left_out, len(own.views.reader)) == (1, 0)


def test_the_finding_of_a_fractured_read_by_an_own_append_says_who_saw_what() -> None:
    fractured = history((Append(0, 1), Append(1, 1)), (Append(0, 2), Read(0, (1, 2)), Read(1, ())))
    (finding,) = check_sources([to_transactions(fractured)], LocalEngine(1), Options(model="read-atomic")).findings
    assert finding.sentence == (
        "T2 read 0 as [1, 2], and T0 appended 1; T0 wrote 1, but T2 read it in its initial state. "
        "No order of commits allows that."
    )
    assert [step.relation for step in finding.cycle] == ["wr", "rw"]


def test_a_chain_of_reads_is_named_in_the_finding() -> None:
    chain = history((Store(0, 1),), (Load(0, 1), Store(1, 1)), (Load(1, 1), Load(0, NOTHING)))
    (finding,) = check_sources([to_transactions(chain)], LocalEngine(1), Options(model="causal-cerone")).findings
    assert finding.anomaly == "causal-violation"
    assert finding.sentence == (
        "T2 read 0 as 1, which T0 wrote; T4 read 1 as 1, which T2 wrote; so T4 sees T0; "
        "T0 wrote 0, but T4 read it in its initial state. No order of commits allows that."
    )


def unguessed(keys: int) -> list[Mops]:
    """Of each pair of keys the second writer comes first: no guess sees that."""
    return [
        mops
        for key in range(0, keys, 2)
        for mops in (
            (Store(key, 1), Store(key + 1, 1)),
            (Store(key, 2), Store(key + 1, 2)),
            (Load(key, 1), Store(key + 1, 3)),
            (Load(key + 1, 3), Load(key, 1)),
        )
    ]


def test_without_its_budget_the_solver_says_how_many_pairs_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = of(to_transactions(history(*unguessed(40))))
    monkeypatch.setattr(forced, "FIRST", 1)
    monkeypatch.setattr(forced, "MOST", 1)
    assert polygraph.decided(wrong, Level.SERIAL, 0) is None
    monkeypatch.setattr(polygraph, "WORK", 0)
    assert polygraph.decided(wrong, Level.SERIAL, 0, rounds=1) == Unsolved(40)
    result = answers(wrong, ["G2-item", "G-nonadjacent"])
    assert result.broken == ()
    assert result.unknown["G2-item"] == "search-too-long: the order of 40 pairs of versions is undecided"
    assert result.unknown["G-nonadjacent"] == "search-too-long: the order of some versions is undecided"


def test_without_a_solver_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    monkeypatch.setattr(forced, "FIRST", 1)
    monkeypatch.setattr(forced, "MOST", 1)
    result = answers(of(to_transactions(history(*unguessed(2)))), ["G2-item"])
    assert result.unknown["G2-item"].endswith("pysat.solvers is missing: install python-sat")


def test_without_its_budget_causal_consistency_without_sessions_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = history((Store(0, 1),), (Store(1, 1),), (Load(1, 1), Load(0, NOTHING)))
    chain = [replace(one, process=max(one.process, 1)) for one in chain]  # One process wrote both.
    ours = of(to_transactions(chain))
    assert set(answers(ours, ["causal-violation", "causal-violation-process"]).absent) == {"causal-violation"}
    monkeypatch.setattr(reach, "BUDGET", 0)
    assert set(answers(ours, ["causal-violation"]).unknown) == {"causal-violation"}


def test_a_key_with_an_unclear_writer_is_left_out() -> None:
    twice = history((Store(0, 1),), (Store(0, 1), Store(1, 1)), (Load(0, 1), Load(1, NOTHING)))
    ours = of(to_transactions(twice))
    assert (ours.left_out, ours.keys.tolist()) == (1, [1])


def test_lists_of_which_no_read_shows_the_order_are_no_snapshots_in_either_order() -> None:
    # Each misses what the other appended, and both appended to key 0.
    skew = history((Append(0, 1), Read(1, ())), (Read(0, ()), Append(1, 1), Append(0, 2)))
    skew[0] = replace(skew[0], after=4)
    for model, verdict_there in (("prefix", "valid"), ("parallel-snapshot-isolation", "invalid")):
        assert verdict([to_transactions(skew)], model) == verdict_there


def test_update_atomic_is_broken_by_one_step_and_by_no_chain() -> None:
    # T2 appends after T0 to key 0, and misses what T0 appended to key 1: no update is lost.
    missed = history((Append(0, 1), Append(1, 1)), (Read(1, ()), Append(0, 2)), (Read(0, (1, 2)), Read(1, (1,))))
    assert verdict([to_transactions(missed)], "read-atomic") == "valid"
    assert verdict([to_transactions(missed)], "update-atomic") == "invalid"
    assert not axioms.holds(missed, "update")
    # T4 appends after T2, which appended after T0, and misses what T0 appended to key 1: no parallel snapshot does.
    mops: list[Mops] = [(Append(0, 1), Append(1, 1)), (Append(0, 2), Append(2, 1)), (Append(2, 2), Read(1, ()))]
    chain = history(*mops, (Read(0, (1, 2)), Read(1, (1,)), Read(2, (1, 2))))
    expected = {"update-atomic": "valid", "parallel-snapshot-isolation": "invalid", "causal-cerone": "valid"}
    assert {model: verdict([to_transactions(chain)], model) for model in expected} == expected


def test_update_atomic_knows_where_an_inner_append_stands() -> None:
    # T2 saw its first append alone, so it came before T0, which did not see it.
    inner = history((Read(0, ()), Append(0, 1)), (Append(0, 2), Read(0, (2,)), Append(0, 3)))
    assert verdict([to_transactions(inner)], "update-atomic") == "invalid"


def test_the_finding_of_a_write_that_an_update_missed_says_how_it_was_seen() -> None:
    missed = history((Append(0, 1), Append(1, 1)), (Read(1, ()), Append(0, 2)), (Read(0, (1, 2)), Read(1, (1,))))
    (finding,) = check_sources([to_transactions(missed)], LocalEngine(1), Options(model="update-atomic")).findings
    assert finding.anomaly == "G-UA"
    assert [step.sentence for step in finding.cycle] == [
        "T2 read 1 as [], without 1, which T0 appended next (as T4 saw)",
        "T2 appended 2 to 0 right after T0 appended 1 (as T4 saw)",
    ]


def test_of_stretches_without_a_forbidden_cycle_the_axioms_are_decided_still() -> None:
    # A cycle with an rw is none that the model forbids by its class, but the axiom of views is broken.
    broken = history((Append(0, 1), Append(1, 1)), (Read(0, (1,)), Read(1, ())))
    once = np.zeros(2, np.int64)
    stretches = Stretches(folder=Path(), generations=1, first=once, last=once)
    options = Options(model="strong-monotonic-atomic-view", stretches=stretches)
    (finding,) = check_sources([to_transactions(broken)], LocalEngine(1), options).findings
    assert finding.anomaly == "non-monotonic-view"


def test_with_real_time_a_transaction_sees_what_ended_before() -> None:
    late = history((Append(0, 1),), (Read(0, (1,)),), (Read(0, ()),))
    late[0] = replace(late[0], after=9)  # The last one reads after another one has seen what is still running.
    expected = {"strong-read-atomic": "valid", "strong-causal": "invalid", "strong-session-causal": "valid"}
    assert {model: verdict([to_transactions(late)], model) for model in expected} == expected
    (finding,) = check_sources([to_transactions(late)], LocalEngine(1), Options(model="strong-causal")).findings
    assert finding.anomaly == "causal-violation-realtime"
    assert finding.sentence == (
        "T2 read 0 as [1], and T0 appended 1; T2 had ended before T4 began; so T4 sees T0; "
        "T0 wrote 0, but T4 read it in its initial state. No order of commits allows that."
    )


def test_a_register_that_was_reset_is_left_out_and_so_nothing_holds() -> None:
    # Who read nothing saw the first state or the reset.
    reset = to_transactions(history((Store(0, 1),), (Store(0, NOTHING), Store(1, 1)), (Load(0, NOTHING), Load(1, 1))))
    assert of(reset).left_out == 1
    assert verdict([reset], "serializable") == "unknown"


@pytest.mark.parametrize(
    "mops",
    [
        # A value that was written twice, and never read; a reset; and, between the others, an unclear write.
        [(Store(0, 1),), (Store(0, 2), Store(1, 1)), (Load(1, 1), Load(0, 1)), (Store(0, 2),)],
        [(Store(0, 1),), (Store(0, NOTHING), Store(1, 1)), (Load(1, 1), Load(0, 1)), ()],
        [(Store(0, 1),), (Store(0, 3), Store(1, 1)), (Load(1, 1), Load(0, 1)), (Store(0, 2),)],
    ],
)
def test_a_declared_order_of_commits_orders_what_nobody_read(mops: list[Mops]) -> None:
    operations = [replace(one, after=8, commit=one.index) for one in history(*mops)]
    operations[3] = replace(operations[3], outcome=INFO, after=NEVER, commit=1)
    whole = union([accesses(to_transactions(operations))])
    for has_commits in (False, True):
        given = operations if has_commits else [replace(one, commit=NEVER) for one in operations]
        ours = execution(whole, has_commits=has_commits)
        for axiom in Axiom:
            expected = bool(solved(given, [Model(axiom.value)]))
            assert holds(ours, Rung(axiom, 0)) == expected, (has_commits, axiom)
        assert expected is not has_commits


def test_equal_positions_of_commits_and_failed_writes_have_no_order() -> None:
    operations = history((Store(0, 1),), (Store(0, 2),), (Store(0, 3),), (Store(0, 4),))
    operations = [replace(one, commit=min(one.index, 2)) for one in operations]
    operations[3] = replace(operations[3], outcome=FAIL, commit=3)
    pairs = execution(union([accesses(to_transactions(operations))]), has_commits=True).declared
    assert list(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)) == [(0, 1), (0, 2)]


def test_a_value_that_nobody_wrote_proves_nothing_but_is_no_proof_of_innocence_either() -> None:
    # If key 0 held 9 at first, then its reader misses a write of the transaction that it sees.
    unwritten = history((Store(0, 1), Store(1, 1)), (Load(0, 9), Load(1, 1)))
    ours = of(to_transactions(unwritten))
    assert answers(ours, ["fractured-read"]).unknown == {"fractured-read": UNWRITTEN}
    judgement = check_sources([to_transactions(unwritten)], LocalEngine(1), Options(model="read-atomic"))
    assert judgement.findings == ()
    assert set(judgement.unknown) == {"fractured-read"}
    harmless = history((Store(0, 1), Store(1, 1)), (Load(0, 9), Load(1, NOTHING)))
    assert answers(of(to_transactions(harmless)), ["fractured-read"]).absent == {"fractured-read"}


def test_a_rung_that_is_open_for_an_unwritten_value_leaves_the_solver_its_budget() -> None:
    # Process 0 wrote key 9, and reads then what nobody wrote: without sessions the read came first.
    made = history((Store(9, 1),), (Load(9, 5),), *unguessed(2))
    made[1] = replace(made[1], process=made[0].process)
    result = answers(of(to_transactions(made)), ["G2-item", "G2-item-process"])
    assert result.unknown == {"G2-item-process": UNWRITTEN}
    assert result.absent == {"G2-item"}


def test_a_list_may_have_had_elements_at_first_that_all_reads_show() -> None:
    first = to_transactions(history((Read(0, (9,)),), (Append(0, 1),), (Read(0, (9, 1)),)))
    assert verdict([first], "strict-serializable") == "valid"
    for odd in (history((Read(0, (9,)),), (Read(0, ()),)), history((Append(0, 1),), (Read(0, (1, 9)),))):
        judgement = check_sources([to_transactions(odd)], LocalEngine(1), Options(model="read-committed"))
        assert judgement.findings == ()
        assert "which no operation wrote" in judgement.unknown["G1a"]


def test_a_list_that_was_read_as_null_was_read_as_nobody_knows_what() -> None:
    anomalies = {rung.anomaly for rung in RUNGS}
    mops: list[Mops] = [(Append(1, 1), Store(2, 1)), (Load(1, NOTHING), Load(2, 1))]
    assert not answers(of(to_transactions(history(*mops))), anomalies).broken
    mops[1] = (Read(1, ()), Load(2, 1))
    assert answers(of(to_transactions(history(*mops))), anomalies).broken


def test_a_causal_store_is_judged_with_clocks_that_follow_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Counter[str]()
    original = clocks._of_reads

    def counted(*given: object) -> object:
        looked["blocks"] += 1
        return original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(clocks, "_of_reads", counted)
    for size in (1_000, 2_000):
        whole = of(to_transactions(list(causal(Random(SEED), transactions=size, sessions=20, keys=50))))
        looked.clear()
        assert weak.breach(whole, Axiom.CAUSAL, PROCESS) is None
        assert looked["blocks"] <= size / 3  # Many transactions at once.
        assert isinstance(polygraph.decided(whole, Level.SERIAL, 0), Contradiction)


def test_the_last_round_of_the_solver_sees_reads_beside_their_writers() -> None:
    assert list(disagreements(238942, lists=False)) == []
