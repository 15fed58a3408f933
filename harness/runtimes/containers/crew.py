"""A deployment's view of its nodes: machines of ours (`machines`), or third-party servers (`services`)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import docker
from docker.models.containers import Container

from harness.core.machine import NodeId
from harness.runtimes.containers.compose import Found
from harness.runtimes.containers.faults.site import Control
from harness.runtimes.containers.links.wiring import Wire


class NodeControl(Control, Protocol):
    """The harness's end of a node. The deployment sets the node's address."""

    @property
    def is_ready(self) -> bool: ...
    def at(self, host: str, port: int) -> None: ...
    def away(self) -> None: ...
    async def dump(self) -> None: ...


class Crew(Protocol):
    """The nodes of a cluster, as a deployment needs them."""

    run_id: str
    nodes: tuple[NodeId, ...]
    wires: tuple[Wire, ...]
    ready_s: float  # The longest that a node may take to start.
    shuts_doors: bool  # True to disable the proxies of a node that is down: Toxiproxy is slow to notice it.
    is_direct: bool  # True if nodes know each other by name: each has an address for good.
    small_disk: str | None  # Options of a tmpfs for each node; None if no disk will become full.
    outlives_container: bool  # True if a node's data must be there for its next container.
    disk_mb: int | None  # The size of a separate file system for each node; None if no node will lose power.

    def is_published(self, wire: Wire) -> bool:
        """True if the harness dials that link's proxy on loopback."""

    def found(self, engine: docker.DockerClient) -> Found | None:
        """The nodes, if they already run and must stay; None if they must be created."""

    def image(self, node: NodeId, engine: docker.DockerClient) -> str:
        """The tag of the node's image, built if needed."""

    def options(self, node: NodeId) -> dict[str, Any]:
        """The engine's options for the node's container, besides those common to all."""

    def files(self, node: NodeId) -> Mapping[str, str]:
        """The text of each file that the node's container has from the start, by its path."""

    def folder(self, node: NodeId) -> str:
        """The folder of the node's durable state."""

    def control(self, node: NodeId) -> NodeControl:
        """The node's control, made before the node runs."""

    def control_port(self, node: NodeId) -> int | None:
        """The port of the node's control in its container; None if the harness reaches it by a proxy."""


@dataclass(slots=True, kw_only=True)
class NodeContainer:
    """One node, its container and its control channel."""

    node: NodeId
    folder: str
    container: Container
    control: NodeControl
    is_down: bool = False  # Killed by us, or allowed to end: not a failure of the deployment.
    may_end: bool = False
    is_paused: bool = False
    # Faults may overlap, and an engine that kills and starts one container at the same time does neither well.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
