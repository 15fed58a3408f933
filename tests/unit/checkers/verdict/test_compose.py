"""The verdict of a run: each clause just below its threshold and at it, and the precedence of the five verdicts."""

import msgspec
import pytest
from msgspec.structs import replace

from checkers.verdict.compose import (
    FOREIGN,
    SECOND,
    Composition,
    PlannedFault,
    PromiseState,
    RunFacts,
    Thresholds,
    compose,
)
from harness.core.errors import ScenarioError
from harness.core.promises import Promise
from harness.core.verdict import Finding, Judgement, Verdict

ATOMIC = Promise(id="P-1", text="Whole.", source="page", forbids=("torn-unit",))
SERIAL = Promise(id="P-2", text="Serializable.", source="page", forbids=("serializable",))
EXTRA = Promise(id="P-3", text="Never back.", source="page", forbids=("watermark-regress",), is_purpose=False)
MODELS = {"serializable": frozenset({"G0", "G1c"})}
TORN = Finding(fingerprint="f1", anomaly="torn-unit", checker="streams", sentence="It was torn.", count=3)
CYCLE = Finding(fingerprint="f2", anomaly="G1c", checker="list-append", sentence="A circle.")
GOOD_FAULT = PlannedFault(
    name="crash of n1", has_begun=True, effect=7, duration_ns=2 * SECOND, overlapping=9, completed=5
)
GOOD = RunFacts(
    ok_by_type={"txn": 20},
    faults=(GOOD_FAULT,),
    known_versions=9,
    all_versions=10,
    watermarks_with_writes=10,
)


def judgement(*findings: Finding, unknown: dict[str, str] | None = None, **witnesses: int) -> Judgement:
    named = {name.replace("_", "-"): count for name, count in witnesses.items()}
    return Judgement(checker="all", findings=findings, witnesses=named, unknown=unknown or {})


SOLID = judgement(torn_unit=10, watermark_regress=10, G0=3, G1c=10)


def run(facts: RunFacts = GOOD, *judgements: Judgement, promises: tuple[Promise, ...] = (ATOMIC,)) -> Composition:
    return compose(promises, judgements or (SOLID,), facts, models=MODELS)


def clauses(composition: Composition) -> list[tuple[str, int]]:
    return [(each.clause, each.number) for each in composition.vacuities]


def test_a_run_that_reaches_every_threshold_passes() -> None:
    result = run(promises=(ATOMIC, SERIAL, EXTRA))
    assert (result.verdict, result.clause, result.vacuities) == (Verdict.VALID, None, ())
    assert [each.state for each in result.promises] == [PromiseState.HOLDS] * 3
    assert result.reason == "3 promises held, witnessed 30 times"


@pytest.mark.parametrize("shortfall", [0, 1])
@pytest.mark.parametrize(
    ("at", "below", "clause"),
    [
        (GOOD, replace(GOOD, ok_by_type={"txn": 19}), ("a", 19)),
        (GOOD, replace(GOOD, ok_by_type={"txn": 500, "cas": 0}), ("a", 0)),
        (GOOD, replace(GOOD, faults=(replace(GOOD_FAULT, completed=4),)), ("a", 4)),
        (
            replace(GOOD, faults=(replace(GOOD_FAULT, completed=0, duration_ns=SECOND - 1),)),
            replace(GOOD, faults=(replace(GOOD_FAULT, completed=0, duration_ns=SECOND),)),
            ("a", 0),
        ),
        (GOOD, replace(GOOD, faults=(replace(GOOD_FAULT, has_begun=False),)), ("b", 1)),
        (
            replace(GOOD, faults=(replace(GOOD_FAULT, effect=1),)),
            replace(GOOD, faults=(replace(GOOD_FAULT, effect=0),)),
            ("b", 1),
        ),
        (GOOD, replace(GOOD, faults=(replace(GOOD_FAULT, effect=None),)), ("b", 1)),
        (
            replace(GOOD, faults=(replace(GOOD_FAULT, overlapping=1),)),
            replace(GOOD, faults=(replace(GOOD_FAULT, overlapping=0),)),
            ("b", 1),
        ),
        (GOOD, replace(GOOD, known_versions=899, all_versions=1000), ("c", 89)),
        (GOOD, replace(GOOD, watermarks_with_writes=9), ("c", 9)),
        (GOOD, replace(GOOD, has_final_reads=False), ("e", 0)),
        (GOOD, replace(GOOD, behind=("s1", "s2")), ("e", 2)),
        (GOOD, replace(GOOD, incomplete="killed"), ("e", 0)),
    ],
)
def test_each_clause_applies_below_its_threshold_and_not_at_it(
    at: RunFacts, below: RunFacts, clause: tuple[str, int], shortfall: int
) -> None:
    result = run(below if shortfall else at)
    assert clauses(result) == ([clause] if shortfall else [])
    assert result.verdict is (Verdict.VACUOUS if shortfall else Verdict.VALID)
    assert result.clause == (clause[0] if shortfall else None)
    if shortfall:
        assert result.reason == result.vacuities[0].sentence


