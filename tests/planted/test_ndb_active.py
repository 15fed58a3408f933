"""Each planted bug of two sites is found under a short schedule, by a promise that it breaks.

For the schedules see schedules.py. All bugs of a rule share one schedule, and so one correct run, but for
`origin-lost`, which needs no fault.
"""

from pathlib import Path

import pytest

from clusters import ndb
from clusters.ndb.conflicts.planted import BUGS
from tests.planted.schedules import Case, Runs, require_clean, require_found, require_rows, require_schedules

CLUSTER = "ndb-active"
CASES: dict[str, Case] = {
    "window-uses-sent-epoch": Case("missed-conflict", "NDB-G30"),
    "author-not-set": Case("false-rejection", "NDB-G31"),
    "epoch-bits-truncated": Case("missed-conflict", "NDB-G30"),
    "epoch-trans-row-only": Case("torn-rejection", "NDB-G32"),
    "trans-deps-ignored": Case("surviving-dependant", "NDB-G32"),
    "no-realign": Case("site-divergence", "NDB-G30"),
    "origin-lost": Case("own-change-applied", "NDB-G34"),
    "max-delete-by-order": Case("missed-conflict", "NDB-G30"),
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
    readme = Path(ndb.__file__).with_name("README.md").read_text(encoding="utf-8")
    _, _, part = readme.partition("## Two sites that write to each other")
    require_rows(part, BUGS, CASES)
