"""What data nodes say to each other about who is in and which epoch it is, to the arbitrator, and keep on disk.

`number` is always that of the view in which the sender speaks: what belongs to an older one is dropped.
"""

from msgspec import Struct

from clusters.ndb.view import View
from harness.core.machine import NodeId


class HeartBeat(Struct, frozen=True, tag=True):
    """I live. `echo_ns` is when your latest heartbeat that I took was sent: so long have I not given you up."""

    number: int
    sent_ns: int
    echo_ns: int


class Propose(Struct, frozen=True, tag=True):
    """Shall `view` take the place of view `base`?"""

    base: int
    view: View


class Vote(Struct, frozen=True, tag=True):
    """The answer to a proposal. If it is no: the highest number seen, and for whose proposal the vote was given."""

    number: int
    is_yes: bool
    highest: int
    given_to: NodeId | None = None


class Cancel(Struct, frozen=True, tag=True):
    """That proposal is withdrawn, and will never be installed."""

    number: int


class Install(Struct, frozen=True, tag=True):
    """This view is in force."""

    view: View


class FailRep(Struct, frozen=True, tag=True):
    """To the oldest member that I hear: I do not hear these."""

    number: int
    suspects: tuple[NodeId, ...]


class Behind(Struct, frozen=True, tag=True):
    """You are in a newer view than I: tell me."""

    number: int


class Excluded(Struct, frozen=True, tag=True):
    """You are in no view any more, or your view cannot live: stop."""

    number: int


class StartReq(Struct, frozen=True, tag=True):
    """I have started, and am in no view. What my disk holds: for a restart of the whole cluster."""

    restorable_gci: int
    active: tuple[NodeId, ...]  # Who can restore that checkpoint.
    last_seen_gci: int
    starts: int
    highest: int  # The highest number with which this was tried.
    life: int  # When this process started, in nanoseconds.


class Running(Struct, frozen=True, tag=True):
    """There is a view in force."""

    number: int


class StartOrder(Struct, frozen=True, tag=True):
    """Restore checkpoint `gci`, as all of `active` do, discard what came after it, and begin with `first_gci`."""

    number: int
    gci: int
    active: tuple[NodeId, ...]
    first_gci: int
    starts: int


class StartConf(Struct, frozen=True, tag=True):
    """That is done, durably."""

    number: int


class Choose(Struct, frozen=True, tag=True):
    """To the arbitrator: may `members` go on, of `base` who were in before?"""

    number: int
    base: tuple[NodeId, ...]
    members: tuple[NodeId, ...]


class Chosen(Struct, frozen=True, tag=True):
    """The arbitrator's answer, and the highest number for which it has granted anything."""

    number: int
    is_granted: bool
    highest: int


class AreYouThere(Struct, frozen=True, tag=True):
    """To the arbitrator, several times a second: a node likes to know before it needs it."""

    sent_ns: int


class IAmHere(Struct, frozen=True, tag=True):
    """Its answer, with the time of the question."""

    sent_ns: int


class StartChoose(Struct, frozen=True, tag=True):
    """To the arbitrator: may these, none of whom is in a view, start the whole cluster?"""

    number: int
    members: tuple[NodeId, ...]


class Granted(Struct, frozen=True, tag=True):
    """On the arbitrator's disk: who may go on, and the number of the view for which that was said."""

    number: int
    members: tuple[NodeId, ...]


class GcpPrepare(Struct, frozen=True, tag=True):
    """Begin no commit until `GcpCommit`."""

    number: int
    epoch: int


class GcpPrepareConf(Struct, frozen=True, tag=True):
    """No commit begins here."""

    number: int
    epoch: int


class GcpCommit(Struct, frozen=True, tag=True):
    """What begins to commit from now on belongs to that epoch."""

    number: int
    epoch: int


class GcpNodeFinish(Struct, frozen=True, tag=True):
    """All transactions of lower epochs that are coordinated here are complete on all nodes."""

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
    """It is durable here."""

    number: int
    gci: int


class CopyGci(Struct, frozen=True, tag=True):
    """It is durable on the nodes `active`: write that down."""

    number: int
    gci: int
    active: tuple[NodeId, ...]


class CopyGciConf(Struct, frozen=True, tag=True):
    """That is written down."""

    number: int
    gci: int


class MasterGcpReq(Struct, frozen=True, tag=True):
    """Where do you stand?"""

    number: int


class MasterGcpConf(Struct, frozen=True, tag=True):
    """The epoch in force here, the one before it, and the highest global checkpoint that is written down."""

    number: int
    current: int
    previous: int
    restorable_gci: int


class Ready(Struct, frozen=True, tag=True):
    """I have all data, and subscribers are connected. `handed_over`: from which epoch on I publish, if I do."""

    number: int
    handed_over: int | None


class Handover(Struct, frozen=True, tag=True):
    """From that epoch on, `node` publishes its buckets again."""

    number: int
    epoch: int
    node: NodeId


class HandoverConf(Struct, frozen=True, tag=True):
    """That is known here."""

    number: int
    epoch: int


class Drained(Struct, frozen=True, tag=True):
    """Nothing below that epoch waits here for a subscriber."""

    number: int
    epoch: int


class Sysfile(Struct, frozen=True, tag=True):
    """On disk: the last global checkpoint that was saved everywhere, and by whom.

    -1: the node's data is being replaced by a copy, and nothing can be restored from here.
    """

    restorable_gci: int = 0
    active: tuple[NodeId, ...] = ()


class LastSeen(Struct, frozen=True, tag=True):
    """On disk: the highest global checkpoint that may have begun, and how often the whole cluster was started."""

    gci: int = 0
    starts: int = 0


STARTING = (StartReq, Running, StartOrder, StartConf)
MEMBERSHIP = (HeartBeat, FailRep, Propose, Vote, Cancel, Install, Behind, Excluded)
CHECKPOINT = (GcpPrepare, GcpCommit, GcpComplete, GcpSave, CopyGci, MasterGcpReq, Handover)
MASTER = (GcpPrepareConf, GcpNodeFinish, GcpSaveConf, CopyGciConf, MasterGcpConf, Ready, HandoverConf, Drained)