def test_a_purpose_below_its_witnesses_makes_the_run_vacuous() -> None:
    result = run(GOOD, judgement(torn_unit=9))
    assert clauses(result)[0] == ("c", 9)
    assert result.promises[0].state is PromiseState.NOT_EXERCISED
    assert result.verdict is Verdict.VACUOUS


def test_another_promise_below_its_witnesses_is_only_not_exercised() -> None:
    result = run(GOOD, judgement(torn_unit=10, watermark_regress=9), promises=(ATOMIC, EXTRA))
    assert [each.state for each in result.promises] == [PromiseState.HOLDS, PromiseState.NOT_EXERCISED]
    assert result.verdict is Verdict.VALID
    assert result.reason.endswith(", 1 not exercised")


def test_a_promise_that_no_check_looks_for_is_not_exercised() -> None:
    result = run(GOOD, judgement(G0=100))
    assert result.promises[0].reason == "no check of this run decides it"
    assert result.verdict is Verdict.VACUOUS


def test_a_promise_has_the_witnesses_of_its_best_exercised_anomaly() -> None:
    result = run(promises=(SERIAL,))
    assert (result.promises[0].witnesses, result.promises[0].state) == (10, PromiseState.HOLDS)


@pytest.mark.parametrize(
    ("named", "vacuous", "excused"),
    [
        ((None, None, None), (), ("pause 1", "pause 2")),
        (("partition", "pause", "pause"), ("pause 1", "pause 2"), ()),
        (("pause", "pause", None), (), ("pause 1", "pause 2")),
        (("step 0", "step 1", None), ("pause 1",), ("pause 2",)),
    ],
)
def test_only_a_name_of_the_user_without_any_effect_counts(
    named: tuple[str | None, ...], vacuous: tuple[str, ...], excused: tuple[str, ...]
) -> None:
    """`named` are the names of a fault with effect, and of two without."""
    effects = (GOOD_FAULT.effect, 0, 0)
    faults = tuple(replace(GOOD_FAULT, name=f"pause {n}", named=named[n], effect=effects[n]) for n in range(3))
    result = run(replace(GOOD, faults=faults))
    assert (result.verdict is Verdict.VACUOUS) is bool(vacuous)
    assert result.excused == excused
    assert clauses(result) == ([("b", len(vacuous))] if vacuous else [])
    assert all(name in result.reason for name in vacuous)


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_in_which_no_fault_had_an_effect_is_vacuous(count: int) -> None:
    result = run(replace(GOOD, faults=(replace(GOOD_FAULT, effect=0),) * count))
    assert (clauses(result), result.excused) == ([("b", count)], ())


def test_a_fault_that_never_began_owes_no_completions() -> None:
    never = replace(GOOD_FAULT, has_begun=False, completed=0)
    assert clauses(run(replace(GOOD, faults=(never,)))) == [("b", 1)]


def test_a_run_without_faults_has_no_clause_about_them() -> None:
    assert run(replace(GOOD, faults=())).verdict is Verdict.VALID


def test_clauses_come_by_their_letters() -> None:
    bad = RunFacts(ok_by_type={"txn": 0}, faults=(replace(GOOD_FAULT, effect=0),), has_final_reads=False)
    assert [clause for clause, _ in clauses(run(bad, judgement(torn_unit=0)))] == ["a", "b", "c", "c", "e"]


BAD = replace(GOOD, ok_by_type={"txn": 0}, has_final_reads=False, behind=("s1",), incomplete="killed")


def test_of_a_foreign_history_only_evidence_counts_and_whether_it_is_whole() -> None:
    idle = (replace(GOOD_FAULT, effect=0),)
    cut_short = replace(BAD, is_foreign=True, faults=idle, known_versions=0, watermarks_with_writes=1)
    assert clauses(run(cut_short, judgement(torn_unit=1))) == [("e", 0)]
    foreign = replace(cut_short, incomplete=None)
    assert run(foreign, judgement(torn_unit=1)).verdict is Verdict.VALID
    assert clauses(run(replace(foreign, watermarks_with_writes=0), judgement(torn_unit=1))) == [("c", 0)]
    assert clauses(run(foreign, judgement(torn_unit=0))) == [("c", 0), ("c", 0)]


