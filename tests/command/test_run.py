"""What runs, and comes to a verdict: options, files, batches, and what is printed."""

import re
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Json
from harness.judging.engines import EngineName, EngineStart
from harness.report.model import FindingRow, Report
from tests.command.conftest import SEED, SMALL, Outcome, Seamark

RUN = ("run", "--seed", str(SEED), *SMALL)
LATE = (
    "--cluster",
    "tutorial",
    "--workload",
    "list-append",
    "--style",
    "swarm",
    "--bug",
    "late-row",
    "--nemesis",
    "partition",
    "--time",
    "5",
    "--rate",
    "60",
    "--engine",
    "local",
)
# The names of reports-and-ux, section 7: other tools rely on them.
REPORT = {
    "schema", "verdict", "exit_code", "reason", "clause", "incomplete", "started_utc", "versions", "plan_sha256", "run",
    "cluster", "runtime", "seed", "bugs", "history_sha256", "findings", "promises", "faults", "operations", "seconds",
}  # fmt: skip
FINDING = {"fingerprint", "anomaly", "promise", "checker", "count", "sentence"}
PROMISE = {"id", "verdict", "witnesses", "text", "source"}
FAULT = {"kind", "planned", "effective"}


def rows(report: dict[str, Json], name: str) -> list[dict[str, Json]]:
    return msgspec.convert(report[name], list[dict[str, Json]])


def assert_is_report(outcome: Outcome) -> None:
    report = outcome.json
    assert set(report) >= REPORT
    assert report["schema"] == 1
    assert report["exit_code"] == outcome.code
    for name, fields in (("findings", FINDING), ("promises", PROMISE), ("faults", FAULT)):
        assert all(set(row) >= fields for row in rows(report, name)), name
    assert set(msgspec.convert(report["operations"], dict[str, int])) == {"ok", "fail", "info"}


def test_the_seed_comes_first_and_the_way_on_comes_last(seamark: Seamark, tmp_path: Path) -> None:
    outcome = seamark(*RUN)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert f"seed {SEED}" in lines[0]
    assert re.fullmatch(r"PASS  .* \(exit 0\)", next(line for line in lines if line.startswith("PASS")))
    shown = [line.split(maxsplit=1) for line in lines[-3:]]
    assert [label for label, _ in shown] == ["open", "again", "judge"]
    assert (tmp_path / shown[0][1]).is_file()
    assert sum(line.strip() != "" for line in lines) <= 30


def test_quietly_there_is_the_verdict_and_how_to_go_on(seamark: Seamark) -> None:
    outcome = seamark(*RUN, "--quiet")
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err, len(lines)) == (0, "", 4)
    assert lines[0].startswith("PASS  ")
    assert lines[2].startswith("  again   seamark replay ")


def test_json_is_all_that_goes_to_standard_output(seamark: Seamark, tmp_path: Path) -> None:
    ran = seamark(*RUN, "--json")
    assert_is_report(ran)
    assert f"seed {SEED}" in ran.err
    run = tmp_path / str(ran.json["run"])
    assert msgspec.json.decode((run / "report.json").read_bytes()) == ran.json
    checked = seamark("check", run, "--engine", "local", "--json")
    assert_is_report(checked)
    replayed = seamark("replay", run, "--engine", "local", "--json")
    assert_is_report(replayed)
    assert replayed.err.startswith("exact")
    assert {each.json["history_sha256"] for each in (ran, checked, replayed)} == {ran.json["history_sha256"]}
    assert (ran.code, checked.code, replayed.code) == (0, 0, 0)
    listed = msgspec.json.decode(seamark("list", "--json").out, type=list[dict[str, Json]])
    assert [(row["run"], row["verdict"], row["seed"]) for row in listed] == [(ran.json["run"], "valid", SEED)]


