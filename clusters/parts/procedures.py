"""Procedures that exchange several messages, each written as one generator that yields its requests.

Theory of operation. A procedure yields `Ask` and gets the answers, in the order of the requests; or `Sleep`. A router
sends each request, and decides which answers are final. Without a final answer a request is sent again, perhaps to
another node, until its patience ends: then the answer is None. So a request may take effect more than once, and late.
1. All is driven by messages and by one timer: the same messages give the same steps.
2. A crash ends all procedures; nothing of them is on disk.
"""

from collections import deque
from collections.abc import Generator
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from clusters.parts.host import Host
from harness.core.machine import NodeId

TIMER = "tasks"
_MS = 1_000_000
SWEEP_NS = 5 * _MS
SILENCE_NS = 150 * _MS  # After so long without an answer a request is sent again.
PATIENCE_NS = 3000 * _MS

R = TypeVar("R")  # A request, as procedures yield it;
A = TypeVar("A")  # and an answer.


class Ask(Struct, Generic[R], frozen=True):
    """Yielded by a procedure: it waits for the answers to these requests."""

    requests: tuple[R, ...]
    patience_ns: int = PATIENCE_NS


class Sleep(Struct, frozen=True):
    """Yielded by a procedure: it waits for that time."""

    duration_ns: int


Running = Generator[Ask[R] | Sleep, tuple[A | None, ...], None]  # A procedure that was started.


class _Waiting(Generic[R, A]):
    """A procedure that waits for answers."""

    __slots__ = ("answers", "missing", "procedure")

    def __init__(self, procedure: Running[R, A], count: int) -> None:
        self.procedure = procedure
        self.answers: list[A | None] = [None] * count
        self.missing = count


class Open(Generic[R, A]):
    """A request without a final answer: its procedure and place there, and when it is sent again and given up.

    A router may change `request`, and puts off the next attempt by `again_ns`.
    """

    __slots__ = ("again_ns", "end_ns", "hops", "is_held", "place", "request", "target", "waiting")

    def __init__(self, waiting: _Waiting[R, A], place: int, request: R, end_ns: int) -> None:
        self.waiting, self.place, self.request, self.end_ns = waiting, place, request, end_ns
        self.target: NodeId | None = None
        self.again_ns = 0
        self.hops = 0  # How often it was sent on at once.
        self.is_held = False  # The right node has answered, and is not ready yet.


class Router(Protocol[R, A]):
    """A node's knowledge of where its requests go."""

    def send(self, number: int, request: R) -> NodeId:
        """Send a request, under that number, and return the node that got it."""

    def is_final(self, number: int, opened: Open[R, A], answer: A) -> bool:
        """True if a request has its answer; if not, it has been sent on, or will be sent again at `again_ns`."""

    def missed(self, opened: Open[R, A]) -> None:
        """Note that the target of a request does not answer."""


class Procedures(Generic[R, A]):
    """The procedures that run on one node. Requests have numbers above `first`.

    An answer to an earlier life of the node may still come. Where that would do harm, no life may use a number again:
    the time of the run in nanoseconds is such a `first`.
    """

    def __init__(self, site: Host, router: Router[R, A], first: int = 0) -> None:
        self._site, self._router = site, router
        self._open: dict[int, Open[R, A]] = {}
        self._last_number = first
        self._asleep: deque[tuple[int, Running[R, A]]] = deque()
        self._is_ticking = False

    def run(self, procedure: Running[R, A]) -> None:
        """Start a procedure."""
        self._resume(procedure, None)

    def answered(self, number: int, answer: A) -> None:
        """Hand an answer to the procedure that waits for it; drop it if none does."""
        opened = self._open.get(number)
        if opened is not None and self._router.is_final(number, opened, answer):
            self._finish(number, answer)

    def closed(self, peer: NodeId) -> None:
        """Send again the requests that a broken connection may have lost."""
        for opened in self._open.values():
            if opened.target == peer:
                self._router.missed(opened)
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
                if not opened.is_held:
                    self._router.missed(opened)
                self.send(number, opened)
        for _ in range(len(self._asleep)):
            wake_ns, procedure = self._asleep.popleft()
            if now_ns >= wake_ns:
                self._resume(procedure, ())
            else:
                self._asleep.append((wake_ns, procedure))
        self._is_ticking = False
        self._keep_ticking()

    def send(self, number: int, opened: Open[R, A]) -> None:
        """Send a request now."""
        opened.again_ns, opened.is_held = self._site.now_ns() + SILENCE_NS, False
        opened.target = self._router.send(number, opened.request)

    def _keep_ticking(self) -> None:
        if not self._is_ticking and (self._open or self._asleep):
            self._is_ticking = True
            self._site.context.set_timer(TIMER, SWEEP_NS)

    def _resume(self, procedure: Running[R, A], answers: tuple[A | None, ...] | None) -> None:
        """Let a procedure go on until it waits again."""
        try:
            wanted = next(procedure) if answers is None else procedure.send(answers)
        except StopIteration:
            return
        now_ns = self._site.now_ns()
        if isinstance(wanted, Sleep):
            self._asleep.append((now_ns + wanted.duration_ns, procedure))
        else:
            waiting: _Waiting[R, A] = _Waiting(procedure, len(wanted.requests))
            end_ns = now_ns + wanted.patience_ns
            for place, request in enumerate(wanted.requests):
                self._last_number += 1
                opened = self._open[self._last_number] = Open(waiting, place, request, end_ns)
                self.send(self._last_number, opened)
        self._keep_ticking()

    def _finish(self, number: int, answer: A | None) -> None:
        opened = self._open.pop(number)
        waiting = opened.waiting
        waiting.answers[opened.place] = answer
        waiting.missing -= 1
        if waiting.missing == 0:
            self._resume(waiting.procedure, tuple(waiting.answers))
