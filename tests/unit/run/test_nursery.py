"""Runs whose processes are forked from one that is ready: the same records, the same words for a failure."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness.record.store import JOURNAL
from harness.run.nursery import Nursery
from harness.run.running import STDERR_LOG, RunFailed, execute, prepare
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario

CODE = installed("tutorial")


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    with closing(Nursery()) as nursery:
        yield nursery


def made(store: Path, seed: int) -> Path:
    return prepare(Scenario(cluster="tutorial", seed=seed, time_s=2, rate=30), CODE, store)[0]


def evidence(run: Path) -> bytes:
    """All but the time at which the run was made."""
    return (run / JOURNAL).read_bytes()[100:]


def test_each_run_has_the_records_of_one_that_is_started_anew(tmp_path: Path, nursery: Nursery) -> None:
    for seed in (1, 2):
        forked, anew = made(tmp_path, seed), made(tmp_path, seed)
        nursery.execute(forked, CODE)
        execute(anew, CODE)
        assert len(evidence(forked)) > 1000
        assert evidence(forked) == evidence(anew)
        assert (forked / STDERR_LOG).read_bytes() == b""


def test_a_run_that_fails_says_why_and_the_next_one_does_not_notice(tmp_path: Path, nursery: Nursery) -> None:
    broken = made(tmp_path, 1)
    (broken / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(RunFailed, match=r"run.json"):
        nursery.execute(broken, CODE)
    nursery.execute(made(tmp_path, 2), CODE)


def test_a_nursery_that_was_killed_is_named(tmp_path: Path, nursery: Nursery) -> None:
    nursery.execute(made(tmp_path, 1), CODE)
    os.kill(nursery.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match="the process that begins simulations has ended"):
        nursery.execute(made(tmp_path, 2), CODE)
