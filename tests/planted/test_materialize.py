"""Each planted bug of Materialize is found under a short schedule, by a promise that it breaks; nothing without it.

The schedules are plan files: see schedules.py. Many bugs need none: they show under load alone.
"""

import re
from pathlib import Path

import pytest

from clusters import materialize
from clusters.materialize.planted import BUGS
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from nemesis.validation import plan_from_json
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_schedules

PLANS = Path(__file__).parent / "materialize"


CASES: dict[str, Case] = {
    "read-no-confirm": Case("superseded-answer", "MZ-G15"),
    "confirm-cached": Case("superseded-answer", "MZ-G15"),
    "persist-after-use": Case("epoch-overlap", "MZ-G9"),
    "range-before-epoch": Case("stall", "SETTLE", seed=5),
    "restart-below": Case("epoch-overlap", "MZ-G9"),
    "respond-before-apply": Case("timestamp-regress", "MZ-G2"),
    "respond-before-durable": Case("stale-acknowledged", "MZ-G2"),
    "peek-ignores-upper": Case("snapshot-mismatch", "MZ-G3"),
    "compact-past-hold": Case("snapshot-mismatch", "MZ-G3"),
    "rtw-stale-read": Case("timestamp-regress", "MZ-G2"),
    "rtw-not-linearized": Case("superseded-answer", "MZ-G15", workload="views"),
    "occ-retry-same-diffs": Case("negative-row", "MZ-G20", seed=2, workload="views"),
    "batch-split": Case("snapshot-mismatch", "MZ-G3"),
    "no-throttle": Case("ahead-of-clock", "MZ-G12"),
    "far-future-ts": Case("ahead-of-clock", "MZ-G12"),
    "ack-before-global": Case("unseen-acknowledged", "MZ-G18", workload="sources"),
    "ack-on-as-of": Case("unseen-acknowledged", "MZ-G18", seed=2, workload="sources"),
    "ack-before-durable": Case("unseen-acknowledged", "MZ-G18", workload="sources"),
    "binding-not-durable": Case("stall", "SETTLE", workload="sources"),
    "ddl-unfenced": Case("superseded-record", "MZ-G14", workload="ddl"),
    "upper-mismatch-as-ok": Case("stale-acknowledged", "MZ-G2", seed=2),
    "ts-from-frontiers": Case("timestamp-regress", "MZ-G2"),
    "progress-before-updates": Case("late-event", "MZ-G22"),
}
RATES = {"no-throttle": 400}
TABLE = re.compile(r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| (SETTLE|G\d+) \| .* \|$", re.MULTILINE)


def scenario_of(bug: str) -> Scenario:
    case, rate = CASES[bug], RATES.get(bug, 100)
    return Scenario(
        cluster="materialize", seed=case.seed, time_s=case.time_s, workload=case.workload or "tables", rate=rate
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


def test_the_table_of_the_readme_says_what_is_found() -> None:
    readme = Path(materialize.__file__).with_name("README.md").read_text(encoding="utf-8")
    expected = [(BUGS[bug][:3], bug, case.anomaly, case.promise.removeprefix("MZ-")) for bug, case in CASES.items()]
    assert TABLE.findall(readme) == expected
