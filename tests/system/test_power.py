"""A harness that is killed while its servers lose power leaves no mount and no loop device after `seamark clean`."""

from pathlib import Path

import docker
import pytest

from harness.runtimes.containers.disks.loop import obstacle
from nemesis.plan import Plan, Step
from tests.loops import abandoned, held_by
from tests.system.harnesses import MS, Harness, left_of, seamark, write_plan

pytestmark = [
    pytest.mark.docker,
    pytest.mark.alone,
    pytest.mark.skipif(obstacle() is not None, reason=obstacle() or ""),
]
PLAN = Plan(
    steps=(
        Step(
            fault="crash",
            package="power",
            at_ns=300 * MS,
            until_ns=3_500 * MS,
            targets=("n1", "n2"),
            args={"disk": "lost"},
        ),
    )
)


def mounts() -> list[str]:
    return [
        line for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines() if "/volumes/seamark-" in line
    ]


def test_nothing_is_left_of_a_harness_that_is_killed_while_its_servers_are_without_power(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    run = ("run", "--cluster", "etcd", "--runtime", "docker", "--engine", "local", "--store", "store", "--time", "5")
    with Harness(tmp_path, *run, "--plan", write_plan(tmp_path, PLAN)) as harness:
        harness.await_moment(lambda seen: seen.faults > 0)
        owner = harness.child
        assert owner is not None
        during = held_by(owner)
        harness.kill("group")
        harness.await_silence()
    assert len(during) == 3
    code, out, err = seamark(tmp_path, "clean")
    assert (code, err) == (0, ""), out
    assert "removed container" in out
    assert left_of(engine, owner) == []
    assert abandoned() & during == set()
    assert [mount for mount in mounts() if mount.split()[0] in {f"/dev/{each}" for each in during}] == []
