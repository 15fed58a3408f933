"""Messages between data nodes about membership and epochs, messages with the arbitrator, and records on disk.

`number` is that of the sender's view, unless a view or a proposal has its own: messages of an older view are dropped.
`base` is the number of a view that the receiver's life must be in, and `life` the life itself. A message to an earlier
life of its receiver is dropped (invariant 4 of data_node.py).
"""

from msgspec import Struct

from clusters.ndb.membership.view import View
from harness.core.machine import NodeId


class HeartBeat(Struct, frozen=True, tag=True):
    """The sender is alive.

    `echo_ns` is the sending time of the receiver's latest heartbeat: until then the sender has not given it up.
    """

    number: int
    sent_ns: int
    echo_ns: int


class Propose(Struct, frozen=True, tag=True):
    """A proposal that `view` replace view `base`."""

    base: int
    view: View


class Vote(Struct, frozen=True, tag=True):
    """The answer to proposal `number`. If no: the highest number seen, and the proposer that has the vote."""

    number: int
    base: int  # The view in force at the proposer.
    is_yes: bool
    highest: int
    given_to: NodeId | None = None


class Cancel(Struct, frozen=True, tag=True):
    """The proposal is withdrawn, and will never be installed."""

    number: int


class Install(Struct, frozen=True, tag=True):
    """This view is in force."""

    view: View


class FailRep(Struct, frozen=True, tag=True):
    """To the oldest reachable member: the sender does not hear `suspects`."""

    number: int
    suspects: tuple[NodeId, ...]


class Behind(Struct, frozen=True, tag=True):
    """A request for the view in force, to a node with a newer view."""

    number: int


class Excluded(Struct, frozen=True, tag=True):
    """To a node that is in no view any more, or whose view cannot survive: stop."""

    number: int
    base: int


class StartReq(Struct, frozen=True, tag=True):
    """A request to join by a started node without a view, with its disk's state for a restart of the whole cluster."""

    restorable_gci: int
    active: tuple[NodeId, ...]  # The nodes that can restore that checkpoint.
    last_seen_gci: int
    starts: int
    highest: int  # The highest number with which a restart was tried.
    life: int  # When this process started, in nanoseconds.


class Running(Struct, frozen=True, tag=True):
    """A view is in force."""

    number: int


class StartOrder(Struct, frozen=True, tag=True):
    """Restore checkpoint `gci`, as all of `active` do, discard everything later, and begin with `first_gci`."""

    number: int
    gci: int
    active: tuple[NodeId, ...]
    first_gci: int
    starts: int
    life: int
    leader_life: int


class StartConf(Struct, frozen=True, tag=True):
    """The order is carried out, durably."""

    number: int
    life: int


class Choose(Struct, frozen=True, tag=True):
    """To the arbitrator: may `members`, of the former members `base`, continue?"""

    number: int
    base: tuple[NodeId, ...]
    members: tuple[NodeId, ...]
    life: int  # The sender's, for the answer.


class Chosen(Struct, frozen=True, tag=True):
    """The arbitrator's answer, and the highest number that it has granted."""

    number: int
    is_granted: bool
    highest: int
    life: int


class AreYouThere(Struct, frozen=True, tag=True):
    """A ping to the arbitrator, several times per second, so that a node knows of its absence before it needs it."""

    sent_ns: int


class IAmHere(Struct, frozen=True, tag=True):
    """The arbitrator's answer, with the time of the ping."""

    sent_ns: int


class StartChoose(Struct, frozen=True, tag=True):
    """To the arbitrator: may these nodes, none of which is in a view, start the whole cluster?"""

    number: int
    members: tuple[NodeId, ...]
    life: int  # The sender's, for the answer.


class Granted(Struct, frozen=True, tag=True):
    """On the arbitrator's disk: the nodes that may continue, and the number of the view of that grant."""

    number: int
    members: tuple[NodeId, ...]


class GcpPrepare(Struct, frozen=True, tag=True):
    """Begin no commit until `GcpCommit`."""

    number: int
    epoch: int


class GcpPrepareConf(Struct, frozen=True, tag=True):
    """No commit begins at the sender."""

    number: int
    epoch: int


class GcpCommit(Struct, frozen=True, tag=True):
    """Commits that begin from now on belong to that epoch."""

    number: int
    epoch: int


class GcpNodeFinish(Struct, frozen=True, tag=True):
    """All transactions of lower epochs coordinated by the sender are complete on all nodes."""

    number: int
    epoch: int


class GcpComplete(Struct, frozen=True, tag=True):
    """All transactions of that epoch are complete on all nodes."""

    number: int
    epoch: int


class GcpSave(Struct, frozen=True, tag=True):
    """Make everything of that global checkpoint durable."""

    number: int
    gci: int


class GcpSaveConf(Struct, frozen=True, tag=True):
    """The checkpoint is durable at the sender."""

    number: int
    gci: int


class CopyGci(Struct, frozen=True, tag=True):
    """The checkpoint is durable on the nodes `active`: record that."""

    number: int
    gci: int
    active: tuple[NodeId, ...]


class CopyGciConf(Struct, frozen=True, tag=True):
    """The checkpoint is recorded."""

    number: int
    gci: int


class MasterGcpReq(Struct, frozen=True, tag=True):
    """A query for the receiver's position."""

    number: int


class MasterGcpConf(Struct, frozen=True, tag=True):
    """The sender's current epoch, the one that it has only prepared (0: none), and its highest recorded checkpoint."""

    number: int
    current: int
    prepared: int
    restorable_gci: int


class Ready(Struct, frozen=True, tag=True):
    """The sender has all data, and subscribers are connected.

    `handed_over`: the epoch from which it publishes, if it does.
    """

    number: int
    handed_over: int | None


class Handover(Struct, frozen=True, tag=True):
    """From that epoch on, `node` publishes its buckets again."""

    number: int
    epoch: int
    node: NodeId


class HandoverConf(Struct, frozen=True, tag=True):
    """The sender knows of the hand-over."""

    number: int
    epoch: int


class Drained(Struct, frozen=True, tag=True):
    """Nothing below that epoch waits at the sender for a subscriber."""

    number: int
    epoch: int


class Sysfile(Struct, frozen=True, tag=True):
    """On disk: the last global checkpoint that was saved everywhere, and the nodes that saved it.

    -1: the node's data is being replaced by a copy, and nothing can be restored from here.
    """

    restorable_gci: int = 0
    active: tuple[NodeId, ...] = ()


class LastSeen(Struct, frozen=True, tag=True):
    """On disk: the highest global checkpoint that may have begun, and the number of starts of the whole cluster."""

    gci: int = 0
    starts: int = 0


STARTING = (StartReq, Running, StartOrder, StartConf)
MEMBERSHIP = (HeartBeat, FailRep, Propose, Vote, Cancel, Install, Behind, Excluded)
CHECKPOINT = (GcpPrepare, GcpCommit, GcpComplete, GcpSave, CopyGci, MasterGcpReq, Handover)
MASTER = (GcpPrepareConf, GcpNodeFinish, GcpSaveConf, CopyGciConf, MasterGcpConf, Ready, HandoverConf, Drained)
