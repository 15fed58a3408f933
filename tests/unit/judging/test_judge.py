"""Promises bound to checks: what a run promised of two populations is judged apart, and what fails is unknown."""

from pathlib import Path
from random import Random

import msgspec
import pytest

from checkers.engine.datasets import LocalEngine
from checkers.transactions.check import LOCKED
from harness.core.errors import ScenarioError
from harness.core.promises import Bounds, Promise
from harness.core.record import BUSY, Complete, Evidence, Fault, Invoke, Mark
from harness.judging.judge import Outlet, judge
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import RunFile
from harness.report.model import Report
from harness.scenario.own_checks import Source, brought
from nemesis.plan import Plan
from tests.worlds.epoch_cases import Story
from tests.worlds.epoch_histories import BITS, records

WEAK = Promise(id="P1", text="Weak.", source="", forbids=("read-committed",))
STRICT = Promise(id="P3", text="Strict.", source="", forbids=("strict-serializable",), check=LOCKED)
REST = Promise(id="P5", text="Closed.", source="", forbids=("cut-not-closed",), is_purpose=False)
RUN = RunFile(
    versions={},
    cluster="store",
    runtime="sim",
    seed=1,
    options={},
    workload="list-append",
    types=("txn",),
    checks=(),
    plan=Plan(steps=()),
    promises=(WEAK, STRICT, REST),
    bounds=Bounds(saved_bits=BITS),
    brought=(brought(Source("clusters.ndb.checks")),),
)


def report(
    folder: Path, evidence: list[Evidence], *, model: str | None = None, run_file: RunFile | None = RUN
) -> Report:
    write_history(evidence, folder / "history")
    loaded = Loaded(history=folder / "history", format="parquet", is_foreign=False)
    return judge(loaded, LocalEngine(2), run_file=run_file, model=model, outlet=Outlet(log=folder / "error.log"))


def verdicts(judged: Report) -> dict[str, str]:
    return {row.id: row.verdict for row in judged.promises if row.id != "SETTLE"}


def skew(lock: str) -> list[Evidence]:
    """Two transactions that miss each other's writes, and enough beside them."""
    story = Story()
    reads = f"{lock}a {lock}b"
    one, other = story.begin(f"{reads} aa1"), story.begin(f"{reads} ab2")
    story.end(one, f"{reads} aa1", (7, 0))
    story.end(other, f"{reads} ab2", (7, 0))
    for at in range(25):
        key = chr(ord("c") + at % 20)
        story.op(f"a{key}{at % 9} ", (7, 1))
        story.op(f"R{key}{at % 9}" if at < 20 else "Ra1 Rb2", (7, 1))
    return story.records


@pytest.mark.parametrize(("lock", "locked"), [("r", "holds"), ("R", "violated")])
def test_each_population_answers_to_its_own_promise(tmp_path: Path, lock: str, locked: str) -> None:
    assert verdicts(report(tmp_path, skew(lock))) | {"P5": "-"} == {"P1": "holds", "P3": locked, "P5": "-"}


def test_a_model_of_the_command_line_takes_the_place_of_all(tmp_path: Path) -> None:
    locked = f"MODEL ({LOCKED})"
    weaker = verdicts(report(tmp_path, skew("R"), model="read-committed"))
    assert (weaker["MODEL"], weaker[locked]) == ("holds", "holds")
    stricter = verdicts(report(tmp_path, skew("R"), model="serializable"))
    assert (stricter["MODEL"], stricter[locked]) == ("violated", "violated")


def test_a_run_that_lost_the_unsaved_in_a_restart_keeps_its_promises(tmp_path: Path) -> None:
    for seed in range(3):
        evidence = records(Random(seed), steps=300, restarts=2)
        assert set(verdicts(report(tmp_path, evidence)).values()) <= {"holds", "not-exercised"}


def test_a_history_from_elsewhere_is_one_generation_of_all_transactions(tmp_path: Path) -> None:
    judged = report(tmp_path, skew("r"), run_file=None, model="serializable")
    assert verdicts(judged) == {"MODEL": "violated"}
    assert {finding.checker for finding in judged.findings} == {"serializability"}


def test_a_check_that_fails_leaves_what_it_looks_for_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("clusters.ndb.checks.cuts.read_acts", broken)
    judged = report(tmp_path, skew("r"))
    assert verdicts(judged) == {"P1": "holds", "P3": "holds", "P5": "unknown"}
    assert (judged.verdict, judged.exit_code) == ("error", 4)
    assert "cuts" in judged.reason


def test_a_promise_of_registers_over_transactions_leads_to_a_model_of_transactions(tmp_path: Path) -> None:
    registers = msgspec.structs.replace(WEAK, forbids=("linearizable",))
    judged = report(tmp_path, skew("r"), run_file=msgspec.structs.replace(RUN, promises=(registers,), brought=()))
    assert (judged.verdict, judged.clause) == ("vacuous", "c")
    assert judged.way_out is not None
    assert judged.way_out.sentence.startswith("Promise strict-serializable instead, or use a workload of registers")
    assert judged.way_out.command is None


