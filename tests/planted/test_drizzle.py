"""Each planted bug of Drizzle is found under a short schedule, by a promise that it breaks; nothing without it.

For the schedules see schedules.py. Most bugs need none: they show under load alone.
"""

import re
from pathlib import Path

import pytest

import seamark
from clusters import drizzle
from clusters.drizzle.planted import BUGS
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_schedules

ROOT = Path(__file__).resolve().parents[2]

CLUSTER = "drizzle"
CASES: dict[str, Case] = {
    "end-flag-always-true": Case("piece-after-end", "DRZ-G4"),
    "seg-id-not-raised": Case("piece-order", "DRZ-G5"),
    "trx-id-new-per-piece": Case("wrong-content", "DRZ-G8"),
    "no-rollback-message": Case("open-unit", "DRZ-G28"),
    "rollback-by-statement-seg": Case("open-unit", "DRZ-G28"),
    "rollback-own-id": Case("piece-order", "DRZ-G5"),
    "rollback-for-single": Case("reused-id", "DRZ-G17"),
    "stmt-error-clears-all": Case("wrong-content", "DRZ-G8"),
    "empty-final-dropped": Case("unlogged-commit", "DRZ-G2"),
    "stmt-error-keeps-partial": Case("failed-row", "DRZ-G9"),
    "stmt-error-segmented-ignored": Case("failed-row", "DRZ-G9"),
    "savepoint-copy": Case("savepoint-row", "DRZ-G10"),
    "savepoint-ignored": Case("savepoint-row", "DRZ-G10"),
    "mid-piece-error-ignored": Case("piece-order", "DRZ-G5"),
    "log-error-is-success": Case("unlogged-commit", "DRZ-G2"),
    "log-before-commit-no-recovery": Case("engine-unlike-log", "DRZ-G14"),
    "log-after-commit": Case("engine-unlike-log", "DRZ-G14"),
    "append-after-torn": Case("bad-record", "DRZ-G15"),
    "commit-id-before-commit": Case("torn-prefix", "DRZ-G20"),
    "dirty-log-read": Case("phantom-element", "DRZ-G19"),
    "log-order-not-commit-order": Case("streams-differ", "DRZ-G11"),
    "poll-unordered": Case("skipped-element", "DRZ-G21"),
    "rollback-piece-alone": Case("piece-order", "DRZ-G5"),
    "apply-incomplete": Case("torn-transaction", "DRZ-G19"),
    "buffer-by-server-only": Case("false-position", "DRZ-G22"),
    "buffer-by-trx-only": Case("skipped-element", "DRZ-G21"),
    "queue-insert-not-atomic": Case("stopped-replica", "DRZ-G28"),
    "position-in-memory": Case("repeated-element", "DRZ-G21"),
    "apply-then-delete": Case("repeated-element", "DRZ-G21"),
    "position-before-apply": Case("skipped-element", "DRZ-G21"),
    "ddl-splits-apply": Case("stopped-replica", "DRZ-G28"),
    "streaming-without-undo": Case("phantom-element", "DRZ-G19"),
    "crash-leaves-open": Case("reused-id", "DRZ-G17"),
    "dup-trx-id-raw-sql": Case("reused-id", "DRZ-G17"),
    "trx-id-32bit": Case("stall", "SETTLE"),
    "reader-stuck-on-deleted": Case("diverged", "DRZ-G23"),
    "own-changes-back": Case("loop", "DRZ-G26"),
    "origin-overwritten": Case("loop", "DRZ-G26"),
    "ignore-errors-partial": Case("never-left-out", "DRZ-G29"),
    "filter-drops-final": Case("wrong-projection", "DRZ-G24"),
    "two-streams-partial": Case("phantom-commit", "DRZ-G3"),
    "null-and-escape": Case("diverged", "DRZ-G23"),
    "update-by-full-row": Case("diverged", "DRZ-G23"),
    "noop-update-logged": Case("noise", "DRZ-G31"),
    "threshold-on-statement": Case("oversize-piece", "DRZ-G16"),
    "sync-skipped": Case("unlogged-commit", "DRZ-G2"),
    "commit-waits-replica": Case("waiting-commit", "DRZ-G27"),
    "offset-race": Case("bad-record", "DRZ-G15"),
    "final-with-open-stmt": Case("broken-framing", "DRZ-G6"),
    "context-of-now": Case("changed-context", "DRZ-G18"),
    "locks-released-at-prepare": Case("G-single", "DRZ-G1"),
}
TABLE = re.compile(r"^\| (B\d\d) \| `([a-z0-9-]+)` \| ([\w-]+) \| (SETTLE|G\d+) \| .* \|$", re.MULTILINE)


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS)
    require_schedules(CLUSTER, BUGS)


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_finds_nothing(runs: Runs, bug: str) -> None:
    require_clean(runs.of(bug, is_planted=False), "valid", "vacuous")


# The schedules of docs/findings/drizzle-messages.md: the bug, and a symptom.
FINDINGS = {
    "rollback": ("rollback-by-statement-seg", "open-unit DRZ-G28"),
    "empty-last-piece": ("empty-final-dropped", "unlogged-commit DRZ-G2"),
    "savepoint": ("savepoint-copy", "savepoint-row DRZ-G10"),
    "applied-twice": ("apply-then-delete", "repeated-element DRZ-G21"),
    "uncommitted": ("dirty-log-read", "phantom-element DRZ-G19"),
    "commit-ids": ("commit-id-before-commit", "commit-id DRZ-G12"),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_the_schedules_of_the_findings_show_them(name: str, tmp_path: Path) -> None:
    case = (ROOT / "docs/findings/drizzle-messages" / f"{name}.json").read_text(encoding="utf-8")
    bug, symptom = FINDINGS[name]
    assert symptom in seamark.repeat(case, cluster="drizzle", bugs=(bug,), store=tmp_path / "as read").symptoms
    assert seamark.repeat(case, cluster="drizzle", store=tmp_path / "repaired").symptoms == ()


def test_the_table_of_the_readme_says_what_is_found() -> None:
    readme = Path(drizzle.__file__).with_name("README.md").read_text(encoding="utf-8")
    expected = [(BUGS[bug][:3], bug, case.anomaly, case.promise.removeprefix("DRZ-")) for bug, case in CASES.items()]
    assert TABLE.findall(readme) == expected
