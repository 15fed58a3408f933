"""Jepsen's own unit tests of its simple checkers, and elle-cli's histories, with the verdicts that they state.

Absent files are skipped.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from checkers.catalogue import CHECKS
from checkers.engine.datasets import LocalEngine
from checkers.invariants import causal, counter, forks, ids, queues, sets
from checkers.invariants.counter import bounds, counters
from checkers.invariants.operations import operations
from harness.core.record import Json
from harness.core.verdict import Judgement
from harness.judging.checks import judgement_of
from harness.judging.generations import generations
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.record.formats.parquet import parquet
from harness.record.formats.parquet.parquet import write_history
from tests.corpus.cases import HISTORIES, Case, cases, jepsen_case
from tests.worlds.contexts import context

GROUP = "jepsen-unit/cases.jsonl"
pytestmark = pytest.mark.skipif(not (HISTORIES / GROUP).is_file(), reason=f"{HISTORIES / GROUP} is absent")

# What makes a history of that workload invalid. Jepsen's set-full knows nothing of elements that nobody added.
FORBIDDEN: Mapping[str, Collection[str]] = {
    "queue": queues.QUEUE_ANOMALIES,
    "total-queue": (queues.UNEXPECTED, queues.LOST),
    "set": (sets.LOST, sets.UNEXPECTED),
    "set-full": (sets.LOST, sets.TWICE),
    "unique-ids": ids.ANOMALIES,
    "counter": counter.ANOMALIES,
    "long-fork": forks.FORK_ANOMALIES,
    "causal-reverse": causal.CAUSAL_ANOMALIES,
}
# Jepsen calls an empty history of these valid. To us it is vacuous: nothing was tested.
EMPTY = {"queue/empty", "total-queue/empty", "unique-ids/empty", "counter/empty"}


def every() -> list[Case]:
    return list(cases(GROUP)) if (HISTORIES / GROUP).is_file() else []


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


def judged(case: Case, folder: Path) -> Judgement:
    write_history(jepsen_case(case), folder / "history")
    check = next(each for each in CHECKS if each.name == case["workload"])
    with generations(folder / "history", context(bits=None)) as known:
        return judgement_of(check, known)


def verdict(judgement: Judgement, forbidden: Collection[str]) -> bool | str:
    """As Jepsen says it; where nothing could have been shown or found, it does not know."""
    if any(finding.anomaly in forbidden for finding in judgement.findings):
        return False
    is_exercised = bool(judgement.facts.get("stable", 1)) and not set(judgement.unknown) & set(forbidden)
    return True if is_exercised else "unknown"


@pytest.mark.parametrize("case", every(), ids=lambda case: case["name"])
def test_the_verdict_is_jepsens(case: Case, tmp_path: Path) -> None:
    judgement = judged(case, tmp_path)
    assert verdict(judgement, FORBIDDEN[case["workload"]]) == case["valid"], judgement
    if case["name"] in EMPTY:
        assert set(judgement.witnesses.values()) == {0}


def test_all_workloads_of_the_group_are_judged() -> None:
    assert {case["workload"] for case in every()} == set(FORBIDDEN)
    assert {case["name"] for case in every()} >= EMPTY


def of(judgement: Judgement, anomaly: str) -> int:
    return sum(finding.count for finding in judgement.findings if finding.anomaly == anomaly)


@pytest.mark.parametrize("case", every(), ids=lambda case: case["name"])
def test_what_is_lost_unexpected_or_stale_is_as_much_as_jepsen_says(case: Case, tmp_path: Path) -> None:
    judgement, details = judged(case, tmp_path), case["details"]
    names = {"lost": "lost-element", "unexpected": "unexpected-element", "stale": "stale-element"}
    expected = {name: len(details[key]) for key, name in names.items() if key in details}
    if case["name"] == "total-queue/pathological":
        # A dequeue that never completed may have taken what Jepsen calls lost.
        expected["lost-element"] = 0
        assert judgement.facts["missing"] == "enqueued"
        assert judgement.unknown["lost-element"].startswith("a value never came out, but a dequeue")
    assert {name: of(judgement, name) for name in expected} == expected
    if "stable_count" in details:
        assert judgement.facts["stable"] == details["stable_count"]
    if "never_read" in details:
        assert judgement.facts["never read"] == len(details["never_read"])
    if "duplicated" in details:
        assert len(judgement.findings) >= bool(details["duplicated"])


@pytest.mark.parametrize("case", [each for each in every() if each["workload"] == "counter"], ids=lambda c: c["name"])
def test_the_bounds_of_a_counter_are_jepsens(case: Case, tmp_path: Path) -> None:
    write_history(jepsen_case(case), tmp_path / "history")
    found: list[list[Json]] = []
    for counts in counters(operations(tmp_path / "history")).values():
        lower, upper = bounds(counts)
        values = [read.value for read in counts.reads]
        found += [list(each) for each in zip(lower.tolist(), values, upper.tolist(), strict=True)]
    assert sorted(found) == sorted(case["details"]["reads"])


# What elle-cli's own tests say of these files; ours is judged on sight, without being told the workload.
FILES: Mapping[str, tuple[str, str]] = {
    "bank.edn": ("BANK", "valid"),
    "bank.json": ("BANK", "valid"),
    "bank-tidb.edn": ("BANK", "invalid"),
    "bank-neg.edn": ("BANK", "valid"),
    "bank-negative-balances.json": ("BANK", "invalid"),
    # Stated as valid. They have nothing but adds: a counter that nobody reads was not tested.
    "counter.edn": ("MODEL", "vacuous"),
    "counter.json": ("MODEL", "vacuous"),
    "set.edn": ("SET-FULL", "valid"),
    # Soft, as it stands: adds are [key, element], reads show bare elements.
    "set_full.edn": ("SET-FULL", "invalid"),
    "set_full.json": ("SET-FULL", "invalid"),
    "long-fork.edn": ("LONG-FORK", "invalid"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_elle_cli_is_known_on_sight_and_judged(name: str, tmp_path: Path) -> None:
    report = judge(load(HISTORIES / "elle-cli" / "jepsen" / name, tmp_path), LocalEngine(1))
    assert ([row.id for row in report.promises], report.verdict) == ([FILES[name][0]], FILES[name][1])


def test_every_file_of_elle_cli_is_judged_here() -> None:
    assert sorted(path.name for path in (HISTORIES / "elle-cli" / "jepsen").iterdir()) == sorted(FILES)
