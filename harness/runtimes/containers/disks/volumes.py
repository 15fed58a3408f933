"""The volumes of a run's nodes: none, small ones in memory that may become full, or disks that can lose power."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import docker
from docker.models.containers import Container

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers.disks import power
from harness.runtimes.containers.disks.loop import LoopDisk
from harness.runtimes.containers.engine.outside import is_running, process_of

_IN_MEMORY: Final = {"type": "tmpfs", "device": "tmpfs"}


class Volumes:
    """The volumes of one run. Its methods block, and raise DeployError, OSError or the exceptions of docker's SDK."""

    def __init__(self, client: docker.DockerClient, prefix: str, labels: Mapping[str, str]) -> None:
        self._client, self._prefix, self._labels = client, prefix, labels
        self._disks: dict[NodeId, LoopDisk] = {}

    def make(self, nodes: Iterable[NodeId], *, small: str | None, disk_mb: int | None) -> dict[NodeId, str]:
        """The name of each node's volume, by node. `small` are options of a tmpfs, `disk_mb` the size of a disk."""
        names = {}
        for node in nodes:
            if disk_mb is not None:
                self._disks[node] = LoopDisk(disk_mb)
                options = {"type": "ext4", "device": self._disks[node].path}
            elif small is not None:
                options = _IN_MEMORY | {"o": small}
            else:
                continue
            names[node] = f"{self._prefix}-{node}"
            self._client.volumes.create(names[node], driver="local", driver_opts=options, labels=dict(self._labels))
        return names

    def loses_power(self, node: NodeId) -> bool:
        """True if the node has a separate file system."""
        return node in self._disks

    def sync(self, node: NodeId, container: Container, folder: str) -> None:
        """Make durable all that the node's disk has. Does nothing for a node without one."""
        if node in self._disks:
            power.sync(_seen_from_here(container, folder))

    def fail(self, node: NodeId, container: Container, folder: str, *, is_torn: bool) -> None:
        """Freeze the container, and end the file system at that folder of it."""
        place = _seen_from_here(container, folder)
        container.pause()  # Between the canaries and the failure nothing of the server's is synced, or answered.
        power.fail(place, self._disks[node].number, is_torn=is_torn)

    def canaries(self, node: NodeId, container: Container, folder: str) -> power.Canaries:
        """The canaries on a node's disk, after a start of its container, which need not run any more."""
        with suppress(DeployError):
            seen = power.found(_seen_from_here(container, folder))
            if is_running(container):  # Else its folder may have gone while it was read.
                return seen
        return power.found_on(self._disks[node].path)

    def release(self) -> None:
        """Let go of all disks."""
        for disk in self._disks.values():
            disk.release()


def _seen_from_here(container: Container, folder: str) -> Path:
    """That folder of a running container, by the root of its first process: the engine must be on this machine."""
    place = Path(f"/proc/{process_of(container)}/root{folder}")
    if not place.is_dir():
        raise DeployError(f"{container.name} has no folder {folder}")
    return place
