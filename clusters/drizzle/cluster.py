"""The whole Drizzle cluster: its nodes, its links, and its declarations."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.drizzle import planted
from clusters.drizzle.client import DrizzleClient
from clusters.drizzle.observer.observer import Observer
from clusters.drizzle.promises import PROMISES, STREAM
from clusters.drizzle.server import Server
from clusters.drizzle.shape import MASTERS, MS, OBSERVER, REPLICAS
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Bounds, Naming, Promise, StreamContract
from harness.core.seams import Client, Connection, MachineCluster, Node, Option, Parameter


class Drizzle(MachineCluster):
    """The Drizzle model: two masters in a ring, two replicas, and an observer of the file logs."""

    name = "drizzle"
    summary = "Drizzle's replication by transaction messages that are cut while the transaction is open"
    nodes: tuple[Node, ...] = (
        *(Node(node, "master") for node in MASTERS),
        *(Node(node, "replica") for node in REPLICAS),
        Node(OBSERVER, "subscriber"),
    )
    links: Links = MappingProxyType(
        {
            pair: "fifo"
            for one, other in (
                ("client", "master"),
                ("client", "replica"),
                ("client", "subscriber"),
                ("master", "replica"),
                ("master", "subscriber"),
            )
            for pair in ((one, other), (other, one))
        }
        | {("master", "master"): "fifo"}
    )
    promises: tuple[Promise, ...] = PROMISES
    stream: StreamContract | None = STREAM
    naming: Naming = Naming()
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(name="poll_ms", low=5, high=50, text="time between two polls of a replica"),
        Parameter(name="row_us", low=50, high=600, text="time that a row of a statement takes"),
        Parameter(name="threshold", low=2, high=6, text="rows of a transaction message after which it is cut"),
    )
    options: tuple[Option, ...] = ()
    points: tuple[str, ...] = (
        "applied",
        "before-answer",
        "before-apply",
        "committed",
        "commit-written",
        "log-durable",
        "logged",
        "piece-sent",
        "prepared",
        "queue-written",
        "queued",
        "record-begun",
    )
    goals: tuple[str, ...] = (
        "a log refused a piece",
        "a piece left before its transaction ended",
        "a replica left a transaction out",
        "a replica applied a transaction of several pieces",
        "a restart cut a torn record",
        "a restart rolled back what was open in the log",
        "a server was started again",
        "a session waited too long for a lock",
        "a statement failed",
        "a transaction was rolled back of which pieces had gone out",
        "an update changed nothing",
        "recovery committed a prepared transaction",
        "recovery rolled a prepared transaction back",
        "the observer began anew",
    )
    faults: tuple[str, ...] = ("partition", "crash", "pause", "slow-subscriber", "slow-link", "power")
    checks: tuple[str, ...] = ("clusters.drizzle.checks",)
    workloads: tuple[str, ...] = ("outcomes", "large", "sessions")
    settle_ns: int = 15_000 * MS

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node, by its role."""
        return Observer() if node == OBSERVER else Server()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return DrizzleClient(connection)

    def bounds(self, settings: Settings) -> Bounds:
        """The limits that follow from the run's parameters."""
        return Bounds(grace_ns=2_000 * MS)
