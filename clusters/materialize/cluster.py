"""The whole Materialize cluster: its nodes, its links, and its declarations."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.materialize import planted
from clusters.materialize.catalog.catalog import Catalog
from clusters.materialize.client import MaterializeClient
from clusters.materialize.compute.compute import Compute
from clusters.materialize.compute.views import JUDGED
from clusters.materialize.coordinator.coordinator import Coordinator
from clusters.materialize.coordinator.sequencing import SERIALIZABLE
from clusters.materialize.promises import FREE, PROMISES, STREAM, STRICT
from clusters.materialize.shape import (
    CATALOG,
    COMPUTE,
    COORDINATORS,
    DATA,
    INGESTION,
    MS,
    READER,
    SINKS,
    SUBSCRIBERS,
    TOPIC,
    UPSTREAM,
)
from clusters.materialize.sinks.reader import Reader
from clusters.materialize.sinks.sink import Sink
from clusters.materialize.sinks.topic import Topic
from clusters.materialize.sources.ingestion import Ingestion
from clusters.materialize.sources.upstream import Upstream
from clusters.materialize.storage.data_node import DataNode
from clusters.materialize.stream.subscriber import Subscriber
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Bounds, Naming, Promise, StreamContract
from harness.core.seams import Client, Connection, MachineCluster, Node, Option, Parameter


class Materialize(MachineCluster):
    """The Materialize model: coordinators over a catalog, shards, views, ingestion, a sink, subscribers."""

    name = "materialize"
    summary = "Materialize's timestamp oracle: strictly serializable tables, sources and views"
    nodes: tuple[Node, ...] = (
        Node(CATALOG, "catalog"),
        *(Node(node, "coordinator") for node in COORDINATORS),
        *(Node(node, "data") for node in DATA),
        *(Node(node, "compute") for node in COMPUTE),
        Node(INGESTION, "ingestion"),
        Node(UPSTREAM, "upstream"),
        *(Node(node, "sink") for node in SINKS),
        Node(TOPIC, "topic"),
        *(Node(node, "subscriber") for node in (*SUBSCRIBERS, READER)),
    )
    links: Links = MappingProxyType(
        {
            pair: "fifo"
            for one, other in (
                ("client", "coordinator"),
                ("client", "upstream"),
                ("coordinator", "catalog"),
                ("coordinator", "data"),
                ("coordinator", "compute"),
                ("compute", "data"),
                ("ingestion", "upstream"),
                ("ingestion", "data"),
                ("ingestion", "coordinator"),
                ("subscriber", "compute"),
                ("subscriber", "coordinator"),
                ("sink", "compute"),
                ("sink", "coordinator"),
                ("sink", "topic"),
                ("subscriber", "topic"),
            )
            for pair in ((one, other), (other, one))
        }
        | {("coordinator", "coordinator"): "fifo"}
    )
    promises: tuple[Promise, ...] = PROMISES
    stream: StreamContract | None = STREAM
    naming: Naming = Naming()
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(
            name="deploy_ms", low=1500, high=6000, text="time after which a coordinator, or a sink, is deployed anew"
        ),
        Parameter(name="interval_ms", low=30, high=120, text="time after which an empty group commit advances tables"),
        Parameter(name="lag_units", low=10, high=60, text="how far compaction stays below the oracle's reads"),
        Parameter(name="retained", low=3, high=20, text="unacknowledged records that the upstream system keeps"),
        Parameter(name="source_ms", low=10, high=80, text="time between two bindings of ingestion"),
        Parameter(name="suspect_ms", low=200, high=500, text="silence after which a coordinator takes over"),
        Parameter(name="view_ms", low=5, high=40, text="time between two steps of the views"),
        Parameter(name="skew_ms", low=0, high=300, text="how far the wall clock of c2 is behind that of c1"),
    )
    options: tuple[Option, ...] = (
        Option(
            name="isolation",
            values=("strict-serializable", SERIALIZABLE),
            text="whether reads take the oracle's timestamp, or any",
        ),
    )
    points: tuple[str, ...] = (
        "append-applied",
        "batch-appended",
        "batch-complete",
        "batch-published",
        "before-answer",
        "before-apply",
        "binding-durable",
        "bound-persisted",
        "bound-taken",
        "catalog-opened",
        "may-acknowledge",
        "read-before-answer",
        "records-appended",
        "table-advanced",
        "table-appended",
        "timestamp-taken",
    )
    point_roles: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(points, "coordinator")
        | {"append-applied": "data", "batch-appended": "topic"}
        | dict.fromkeys(("batch-complete", "batch-published"), "sink")
        | dict.fromkeys(("binding-durable", "may-acknowledge", "records-appended"), "ingestion")
    )
    clock_roles: tuple[str, ...] | None = ("coordinator", "ingestion")
    goals: tuple[str, ...] = (
        "a compute node began anew",
        "a coordinator took over",
        "a coordinator was deployed beside a leader",
        "a group commit waited for the clock",
        "a group commit wrote several tables",
        "a leader began ahead of its clock",
        "a leader began with a clock that was behind",
        "a leader ended that had timestamps left",
        "a leader ended: a table had another upper",
        "a leader ended: the catalog refused its record",
        "a leader ended: the catalog shows another one",
        "a read came too late for its timestamp",
        "a read-then-write read",
        "a slow subscriber was cut off",
        "a subscriber resumed",
        "a subscriber was ahead of a compute node",
        "an append met another upper",
        "an append took long",
        "an empty group commit advanced the tables",
        "ingestion appended the records of a binding after a restart",
        "ingestion resumed",
        "ingestion stopped at a gap",
        "records were acknowledged upstream",
        "the catalog refused a superseded leader",
        "the reader of the sink resumed",
        "the sink resumed",
        "the topic refused a superseded sink",
        "upstream dropped records that nobody had acknowledged",
    )
    faults: tuple[str, ...] = (
        "partition",
        "crash",
        "pause",
        "slow-subscriber",
        "slow-link",
        "power",
        "clock",
    )
    checks: tuple[str, ...] = ("clusters.materialize.checks",)
    workloads: tuple[str, ...] = ("tables", "views", "sources", "ddl", "timelines")
    settle_ns: int = 15_000 * MS

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node, by its role."""
        match next(each.role for each in self.nodes if each.id == node):
            case "catalog":
                return Catalog()
            case "coordinator":
                return Coordinator()
            case "data":
                return DataNode()
            case "compute":
                return Compute()
            case "ingestion":
                return Ingestion()
            case "upstream":
                return Upstream()
            case "sink":
                return Sink()
            case "topic":
                return Topic()
            case _:
                return Reader() if node == READER else Subscriber()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return MaterializeClient(process, connection)

    def bounds(self, settings: Settings) -> Bounds:
        """The limits that follow from the run's parameters."""
        return Bounds(grace_ns=4_000 * MS, views=JUDGED)

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """All promises of the isolation that was chosen."""
        is_free = settings.options.get("isolation") == SERIALIZABLE
        left_out = STRICT if is_free else {FREE}
        return tuple(promise for promise in self.promises if promise.id not in left_out)
