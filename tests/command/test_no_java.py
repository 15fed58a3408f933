"""Without Java threads judge; where Spark must, the run is stored, and the message has the command that judges it."""

import re
import shlex
from pathlib import Path

import pytest

from tests.command.conftest import SEED, SMALL, Seamark

pytestmark = pytest.mark.spark
ON_SPARK = ("--seed", str(SEED), *SMALL[:-2])
TOLD = (
    r"^seamark: Spark did not start \(there is no Java here, and it needs Java 17\); see seamark doctor\. "
    r"Nothing is lost; without Spark: (seamark check .+)$"
)


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.judging.engines.VALUES_OF_THREADS", 0)


def test_threads_judge_a_small_run(seamark: Seamark) -> None:
    outcome = seamark("run", *ON_SPARK, "--verbose")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.search(r"check took [\d.]+ s in threads", outcome.out)


@pytest.mark.usefixtures("all_are_large")
def test_a_run_is_stored_and_the_command_judges_it(seamark: Seamark) -> None:
    outcome = seamark("run", *ON_SPARK, "--quiet")
    assert outcome.code == 4
    result = re.match(TOLD, outcome.err.splitlines()[-1])
    assert result is not None, outcome.err
    assert seamark(*shlex.split(result[1])[1:], "--quiet").code == 0


@pytest.mark.usefixtures("all_are_large")
def test_a_history_from_elsewhere_is_judged_by_the_command_with_its_options(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "a b.edn").write_text("{:type :ok, :process 0, :f :txn, :value [[:append 1 1] [:r 1 [1]]]}")
    outcome = seamark("check", "a b.edn", "--model", "serializable")
    assert outcome.code == 4
    result = re.match(TOLD, outcome.err.splitlines()[-1])
    assert result is not None, outcome.err
    assert result[1] == "seamark check 'a b.edn' --model serializable --engine local"
