"""What a deployment knows of its nodes: they are machines of ours (`machines`) or servers of others (`services`)."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol

import docker
from docker.models.containers import Container

from harness.containers.compose import Found
from harness.containers.site import Control
from harness.containers.wiring import Wire
from harness.core.machine import NodeId


class NodeControl(Control, Protocol):
    """The harness's end of a node, which is told where the node is."""

    @property
    def is_ready(self) -> bool: ...
    def at(self, host: str, port: int) -> None: ...
    def away(self) -> None: ...
    async def dump(self) -> None: ...


class Crew(Protocol):
    """What the nodes of a cluster are."""

    run_id: str
    nodes: tuple[NodeId, ...]
    wires: tuple[Wire, ...]
    ready_s: float  # The longest that a node may take to start.
    shuts_doors: (
        bool  # Are the proxies of a node that is down disabled? Toxiproxy takes long to find that nobody is there.
    )
    small_disk: str | None  # Options of a tmpfs for each node; None if no disk will become full.

    def is_published(self, wire: Wire) -> bool:
        """Shall the harness dial that link's proxy on loopback?"""

    def found(self, engine: docker.DockerClient) -> Found | None:
        """Its nodes, if they run already and shall stay; None if they are to be made."""

    def image(self, node: NodeId, engine: docker.DockerClient) -> str:
        """The tag of its image, built if need be."""

    def options(self, node: NodeId) -> dict[str, Any]:
        """What the engine is told when its container is created, beside what is the same for all."""

    def folder(self, node: NodeId) -> str:
        """Where its durable state is."""

    def control(self, node: NodeId) -> NodeControl:
        """Its control, made before it runs."""

    def control_port(self, node: NodeId) -> int | None:
        """Where its control listens in its container; None if the harness comes to it by a proxy."""


@dataclass(slots=True, kw_only=True)
class NodeContainer:
    """One node, its container and its control channel."""

    node: NodeId
    folder: str
    container: Container
    control: NodeControl
    is_down: bool = False  # Because we killed it, or it may end: that is no failure of the deployment.
    may_end: bool = False
    is_paused: bool = False
    # Faults may overlap, and an engine that kills and starts one container at once does neither well.
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
