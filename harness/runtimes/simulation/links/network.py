"""The client's end of the network: calls and answers over links in memory.

A call is definitely lost only if its connection was refused: the request never left. A time-out, or a broken
connection, says nothing about the node's actions.
"""

import asyncio
from dataclasses import dataclass

from harness.core.machine import Answer, Call, Message, NodeId
from harness.core.seams import CallFailed
from harness.runtimes.simulation.links.datagram import Datagrams
from harness.runtimes.simulation.links.fifo import Fifo, Unread
from harness.runtimes.simulation.links.links import Links
from harness.runtimes.simulation.loop import VirtualLoop


@dataclass(eq=False, slots=True)
class _Waiting:
    """A call without an answer yet."""

    node: NodeId
    answer: asyncio.Future[Message]
    pipe: Fifo | Datagrams

    def fail(self, reason: str) -> None:
        if not self.answer.done():
            was_refused = isinstance(self.pipe, Fifo) and self.pipe.was_refused
            self.answer.set_exception(CallFailed(reason, is_definite=was_refused))


class ClientNetwork:
    """The `Network` of the simulation."""

    def __init__(self, links: Links, loop: VirtualLoop) -> None:
        self._links, self._loop = links, loop

    def connect(self, address: str) -> "ClientConnection":
        """A connection under that address. Raises ScenarioError if the address is in use."""
        return ClientConnection(NodeId(address), self._links, self._loop)


class ClientConnection:
    """The `Connection` of one client."""

    def __init__(self, address: NodeId, links: Links, loop: VirtualLoop) -> None:
        self._links, self._loop = links, loop
        self._port = links.attach(address, self)
        self._waiting: dict[int, _Waiting] = {}
        self._next_number = 0
        self._is_closed = False

    async def call(self, node: NodeId, message: Message, timeout_ns: int) -> Message:
        """The answer to `message`. Raises CallFailed when the link breaks, the timeout expires, or this is closed."""
        if self._is_closed:
            raise CallFailed("the connection is closed", is_definite=True)
        number = self._next_number
        self._next_number += 1
        pipe = self._port.send(node, Call(number, message))
        waiting = self._waiting[number] = _Waiting(node, self._loop.create_future(), pipe)
        self._loop.schedule(self._loop.now_ns + timeout_ns, self._expire, number)
        try:
            return await waiting.answer
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """Give up all calls and links."""
        if not self._is_closed:
            self._is_closed = True
            self._links.detach(self._port)
            for waiting in self._waiting.values():
                waiting.fail("the connection was closed")

    def receive(self, pipe: Unread, message: Message) -> None:
        """Take a message from a node: an answer to a waiting call; anything else is ignored."""
        if isinstance(message, Answer):
            waiting = self._waiting.get(message.number)
            if waiting is not None and waiting.node == pipe.source and not waiting.answer.done():
                waiting.answer.set_result(message.body)
        pipe.consumed()

    def closed(self, peer: NodeId, ended: tuple[Fifo, ...]) -> None:
        """Note that the link to or from a node has ended: its answers may be lost."""
        for waiting in self._waiting.values():
            if waiting.node == peer:
                waiting.fail(f"the connection with {peer} has ended")
        for pipe in ended:
            pipe.forget()

    def drained(self, peer: NodeId) -> None:
        """Do nothing: a client's calls wait for their answers, not for buffer space."""

    def _expire(self, number: int) -> None:
        if number in self._waiting:
            self._waiting[number].fail("timed out")
