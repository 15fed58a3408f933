"""All data connections of one node: the possible targets, and the effect of a connection's end on the machine.

Theory of operation.
1. There is one connection for each ordered pair of nodes, dialled by its source on the first send. A client dials too,
   and gets answers on its own connection.
2. `Closed(peer)` comes once for each end, before anything of a newer connection of that peer, and after everything
   received on the old one. If both directions end together, there is one `Closed`.
3. A pipe that has ended remains, and loses messages sent to it, until the machine has handled its `Closed`. A refused
   dial is reported as `Closed` after a pause that grows with each attempt.
4. A peer's life only grows: a greeting of an older life, or of an older connection of the same life, is too late and
   is refused; and when a newer life appears, the connections of the older one have ended.
"""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from harness.core.draw import Stream
from harness.core.machine import Message, NodeId
from harness.runtimes.host.control import LinkCounters
from harness.runtimes.host.frames import BadFrame, Codec, Hello, ProbeFrame, Welcome, encode_frame
from harness.runtimes.host.pipes import BUFFER, WINDOW, Dialled, Incoming, Pipe, data_socket

_CONNECT_S: Final = 1.0  # A proxy is one hop away: it answers at once, or packets are being dropped.
_PAUSE_MS_MIN: Final = 10
_PAUSE_MS_MAX: Final = 500
_PAUSE_DOUBLINGS: Final = 6
_TOGETHER_S: Final = 0.02
_CLIENT: Final = "client"


class Unread(Protocol):
    """The source of a message, which is notified when the message has been handled."""

    def consumed(self) -> None: ...


class End(Protocol):
    """The node as its links see it."""

    def receive(self, source: NodeId, pipe: Unread, message: Message) -> None:
        """Take a message that arrived. The end calls `pipe.consumed()` once it has been handled."""

    def closed(self, peer: NodeId, ended: "tuple[Pipe, ...]") -> None:
        """Note that connections with `peer` have ended. The end calls `forget` for each pipe once that is handled."""

    def drained(self, peer: NodeId) -> None:
        """Note that the buffer to `peer` is half empty again."""

    def probe_seen(self, source: NodeId, nonce: int) -> None:
        """Note that a probe arrived."""

    def probe_failed(self, to: NodeId, nonce: int, reason: str) -> None:
        """Note that a probe was not sent."""


@dataclass(slots=True)
class _Count:
    sent: int = 0
    received: int = 0
    opened: int = 0
    closed: int = 0
    refused: int = 0


