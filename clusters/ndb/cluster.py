"""The whole NDB cluster: its nodes, its links, and its declarations."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.ndb import planted
from clusters.ndb.client import NdbClient
from clusters.ndb.data_node import DataNode, parameters_of
from clusters.ndb.membership.arbitrator import Arbitrator
from clusters.ndb.promises import PROMISES, STREAM
from clusters.ndb.shape import ARBITRATOR, DATA_NODES, GCI_BITS, GROUPS, MS, SUBSCRIBERS
from clusters.ndb.stream.subscriber import Subscriber
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.seams import Client, Connection, MachineCluster, Node, Parameter


class Ndb(MachineCluster):
    """Epochs of MySQL Cluster: transactions on replicated fragments, global checkpoints, and a stream of epochs."""

    name = "ndb"
    summary = "MySQL Cluster's epochs: global checkpoints over two node groups, subscribers, an arbitrator"
    nodes: tuple[Node, ...] = (
        Node(ARBITRATOR, "arbitrator"),
        *(Node(node, "data") for node in DATA_NODES),
        *(Node(node, "subscriber") for node in SUBSCRIBERS),
    )
    links: Links = MappingProxyType(
        {
            ("client", "data"): "fifo",
            ("data", "client"): "fifo",
            ("data", "data"): "fifo",
            ("data", "subscriber"): "fifo",
            ("subscriber", "data"): "fifo",
            ("data", "arbitrator"): "fifo",
            ("arbitrator", "data"): "fifo",
        }
    )
    promises: tuple[Promise, ...] = PROMISES
    stream: StreamContract | None = STREAM
    checks: tuple[str, ...] = ("clusters.ndb.checks",)
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(name="epoch_ms", low=10, high=100, text="time between epochs"),
        Parameter(name="gci_ms", low=200, high=1000, text="time between global checkpoints"),
        Parameter(name="suspect_ms", low=200, high=500, text="silence after which a data node counts as failed"),
        Parameter(name="lock_ms", low=100, high=300, text="the longest wait for a row lock"),
        Parameter(name="lag_ms", low=500, high=3000, text="how far a subscriber may be behind"),
        Parameter(name="max_buffered_rows", low=3, high=30, text="rows that a node keeps for its peer's buckets"),
        Parameter(name="event_buffer", low=200, high=4000, text="events that a subscriber keeps for its user"),
        Parameter(name="nap_permille", low=0, high=15, text="how often a subscriber's user falls asleep"),
    )
    points: tuple[str, ...] = (
        "after-epoch-commit",
        "after-prepare",
        "at-handover",
        "before-commit-answer",
        "before-commit-chain",
        "before-complete-rep",
        "before-copy-gci",
        "before-copy-gci-sent",
        "before-epoch-commit-sent",
        "before-group-ack",
        "before-install",
        "before-nodefinish",
        "before-prepare-sent",
        "before-propose",
        "before-restore",
        "between-commits",
        "commit-on-backup",
        "resend-epoch",
        "takeover-collecting",
    )
    point_roles: Mapping[str, str] = MappingProxyType(dict.fromkeys(points, "data"))
    goals: tuple[str, ...] = (
        "a backup waited for Complete",
        "a commit waited for the block",
        "a coordinator was taken over with a committed operation",
        "a lagging subscriber was disconnected",
        "a lock wait timed out",
        "a resent row was dropped as known",
        "a subscriber saw the whole cluster fail",
        "a transaction was open over three epochs",
        "an epoch was marked as missing",
        "an epoch was resent",
        "buckets were handed back to a restarted node",
        "buckets were taken over with unacknowledged epochs",
        "buffered rows were dropped",
        "the arbitrator refused",
        "the arbitrator was out of reach for a while",
        "the master changed",
        "the user's buffer was full",
        "the view changed in mid-round",
        "the whole cluster was restarted",
    )
    faults: tuple[str, ...] = ("partition", "crash", "pause", "slow-subscriber", "slow-link", "power")
    workloads: tuple[str, ...] = (
        "ndb-mix",
        "list-append",
        "list-append-locked",
        "two-keys",
        "counter",
        "churn",
        "bank-locked",
        "sets",
        "monotonic",
        "long-fork-locked",
        "write-skew-locked",
        "row-churn",
    )
    settle_ns: int = 15_000 * MS

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node."""
        if node == ARBITRATOR:
            return Arbitrator()
        return DataNode() if node in DATA_NODES else Subscriber()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return NdbClient(process, connection)

    def bounds(self, settings: Settings) -> Bounds:
        """The limits that follow from the run's parameters."""
        drawn = parameters_of(settings)
        epoch_ns, records = drawn["epoch_ms"] * MS, drawn["max_records"]
        return Bounds(
            groups=tuple(tuple(str(node) for node in group) for group in GROUPS),
            saved_bits=GCI_BITS,
            loss_ns=2 * drawn["gci_ms"] * MS + 10_000 * MS,
            records=records,
            disconnect_ns=(records + 1) * epoch_ns,
            stall_ns=5_000 * MS,
            blocked_ns=2_000 * MS,
            grace_ns=6_000 * MS,
        )
