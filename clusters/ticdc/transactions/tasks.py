"""Procedures that exchange several messages, each written as one generator that yields its requests.

Theory of operation. A procedure yields `Ask` and gets the answers, in the order of the requests; or `Sleep`. A request
to a region goes to the store that led it last; "not leader", a broken connection or silence sends it on to another one,
until its patience ends: then the answer is None. To a region that a flashback has closed it is sent again. So a request
may take effect more than once, and late. Where regions have changed it follows its keys; if these are in several
regions now, or it names none, the answer is `Moved`.
1. All is driven by messages and by one timer: the same messages give the same steps.
2. A crash ends all procedures; nothing of them is on disk.
"""

from collections import deque
from collections.abc import Generator
from typing import NamedTuple, TypeVar

from clusters.ticdc.oracle.messages import Timestamp, Tso
from clusters.ticdc.regions.messages import InFlashback, Moved, NotLeader, Region, Reply, Request, ToRegion, keys_of
from clusters.ticdc.regions.table import RegionTable
from clusters.ticdc.shape import MS, ORACLE, STORES
from clusters.ticdc.site import Site
from harness.core.machine import NodeId

TIMER = "tasks"
SWEEP_NS = 5 * MS
SILENCE_NS = 150 * MS  # After so long without an answer a request is sent again.
PAUSE_NS = 20 * MS  # Between two attempts, if all stores refused.
PATIENCE_NS = 3000 * MS
HOPS = 2  # How often a hint is followed at once: two stores may take each other for the leader.


class Now(NamedTuple):
    """A request for a timestamp; the answer is a `Timestamp`."""


class To(NamedTuple):
    """A request to the leader of a region."""

    region: Region
    body: Request


class At(NamedTuple):
    """A request to a store's replica of a region, whether it leads or not."""

    store: NodeId
    region: Region
    body: Request


class Ask(NamedTuple):
    """Yielded by a procedure: it waits for the answers to these requests."""

    requests: tuple[Now | To | At, ...]
    patience_ns: int = PATIENCE_NS


class Sleep(NamedTuple):
    """Yielded by a procedure: it waits for that time."""

    duration_ns: int


Answers = tuple[Timestamp | Reply | None, ...]
Result = TypeVar("Result")
Procedure = Generator[Ask | Sleep, Answers, Result]


class _Waiting:
    """A procedure that waits for answers."""

    __slots__ = ("answers", "missing", "procedure")

    def __init__(self, procedure: Procedure[None], count: int) -> None:
        self.procedure = procedure
        self.answers: list[Timestamp | Reply | None] = [None] * count
        self.missing = count


class _Open:
    """A request without an answer: its procedure and place there, and when it is sent again and given up."""

    __slots__ = ("again_ns", "end_ns", "hops", "is_held", "place", "request", "target", "waiting")

    def __init__(self, waiting: _Waiting, place: int, request: Now | To | At, end_ns: int) -> None:
        self.waiting, self.place, self.request, self.end_ns = waiting, place, request, end_ns
        self.target = ORACLE
        self.again_ns = 0
        self.hops = 0
        self.is_held = False  # The leader has answered, and waits for the end of a flashback.


