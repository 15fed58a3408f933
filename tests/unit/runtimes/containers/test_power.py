"""What a power failure does to a deployment in memory, and what its canaries must show."""

import asyncio
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import docker
import pytest
from docker.models.containers import Container

from harness.core.errors import DeployError, Unsound
from harness.core.machine import NodeId
from harness.runtimes.containers.crew import Crew, NodeContainer
from harness.runtimes.containers.deployment import Deployment
from harness.runtimes.containers.disks import loop, power, volumes
from harness.runtimes.containers.disks.loop import LoopDisk
from harness.runtimes.containers.disks.power import SYNCED, UNSYNCED, Canaries
from harness.runtimes.containers.disks.volumes import Volumes
from tests.unit.runtimes.containers.fake_site import N1, N2, step
from tests.unit.runtimes.containers.stage import Stage, run


def failed(canaries: Canaries, disk: str = "lost") -> tuple[Stage, int, str]:
    """The stage, and the count and note of a power failure of n1 that leaves those canaries."""
    stage = Stage()
    stage.site.powered = [N1, N2]
    stage.site.left = canaries

    async def main() -> tuple[int, str]:
        fault = step("crash", "n1", disk=disk)
        await stage.faults.apply(fault)
        assert (await stage.faults.effect(fault)).count == 0, "nothing is shown before the start"
        await stage.faults.undo(fault)
        effect = await stage.faults.effect(fault)
        return effect.count, effect.note

    return stage, *asyncio.run(main())


def test_a_server_counts_once_its_start_has_shown_that_the_unsynced_file_is_gone() -> None:
    stage, count, note = failed(Canaries(synced=True, unsynced=False))
    assert (count, stage.site.failed_power) == (1, [(N1, False)])
    assert note == "n1 went down; n1: the unsynced file is gone, the synced one is there"
    assert stage.site.files == []  # No order for a storage of ours.


def test_a_failure_that_lost_nothing_had_no_effect() -> None:
    _, count, note = failed(Canaries(synced=True, unsynced=True))
    assert (count, note) == (0, "n1 went down; n1: the unsynced file is still there")


def test_a_failure_that_lost_what_was_synced_is_unsound() -> None:
    with pytest.raises(Unsound, match="n1 lost power, and a file that this harness had synced to its disk is gone"):
        failed(Canaries(synced=False, unsynced=False))


def test_canaries_are_never_read_while_another_power_failure_writes_them() -> None:
    seen: list[str] = []

    class Slow:
        def fail(self, node: NodeId, container: Container, folder: str, *, is_torn: bool) -> None:
            seen.append("fails")
            time.sleep(0.05)
            seen.append("has failed")

        def canaries(self, node: NodeId, container: Container, folder: str) -> Canaries:
            seen.append("read")
            return Canaries(synced=True, unsynced=False)

    async def main() -> None:
        crew = SimpleNamespace(run_id="r", wires=())
        deployment = Deployment(cast("docker.DockerClient", None), cast("Crew", crew))
        place = SimpleNamespace(container=None, folder="/data", is_down=False, turn=asyncio.Lock())
        deployment.nodes[N1] = cast("NodeContainer", place)
        deployment._volumes = cast("Volumes", Slow())
        deployment.kill = AsyncMock()  # type: ignore[method-assign]
        failing = asyncio.create_task(deployment.fail_power(N1, is_torn=False))
        while not seen:
            await asyncio.sleep(0.001)
        await deployment.canaries(N1)
        await failing

    asyncio.run(main())
    assert seen == ["fails", "has failed", "read"]


def test_a_failure_that_could_not_be_made_has_no_effect_and_accuses_nobody() -> None:
    async def main() -> None:
        stage = Stage()
        stage.site.powered, stage.site.keeps_power = [N1], True
        stage.site.left = Canaries(synced=False, unsynced=False)
        fault = step("crash", "n1")
        await stage.faults.apply(fault)
        await stage.faults.undo(fault)
        effect = await stage.faults.effect(fault)
        assert (effect.count, effect.note) == (0, "it could not be brought about: n1 is not on this machine")
        assert not stage.site.nodes[N1].is_down

    run(main())