def test_clusters_are_described_with_what_a_run_may_name(seamark: Seamark) -> None:
    tutorial = msgspec.convert(seamark("clusters", "--json").json["tutorial"], dict[str, Json])
    assert set(tutorial) >= {"promises", "bugs", "workloads", "faults"}
    shown = seamark("clusters", "ndb", "tutorial").out
    for name in ("TUT-1", "TUT-5", "lost-ack", "torn-watermark", "late-row", "list-append", "slow-subscriber"):
        assert name in shown
        assert name in str(tutorial)


def test_a_run_repeated_within_the_command_is_compared(seamark: Seamark) -> None:
    outcome = seamark(*RUN, "--twice", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")


def test_a_finding_is_exit_1_in_run_check_and_replay(seamark: Seamark, tmp_path: Path) -> None:
    ran = seamark("run", "--seed", "1", *LATE)
    assert (ran.code, ran.err) == (1, "")
    assert "seed 1 " in ran.out.splitlines()[0]
    assert "planted: late-row" in ran.out.splitlines()[0]
    (run,) = (tmp_path / "store" / "tutorial").iterdir()
    assert seamark("check", run, "--engine", "local", "--quiet").code == 1
    replayed = seamark("replay", run, "--engine", "local")
    assert replayed.code == 1
    assert replayed.out.startswith("exact  ")
    (line,) = [line for line in replayed.out.splitlines() if line.startswith("ANOMALY")]
    assert line.endswith("(exit 1)")
    assert "ANOMALY" in seamark("list").out


def test_a_run_json_repeats_its_plan_and_its_history(seamark: Seamark, tmp_path: Path, stored_run: Path) -> None:
    again = seamark("run", stored_run / "run.json", "--engine", "local", "--json")
    stored = msgspec.json.decode((stored_run / "report.json").read_bytes(), type=dict[str, Json])
    assert again.code == 0
    for name in ("history_sha256", "unseed", "plan_sha256", "seed"):
        assert again.json[name] == stored[name]


def test_a_scenario_file_says_what_flags_say_and_flags_win(seamark: Seamark, tmp_path: Path, stored_run: Path) -> None:
    (tmp_path / "small.toml").write_text(
        f'cluster = "tutorial"\nseed = {SEED + 1}\ntime = 6\nrate = 60\nengine = "local"\njson = true\n',
        encoding="utf-8",
    )
    outcome = seamark("run", "small.toml", "--seed", SEED)
    stored = msgspec.json.decode((stored_run / "report.json").read_bytes(), type=dict[str, Json])
    assert (outcome.code, outcome.json["history_sha256"]) == (0, stored["history_sha256"])


def test_a_plan_from_a_file_takes_the_place_of_the_drawn_one(seamark: Seamark, tmp_path: Path) -> None:
    step = {"fault": "crash", "package": "crash", "at_ns": 2 * 10**9, "until_ns": 4 * 10**9, "targets": ["s1"]}
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode({"steps": [step]}))
    outcome = seamark(*RUN, "--plan", "plan.json", "--json")
    assert outcome.code == 0
    (fault,) = rows(outcome.json, "faults")
    assert (fault["kind"], fault["planned"], fault["effective"]) == ("crash", 1, 1)


def test_a_batch_runs_its_seeds_and_has_the_verdict_of_its_worst(seamark: Seamark, tmp_path: Path) -> None:
    outcome = seamark("run", "--seed", "3", "--count", "4", "--jobs", "2", *SMALL, "--json")
    batch = outcome.json
    runs = rows(batch, "runs")
    assert [run["seed"] for run in runs] == [3, 4, 5, 6]
    assert outcome.code == batch["exit_code"] == max(int(str(run["exit_code"])) for run in runs)
    assert batch["planned"] == 4
    assert batch["stopped"] is None
    assert len(list((tmp_path / "store" / "tutorial").iterdir())) == 4
    assert all(re.search(rf"seed {run['seed']}  {run['workload']} ", outcome.err) for run in runs)
    assert len({run["workload"] for run in runs}) > 1  # Each seed draws its own.


