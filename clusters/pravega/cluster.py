"""The whole Pravega cluster: its nodes, its links, and its declarations."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.pravega import planted
from clusters.pravega.client import PravegaClient
from clusters.pravega.controller.controller import Controller
from clusters.pravega.metadata.logs import Logs
from clusters.pravega.metadata.metadata import Metadata
from clusters.pravega.promises import PROMISES, STREAM
from clusters.pravega.readers.reader import Reader
from clusters.pravega.segments.store import Store
from clusters.pravega.shape import CONTROLLERS, LOG, METADATA, MS, READERS, STORES, WRITERS
from clusters.pravega.writers.transaction import LOST_LEASE
from clusters.pravega.writers.writer import Writer
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Bounds, Promise, StreamContract
from harness.core.seams import Client, Connection, MachineCluster, Node, Option, Parameter


class Pravega(MachineCluster):
    """The Pravega model: controllers over one metadata store, segment stores over durable logs, writers and readers."""

    name = "pravega"
    summary = "Pravega's rolling transactions: streams that scale while transactions are open"
    nodes: tuple[Node, ...] = (
        Node(METADATA, "metadata"),
        Node(LOG, "log"),
        *(Node(node, "coordinator") for node in CONTROLLERS),
        *(Node(node, "data") for node in STORES),
        *(Node(node, "writer") for node in WRITERS),
        *(Node(node, "subscriber") for node in READERS),
    )
    links: Links = MappingProxyType(
        {
            pair: "fifo"
            for one, other in (
                ("client", "writer"),
                ("writer", "coordinator"),
                ("writer", "data"),
                ("coordinator", "data"),
                ("coordinator", "metadata"),
                ("data", "metadata"),
                ("data", "log"),
                ("subscriber", "coordinator"),
                ("subscriber", "data"),
                ("subscriber", "metadata"),
            )
            for pair in ((one, other), (other, one))
        }
    )
    promises: tuple[Promise, ...] = PROMISES
    stream: StreamContract | None = STREAM
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(name="batch", low=3, high=34, text="the most transactions of one commit"),
        Parameter(name="hold_ms", low=200, high=700, text="the longest that a writer keeps a transaction open"),
        Parameter(name="lease_ms", low=400, high=800, text="a transaction that is not renewed for so long is aborted"),
        Parameter(name="reader_dead_ms", low=300, high=900, text="silence after which a reader counts as dead"),
        Parameter(name="report_ms", low=40, high=200, text="time between two reports of a reader to its group"),
        Parameter(name="scale_ms", low=400, high=2000, text="time between two scales"),
        Parameter(name="suspect_ms", low=200, high=500, text="silence after which a store loses its containers"),
    )
    options: tuple[Option, ...] = ()
    points: tuple[str, ...] = (
        "abort-marked",
        "commit-ended",
        "commit-marked",
        "commit-recorded",
        "container-before-answer",
        "container-open",
        "controller-before-answer",
        "merged-one",
        "reader-has-successors",
        "reader-reported",
        "roll-active-sealed",
        "roll-created",
        "roll-merged",
        "roll-moved",
        "roll-pinned",
        "roll-recorded",
        "roll-sealed",
        "scale-begun",
        "scale-created",
        "scale-moved",
        "scale-recorded",
        "scale-sealed",
        "seal-begun",
        "seal-sealed",
        "truncation-done",
        "truncation-recorded",
        "txn-segments-created",
        "txn-segments-deleted",
        "writer-before-commit",
        "writer-has-successors",
    )
    point_roles: Mapping[str, str] = MappingProxyType(
        dict.fromkeys(points, "coordinator")
        | dict.fromkeys(("container-before-answer", "container-open"), "data")
        | dict.fromkeys(("reader-has-successors", "reader-reported"), "subscriber")
        | dict.fromkeys(("writer-before-commit", "writer-has-successors"), "writer")
    )
    goals: tuple[str, ...] = (
        "a batch was full",
        "a container moved to another store",
        "a controller took over the stream",
        "a lagging reader met a truncation",
        "a lease moved to another controller",
        "a lease ran out",
        "a lease ran out that another controller had renewed",
        "a processor found that another one had gone on",
        "a processor went on with a commit of another one",
        "a processor went on with a roll of another one",
        "a reader came to a checkpoint",
        "a reader gave a segment away",
        "a reader was removed",
        "a reader was taken for dead with segments",
        "a scale was carried over to duplicates",
        "a seal waited for transactions that were marked for commit",
        "a segment was split",
        "a store took over a log",
        "a store was fenced",
        "a stream was sealed",
        "a stream was truncated",
        "a transaction was committed in place after a roll",
        "a transaction was rolled",
        "a transaction was taken over from another controller",
        "a writer moved events behind a sealed segment",
        "segments were merged",
        "the readers were restored",
    )
    faults: tuple[str, ...] = (
        "partition",
        "crash",
        "pause",
        "slow-subscriber",
        "slow-link",
        "power",
    )
    checks: tuple[str, ...] = ("clusters.pravega.checks",)
    workloads: tuple[str, ...] = ("txn-blocks", "keyed-sequence", "leases", "retention", "seal-under-load", "rewinds")
    settle_ns: int = 30_000 * MS  # After a long fault many transactions roll, one batch after the other.

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node, by its role."""
        match next(each.role for each in self.nodes if each.id == node):
            case "metadata":
                return Metadata()
            case "log":
                return Logs()
            case "coordinator":
                return Controller()
            case "data":
                return Store()
            case "writer":
                return Writer()
            case _:
                return Reader()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return PravegaClient(process, connection)

    def bounds(self, settings: Settings) -> Bounds:
        """The limits that follow from the run's parameters."""
        return Bounds(spurious=(LOST_LEASE,), grace_ns=4_000 * MS)

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """All promises, with any settings."""
        return self.promises
