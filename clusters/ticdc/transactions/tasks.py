"""Where the requests of this node's procedures go: to the oracle, to the leaders of regions, or to any replica.

Theory of operation. See clusters/parts/procedures.py. A request to a region goes to the store that led it last; "not
leader", a broken connection or silence sends it on to another one. To a region that a flashback has closed it is sent
again. An answer to an earlier life of this node belongs to no request: no life uses a number again. Else a store whose
log was cut off for a while would answer the prewrite of one transaction with the success of another one's. Where
regions have changed a request follows its keys; if these are in several regions now, or it names none, the answer
is `Moved`.
"""

from collections.abc import Generator
from typing import TypeVar

from msgspec import Struct

from clusters.parts.procedures import PATIENCE_NS, TIMER, Ask, Open, Procedures, Sleep
from clusters.ticdc.oracle.messages import Timestamp, Tso
from clusters.ticdc.regions.messages import InFlashback, Moved, NotLeader, Region, Reply, Request, ToRegion, keys_of
from clusters.ticdc.regions.table import RegionTable
from clusters.ticdc.shape import MS, ORACLE, STORES
from clusters.ticdc.site import Site
from harness.core.machine import NodeId

__all__ = ["TIMER", "Answers", "Ask", "At", "Now", "Procedure", "Sleep", "Tasks", "To", "call", "timestamp"]

PAUSE_NS = 20 * MS  # Between two attempts, if all stores refused.
_NOT_FINAL = frozenset((NotLeader, InFlashback, Moved))  # The answers that may have to be looked at twice.
HOPS = 2  # How often a hint is followed at once: two stores may take each other for the leader.


class Now(Struct, frozen=True):
    """A request for a timestamp; the answer is a `Timestamp`."""


class To(Struct, frozen=True):
    """A request to the leader of a region."""

    region: Region
    body: Request


class At(Struct, frozen=True):
    """A request to a store's replica of a region, whether it leads or not."""

    store: NodeId
    region: Region
    body: Request


Wanted = Now | To | At
Answer = Timestamp | Reply
Answers = tuple[Answer | None, ...]
Result = TypeVar("Result")
Procedure = Generator[Ask[Wanted] | Sleep, Answers, Result]


class Tasks:
    """The procedures that run on one node, and its knowledge of regions and their leaders."""

    def __init__(self, site: Site) -> None:
        self.table = RegionTable()
        self._site = site
        self._leaders: dict[int, NodeId] = {}
        self._procedures = Procedures[Wanted, Answer](site, self, first=site.now_ns())
        self.run, self.answered = self._procedures.run, self._procedures.answered
        self.closed, self.tick = self._procedures.closed, self._procedures.tick

    def leader(self, region: Region) -> NodeId:
        """The store that probably leads a region."""
        return self._leaders.get(region.id, STORES[region.id % len(STORES)])

    def refuted(self, region: Region, store: NodeId | None, leader: NodeId | None = None) -> None:
        """Note that a store does not lead a region, or does not answer; `leader` is the one that does, if known."""
        if store is not None and self.leader(region) == store:
            self._leaders[region.id] = leader or STORES[(STORES.index(store) + 1) % len(STORES)]

    def send(self, number: int, request: Wanted) -> NodeId:
        """Send a request to the node that should answer it."""
        if isinstance(request, Now):
            target = ORACLE
            self._site.send(target, Tso(number))
        else:
            target = request.store if isinstance(request, At) else self.leader(request.region)
            self._site.send(target, ToRegion(number, request.region.id, request.region.version, request.body))
        return target

    def is_final(self, number: int, opened: Open[Wanted, Answer], answer: Answer) -> bool:
        """True unless the request must go to another store, or come again later."""
        if type(answer) not in _NOT_FINAL:
            return True
        request, again_ns = opened.request, self._site.now_ns() + PAUSE_NS
        match answer:
            case NotLeader(leader) if isinstance(request, To):
                self.refuted(request.region, opened.target, leader)
                self._hop(number, opened, again_ns, is_known=leader is not None)
                return False
            case InFlashback():
                opened.is_held, opened.again_ns = True, again_ns
                return False
            case Moved(regions):
                self.table.learn(regions)
                return not (isinstance(request, To) and self._follow(number, opened, request, again_ns))
            case _:
                return True

    def missed(self, opened: Open[Wanted, Answer]) -> None:
        """Note that the leader of a region does not answer."""
        if isinstance(opened.request, To):
            self.refuted(opened.request.region, opened.target)

    def _follow(self, number: int, opened: Open[Wanted, Answer], request: To, again_ns: int) -> bool:
        """Send a request after its keys; False if they are no longer in one region."""
        homes = {self.table.of(key): None for key in keys_of(request.body)}
        if len(homes) != 1:
            return False
        (home,) = homes
        if home == request.region:  # The store knows less than we do.
            self.refuted(home, opened.target)
        else:
            opened.request = To(home, request.body)
        self._hop(number, opened, again_ns, is_known=home != request.region)
        return True

    def _hop(self, number: int, opened: Open[Wanted, Answer], again_ns: int, *, is_known: bool) -> None:
        """Send a request again: at once if it is known where to, and that was not tried too often."""
        opened.hops += 1
        opened.again_ns = again_ns
        if is_known and opened.hops <= HOPS:
            self._procedures.send(number, opened)


def timestamp() -> Procedure[int]:
    """A new timestamp; 0 if the oracle does not answer."""
    (answer,) = yield Ask((Now(),))
    return answer.timestamp if isinstance(answer, Timestamp) else 0


def call(region: Region, body: Request, patience_ns: int = PATIENCE_NS) -> Procedure[Reply | None]:
    """The answer of a region's leader; None if there was none."""
    (answer,) = yield Ask((To(region, body),), patience_ns)
    return None if isinstance(answer, Timestamp) else answer
