"""The cluster `ndb-replica`: data nodes as they stand, two binlog injectors, and a replica of their binlogs."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.ndb.binlog import planted
from clusters.ndb.binlog.injector import Injector
from clusters.ndb.cluster import Ndb
from clusters.ndb.data_node import DataNode
from clusters.ndb.membership.arbitrator import Arbitrator
from clusters.ndb.promises import REPLICA_PROMISES
from clusters.ndb.replica.client import ReplicaClient
from clusters.ndb.replica.replica import Replica
from clusters.ndb.shape import ARBITRATOR, DATA_NODES, INJECTORS, REPLICA
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Promise
from harness.core.seams import Client, Connection, Node, Parameter


class NdbReplica(Ndb):
    """MySQL Cluster with two binlogs and a replica."""

    name = "ndb-replica"
    summary = "MySQL Cluster's epochs in two redundant binlogs, and a replica that applies them"
    nodes: tuple[Node, ...] = (
        Node(ARBITRATOR, "arbitrator"),
        *(Node(node, "data") for node in DATA_NODES),
        *(Node(node, "subscriber") for node in INJECTORS),
        Node(REPLICA, "replica"),
    )
    links: Links = MappingProxyType(
        dict(Ndb.links)
        | {
            ("client", "subscriber"): "fifo",
            ("subscriber", "client"): "fifo",
            ("client", "replica"): "fifo",
            ("replica", "client"): "fifo",
            ("replica", "subscriber"): "fifo",
            ("subscriber", "replica"): "fifo",
        }
    )
    promises: tuple[Promise, ...] = REPLICA_PROMISES
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        *Ndb.parameters,
        Parameter(name="poll_ms", low=10, high=50, text="time between two questions of a replica to a binlog"),
        Parameter(name="switch_ms", low=500, high=2000, text="silence after which a replica takes the other binlog"),
        Parameter(name="error_permille", low=0, high=100, text="how often a transaction of a replica must be repeated"),
        Parameter(name="idempotent", low=0, high=1, text="1: a replica applies an epoch again, ignoring what it has"),
    )
    points: tuple[str, ...] = (
        *Ndb.points,
        "applied",
        "at-switch",
        "before-apply",
        "before-binlog-sync",
        "before-backup-stop",
        "before-index",
    )
    point_roles: Mapping[str, str] = MappingProxyType(
        dict(Ndb.point_roles)
        | {"before-backup-stop": "data"}
        | dict.fromkeys(("applied", "at-switch", "before-apply"), "replica")
        | dict.fromkeys(("before-binlog-sync", "before-index"), "subscriber")
    )
    goals: tuple[str, ...] = (
        *Ndb.goals,
        "a backup was complete",
        "a backup was given up",
        "a binlog had a change of the schema alone",
        "a channel stopped at an incident",
        "a channel was silent for too long",
        "a channel was switched under load",
        "a replica went on from its position",
        "an epoch was tried again",
        "an incident was written",
        "both binlogs had a gap",
    )
    workloads: tuple[str, ...] = ("epochs", "hot-epochs", "schemas", "backups")

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node."""
        if node == ARBITRATOR:
            return Arbitrator()
        if node == REPLICA:
            return Replica()
        return Injector() if node in INJECTORS else DataNode()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return ReplicaClient(process, connection)
