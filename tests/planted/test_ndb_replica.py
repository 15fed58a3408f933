"""Each planted bug of binlogs and replicas is found under a short schedule, by a promise that it breaks.

For the schedules see schedules.py. Three bugs need none: they show under load alone.
"""

from pathlib import Path

import pytest

from clusters import ndb
from clusters.ndb.binlog.planted import BUGS
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_rows, require_schedules

CLUSTER = "ndb-replica"
CASES: dict[str, Case] = {
    "injector-ignores-inconsistent": Case("binlog-gap", "NDB-G13"),
    "binlog-epoch-split": Case("split-epoch", "NDB-G17"),
    "apply-status-separate": Case("repeated-element", "NDB-G19"),
    "apply-status-before": Case("left-out", "NDB-G20"),
    "index-before-binlog": Case("false-index", "NDB-G18"),
    "switch-to-first-greater": Case("lost-schema-change", "NDB-G20"),
    "switch-ignores-gap": Case("left-out", "NDB-G20"),
    "applier-parallel-no-hash": Case("skipped-element", "NDB-G19"),
    "backup-stop-gci-early": Case("false-restore", "NDB-G35"),
}


def test_every_bug_has_a_schedule_that_says_what_it_does() -> None:
    assert sorted(CASES) == sorted(BUGS)
    require_schedules(CLUSTER, BUGS)


@pytest.mark.parametrize("bug", CASES)
def test_each_bug_is_found_by_a_promise_that_it_breaks(runs: Runs, bug: str) -> None:
    require_found(CASES[bug], runs.of(bug))


@pytest.mark.parametrize("bug", CASES)
def test_the_same_run_without_the_bug_passes(runs: Runs, bug: str) -> None:
    require_clean(runs.of(bug, is_planted=False), "valid")


def test_the_table_of_the_readme_says_what_is_found() -> None:
    readme = Path(ndb.__file__).with_name("README.md").read_text(encoding="utf-8").partition("## Two sites")[0]
    require_rows(readme, BUGS, CASES)
