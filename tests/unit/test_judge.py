"""Promises bound to checks: what a run promised of two populations is judged apart, and what fails is unknown."""

from pathlib import Path
from random import Random

import msgspec
import pytest

from checkers.engine import LocalEngine
from harness import checks
from harness.core.promises import Bounds, Promise
from harness.core.record import Evidence
from harness.formats.load import Loaded
from harness.formats.parquet import write_history
from harness.judge import judge
from harness.report.model import Report
from harness.store import RunFile
from nemesis.plan import Plan
from tests.epoch_histories import BITS, records
from tests.unit.checkers.epoch_cases import Story

WEAK = Promise(id="P1", text="Weak.", source="", forbids=("read-committed",))
STRICT = Promise(id="P3", text="Strict.", source="", forbids=("strict-serializable",), check=checks.LOCKED)
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
)


def report(folder: Path, told: list[Evidence], *, model: str | None = None, run_file: RunFile | None = RUN) -> Report:
    write_history(told, folder / "history")
    loaded = Loaded(history=folder / "history", format="parquet", is_foreign=False)
    return judge(loaded, LocalEngine(2), run_file=run_file, model=model, log=folder / "error.log")


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
    weaker = verdicts(report(tmp_path, skew("R"), model="read-committed"))
    assert (weaker["P1"], weaker["P3"]) == ("holds", "holds")
    stricter = verdicts(report(tmp_path, skew("R"), model="serializable"))
    assert (stricter["P1"], stricter["P3"]) == ("violated", "violated")


def test_a_run_that_lost_the_unsaved_in_a_restart_keeps_its_promises(tmp_path: Path) -> None:
    for seed in range(3):
        told = records(Random(seed), steps=300, restarts=2)
        assert set(verdicts(report(tmp_path, told)).values()) <= {"holds", "not-exercised"}


def test_a_history_from_elsewhere_is_one_generation_of_all_transactions(tmp_path: Path) -> None:
    judged = report(tmp_path, skew("r"), run_file=None, model="serializable")
    assert verdicts(judged) == {"MODEL": "violated"}
    assert {finding.checker for finding in judged.findings} == {"serializability"}


def test_a_check_that_fails_leaves_what_it_looks_for_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("harness.checks.cuts.check", broken)
    judged = report(tmp_path, skew("r"))
    assert verdicts(judged) == {"P1": "holds", "P3": "holds", "P5": "unknown"}
    assert (judged.verdict, judged.exit_code) == ("error", 4)
    assert "cuts" in judged.reason


def test_a_promise_of_one_anomaly_by_its_name_is_judged(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", None, "fail")
    for _ in range(12):
        story.op("rx1", (7, 0))
    run_file = msgspec.structs.replace(RUN, promises=(msgspec.structs.replace(WEAK, forbids=("G1a",)),))
    assert verdicts(report(tmp_path, story.records, run_file=run_file)) == {"P1": "violated"}