def test_a_foreign_history_in_which_nothing_could_be_judged_is_vacuous() -> None:
    extra = replace_promise(ATOMIC, is_purpose=False)
    result = run(RunFacts(is_foreign=True), judgement(torn_unit=0), promises=(extra,))
    assert clauses(result) == [("c", 0)]
    assert result.reason == "no promise was exercised"


def replace_promise(promise: Promise, *, is_purpose: bool) -> Promise:
    return Promise(
        id=promise.id, text=promise.text, source=promise.source, forbids=promise.forbids, is_purpose=is_purpose
    )


def test_a_violation_outranks_everything() -> None:
    doubt = judgement(TORN, unknown={"G0": "too large"})
    result = run(replace(BAD, error="a checker died"), doubt, promises=(SERIAL, ATOMIC))
    assert result.verdict is Verdict.INVALID
    assert result.reason == "Torn unit, 3 times: P-1 is violated"
    assert result.clause is None
    assert result.promises[1].findings == (TORN,)


def test_an_error_outranks_all_but_a_violation() -> None:
    result = run(replace(BAD, error="a checker died"), judgement(unknown={"torn-unit": "too large"}))
    assert (result.verdict, result.reason) == (Verdict.ERROR, "a checker died")


def test_vacuous_outranks_unknown() -> None:
    doubt = judgement(torn_unit=50, unknown={"torn-unit": "too large"})
    assert run(BAD, doubt).verdict is Verdict.VACUOUS
    result = run(GOOD, doubt)
    assert (result.verdict, result.promises[0].state) == (Verdict.UNKNOWN, PromiseState.UNKNOWN)
    assert result.reason == "P-1 could not be decided: torn-unit: too large"


def test_the_doubt_that_a_reason_names_is_one_that_a_check_looks_for() -> None:
    reasons = {"G-MSR": "not-sought: no check", "G1c": "too large", "G1b": "too many"}
    weak = Promise(id="P-4", text="Weak.", source="page", forbids=tuple(reasons))
    result = run(GOOD, judgement(unknown=reasons), promises=(weak,))
    assert result.promises[0].reason == "G1b: too many"


def test_a_reason_for_many_doubts_names_none_of_them() -> None:
    result = run(GOOD, judgement(unknown={"G0": "too large", "G1c": "too large"}), promises=(SERIAL,))
    assert result.reason == f"{SERIAL.called} could not be decided: too large"


def test_what_nothing_could_have_broken_is_said_without_a_number() -> None:
    result = run(GOOD, judgement(torn_unit=0))
    assert result.reason == "P-1 was not exercised: nothing that was recorded could have broken it"


def test_one_witness_is_once() -> None:
    result = run(replace(GOOD, is_foreign=True), judgement(torn_unit=1))
    assert result.reason == "1 promise held, witnessed once"


def test_an_unknown_promise_counts_as_exercised() -> None:
    assert run(GOOD, judgement(torn_unit=0, unknown={"torn-unit": "too large"})).verdict is Verdict.UNKNOWN


def test_a_finding_beside_a_doubt_is_a_violation() -> None:
    result = run(GOOD, judgement(TORN, unknown={"torn-unit": "gave up half way"}, torn_unit=50))
    assert result.promises[0].state is PromiseState.VIOLATED


def test_a_finding_that_no_promise_forbids_is_an_observation() -> None:
    result = run(GOOD, judgement(CYCLE, torn_unit=10))
    assert (result.verdict, result.observations) == (Verdict.VALID, (CYCLE,))
    assert result.reason.endswith("; 1 anomaly seen and not forbidden: G1c")
    result = run(GOOD, judgement(CYCLE, torn_unit=10), promises=(ATOMIC, SERIAL))
    assert (result.verdict, result.observations) == (Verdict.INVALID, ())
    assert result.reason == "Circular information flow (G1c), once: P-2 is violated"