class Links:
    """All connections of a node. `stream` draws the pause after a refused dial."""

    def __init__(
        self, hello: Hello, peers: Mapping[NodeId, tuple[str, int]], end: End, codec: Codec, stream: Stream
    ) -> None:
        self.codec = codec
        self.bad_frames = 0
        self._hello, self._node, self._peers, self._end, self._stream = hello, hello.source, peers, end, stream
        self._pipes: dict[NodeId, Pipe] = {}
        self._incoming: dict[NodeId, Incoming] = {}
        self._dials: dict[NodeId, int] = {}  # The number of dials to each peer.
        self._failures: dict[NodeId, int] = {}  # Dials refused in a row.
        self._greetings: dict[NodeId, tuple[int, int]] = {}  # The latest life of each peer, and its connection.
        self._ended: dict[NodeId, list[Pipe]] = {}  # Ended pipes that the machine will be notified of.
        self._written: list[Pipe] = []  # Pipes that `flush` has to look at.
        self._counts: dict[str, _Count] = {name: _Count() for name in (*peers, _CLIENT)}
        self._dialling: set[asyncio.Task[None]] = set()  # Strong references, as the loop does not hold its tasks.
        self._loopback = _Loopback(Pipe(hello.source, self, has_credit=False), end)

    async def listen(self, host: str, port: int) -> None:
        """Accept connections from now on."""
        listening = data_socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        await asyncio.get_running_loop().create_server(lambda: Incoming(self), sock=listening, backlog=1024)

    # Calls from the machine.

    def send(self, to: NodeId, message: Message) -> None:
        """Add a message to its pipe; `flush` sends it. Raises ValueError if it cannot be sent."""
        if to == self._node:
            self._loopback.send(message)
            return
        pipe = self._pipes.get(to) or self._dial(to)
        if not pipe.is_open:
            return
        if pipe.push(encode_frame(message)):
            self._count(to).sent += 1
            self._written.append(pipe)
        else:
            self._close(pipe, "its buffer was full")

    def queued(self, to: NodeId, to_come: int) -> int:
        """The number of messages in the buffer to `to`, once `to_come` more are sent."""
        if to == self._node:
            return self._loopback.queued(to_come)
        pipe = self._pipes.get(to)
        return pipe.queued(to_come) if pipe is not None else max(0, to_come - WINDOW)

    def flush(self) -> None:
        """Send the buffered messages."""
        for pipe in self._written:
            pipe.flush()
        self._written.clear()

    def forget(self, pipe: Pipe) -> None:
        """Forget a pipe whose end the machine handles now: the next message opens another."""
        if pipe is self._loopback.pipe:
            self._loopback = _Loopback(Pipe(self._node, self, has_credit=False), self._end)
        elif self._pipes.get(pipe.target) is pipe:
            del self._pipes[pipe.target]
            newer = self._incoming.get(pipe.target)
            if newer is not None and newer.answers is not None:
                self._pipes[pipe.target] = newer.answers

    def probe(self, to: NodeId, nonce: int) -> None:
        """Send a probe on the path of messages."""
        if to not in self._peers:
            self._end.probe_failed(to, nonce, "there is no such peer")
            return
        pipe = self._pipes.get(to) or self._dial(to)
        if not pipe.is_open:
            self._end.probe_failed(to, nonce, "the connection has ended")
        elif not pipe.push(encode_frame(ProbeFrame(nonce))):
            self._end.probe_failed(to, nonce, "the buffer is full")
        else:
            pipe.probes.append(nonce)
            pipe.flush()

    def counters(self) -> dict[str, LinkCounters]:
        """The counts for each peer, and for all clients."""
        queued = dict.fromkeys(self._counts, 0)
        for to, pipe in self._pipes.items():
            queued[to if to in self._peers else _CLIENT] += pipe.queued(0)
        return {
            name: LinkCounters(each.sent, each.received, each.opened, each.closed, each.refused, queued[name])
            for name, each in self._counts.items()
        }

    # Calls from connections: `Closer`.

    def welcomed(self, pipe: Pipe, welcome: Welcome) -> None:
        if welcome.node != pipe.target:
            raise BadFrame(f"{welcome.node} answers in the place of {pipe.target}")
        life, number = self._greetings.get(pipe.target, (welcome.life, -1))
        if welcome.life < life:
            raise BadFrame(f"an earlier life of {pipe.target} said welcome")
        self._greetings[pipe.target] = (welcome.life, number if welcome.life == life else -1)
        incoming = self._incoming.get(pipe.target)
        if incoming is not None and incoming.life < welcome.life:
            self._end_incoming(incoming)
        self._failures.pop(pipe.target, None)
        self._count(pipe.target).opened += 1

    def pipe_ended(self, pipe: Pipe, reason: str) -> None:
        self._close(pipe, reason)

    def drained(self, peer: NodeId) -> None:
        self._end.drained(peer)

    def greeted(self, incoming: Incoming, hello: Hello) -> None:
        source, answers = hello.source, None
        if source in self._peers:
            life, number = self._greetings.get(source, (0, -1))
            if (hello.life, hello.number) <= (life, number):
                raise BadFrame(f"connection {hello.number} of life {hello.life} of {source} comes too late")
            self._greetings[source] = (hello.life, hello.number)
            pipe = self._pipes.get(source)
            if pipe is not None and pipe.is_open and pipe.target_life is not None and pipe.target_life < hello.life:
                self._close(pipe, "the peer has started again")
        else:
            answers = Pipe(source, self, has_credit=False)
        older = self._incoming.get(source)
        if older is not None:
            self._end_incoming(older)
        self._tell_closed(source)
        self._incoming[source] = incoming
        self._count(source).opened += 1
        if answers is not None:
            self._pipes.setdefault(source, answers)
        incoming.welcome(hello, Welcome(self._node, self._hello.life), answers)

    def receive(self, incoming: Incoming, message: Message) -> None:
        self._count(incoming.source).received += 1
        self._end.receive(incoming.source, incoming, message)

    def probe_seen(self, source: NodeId, nonce: int) -> None:
        self._end.probe_seen(source, nonce)

    def incoming_ended(self, incoming: Incoming, *, is_bad: bool) -> None:
        self.bad_frames += is_bad
        if incoming.source:
            self._end_incoming(incoming)

    # The beginning and end of connections.

    def _dial(self, to: NodeId) -> Pipe:
        pipe = self._pipes[to] = Pipe(to, self)
        if to not in self._peers:
            self._refuse(pipe, "the client has gone")
        else:
            self._dials[to] = self._dials.get(to, 0) + 1
            hello = Hello(self._node, self._hello.life, self._dials[to])
            task = asyncio.get_running_loop().create_task(self._connect(pipe, hello))
            self._dialling.add(task)
            task.add_done_callback(self._dialling.discard)
        return pipe

    async def _connect(self, pipe: Pipe, hello: Hello) -> None:
        loop, dialling = asyncio.get_running_loop(), data_socket()
        try:
            async with asyncio.timeout(_CONNECT_S):
                await loop.sock_connect(dialling, self._peers[pipe.target])
            await loop.create_connection(lambda: Dialled(pipe, hello, self), sock=dialling)
        except OSError as error:  # TimeoutError is one.
            dialling.close()
            if pipe.is_open:
                self._refuse(pipe, str(error) or "nobody accepts")

    def _refuse(self, pipe: Pipe, reason: str) -> None:
        """Lose messages sent to that pipe, and report its end after a pause."""
        self._count(pipe.target).refused += 1
        failures = self._failures.get(pipe.target, 0)
        if pipe.target in self._peers:
            self._failures[pipe.target] = failures + 1
        pause_ms = min(_PAUSE_MS_MIN << min(failures, _PAUSE_DOUBLINGS), _PAUSE_MS_MAX)
        drawn_ms = self._stream.between(pause_ms // 2, pause_ms)
        self._stop(pipe, reason)
        asyncio.get_running_loop().call_later(drawn_ms / 1000, self._will_tell, pipe.target, pipe)

    def _close(self, pipe: Pipe, reason: str) -> None:
        """Handle the end of a pipe: after a failed handshake, it counts as refused."""
        if pipe.target_life is None:
            self._refuse(pipe, reason)
        else:
            self._count(pipe.target).closed += 1
            self._stop(pipe, reason)
            self._will_tell(pipe.target, pipe)

    def _stop(self, pipe: Pipe, reason: str) -> None:
        pipe.close()
        for nonce in pipe.probes:
            self._end.probe_failed(pipe.target, nonce, reason)
        pipe.probes.clear()

    def _end_incoming(self, incoming: Incoming) -> None:
        """Handle the end of an incoming connection; a client's answers end with it."""
        incoming.end()
        if self._incoming.get(incoming.source) is incoming:
            del self._incoming[incoming.source]
        self._count(incoming.source).closed += 1
        answers = incoming.answers
        if answers is not None:
            answers.close()
        self._will_tell(incoming.source, answers)

    def _will_tell(self, peer: NodeId, pipe: Pipe | None) -> None:
        """Notify the machine a moment later, so that both directions to a dead peer give one `Closed`."""
        if peer not in self._ended:
            self._ended[peer] = []
            asyncio.get_running_loop().call_later(_TOGETHER_S, self._tell_closed, peer)
        if pipe is not None:
            self._ended[peer].append(pipe)

    def _tell_closed(self, peer: NodeId) -> None:
        ended = self._ended.pop(peer, None)
        if ended is not None:
            self._end.closed(peer, tuple(ended))

    def _count(self, peer: NodeId) -> _Count:
        return self._counts.get(peer) or self._counts[_CLIENT]


class _Loopback:
    """The messages of a node to itself: not a connection, but with the same bounds and the same end."""

    def __init__(self, pipe: Pipe, end: End) -> None:
        self.pipe = pipe  # This pipe only records whether the loopback is open.
        self._node, self._end = pipe.target, end
        self._unread = 0

    def send(self, message: Message) -> None:
        """Queue a message for the node."""
        if not self.pipe.is_open:
            return
        if self._unread >= WINDOW + BUFFER:
            self.pipe.close()
            self._end.closed(self._node, (self.pipe,))
            return
        self._unread += 1
        self._end.receive(self._node, self, message)

    def queued(self, to_come: int) -> int:
        """The number of waiting messages beyond the first WINDOW."""
        return max(0, (self._unread if self.pipe.is_open else 0) + to_come - WINDOW)

    def consumed(self) -> None:
        """Note that one message has been handled."""
        self._unread -= 1
