"""Each planted bug of Materialize is found under a short schedule, by a promise that it breaks; nothing without it.

The schedules are plan files: see schedules.py. Many bugs need none: they show under load alone.
"""

import re
from pathlib import Path

import pytest

import seamark
from clusters import materialize
from clusters.materialize.planted import BUGS
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from nemesis.validation import plan_from_json
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_schedules

PLANS, ROOT = Path(__file__).parent / "materialize", Path(__file__).resolve().parents[2]


CASES: dict[str, Case] = {
    "read-no-confirm": Case("superseded-answer", "MZ-G15"),
    "confirm-cached": Case("superseded-answer", "MZ-G15", seed=4),
    "no-table-advance": Case("late-append", "MZ-G10", time_s=4),
    "stale-table-list": Case("lost-table", "MZ-G7", workload="ddl", time_s=6),
    "serve-before-advance": Case("late-append", "MZ-G10", time_s=4),
    "clock-restart": Case("timestamp-regress", "MZ-G2"),
    "persist-after-use": Case("beyond-bound", "MZ-G8"),
    "range-before-epoch": Case("timestamp-regress", "MZ-G2"),
    "restart-below": Case("epoch-overlap", "MZ-G9", seed=2),
    "respond-before-apply": Case("timestamp-regress", "MZ-G2"),
    "respond-before-durable": Case("stale-acknowledged", "MZ-G2"),
    "write-reuses-read-ts": Case("stale-acknowledged", "MZ-G2", seed=2),
    "peek-ignores-upper": Case("snapshot-mismatch", "MZ-G3"),
    "compact-past-hold": Case("stale-mismatch", "MZ-G3"),
    "rtw-stale-read": Case("timestamp-regress", "MZ-G2"),
    "rtw-not-linearized": Case("superseded-answer", "MZ-G15", seed=2, workload="views"),
    "occ-retry-same-diffs": Case("negative-row", "MZ-G20", seed=2, workload="views"),
    "batch-split": Case("snapshot-mismatch", "MZ-G3"),
    "no-throttle": Case("ahead-of-clock", "MZ-G12", seed=2),
    "far-future-ts": Case("ahead-of-clock", "MZ-G12"),
    "commit-livelock": Case("restless-leaders", "MZ-G23"),
    "ack-before-global": Case("unseen-acknowledged", "MZ-G18", seed=2, workload="sources"),
    "ack-on-as-of": Case("unseen-acknowledged", "MZ-G18", seed=2, workload="sources"),
    "ack-before-durable": Case("unseen-acknowledged", "MZ-G18", workload="sources"),
    "resume-past-gap": Case("source-gap", "MZ-G19", workload="sources", time_s=8),
    "binding-not-durable": Case("source-gap", "MZ-G19", workload="sources"),
    "epoch-backwards": Case("shared-epoch", "MZ-G16"),
    "ddl-unfenced": Case("superseded-record", "MZ-G14", workload="ddl"),
    "timeline-mixing": Case("stall", "SETTLE", workload="timelines"),
    "upper-mismatch-as-ok": Case("stale-acknowledged", "MZ-G2", seed=2),
    "ts-from-frontiers": Case("timestamp-regress", "MZ-G2"),
    "progress-before-updates": Case("late-event", "MZ-G22"),
    "nonmonotone-clock": Case("stale-acknowledged", "MZ-G2", seed=2),
    "one-shard-blocks-all": Case("needless-wait", "MZ-G23", workload="views", time_s=6),
}
RATES = {"no-throttle": 400}
CLIENTS = {"no-table-advance": 20, "serve-before-advance": 20, "one-shard-blocks-all": 20}
QUICK, QUIET = {"suspect_ms": 200}, {"suspect_ms": 200, "deploy_ms": 6000}
PARAMETERS = {
    "no-table-advance": QUIET,
    "stale-table-list": {"deploy_ms": 1500},
    "serve-before-advance": QUIET,
    "clock-restart": QUICK | {"lag_units": 60},
    "commit-livelock": QUICK | {"deploy_ms": 1500},
    "resume-past-gap": {"retained": 6},
    "epoch-backwards": QUIET,
    "one-shard-blocks-all": {"deploy_ms": 6000},
}
TABLE = re.compile(r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| (SETTLE|G\d+) \| .* \|$", re.MULTILINE)


def scenario_of(bug: str) -> Scenario:
    case = CASES[bug]
    return Scenario(
        cluster="materialize",
        seed=case.seed,
        time_s=case.time_s,
        workload=case.workload or "tables",
        rate=RATES.get(bug, 100),
        clients=CLIENTS.get(bug, 5),
        parameters=PARAMETERS.get(bug, {}),
    )


def schedule(bug: str) -> Plan:
    return plan_from_json((PLANS / f"{bug}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("planted"), scenario_of, schedule)


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS) == sorted(path.stem for path in PLANS.iterdir())
    require_schedules(PLANS, [*BUGS])


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_finds_nothing(runs: Runs, bug: str) -> None:
    require_clean(runs.of(bug, is_planted=False), "valid", "vacuous")


def test_the_shrunk_schedule_of_the_finding_loses_a_table_with_its_row(tmp_path: Path) -> None:
    """Of docs/findings/materialize-boot.md: four operations, no fault."""
    case = (ROOT / "docs/findings/materialize-boot/lost-table.json").read_text(encoding="utf-8")
    found = seamark.repeat(case, cluster="materialize", bugs=("stale-table-list",), store=tmp_path / "as read")
    assert (found.symptoms, found.operations["ok"]) == (("lost-table MZ-G7",), 2)
    repaired = seamark.repeat(case, cluster="materialize", store=tmp_path / "repaired")
    assert (repaired.symptoms, repaired.operations["ok"]) == ((), 2)


def test_the_table_of_the_readme_says_what_is_found() -> None:
    readme = Path(materialize.__file__).with_name("README.md").read_text(encoding="utf-8")
    expected = [(BUGS[bug][:3], bug, case.anomaly, case.promise.removeprefix("MZ-")) for bug, case in CASES.items()]
    assert TABLE.findall(readme) == expected