@pytest.mark.parametrize(
    ("check", "state"), [("streams", PromiseState.VIOLATED), ("other", PromiseState.NOT_EXERCISED)]
)
def test_a_promise_that_names_its_check_hears_no_other(check: str, state: PromiseState) -> None:
    promise = msgspec.structs.replace(ATOMIC, check=check)
    streams = msgspec.structs.replace(judgement(TORN, torn_unit=50, unknown={"torn-unit": "half"}), checker="streams")
    other = msgspec.structs.replace(judgement(torn_unit=3), checker="other")
    result = run(GOOD, streams, other, promises=(promise,))
    assert (result.promises[0].state, result.promises[0].witnesses) == (state, 50 if check == "streams" else 3)
    assert result.observations == (() if check == "streams" else (TORN,))


def test_an_anomaly_is_forbidden_with_those_that_imply_it() -> None:
    promise = replace_forbids("G1c-realtime")
    broken = run(GOOD, judgement(CYCLE, G1c_realtime=10), promises=(promise,))
    assert (broken.promises[0].state, broken.observations) == (PromiseState.VIOLATED, ())
    doubtful = run(GOOD, judgement(unknown={"G0": "left out"}, G1c_realtime=10), promises=(promise,))
    assert doubtful.promises[0].reason == "G0: left out"
    unrelated = run(
        GOOD, judgement(CYCLE, unknown={"G0": "left out"}, G1a=10, G1c=9), promises=(replace_forbids("G1a"),)
    )
    assert unrelated.promises[0].state is PromiseState.HOLDS


def test_where_an_implying_anomaly_could_have_shown_is_no_witness() -> None:
    assert run(GOOD, judgement(G0=50, G1c=3), promises=(replace_forbids("G1c"),)).promises[0].witnesses == 3


def replace_forbids(anomaly: str) -> Promise:
    return msgspec.structs.replace(ATOMIC, forbids=(anomaly,))


def test_no_promise_is_no_pass() -> None:
    assert run(promises=()).verdict is Verdict.VACUOUS


def test_a_promise_of_the_harness_alone_is_no_pass_and_can_be_violated() -> None:
    exercised = judgement(torn_unit=50)
    result = compose((), (exercised,), GOOD, of_harness=(ATOMIC,))
    assert (result.verdict, result.clause) == (Verdict.VACUOUS, "c")
    assert result.reason == "no promise was given, so none could be broken"
    assert result.promises[0].state is PromiseState.HOLDS
    idle = compose((SERIAL,), (exercised,), GOOD, of_harness=(ATOMIC,))
    assert idle.verdict is Verdict.VACUOUS
    assert compose((), (judgement(TORN, torn_unit=50),), GOOD, of_harness=(ATOMIC,)).verdict is Verdict.INVALID


def test_a_vacuous_run_names_what_was_seen_as_well() -> None:
    result = compose((), (judgement(CYCLE, TORN, torn_unit=50),), GOOD)
    assert result.verdict is Verdict.VACUOUS
    assert result.reason.endswith("; 2 anomalies seen and not forbidden: G1c, torn-unit")


def test_thresholds_can_be_set_but_not_to_nothing() -> None:
    result = compose((ATOMIC,), (judgement(torn_unit=2),), GOOD, thresholds=Thresholds(witnesses=2))
    assert result.verdict is Verdict.VALID
    with pytest.raises(ScenarioError, match="never a pass"):
        Thresholds(witnesses=0)
    with pytest.raises(ScenarioError, match="from 0 to 100"):
        Thresholds(known_versions_percent=101)
    assert FOREIGN.witnesses == 1


def test_a_promise_that_holds_says_of_what_it_was_not_put_to_the_test() -> None:
    both = Promise(id="P-5", text="Whole.", source="page", forbids=("torn-unit", "split-view", "serializable"))
    [held] = run(GOOD, judgement(torn_unit=10, split_view=0, G0=3), promises=(both,)).promises
    assert (held.state, held.reason) == (PromiseState.HOLDS, "no event could have shown split-view")
    [whole] = run(GOOD, judgement(torn_unit=10, split_view=1, G0=3), promises=(both,)).promises
    assert (whole.state, whole.reason) == (PromiseState.HOLDS, None)


def test_a_wider_class_of_watermarks_is_broken_by_a_narrower_one() -> None:
    wider = Promise(id="P-4", text="Closed.", source="page", forbids=("G1c-watermark-process",))
    narrower = Finding(fingerprint="f3", anomaly="G0-watermark", checker="watermark-graph", sentence="A cycle.")
    seen = judgement(narrower, G1c_watermark_process=10)
    assert [each.state for each in run(GOOD, seen, promises=(wider,)).promises] == [PromiseState.VIOLATED]
