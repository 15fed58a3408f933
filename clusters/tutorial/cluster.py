"""The whole tutorial cluster: its nodes, its links, and its declarations."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.tutorial import planted
from clusters.tutorial.client import TutorialClient
from clusters.tutorial.coordinator import Coordinator
from clusters.tutorial.data_node import DataNode
from clusters.tutorial.promises import PROMISES, STREAM
from clusters.tutorial.subscriber import Subscriber
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Promise, StreamContract
from harness.core.seams import Client, Connection, MachineCluster, Node, Parameter


class Tutorial(MachineCluster):
    """A key-value store of lists: a primary, its backup, a coordinator, and a change stream to two subscribers."""

    name = "tutorial"
    summary = "lists in a replicated log, with a change stream: the page that teaches"
    nodes: tuple[Node, ...] = (
        Node(NodeId("c1"), "coordinator"),
        Node(NodeId("n1"), "data"),
        Node(NodeId("n2"), "data"),
        Node(NodeId("s1"), "subscriber"),
        Node(NodeId("s2"), "subscriber"),
    )
    links: Links = MappingProxyType(
        {
            ("client", "data"): "fifo",
            ("data", "client"): "fifo",
            ("coordinator", "data"): "fifo",
            ("data", "coordinator"): "fifo",
            ("data", "data"): "fifo",
            ("data", "subscriber"): "fifo",
            ("subscriber", "data"): "fifo",
        }
    )
    promises: tuple[Promise, ...] = PROMISES
    stream: StreamContract | None = STREAM
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(name="suspect_ms", low=300, high=800, text="silence after which a data node counts as down"),
        Parameter(name="watermark_ms", low=20, high=100, text="time between watermarks"),
    )
    points: tuple[str, ...] = ("before-replicate", "before-answer", "view-obeyed")
    point_roles: Mapping[str, str] = MappingProxyType(dict.fromkeys(points, "data"))
    goals: tuple[str, ...] = (
        "a backup was promoted",
        "a conflicting tail was cut off",
        "the view changed while transactions were open",
        "a subscriber resumed",
        "a watermark waited for a full buffer",
    )
    faults: tuple[str, ...] = ("partition", "crash", "pause", "slow-subscriber", "slow-link", "clock", "power")
    workloads: tuple[str, ...] = (
        "list-append",
        "bank",
        "sets",
        "monotonic",
        "long-fork",
        "write-skew",
        "cas-register",
        "rw-register",
    )
    settle_ns: int = 10_000_000_000

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node, by its role."""
        match next(each.role for each in self.nodes if each.id == node):
            case "coordinator":
                return Coordinator()
            case "data":
                return DataNode()
            case _:
                return Subscriber()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return TutorialClient(process, connection)
