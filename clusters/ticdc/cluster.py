"""The whole TiKV and TiCDC cluster: its nodes, its links, and its declarations."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.ticdc import planted
from clusters.ticdc.client import TicdcClient
from clusters.ticdc.oracle.oracle import Oracle
from clusters.ticdc.oracle.upgrade import OPTION, ROLLING, is_rolling
from clusters.ticdc.promises import PROMISES, STREAM
from clusters.ticdc.shape import CAPTURES, COORDINATORS, LOGICAL_BITS, MS, ORACLE, STORES
from clusters.ticdc.store.store import Store
from clusters.ticdc.stream.capture import Capture
from clusters.ticdc.transactions.coordinator import Coordinator
from clusters.ticdc.transactions.messages import BOUND_TOO_HIGH, ROLLED_BACK_ALIVE
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Bounds, Naming, Promise, StreamContract
from harness.core.seams import Client, Connection, MachineCluster, Node, Option, Parameter


class Ticdc(MachineCluster):
    """The TiKV and TiCDC model: Percolator's transactions on replicated regions, and resolved timestamps."""

    name = "ticdc"
    summary = "TiKV's resolved timestamps with large transactions: an oracle, stores, coordinators, TiCDC captures"
    nodes: tuple[Node, ...] = (
        Node(ORACLE, "oracle"),
        *(Node(node, "data") for node in STORES),
        *(Node(node, "coordinator") for node in COORDINATORS),
        *(Node(node, "subscriber") for node in CAPTURES),
    )
    links: Links = MappingProxyType(
        {
            pair: "fifo"
            for one, other in (
                ("client", "coordinator"),
                ("coordinator", "oracle"),
                ("coordinator", "data"),
                ("data", "oracle"),
                ("data", "subscriber"),
                ("subscriber", "oracle"),
            )
            for pair in ((one, other), (other, one))
        }
        | {("data", "data"): "fifo"}
    )
    promises: tuple[Promise, ...] = PROMISES
    stream: StreamContract | None = STREAM
    naming: Naming = Naming(logical_bits=LOGICAL_BITS)
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(name="advance_ms", low=20, high=60, text="time between rounds of watermarks"),
        Parameter(name="election_ms", low=120, high=300, text="silence after which a region elects another leader"),
        Parameter(name="flush_ms", low=5, high=80, text="time between two flushes of a large transaction"),
        Parameter(name="heartbeat_ms", low=30, high=90, text="time between heartbeats of a large transaction"),
        Parameter(name="large_keys", low=2, high=5, text="keys from which on a transaction is large"),
        Parameter(name="sink_ms", low=10, high=40, text="time between two writes of a capture to its downstream"),
        Parameter(name="ttl_ms", low=100, high=300, text="lifetime of a lock; twice that for a large transaction's"),
    )
    options: tuple[Option, ...] = (
        Option(
            name=OPTION, values=("new", ROLLING), text="whether all nodes are new, or old ones are upgraded under load"
        ),
    )
    points: tuple[str, ...] = (
        "before-client-answer",
        "before-commit-primary",
        "before-commit-timestamp",
        "before-flashback-commit",
        "before-initialized",
        "before-watermark",
        "between-primary-and-rest",
        "between-secondaries",
        "commit-applied",
        "flushed",
        "heartbeat-answered",
        "heartbeat-applied",
        "oracle-before-answer",
        "prewrite-applied",
        "sink-before-durable",
        "tick-timestamp",
    )
    point_roles: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(points, "coordinator")
        | {"oracle-before-answer": "oracle", "sink-before-durable": "subscriber", "tick-timestamp": "data"}
        | dict.fromkeys(
            ("before-initialized", "before-watermark", "commit-applied", "heartbeat-applied", "prewrite-applied"),
            "data",
        )
    )
    clock_roles: tuple[str, ...] | None = ("oracle",)
    goals: tuple[str, ...] = (
        "a backup was restored",
        "a capture found other regions than before",
        "a capture looked into locks that held it back",
        "a capture resumed from its checkpoint",
        "a commit timestamp was below the bound",
        "a congested capture lost its session",
        "a flashback committed a lock of its own version",
        "a flashback kept others out of a region",
        "a flashback rolled back an open transaction",
        "a flashback was committed",
        "a follower cut entries that were never decided",
        "a large transaction began",
        "a large transaction flushed a key again",
        "a large transaction was known as committed before its commit came",
        "a leader was deposed",
        "a leader without a quorum advanced no watermark",
        "a reader met a lock",
        "a replica served a stale read",
        "a rolling upgrade came to its end",
        "a reader pushed a transaction's bound",
        "a region got another leader",
        "a region got its first leader",
        "a region was split",
        "a stale read asked for a large transaction",
        "a stale read took a value from a lock",
        "a transaction began anew after a conflict",
        "regions were merged",
        "the oracle was restarted",
        "the oracle's clock was behind what it had given",
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
    workloads: tuple[str, ...] = (
        "large-vs-tick",
        "pusher",
        "stale-reads",
        "restores",
        "region-churn",
        "list-append",
        "list-append-locked",
        "bank",
        "sets",
        "monotonic",
        "long-fork",
        "counter",
        "churn",
    )
    settle_ns: int = 15_000 * MS

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node, by its role."""
        match next(each.role for each in self.nodes if each.id == node):
            case "oracle":
                return Oracle()
            case "data":
                return Store()
            case "coordinator":
                return Coordinator()
            case _:
                return Capture()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return TicdcClient(process, connection)

    def bounds(self, settings: Settings) -> Bounds:
        """The limits that follow from the run's parameters."""
        drawn = settings.parameters
        # A large transaction's last heartbeat, two rounds, the sink; its commits on the way to the last region, a
        # quarter of a flush each; and a writer that waits for another one's lock while it holds its own.
        freshness_ms = drawn["heartbeat_ms"] + 2 * drawn["advance_ms"] + drawn["sink_ms"] + 2 * drawn["flush_ms"] + 300
        return Bounds(
            stall_ns=2_000 * MS,
            behind_ns=None if is_rolling(settings) else freshness_ms * MS,
            grace_ns=4_000 * MS,
            spurious=(ROLLED_BACK_ALIVE, BOUND_TOO_HIGH),
            spurious_keys=drawn["large_keys"],
        )

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """All promises but one: in a rolling upgrade without freshness (TIK-G10), else without TIK-G20."""
        left_out = "TIK-G10" if is_rolling(settings) else "TIK-G20"
        return tuple(promise for promise in self.promises if promise.id != left_out)
