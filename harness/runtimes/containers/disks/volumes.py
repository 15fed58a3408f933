"""The volumes of a run's nodes: none, small ones in memory that may become full, or disks that can lose power."""

import shutil
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
from harness.runtimes.containers.links.proxy_server import KEEP

_IN_MEMORY: Final = {"type": "tmpfs", "device": "tmpfs"}


class Volumes:
    """The volumes of one run. Its methods block, and raise DeployError, OSError or the exceptions of docker's SDK."""

    def __init__(self, client: docker.DockerClient, prefix: str, labels: Mapping[str, str]) -> None:
        self._client, self._prefix, self._labels = client, prefix, labels
        self._disks: dict[NodeId, LoopDisk] = {}
        self._generation = 0
        self.names: dict[NodeId, str] = {}  # The volume of each node that has one.

    def make(
        self, nodes: Iterable[NodeId], *, small: str | None, disk_mb: int | None, is_plain: bool
    ) -> dict[NodeId, str]:
        """The name of each node's volume, by node. `small` are options of a tmpfs, `disk_mb` the size of a disk.

        With neither, a plain volume is a folder of the engine's.
        """
        for node in nodes:
            if disk_mb is not None:
                self._disks[node] = LoopDisk(disk_mb)
                options = {"type": "ext4", "device": self._disks[node].path}
            elif small is not None:
                options = _IN_MEMORY | {"o": small}
            elif is_plain:
                options = {}
            else:
                continue
            self._create(node, f"{self._prefix}-{node}", options)
        return dict(self.names)

    def empty(self, node: NodeId, keeper: Container | None) -> None:
        """Let a node, whose container is stopped, begin without data. `keeper` has the volumes in memory."""
        if node in self._disks:
            self._disks[node].format()
        elif keeper is not None and (kept := _root_of(keeper) / f"{KEEP.lstrip('/')}/{node}").is_dir():
            for each in kept.iterdir():
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        elif node in self.names:  # The stopped container still refers to its volume.
            self._generation += 1
            self._create(node, f"{self._prefix}-{node}-{self._generation}", {})

    def _create(self, node: NodeId, name: str, options: Mapping[str, str]) -> None:
        self._client.volumes.create(name, driver="local", driver_opts=dict(options), labels=dict(self._labels))
        self.names[node] = name

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
        with suppress(DeployError, OSError):  # Its disk may have failed again.
            seen = power.found(_seen_from_here(container, folder))
            if is_running(container):  # Else its folder may have gone while it was read.
                return seen
        return power.found_on(self._disks[node].path)

    def release(self) -> None:
        """Let go of all disks."""
        for disk in self._disks.values():
            disk.release()


def _root_of(container: Container) -> Path:
    return Path(f"/proc/{process_of(container)}/root")


def _seen_from_here(container: Container, folder: str) -> Path:
    """That folder of a running container, by the root of its first process: the engine must be on this machine."""
    place = _root_of(container) / folder.lstrip("/")
    if not place.is_dir():
        raise DeployError(f"{container.name} has no folder {folder}")
    return place
