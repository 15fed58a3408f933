"""Where requests go: to the node that served their place last, and from there to the next one, until one answers.

`Elsewhere`, a broken connection or silence sends a request on to the next node that may serve its place; `Later` brings
it again after a pause.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from msgspec import Struct

from clusters.parts.host import Host
from clusters.parts.procedures import Ask, Open, Sleep
from harness.core.machine import Message, NodeId

MS = 1_000_000
PAUSE_NS = 20 * MS  # Between two attempts, if the one that was asked refused.
HOPS = 2  # How often a hint is followed at once: two nodes may take each other for the right one.

Request = tuple[str, Message]  # The place, and what is asked there.
Answers = tuple[Message | None, ...]
Result = TypeVar("Result")
Procedure = Generator[Ask[Request] | Sleep, Answers, Result]


class Elsewhere(Struct, frozen=True, tag=True):
    """The answer of a node that does not serve the place; `node` is the one that does, if known."""

    node: NodeId | None = None


class Later(Struct, frozen=True, tag=True):
    """The answer of a node that cannot serve the request yet."""


class Routes:
    """A node's knowledge of who serves which place.

    `nodes` are those that may; `wrap` puts a request with its number into a message.
    """

    def __init__(
        self, site: Host, nodes: Callable[[str], tuple[NodeId, ...]], wrap: Callable[[int, Message], Message]
    ) -> None:
        self._site, self._nodes, self._wrap = site, nodes, wrap
        self._found: dict[str, NodeId] = {}

    def send(self, number: int, request: Request) -> NodeId:
        """Send a request to the node that probably serves its place."""
        place, body = request
        target = self._of(place)
        self._site.send(target, self._wrap(number, body))
        return target

    def is_final(self, number: int, opened: Open[Request, Message], answer: Message) -> bool:
        """False for `Elsewhere` and `Later`: the request will be sent again, or has been sent where the hint says."""
        match answer:
            case Elsewhere(node):
                self._refuted(opened, node)
                opened.hops += 1
                opened.again_ns = self._site.now_ns() + PAUSE_NS
                if node is not None and opened.hops <= HOPS:
                    opened.target = self.send(number, opened.request)
                return False
            case Later():
                opened.is_held, opened.again_ns = True, self._site.now_ns() + PAUSE_NS
                return False
            case _:
                return True

    def missed(self, opened: Open[Request, Message]) -> None:
        """Note that the target of a request does not answer."""
        self._refuted(opened, None)

    def _of(self, place: str) -> NodeId:
        return self._found.get(place) or self._nodes(place)[0]

    def _refuted(self, opened: Open[Request, Message], hint: NodeId | None) -> None:
        """Take the next node for the place, or the hint, unless another one was found meanwhile."""
        place = opened.request[0]
        if self._of(place) == opened.target:
            nodes = self._nodes(place)
            self._found[place] = hint or nodes[(nodes.index(opened.target) + 1) % len(nodes)]
