"""The small inputs from the field that are about transactions, registers and EDN, each with its right answer."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.words import models
from harness.core.errors import ScenarioError
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.report.model import Report
from tests.corpus.cases import HISTORIES

FIELD = HISTORIES.parent / "field"
pytestmark = pytest.mark.skipif(not FIELD.is_dir(), reason=f"{FIELD} is absent")


def report(name: str, folder: Path, *, model: str | None = None, initial: str | None = None) -> Report:
    return judge(load(FIELD / name, folder), engine=LocalEngine(1), model=model, initial=initial)


@pytest.mark.parametrize(
    ("name", "model", "initial", "verdict", "anomalies"),
    [
        ("mael56.edn", "read-uncommitted", None, "invalid", {"G0"}),
        ("mael56-append.edn", "read-uncommitted", None, "invalid", {"G0"}),
        ("pairs.edn", None, None, "valid", set()),
        ("elle8.edn", None, "null", "invalid", {"unwritten-read"}),
        ("seqreg.edn", None, None, "invalid", {"non-linearizable"}),
        ("time-minus1.edn", None, None, "invalid", {"G1c"}),
        ("omni.edn", None, None, "unknown", set()),
        ("jepsen-0.3.log", None, None, "valid", set()),
    ],
)
def test_a_history_from_the_field_gets_its_right_answer(
    name: str, model: str | None, initial: str | None, verdict: str, anomalies: set[str], tmp_path: Path
) -> None:
    judged = report(name, tmp_path, model=model, initial=initial)
    assert (judged.verdict, {finding.anomaly for finding in judged.findings}) == (verdict, anomalies)


def test_times_that_fall_back_are_noted(tmp_path: Path) -> None:
    notes = report("pairs.edn", tmp_path).facts["notes"]
    assert isinstance(notes, list)
    assert "times fall back in pairs.edn: operations are ordered by their times" in str(notes[0])


def test_a_model_that_no_check_decides_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no check decides the model sequential.* single registers linearizable"):
        models.decided("sequential")


def test_operations_that_no_check_knows_are_named_beside_those_that_are_known(tmp_path: Path) -> None:
    judged = report("nats-publish.edn", tmp_path)
    assert judged.verdict == "vacuous"
    assert "found fetch-all, publish" in judged.reason
    assert "known are acquire, add" in judged.reason


def test_a_cas_with_its_key_may_be_flat(tmp_path: Path) -> None:
    assert 'register "k1" is linearizable only if it held "v95"' in report("omni.edn", tmp_path).reason
