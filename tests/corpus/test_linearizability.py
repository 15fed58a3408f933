"""Knossos's and porcupine's histories of registers, with the verdicts that they state. Absent files are skipped.

Each is judged as `seamark check` judges it without a word about registers, and as those projects read it: registers of
Knossos hold 0 at first, or nothing where the history comes from etcd; to porcupine a read of nil says that nothing is
there, to Knossos it says nothing.
"""

import json
from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.registers import Register
from checkers.linearizability.check import ANOMALIES, check
from harness.core.verdict import Judgement
from harness.judging.judge import judge
from harness.record.formats.load import Loaded, load
from harness.record.formats.parquet import parquet
from tests.corpus.cases import HISTORIES

ENGINE = LocalEngine(2)
KNOSSOS = sorted(HISTORIES.glob("knossos/cas-register/*/*.edn"))
PORCUPINE = sorted(HISTORIES.glob("porcupine/*/*.*"))
MUTEX = HISTORIES / "knossos/mutex/bad/etcd.edn"
MULTI = HISTORIES / "knossos/multi-register/good/multi-register.edn"
# In the first of these there is only a nemesis, in the second nothing succeeded. Knossos calls them linearizable. To
# us they are vacuous: nothing was tested.
EMPTY = {"mongodb-v0-ack-rollback-.edn", "mongodb-v0-ack-rollback-10.edn"}
# It reads what only a failed write tried to write: undeclared, that may have been there first.
UNDECLARED = {"immediate-failure.edn"}
pytestmark = pytest.mark.skipif(not MULTI.is_file(), reason=f"{MULTI} is absent")


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def judged(loaded: Loaded, register: Register) -> Judgement:
    judgement = check(loaded.history, Context(engine=ENGINE, register=register))
    assert judgement.unknown == {}
    return judgement


def verdict(loaded: Loaded) -> str:
    """By `seamark check`, without any option; linearizability must be what it asks for."""
    report = judge(loaded, ENGINE)
    assert {row.id for row in report.promises} <= {"LINEARIZABILITY"} or report.verdict == "vacuous"
    assert {finding.anomaly for finding in report.findings} <= set(ANOMALIES)
    return report.verdict


@pytest.mark.parametrize("path", KNOSSOS, ids=name)
def test_knossos_s_verdict_on_a_register(path: Path, tmp_path: Path) -> None:
    is_good = path.parent.name == "good"
    expected = "vacuous" if path.name in EMPTY else "valid" if is_good else "invalid"
    loaded = load(path, tmp_path)
    assert verdict(loaded) == ("unknown" if path.name in UNDECLARED else expected)
    for start in (0, None):
        register = Register(initial=start, is_initial_known=True)
        assert (not judged(loaded, register).findings) == is_good, start


def test_knossos_s_verdict_on_a_lock(tmp_path: Path) -> None:
    assert verdict(load(MUTEX, tmp_path)) == "invalid"


def test_knossos_s_verdict_on_registers_that_are_written_together(tmp_path: Path) -> None:
    register = Register(model="multi-register", initial=0, is_initial_known=True)
    judgement = judged(load(MULTI, tmp_path), register)
    assert judgement.findings == ()
    assert judgement.witnesses["non-linearizable"] > 50


@pytest.mark.parametrize("path", PORCUPINE, ids=name)
def test_porcupine_s_verdict(path: Path, tmp_path: Path) -> None:
    stated = json.loads((HISTORIES / "porcupine/verdicts.json").read_text(encoding="utf-8"))[name(path)]
    loaded = load(path, tmp_path)
    assert verdict(loaded) == ("valid" if stated else "invalid")
    register = Register(is_initial_known=True, nil="absent")
    assert (not judged(loaded, register).findings) == stated


def test_no_file_is_left_out() -> None:
    stated = json.loads((HISTORIES / "porcupine/verdicts.json").read_text(encoding="utf-8"))
    assert (len(KNOSSOS), len(PORCUPINE)) == (65, 50)
    assert sorted(map(name, PORCUPINE)) == sorted(stated)
