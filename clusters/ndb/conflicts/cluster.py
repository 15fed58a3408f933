"""The cluster `ndb-active`: two sites, each a whole cluster as one node, that write to each other."""

from collections.abc import Mapping
from types import MappingProxyType

from clusters.ndb.conflicts import planted
from clusters.ndb.conflicts.client import SiteClient
from clusters.ndb.conflicts.rules import BY_EPOCH, RULES
from clusters.ndb.conflicts.site import Site
from clusters.ndb.promises import ACTIVE_PROMISES
from clusters.ndb.shape import MS, SITES
from harness.core.machine import Links, Machine, NodeId, Settings
from harness.core.promises import Promise
from harness.core.seams import Client, Connection, MachineCluster, Node, Parameter


class NdbActive(MachineCluster):
    """Two clusters that replicate to each other with conflict detection."""

    name = "ndb-active"
    summary = "MySQL Cluster at two sites that both take writes, with conflict detection by epochs or by maximum"
    nodes: tuple[Node, ...] = tuple(Node(site, "site") for site in SITES)
    links: Links = MappingProxyType(
        {("client", "site"): "fifo", ("site", "client"): "fifo", ("site", "site"): "fifo"}
    )  # fmt: skip
    promises: tuple[Promise, ...] = ACTIVE_PROMISES
    bugs: Mapping[str, str] = planted.BUGS
    parameters: tuple[Parameter, ...] = (
        Parameter(name="rule", low=0, high=len(RULES) - 1, text=f"the function for conflicts: {', '.join(RULES)}"),
        Parameter(name="epoch_ms", low=10, high=100, text="time between epochs"),
        Parameter(name="gci_ms", low=200, high=1000, text="time between global checkpoints"),
        Parameter(name="epoch_bits", low=0, high=4, text="bits of a row's epoch for its place in a global checkpoint"),
        Parameter(name="poll_ms", low=10, high=50, text="time between two questions of a site to the other one"),
    )
    points: tuple[str, ...] = ("before-apply", "before-sync", "epoch-ended")
    goals: tuple[str, ...] = (
        "a change came back",
        "a change was in conflict with an unseen row",
        "a deletion was rejected",
        "a rounded epoch was in conflict",
        "a row was refreshed",
        "a site was many epochs behind",
        "a smaller value was rejected",
        "a tracked read was in conflict",
        "a transaction was rejected for one that it builds on",
    )
    faults: tuple[str, ...] = ("partition", "crash", "pause", "slow-link", "power")
    workloads: tuple[str, ...] = ("primaries",)
    settle_ns: int = 15_000 * MS

    def promised(self, settings: Settings) -> tuple[Promise, ...]:
        """The promises under the rule of the run: only those of maxima have values that must grow."""
        is_by_epoch = RULES[settings.parameters["rule"]] in BY_EPOCH
        return tuple(promise for promise in self.promises if not (is_by_epoch and promise.id == "NDB-G33"))

    def machine(self, node: NodeId) -> Machine:
        """The machine for that node."""
        return Site()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """A client for that process."""
        return SiteClient(process, connection)