def test_a_server_that_does_not_start_with_what_is_left_counts_by_its_disk_and_is_no_failure_of_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(node: NodeId) -> None:
        raise DeployError(f"node {node} is exited and not ready")

    async def main() -> None:
        stage = Stage()
        stage.site.powered = [N1]
        stage.site.left = Canaries(synced=True, unsynced=False)
        fault = step("crash", "n1")
        await stage.faults.apply(fault)
        monkeypatch.setattr(stage.site, "start", refuse)
        await stage.faults.undo(fault)
        effect = await stage.faults.effect(fault)
        assert effect.count == 1
        assert effect.note.endswith("is there; it did not start again: node n1 is exited and not ready")
        assert stage.site.nodes[N1].may_end

    run(main())


def test_torn_writes_are_asked_for_by_name_and_a_kept_disk_is_a_kill() -> None:
    assert failed(Canaries(synced=True, unsynced=False), disk="torn")[0].site.failed_power == [(N1, True)]

    async def main() -> None:
        stage = Stage()
        stage.site.powered = [N1]
        fault = step("crash", "n1", disk="kept")
        await stage.faults.apply(fault)
        assert (await stage.faults.effect(fault)).count == 1
        await stage.faults.undo(fault)
        assert stage.site.failed_power == []

    run(main())


def test_canaries_are_told_apart_by_their_content(tmp_path: Path) -> None:
    assert power.found(tmp_path) == Canaries(synced=False, unsynced=False)
    (tmp_path / UNSYNCED).write_bytes(b"")  # Its name was kept by the journal, its content not.
    (tmp_path / SYNCED).write_bytes(b"something else")
    assert power.found(tmp_path) == Canaries(synced=False, unsynced=False)


@pytest.mark.skipif(shutil.which("debugfs") is None, reason="e2fsprogs is missing")
def test_the_canaries_of_a_server_that_has_ended_are_read_from_its_disk_once_a_start_has_read_its_journal(
    tmp_path: Path,
) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.write_bytes(b"\0" * (1 << 20))
    kept.write_bytes(power._TEXT)

    def debugfs(request: str) -> None:
        subprocess.run(["debugfs", "-w", "-R", request, str(disk)], capture_output=True, check=True)

    subprocess.run(["mke2fs", "-q", "-t", "ext4", str(disk)], capture_output=True, check=True)
    assert power.found_on(str(disk)) == Canaries(synced=False, unsynced=False)
    debugfs(f"write {kept} {SYNCED}")
    assert power.found_on(str(disk)) == Canaries(synced=True, unsynced=False)
    debugfs("feature needs_recovery")
    with pytest.raises(DeployError, match="has not been mounted since the power failed"):
        power.found_on(str(disk))


def test_a_disk_that_fails_again_while_its_canaries_are_read_has_shown_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(_: object) -> Canaries:
        raise OSError(5, "Input/output error")

    made = Volumes(cast("docker.DockerClient", None), "run", {})
    made._disks[N1] = cast("LoopDisk", SimpleNamespace(path="/dev/loop9"))
    monkeypatch.setattr(volumes, "_seen_from_here", lambda *_: Path("/folder"))
    monkeypatch.setattr(power, "found", reading)
    monkeypatch.setattr(power, "_debugged", lambda *_: b"needs_recovery")
    with pytest.raises(DeployError, match="/dev/loop9 has not been mounted since the power failed"):
        made.canaries(N1, cast("Container", None), "/data")


def test_a_folder_on_another_file_system_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="is not on the node's own disk, and was left alone"):
        power.fail(tmp_path, tmp_path.stat().st_dev + 1, is_torn=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("_CONTROL", Path("/nonexistent/loop-control"), "there is no /nonexistent/loop-control here"),
        ("_PROGRAMS", ("no-such-mke2fs",), "install e2fsprogs, as no-such-mke2fs is missing"),
    ],
)
def test_what_is_missing_here_is_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, told: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(loop, "_PROGRAMS", ())
    monkeypatch.setattr(loop, "_CONTROL", Path("/dev/null"))
    monkeypatch.setattr(loop, name, value)
    with pytest.raises(DeployError, match=told) as refusal:
        LoopDisk(1)
    assert "--nemesis" in str(refusal.value)


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "only root can make one" in (loop.obstacle() or "")
