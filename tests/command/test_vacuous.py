"""What tested too little never passes; what is small may still be judged."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Json
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
    again = f"seamark run --cluster tutorial --seed {SEED} --time 5 --rate 1 --nemesis none"
    assert outcome.json["anywhere"] == again
    way_out = outcome.json["way_out"]
    assert isinstance(way_out, dict)
    assert way_out["command"] == again.replace("--time 5", "--time 20")


def test_a_vacuous_run_shows_its_way_out_and_no_promise_as_green(seamark: Seamark, tmp_path: Path) -> None:
    outcome = seamark(*IDLE, "--quiet")
    assert "VACUOUS  not enough was tested: " in outcome.out
    assert "  Run longer, or at a higher rate; a sweep adds up what many runs tested." in outcome.out
    page = next((tmp_path / "store" / "tutorial").iterdir()) / "report.html"
    first, _, _ = page.read_text(encoding="utf-8").partition("</section>")
    assert 'class="chip holds"' not in first
    assert "seamark run --cluster tutorial" in first
    assert 'href="#not-a-pass"' in first


def test_a_fault_that_cannot_bite_makes_a_run_vacuous(seamark: Seamark, tmp_path: Path) -> None:
    step = {"fault": "delay", "package": "slow-link", "at_ns": 2 * 10**9, "until_ns": 4 * 10**9, "targets": ["n2>s1"]}
    step["args"] = {"latency_ns": 10**9}  # The backup sends nothing to a subscriber.
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode({"steps": [step]}))
    outcome = seamark("run", "--seed", SEED, *SMALL, "--plan", "plan.json", "--json")
    assert (outcome.code, outcome.json["verdict"], outcome.json["clause"]) == (3, "vacuous", "b")
    assert outcome.json["reason"] == "1 of 1 fault changed nothing: slow link n2>s1 at 2.0 s"
    assert outcome.json["anywhere"] is None  # The command line alone does not make this run again.


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


def promising(run: Path, promises: list[dict[str, Json]]) -> None:
    """Let a stored run have promised that."""
    content = msgspec.json.decode((run / "run.json").read_bytes(), type=dict[str, Json])
    (run / "run.json").write_bytes(msgspec.json.encode(content | {"promises": promises}))


def promised(run: Path) -> list[dict[str, Json]]:
    content = msgspec.json.decode((run / "run.json").read_bytes(), type=dict[str, Json])
    return msgspec.convert(content["promises"], list[dict[str, Json]])


PROMISING_NOTHING = """
from clusters.tutorial import Cluster

class Silent(Cluster):
    name = "silent"
    def promised(self, settings):
        return ()
"""


def test_a_run_that_promised_nothing_is_vacuous_whatever_held(seamark: Seamark, run_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(PROMISING_NOTHING, encoding="utf-8")
    options = ("--seed", SEED, "--cluster", "silent.py:Silent", *SMALL[2:], "--json")
    promising(run_copy, [])
    for outcome in (seamark("check", run_copy, "--engine", "local", "--json"), seamark("run", *options)):
        assert (outcome.code, outcome.json["clause"]) == (3, "c")
        assert "no promise was given, so none could be broken" in str(outcome.json["reason"])


def test_what_nothing_forbids_is_in_the_verdict_line(seamark: Seamark, tmp_path: Path) -> None:
    ran = seamark("run", "--seed", "3", *SMALL, "--bug", "late-row", "--json")
    assert ran.code == 1
    [run] = (tmp_path / "store" / "tutorial").iterdir()
    seen = {str(row["anomaly"]) for row in msgspec.convert(ran.json["findings"], list[dict[str, Json]])}
    kept = [each for each in promised(run) if seen.isdisjoint(msgspec.convert(each["forbids"], list[str]))]
    promising(run, kept)
    outcome = seamark("check", run, "--engine", "local", "--json")
    assert outcome.code in (0, 3)
    assert f"{len(seen)} anomal" in str(outcome.json["reason"])
    assert str(outcome.json["reason"]).endswith(f"seen and not forbidden: {', '.join(sorted(seen))}")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ({"forbids": ["torn-unit", "silent-gab"]}, "unknown anomaly or consistency model 'silent-gab'; did you mean"),
        ({"forbids": []}, "it forbids nothing"),
        ({"check": "stream"}, "unknown check 'stream'; did you mean streams?"),
        ({"id": "TUT-1"}, "there is another one of that name"),
    ],
)
def test_a_promise_that_cannot_be_broken_is_refused(
    seamark: Seamark, run_copy: Path, tmp_path: Path, spoil: dict[str, Json], message: str
) -> None:
    *rest, last = promised(run_copy)
    promising(run_copy, [*rest, last | spoil])
    outcome = seamark("check", run_copy, "--engine", "local")
    assert (outcome.code, outcome.out) == (64, "")
    assert f"run.json: promise {spoil.get('id', last['id'])}: {message}" in outcome.line
    fields = ", ".join(
        f"{name}={tuple(value) if isinstance(value, list) else value!r}" for name, value in spoil.items()
    )
    (tmp_path / "spoiled.py").write_text(
        "import msgspec\nfrom clusters.tutorial import Cluster\nclass Spoiled(Cluster):\n"
        "    def promised(self, settings):\n        *rest, last = super().promised(settings)\n"
        f"        return (*rest, msgspec.structs.replace(last, {fields}))\n",
        encoding="utf-8",
    )
    refused = seamark("run", "--cluster", "spoiled.py:Spoiled", "--engine", "local")
    assert (refused.code, refused.out) == (64, "")
    assert message in refused.line


def test_a_check_that_takes_too_long_is_unknown_and_never_a_pass(run_copy: Path) -> None:
    # In a process of its own: the command ends it at once if the check still computes.
    options = ("--engine", "local", "--check-timeout", "0.001", "--json")
    command = (sys.executable, "-c", "from harness.cli.entry import main; main()", "check", str(run_copy), *options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)
    assert (done.returncode, result["verdict"]) in ((2, "unknown"), (3, "vacuous"))
    assert "check-timeout" in str(result["promises"])
