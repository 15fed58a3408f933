"""Each planted bug of Materialize is found under a short schedule, by a promise that it breaks; nothing without it.

For the schedules see schedules.py. Many bugs need none: they show under load alone.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

import seamark
from clusters import materialize
from clusters.materialize.messages import Batch, Publish
from clusters.materialize.planted import BUGS
from clusters.materialize.sinks.topic import Topic
from harness.scenario.scenario import Scenario
from nemesis.plan import Plan
from tests.planted.schedules import Case, Runs, judged, require_clean, require_found, require_schedules

ROOT = Path(__file__).resolve().parents[2]


CLUSTER = "materialize"
CASES: dict[str, Case] = {
    "read-no-confirm": Case("superseded-answer", "MZ-G15"),
    "confirm-cached": Case("superseded-answer", "MZ-G15"),
    "no-table-advance": Case("late-append", "MZ-G10"),
    "stale-table-list": Case("lost-table", "MZ-G7"),
    "serve-before-advance": Case("late-append", "MZ-G10"),
    "clock-restart": Case("timestamp-regress", "MZ-G2"),
    "persist-after-use": Case("beyond-bound", "MZ-G8"),
    "range-before-epoch": Case("timestamp-regress", "MZ-G2"),
    "restart-below": Case("epoch-overlap", "MZ-G9"),
    "respond-before-apply": Case("timestamp-regress", "MZ-G2"),
    "respond-before-durable": Case("stale-acknowledged", "MZ-G2"),
    "write-reuses-read-ts": Case("stale-acknowledged", "MZ-G2"),
    "peek-ignores-upper": Case("snapshot-mismatch", "MZ-G3"),
    "compact-past-hold": Case("stale-mismatch", "MZ-G3"),
    "rtw-stale-read": Case("timestamp-regress", "MZ-G2"),
    "rtw-not-linearized": Case("superseded-answer", "MZ-G15"),
    "occ-retry-same-diffs": Case("negative-row", "MZ-G20"),
    "batch-split": Case("snapshot-mismatch", "MZ-G3"),
    "no-throttle": Case("ahead-of-clock", "MZ-G12"),
    "far-future-ts": Case("ahead-of-clock", "MZ-G12"),
    "commit-livelock": Case("restless-leaders", "MZ-G23"),
    "ack-before-global": Case("unseen-acknowledged", "MZ-G18"),
    "ack-on-as-of": Case("unseen-acknowledged", "MZ-G18"),
    "ack-before-durable": Case("unseen-acknowledged", "MZ-G18"),
    "resume-past-gap": Case("source-gap", "MZ-G19"),
    "binding-not-durable": Case("source-gap", "MZ-G19"),
    "epoch-backwards": Case("shared-epoch", "MZ-G16"),
    "ddl-unfenced": Case("superseded-record", "MZ-G14"),
    "timeline-mixing": Case("stall", "SETTLE"),
    "upper-mismatch-as-ok": Case("stale-acknowledged", "MZ-G2"),
    "ts-from-frontiers": Case("timestamp-regress", "MZ-G2"),
    "progress-before-updates": Case("late-event", "MZ-G22"),
    "nonmonotone-clock": Case("stale-acknowledged", "MZ-G2"),
    "one-shard-blocks-all": Case("needless-wait", "MZ-G23"),
}
TABLE = re.compile(r"^\| (B\d\d) \| `([a-z-]+)` \| ([\w-]+) \| (SETTLE|G\d+) \| .* \|$", re.MULTILINE)


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS)
    require_schedules(CLUSTER, BUGS)


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


@pytest.mark.parametrize(
    ("anomaly", "spoiled"),
    [
        ("duplicate-event", lambda batch: structs.replace(batch, rows=batch.rows * 2)),
        ("missing-event", lambda batch: structs.replace(batch, rows=batch.rows[1:])),
    ],
)
def test_a_row_that_the_sink_doubles_or_loses_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anomaly: str, spoiled: Callable[[Batch], Batch]
) -> None:
    """No switch plants this: the topic's machine is changed."""
    publish = Topic._publish

    def changed(topic: Topic, request: Publish) -> None:
        publish(topic, structs.replace(request, batch=spoiled(request.batch)))

    monkeypatch.setattr(Topic, "_publish", changed)
    report = judged(tmp_path, Scenario(cluster=CLUSTER, workload="tables", seed=1, time_s=2), Plan(steps=()))
    assert report.exit_code == 1
    assert anomaly in {finding.anomaly for finding in report.findings if "s3" in finding.sentence}