class Tasks:
    """The procedures that run on one node."""

    def __init__(self, site: Site) -> None:
        self.table = RegionTable()
        self._site = site
        self._open: dict[int, _Open] = {}
        self._last_number = 0
        self._asleep: deque[tuple[int, Procedure[None]]] = deque()
        self._leaders: dict[int, NodeId] = {}
        self._is_ticking = False

    def leader(self, region: Region) -> NodeId:
        """The store that probably leads a region."""
        return self._leaders.get(region.id, STORES[region.id % len(STORES)])

    def refuted(self, region: Region, store: NodeId, leader: NodeId | None = None) -> None:
        """Note that a store does not lead a region, or does not answer; `leader` is the one that does, if known."""
        if self.leader(region) == store:
            self._leaders[region.id] = leader or STORES[(STORES.index(store) + 1) % len(STORES)]

    def run(self, procedure: Procedure[None]) -> None:
        """Start a procedure."""
        self._resume(procedure, None)

    def answered(self, number: int, answer: Timestamp | Reply) -> None:
        """Hand an answer to the procedure that waits for it; drop it if none does."""
        opened = self._open.get(number)
        if opened is None:
            return
        if isinstance(answer, NotLeader) and isinstance(opened.request, To):
            self.refuted(opened.request.region, opened.target, answer.leader)
            opened.hops += 1
            opened.again_ns = self._site.now_ns() + PAUSE_NS
            if answer.leader and opened.hops <= HOPS:
                self._send(number, opened)
            return
        if isinstance(answer, InFlashback):
            opened.is_held, opened.again_ns = True, self._site.now_ns() + PAUSE_NS
            return
        if isinstance(answer, Moved):
            self.table.learn(answer.regions)
            if isinstance(opened.request, To) and self._follow(number, opened, opened.request):
                return
        self._finish(number, answer)

    def _follow(self, number: int, opened: _Open, request: To) -> bool:
        """Send a request after its keys; False if they are no longer in one region."""
        homes = {self.table.of(key): None for key in keys_of(request.body)}
        if len(homes) != 1:
            return False
        (home,) = homes
        opened.hops += 1
        opened.again_ns = self._site.now_ns() + PAUSE_NS
        if home == request.region:  # The store knows less than we do.
            self.refuted(home, opened.target)
        else:
            opened.request = To(home, request.body)
            if opened.hops <= HOPS:
                self._send(number, opened)
        return True

    def closed(self, peer: NodeId) -> None:
        """Send again the requests that a broken connection may have lost."""
        for opened in self._open.values():
            if opened.target == peer:
                if isinstance(opened.request, To):
                    self.refuted(opened.request.region, peer)
                opened.again_ns = self._site.now_ns()

    def tick(self) -> None:
        """Resume procedures that have slept enough; send again, or give up, requests without an answer."""
        now_ns = self._site.now_ns()
        for number, opened in tuple(self._open.items()):
            if number not in self._open:
                continue
            if now_ns >= opened.end_ns:
                self._finish(number, None)
            elif now_ns >= opened.again_ns:
                if isinstance(opened.request, To) and opened.again_ns and not opened.is_held:
                    self.refuted(opened.request.region, opened.target)
                self._send(number, opened)
        for _ in range(len(self._asleep)):
            wake_ns, procedure = self._asleep.popleft()
            if now_ns >= wake_ns:
                self._resume(procedure, ())
            else:
                self._asleep.append((wake_ns, procedure))
        self._is_ticking = False
        self._keep_ticking()

    def _keep_ticking(self) -> None:
        if not self._is_ticking and (self._open or self._asleep):
            self._is_ticking = True
            self._site.context.set_timer(TIMER, SWEEP_NS)

    def _resume(self, procedure: Procedure[None], answers: Answers | None) -> None:
        """Let a procedure go on until it waits again."""
        try:
            wanted = next(procedure) if answers is None else procedure.send(answers)
        except StopIteration:
            return
        now_ns = self._site.now_ns()
        match wanted:
            case Sleep(duration_ns):
                self._asleep.append((now_ns + duration_ns, procedure))
            case Ask(requests, patience_ns):
                waiting = _Waiting(procedure, len(requests))
                for place, request in enumerate(requests):
                    self._last_number += 1
                    opened = self._open[self._last_number] = _Open(waiting, place, request, now_ns + patience_ns)
                    self._send(self._last_number, opened)
        self._keep_ticking()

    def _send(self, number: int, opened: _Open) -> None:
        opened.again_ns, opened.is_held = self._site.now_ns() + SILENCE_NS, False
        request = opened.request
        if isinstance(request, At):
            opened.target = request.store
            self._site.send(opened.target, ToRegion(number, request.region.id, request.region.version, request.body))
        elif isinstance(request, To):
            opened.target = self.leader(request.region)
            self._site.send(opened.target, ToRegion(number, request.region.id, request.region.version, request.body))
        else:
            self._site.send(ORACLE, Tso(number))

    def _finish(self, number: int, answer: Timestamp | Reply | None) -> None:
        opened = self._open.pop(number)
        waiting = opened.waiting
        waiting.answers[opened.place] = answer
        waiting.missing -= 1
        if waiting.missing == 0:
            self._resume(waiting.procedure, tuple(waiting.answers))


def timestamp() -> Procedure[int]:
    """A new timestamp; 0 if the oracle does not answer."""
    (answer,) = yield Ask((Now(),))
    return answer.timestamp if isinstance(answer, Timestamp) else 0


def call(region: Region, body: Request, patience_ns: int = PATIENCE_NS) -> Procedure[Reply | None]:
    """The answer of a region's leader; None if there was none."""
    (answer,) = yield Ask((To(region, body),), patience_ns)
    return None if isinstance(answer, Timestamp) else answer