def test_a_hunt_stops_at_the_first_anomaly(seamark: Seamark) -> None:
    outcome = seamark("run", "--seed", "1", "--count", "20", "--until-found", *LATE)
    assert outcome.code == 1
    assert "stopped after 1 of 20 runs: an anomaly was found" in outcome.out
    assert re.search(r"^  Late event +in 1 of 1 runs$", outcome.out, re.MULTILINE)
    assert re.search(
        r"^  seed 1  seamark run --cluster tutorial --workload list-append --seed 1 .* --bug late-row$",
        outcome.out,
        re.MULTILINE,
    )


def test_a_batch_gives_the_command_for_every_red_seed_and_the_last_of_its_runs_is_latest(seamark: Seamark) -> None:
    shown = seamark("run", "--seed", "1", "--count", "3", *LATE).out
    red = re.findall(r"^  seed (\d+)  ANOMALY", shown, re.MULTILINE)
    assert len(red) > 1
    assert re.findall(r"^  seed (\d+)  seamark run --cluster tutorial .*$", shown, re.MULTILINE) == red
    last = seamark("list", "--limit", "1").out
    assert re.match(r"\w+  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  seed 3  bug late-row\n", last)
    assert seamark("check", "latest", "--engine", "local", "--json").json["seed"] == 3


def test_a_run_is_repeated_under_another_plan_beside_it(seamark: Seamark, run_copy: Path, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"steps": []}')
    outcome = seamark("replay", run_copy, "--plan", "none.json", "--engine", "local", "--json")
    assert (outcome.code, outcome.json["seed"], outcome.json["faults"]) == (0, SEED, [])
    assert (tmp_path / str(outcome.json["run"])).parent == run_copy.parent
    refused = seamark("replay", "latest", "--plan", "none.json", "--trace", "1..2")
    assert (refused.code, refused.out) == (64, "")


def test_whoever_fails_fast_stops_at_a_vacuous_run(seamark: Seamark) -> None:
    idle = ("--cluster", "tutorial", "--nemesis", "none", "--rate", "1", "--time", "5", "--engine", "local")
    outcome = seamark("run", "--seed", "1", "--count", "20", "--fail-fast", *idle)
    assert outcome.code == 3
    assert "stopped after 1 of 20 runs: a run did not pass" in outcome.out


def test_a_time_budget_lets_no_further_run_begin(seamark: Seamark) -> None:
    outcome = seamark("run", "--seed", "1", "--count", "20", "--time-budget", "0.001", *SMALL, "--json")
    batch = outcome.json
    assert outcome.code == 0
    assert len(rows(batch, "runs")) == 1
    assert "time budget" in str(batch["stopped"])
    assert str(batch["reason"]).startswith("1 of 20 runs: ")


def test_fewer_runs_than_asked_for_are_no_pass(seamark: Seamark) -> None:
    short = ("run", "--seed", "1", "--count", "20", "--time-budget", "0.001", *SMALL)
    outcome = seamark(*short, "--min-runs", "2")
    assert outcome.code == 3
    assert "VACUOUS  1 of 20 runs: 1 PASS; fewer than --min-runs 2 " in outcome.out
    assert seamark(*short, "--min-runs", "21").code == 64


def test_engines_that_disagree_are_an_error(seamark: Seamark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = FindingRow(fingerprint="f", anomaly="G0", checker="serializability", sentence="T1 and T2.")
    monkeypatch.setattr(
        "harness.run.batch.judge_run",
        lambda *_, **__: Report(verdict="invalid", exit_code=1, reason="G0", findings=(finding,)),
    )
    monkeypatch.setattr("harness.cli.run.EngineStart", NoEngine)
    spark = [option if option != "local" else "spark" for option in LATE]
    outcome = seamark("run", "--seed", "1", "--count", "2", "--until-found", *spark)
    assert outcome.code == 4
    assert "the engines disagree" in outcome.out


class NoEngine(EngineStart):
    """Stands for Spark where nothing is asked of it."""

    def __init__(self, name: EngineName) -> None:
        super().__init__("local")
