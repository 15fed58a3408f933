"""Nodes that are machines of this project: our image runs `runtimes.host` in each, which has a control channel."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import docker

from harness.core.machine import NodeId, Settings
from harness.core.seams import MachineCluster
from harness.runtimes.containers.compose import Found
from harness.runtimes.containers.control import ControlLink, Hearers
from harness.runtimes.containers.engine.confinement import STALL, STALLED_NODE, confined
from harness.runtimes.containers.faults.struck_clocks import FAKED_CLOCK
from harness.runtimes.containers.images.images import image_for
from harness.runtimes.containers.links.wiring import CLIENT, LOOPBACK, Wire, peers, wires
from harness.runtimes.host.config import CONTROL_PORT, VARIABLE, NodeConfig, encode_config

NODE_IMAGE: Final = "seamark-node"
FOLDER: Final = "/var/lib/seamark"  # The folder of a node's durable state.
LIMITS: Final[dict[str, Any]] = {"mem_limit": "512m", "pids_limit": 256}
SMALL_DISK: Final = "size=64m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """The deployment to make. `faults` are the kinds to come, some of which need preparation."""

    run_id: str
    cluster: MachineCluster
    code: str  # The cluster's import path for nodes: "clusters.ndb:Cluster".
    settings: Settings
    seed: int
    epoch_ns: int  # CLOCK_MONOTONIC at the start of the run,
    epoch_realtime_ns: int  # and CLOCK_REALTIME.
    faults: frozenset[str] = frozenset()


class Machines:
    """The `Crew` of a cluster of machines."""

    shuts_doors = False
    is_direct = False
    outlives_container = False
    ready_s = 30.0

    def __init__(self, blueprint: Blueprint, hearers: Hearers) -> None:
        self._blueprint, self._hearers = blueprint, hearers
        self._token = secrets.token_hex(16)
        self.run_id = blueprint.run_id
        self.nodes = tuple(node.id for node in blueprint.cluster.nodes)
        self.wires = wires(blueprint.cluster)
        self.disk_mb: int | None = None
        self.small_disk = SMALL_DISK if "disk-full" in blueprint.faults else None
        # Its tag is a digest of all our sources: 40 ms of processor time.
        self._image = cache(partial(image_for, NODE_IMAGE))

    def is_published(self, wire: Wire) -> bool:
        """True for wires that clients dial: clients are outside."""
        return wire.source == CLIENT

    def found(self, engine: docker.DockerClient) -> Found | None:
        """None: the nodes must be created."""
        return None

    def image(self, node: NodeId, engine: docker.DockerClient) -> str:
        """The image's tag, the same for all nodes."""
        return self._image(engine)

    def options(self, node: NodeId) -> dict[str, Any]:
        """The configuration of the node, and its control channel, as options of the engine."""
        blueprint = self._blueprint
        config = NodeConfig(
            node=node,
            cluster=blueprint.code,
            settings=blueprint.settings,
            seed=blueprint.seed,
            token=self._token,
            epoch_ns=blueprint.epoch_ns,
            epoch_realtime_ns=blueprint.epoch_realtime_ns,
            peers=peers(self.wires, node),
            folder=FOLDER,
        )
        return {
            "environment": {VARIABLE: encode_config(config)} | (FAKED_CLOCK if "clock" in blueprint.faults else {}),
            "ports": {f"{CONTROL_PORT}/tcp": (LOOPBACK, 0)},
            **confined(STALLED_NODE if STALL in blueprint.faults else ()),
            **LIMITS,
        }

    def files(self, node: NodeId) -> Mapping[str, str]:
        """No files: a node has its configuration in its environment."""
        return {}

    def folder(self, node: NodeId) -> str:
        """The folder of durable state, the same for all nodes."""
        return FOLDER

    def control(self, node: NodeId) -> ControlLink:
        """The node's control channel."""
        return ControlLink(node, self._token, self._hearers)

    def control_port(self, node: NodeId) -> int | None:
        """The control port, published on loopback for each node."""
        return CONTROL_PORT
