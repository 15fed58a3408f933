"""What tested too little never passes; what is small may still be judged."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.command.conftest import SEED, SMALL, Seamark

IDLE = (
    "run",
    "--cluster",
    "tutorial",
    "--seed",
    str(SEED),
    "--nemesis",
    "none",
    "--rate",
    "1",
    "--time",
    "5",
    "--engine",
    "local",
)


def test_a_run_that_asked_for_too_little_is_vacuous(seamark: Seamark) -> None:
    outcome = seamark(*IDLE, "--json")
    assert (outcome.code, outcome.json["verdict"], outcome.json["clause"]) == (3, "vacuous", "a")
    assert "of type txn succeeded, fewer than 20" in str(outcome.json["reason"])


def test_a_fault_that_cannot_bite_makes_a_run_vacuous(seamark: Seamark, tmp_path: Path) -> None:
    step = {"fault": "delay", "package": "slow-link", "at_ns": 2 * 10**9, "until_ns": 4 * 10**9, "targets": ["n2>s1"]}
    step["args"] = {"latency_ns": 10**9}  # The backup sends nothing to a subscriber.
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode({"steps": [step]}))
    outcome = seamark("run", "--seed", SEED, *SMALL, "--plan", "plan.json", "--json")
    assert (outcome.code, outcome.json["verdict"], outcome.json["clause"]) == (3, "vacuous", "b")
    assert "slow-link of n2>s1 at 2.0 s had no measured effect" in str(outcome.json["reason"])


@pytest.mark.parametrize("text", ["", "[]", "; nothing but a comment\n"])
def test_an_empty_history_is_vacuous(seamark: Seamark, tmp_path: Path, text: str) -> None:
    (tmp_path / "empty.edn").write_text(text, encoding="utf-8")
    outcome = seamark("check", "empty.edn", "--engine", "local", "--json")
    assert (outcome.code, outcome.json["verdict"], outcome.json["clause"]) == (3, "vacuous", "c")


# Two that append to x and y in opposite orders, as the third one sees; and what the same history is if it saw no order.
CYCLE = """
{:index 0 :type :invoke :process 0 :f :txn :value [[:append :x 1] [:append :y 1]]}
{:index 1 :type :invoke :process 1 :f :txn :value [[:append :x 2] [:append :y 2]]}
{:index 2 :type :ok :process 0 :f :txn :value [[:append :x 1] [:append :y 1]]}
{:index 3 :type :ok :process 1 :f :txn :value [[:append :x 2] [:append :y 2]]}
{:index 4 :type :invoke :process 2 :f :txn :value [[:r :x nil] [:r :y nil]]}
{:index 5 :type :ok :process 2 :f :txn :value [[:r :x [1 2]] [:r :y [2 1]]]}
"""


@pytest.mark.parametrize(
    ("text", "code", "anomalies"),
    [
        (CYCLE, 1, {"G0"}),
        (CYCLE.replace("[2 1]", "[1 2]"), 0, set()),
        (CYCLE.replace("[:r :y [2 1]]", "[:r :y [1]]"), 1, {"G-single"}),
    ],
)
def test_a_history_of_three_operations_is_judged(
    seamark: Seamark, tmp_path: Path, text: str, code: int, anomalies: set[str]
) -> None:
    (tmp_path / "small.edn").write_text(text, encoding="utf-8")
    outcome = seamark("check", "small.edn", "--engine", "local", "--json")
    findings = msgspec.convert(outcome.json["findings"], list[dict[str, object]])
    assert {finding["anomaly"] for finding in findings} >= anomalies
    assert outcome.code == code
    assert bool(findings) == bool(code)


def test_a_weaker_model_allows_what_a_stronger_one_forbids(seamark: Seamark, tmp_path: Path) -> None:
    skew = """
    {:index 0 :type :invoke :process 0 :f :txn :value [[:r :x nil] [:append :y 1]]}
    {:index 1 :type :invoke :process 1 :f :txn :value [[:r :y nil] [:append :x 1]]}
    {:index 2 :type :ok :process 0 :f :txn :value [[:r :x []] [:append :y 1]]}
    {:index 3 :type :ok :process 1 :f :txn :value [[:r :y []] [:append :x 1]]}
    {:index 4 :type :invoke :process 0 :f :txn :value [[:r :x nil] [:r :y nil]]}
    {:index 5 :type :ok :process 0 :f :txn :value [[:r :x [1]] [:r :y [1]]]}
    """
    (tmp_path / "skew.edn").write_text(skew, encoding="utf-8")
    strict = seamark("check", "skew.edn", "--engine", "local", "--json")
    weak = seamark("check", "skew.edn", "--engine", "local", "--json", "--model", "snapshot-isolation")
    assert (strict.code, weak.code) == (1, 0)
    assert [row["promise"] for row in msgspec.convert(weak.json["findings"], list[dict[str, object]])] in ([], [None])


def test_a_check_that_takes_too_long_is_unknown_and_never_a_pass(run_copy: Path) -> None:
    # In a process of its own: the command ends it at once if the check still computes.
    options = ("--engine", "local", "--check-timeout", "0.001", "--json")
    command = (sys.executable, "-c", "from harness.cli.entry import main; main()", "check", str(run_copy), *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)
    assert (done.returncode, result["verdict"]) in ((2, "unknown"), (3, "vacuous"))
    assert "check-timeout" in str(result["promises"])