def test_a_promise_of_one_anomaly_by_its_name_is_judged(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", None, "fail")
    for _ in range(12):
        story.op("rx1", (7, 0))
    run_file = msgspec.structs.replace(RUN, promises=(msgspec.structs.replace(WEAK, forbids=("G1a",)),))
    assert verdicts(report(tmp_path, story.records, run_file=run_file)) == {"P1": "violated"}


def test_a_promise_stays_open_where_another_is_broken(tmp_path: Path) -> None:
    story = Story()
    one, other = story.begin("aa1 ab1"), story.begin("Ra Rb")
    story.end(one, "aa1 ab1", (7, 0))
    story.end(other, "Ra1 Rb", (7, 0))
    for _ in range(12):
        story.op("Ra1 Rb1", (7, 1))
    promises = [
        Promise(id=model, text="", source="", forbids=(model,)) for model in ("serializable", "cursor-stability")
    ]
    run_file = msgspec.structs.replace(RUN, promises=tuple(promises))
    expected = {"serializable": "violated", "cursor-stability": "unknown"}  # Nobody tells G-cursor from G-single.
    assert verdicts(report(tmp_path, story.records, run_file=run_file)) == expected


def single(*done: tuple[str, int | None, int | None]) -> list[Evidence]:
    """Operations on one register, one after the other: what each asked and was answered."""
    evidence: list[Evidence] = []
    for number, (f, asked, answered) in enumerate(done):
        evidence += [
            Invoke(number, 2 * number, number, 0, f, asked),
            Complete(number, 2 * number + 1, "ok", answered),
        ]
    return evidence


@pytest.mark.parametrize(("read", "verdict"), [(1, "holds"), (0, "violated")])
@pytest.mark.parametrize("model", [None, "linearizable"])
def test_single_registers_are_judged_as_such_with_and_without_their_model(
    tmp_path: Path, model: str | None, read: int, verdict: str
) -> None:
    done = single(("write", 0, 0), *[("write", 1, 1), ("read", None, read)] * 12)
    judged = report(tmp_path, done, model=model, run_file=None)
    assert {row.id: row.verdict for row in judged.promises} == {"LINEARIZABILITY": verdict}
    assert judged.model == model
    assert judged.exit_code == (verdict == "violated")


def test_single_registers_say_nothing_of_a_model_of_transactions(tmp_path: Path) -> None:
    judged = report(tmp_path, single(*[("write", 1, 1), ("read", None, 1)] * 12), model="serializable", run_file=None)
    assert verdicts(judged) == {"MODEL": "not-exercised"}


def test_a_model_of_single_registers_is_refused_for_transactions(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="holds transactions: use strict-serializable"):
        report(tmp_path, skew("r"), model="linearizable", run_file=None)


def test_numbers_in_a_set_are_no_registers_whatever_the_model(tmp_path: Path) -> None:
    result = [
        *single(*[("add", number, number) for number in range(12)]),
        Invoke(12, 24, 12, 0, "read"),
        Complete(12, 25, "ok", list(range(12))),
    ]
    assert verdicts(report(tmp_path / "seen", result, run_file=None)) == {"SET-FULL": "holds"}
    asked = report(tmp_path / "asked", result, model="linearizable", run_file=None)
    assert verdicts(asked) == {"MODEL": "not-exercised"}


@pytest.mark.parametrize(
    ("busy", "verdict"),
    [
        (None, "violated"),
        ((100, 150), "violated"),  # It was over before healing began.
        ((100, 250), "unknown"),
        ((350, None), "unknown"),
    ],
)
def test_nobody_is_blamed_for_not_settling_on_a_machine_that_was_too_busy(
    busy: tuple[int, int | None] | None, verdict: str, tmp_path: Path
) -> None:
    evidence: list[Evidence] = [
        *skew("r"),
        Mark(200, "healing"),
        Mark(300, "final"),
        Mark(400, "end", note="stall: no answer"),
    ]
    if busy is not None:
        evidence += [
            Fault(busy[0], 0, "begin", BUSY, ("n1",)),
            Fault(busy[0], 0, "effect", BUSY, ("n1",), 9, "9 times late"),
        ]
        evidence += [Fault(busy[1], 0, "end", BUSY, ("n1",))] if busy[1] is not None else []
    judged = report(tmp_path, evidence)
    (settled,) = (row for row in judged.promises if row.id == "SETTLE")
    assert settled.verdict == verdict
    assert ("too busy to run the nodes in time: 9 times late" in str(settled.reason)) == (verdict == "unknown")


@pytest.mark.parametrize(("rate", "is_missing"), [(100.0, False), (1_000.0, True)])
def test_a_load_of_which_less_than_half_was_begun_is_a_note(tmp_path: Path, rate: float, is_missing: bool) -> None:
    second = 1_000_000_000
    load: list[Evidence] = [
        record
        for number in range(60)
        for record in (
            Invoke(number, number * 10_000_000, number * 10_000_000, 0, "txn", None, ()),
            Complete(number, number * 10_000_000 + 1, "ok", None, ()),
        )
    ]
    evidence = [Mark(0, "load"), *load, Mark(second, "healing"), Mark(2 * second, "end")]
    run = msgspec.structs.replace(RUN, options={"rate": rate})
    notes = report(tmp_path, evidence, run_file=run).facts.get("notes", [])
    expected = "60 of 1,000 operations were begun, as each client has one at a time; more of them: --clients"
    assert (notes == [expected]) is is_missing
