"""A harness that is killed at any moment loses nothing that was recorded, and what it left behind is removed.

SEAMARK_TEST_SEED draws the moments. SEAMARK_TEST_KILLS says how many of the ten are tried: by default the seed chooses
three. Each is printed.
"""

import os
import random
import re
import signal
import time
from pathlib import Path
from typing import NamedTuple

import docker
import pyarrow.parquet as pq
import pytest

from harness.runtimes.containers.engine.sweeper import left_behind
from tests.system.harnesses import RUN, Harness, Seen, checked, folders_of, left_of, seamark, write_plan

pytestmark = pytest.mark.docker

DRAWN = int(os.environ.get("SEAMARK_TEST_SEED", "0"))
COUNT = int(os.environ.get("SEAMARK_TEST_KILLS", "3"))
LOAD_S = "4"
PHASES = ("set-up", "load", "healing", "clearing", "checking")
WHOM = ("group", "parent", "child")


class Moment(NamedTuple):
    """When a harness is killed, and who of it."""

    phase: str
    number: int  # Milliseconds in that phase; in `load` operations.
    whom: str

    def is_there(self, seen: Seen) -> bool:
        match self.phase:
            case "set-up":
                return seen.has_begun
            case "load":
                return len(seen.invocations) >= self.number and (self.number < 30 or seen.faults > 0)
            case "healing":
                return seen.phase in ("healing", "final")
            case "clearing":
                return seen.phase == "end"
            case _:
                return seen.has_footer


def moments() -> list[Moment]:
    """Ten, two of each phase; the child has ended when the run is checked."""
    dice = random.Random(f"{DRAWN}/kills")
    first = dice.randrange(3)
    ranges = {"set-up": 2000, "load": 120, "healing": 800, "clearing": 300, "checking": 200}
    drawn = [
        Moment(phase, dice.randrange(ranges[phase]), WHOM[(first + number) % (2 if phase == "checking" else 3)])
        for number, phase in enumerate(2 * PHASES)
    ]
    return dice.sample(drawn, 10)


def stored(run: Path) -> set[int]:
    return set(pq.read_table(run / "history" / "ops.parquet")["index"].to_pylist())


def without_progress(err: str) -> list[str]:
    """The lines of stderr without those that say how far the run is."""
    return [line for line in err.splitlines() if not re.match(r" +([0-9]+%, .* left  )?[0-9.]+ s  ", line)]


def start(folder: Path, *options: str) -> Harness:
    return Harness(folder, *RUN, "--plan", write_plan(folder), "--seed", "1", "--time", LOAD_S, *options)


@pytest.mark.parametrize("moment", moments()[:COUNT], ids=lambda moment: "-".join(map(str, moment)))
def test_a_killed_harness_loses_nothing_and_what_it_left_is_removed(
    engine: docker.DockerClient, tmp_path: Path, moment: Moment
) -> None:
    print(f"seed {DRAWN}: {moment}")
    with start(tmp_path) as harness:
        harness.await_moment(moment.is_there)
        if moment.phase != "load":
            time.sleep(moment.number / 1000)
        harness.kill(moment.whom)
        code, out, err = harness.end()
        assert "Traceback" not in out + err
        harness.await_silence()
        harness.await_moment(lambda _: True)
        run = harness.run
        assert run is not None
        assert code == (4 if moment.whom == "child" else -signal.SIGKILL)
        assert ("HARNESS ERROR" in out) is (moment.whom == "child")
        verdict, report = checked(tmp_path, run)
        assert report["incomplete"] is not harness.seen.has_footer
        alive = (0, 3) if harness.seen.has_footer else (3,)
        assert verdict in ((4,) if moment.whom == "child" else alive)  # Only who lived on could keep the failure.
        assert stored(run) == set(harness.seen.invocations)
        if moment.whom == "parent":  # The child is told by its death, and clears up.
            assert left_of(engine, harness.child) == []
        cleaned, result, _ = seamark(tmp_path, "clean")
        assert cleaned == 0, result
        assert left_of(engine, harness.child) == []
        assert folders_of(tmp_path) == []


@pytest.mark.alone
def test_the_next_run_removes_what_a_killed_one_left(engine: docker.DockerClient, tmp_path: Path) -> None:
    with start(tmp_path) as killed:
        killed.await_moment(lambda seen: seen.faults > 1)
        killed.kill("group")
        assert killed.end()[0] == -signal.SIGKILL
    killed.await_silence()
    left = left_of(engine, killed.child)
    assert len(left) == 6 + 2 + 5  # Containers, networks, and a disk for each node.
    assert {each.name for each in left_behind(engine)} >= set(left)
    with start(tmp_path) as following:
        code, out, err = following.end()
        assert code in (0, 3), out
        assert (without_progress(err), "incomplete" in out) == ([], False)
        assert left_of(engine, killed.child) == left_of(engine, following.child) == []
        assert folders_of(tmp_path) == []


@pytest.mark.parametrize("is_under_load", [False, True])
def test_an_interrupt_clears_up_and_keeps_the_run(
    engine: docker.DockerClient, tmp_path: Path, is_under_load: bool
) -> None:
    with start(tmp_path) as harness:
        harness.await_moment(lambda seen: seen.faults > 1 if is_under_load else seen.has_begun)
        if not is_under_load:
            time.sleep(random.Random(f"{DRAWN}/interrupt").random() * 2)
        harness.kill("group", signal.SIGINT)
        code, out, err = harness.end()
        assert code == 130
        kept, judge, last = without_progress(err)
        assert kept.startswith("  kept in store/")
        assert judge.startswith("  judge   seamark check store/")
        assert last == "seamark: interrupted"
        assert "Traceback" not in out
        assert not harness.is_running()
        assert left_of(engine, harness.child) == folders_of(tmp_path) == []
        assert harness.run is not None
        verdict, report = checked(tmp_path, harness.run)
        assert (verdict, report["incomplete"]) == (3, True)
        harness.await_moment(lambda _: True)
        assert stored(harness.run) == set(harness.seen.invocations)
        if is_under_load:
            assert harness.seen.invocations


def test_two_runs_at_once_do_not_disturb_each_other(engine: docker.DockerClient, tmp_path: Path) -> None:
    """A third one, which dies meanwhile, takes nothing of theirs along, nor does who removes what it left."""
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
    with start(folders[0]) as one, start(folders[1]) as two, start(folders[2]) as third:
        third.await_moment(lambda seen: seen.phase == "load")
        third.kill("group")
        assert seamark(folders[2], "clean")[0] == 0
        for each in (one, two):
            code, out, err = each.end()
            assert code in (0, 3), out
            assert without_progress(err) == []
            each.await_moment(lambda _: True)
            assert each.seen.has_footer
            assert len(each.seen.invocations) > 100
        assert [left_of(engine, each.child) for each in (one, two, third)] == [[], [], []]
