"""The two ends of data connections over TCP: the source's end is a `Pipe`, the target's an `Incoming`.

Theory of operation.
1. A pipe is open from the first send on. Frames wait in its buffer until the target has welcomed it, while WINDOW of
   them are in transit or unhandled, and whenever TCP takes no more; a send into a full buffer ends it. It ends once,
   and later messages to it are lost.
2. An incoming connection hands at most WINDOW messages to the machine before one of them is handled; then it reads no
   more, TCP fills up, and frames wait on the other side. From time to time it reports on the same connection how many
   frames it has handled: else the buffers of two kernels and a proxy would long hide a slow target from the source.
3. An incoming connection delivers nothing more once its end is known.
"""

import asyncio
import socket
from collections import deque
from typing import Final, Protocol

from harness.core.machine import Message, NodeId
from harness.runtimes.host.frames import (
    CREDIT,
    DATA_MAX,
    HANDSHAKE_MAX,
    HELLO,
    WELCOME,
    BadFrame,
    Codec,
    Credit,
    Hello,
    ProbeFrame,
    Splitter,
    Welcome,
    decode_as,
    encode_frame,
)

WINDOW: Final = 128
BUFFER: Final = 1024
SOCKET_BYTES: Final = 1 << 16  # The kernel's buffer in each direction, approximately.
HANDSHAKE_S: Final = 4.0
_WRITE_FRAMES: Final = 64  # The most bytes in one write.
_CREDIT_FRAMES: Final = WINDOW // 4  # The target reports after this many frames.
_TRANSPORT_BYTES: Final = 1 << 14  # Above this many bytes a transport takes no more.


class Closer(Protocol):
    """The receiver of connection events."""

    codec: Codec

    def welcomed(self, pipe: "Pipe", welcome: Welcome) -> None:
        """Note that messages may be sent. Raises BadFrame if they may not."""

    def pipe_ended(self, pipe: "Pipe", reason: str) -> None:
        """Note that the other side, or the network, ended the pipe."""

    def drained(self, peer: NodeId) -> None:
        """Note that a buffer that was more than half full is half empty."""

    def greeted(self, incoming: "Incoming", hello: Hello) -> None:
        """Note a new connection. Raises BadFrame if it is refused."""

    def receive(self, incoming: "Incoming", message: Message) -> None:
        """Pass a message to the machine."""

    def probe_seen(self, source: NodeId, nonce: int) -> None:
        """Note that a probe arrived."""

    def incoming_ended(self, incoming: "Incoming", *, is_bad: bool) -> None:
        """Note that the other side, or the network, ended the connection; or that it sent an invalid frame."""


def data_socket() -> socket.socket:
    """A socket with small buffers, so that a slow receiver is soon noticed. What a listening one accepts has them."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setblocking(False)
    return made


class Pipe:
    """The outgoing messages to `target`: frames in order, each at most once."""

    def __init__(self, target: NodeId, closer: Closer, *, has_credit: bool = True) -> None:
        """Create a pipe. `has_credit`: the target reports what it has handled.

        A client does not: its calls await answers.
        """
        self.target = target
        self._has_credit = has_credit
        self._flown = 0  # Frames that have left the buffer,
        self._handled = 0  # and those of them that the target has handled, by its own report.
        self.is_open = True
        self.target_life: int | None = None  # None until it is welcomed.
        self.probes: list[int] = []  # Nonces of the probes in the buffer.
        self._closer = closer
        self._buffer: deque[bytes] = deque()
        self._transport: asyncio.Transport | None = None
        self._takes = False  # True if the transport accepts data.
        self._was_full = False

    def push(self, frame: bytes) -> bool:
        """Add a frame to the buffer; returns False if that is full."""
        if len(self._buffer) >= BUFFER:
            self.flush()
            if len(self._buffer) >= BUFFER:
                return False
        self._buffer.append(frame)
        return True

    def waiting(self) -> int:
        """The number of frames in the buffer."""
        return len(self._buffer)

    def queued(self, to_come: int) -> int:
        """The number of frames in the buffer once `to_come` more have been sent.

        At most WINDOW of those count as leaving at once, even if the connection has ended: a machine that sends until
        the buffer is full must stop there as well. Its messages are then lost.
        """
        is_clear = (self._takes and not self._buffer) or not self.is_open
        room = self._room() if is_clear else 0
        return len(self._buffer) + max(0, to_come - room)

    def attach(self, transport: asyncio.Transport) -> None:
        """Set the pipe's connection; nothing is sent before `welcome`."""
        transport.set_write_buffer_limits(high=_TRANSPORT_BYTES)
        self._transport = transport

    def welcome(self, life: int) -> None:
        """Begin to send the buffered frames."""
        self.target_life = life
        self._takes = True
        self.flush()

    def credit(self, handled: int) -> None:
        """Note the number of frames that the target has handled."""
        self._handled = handled
        self.flush()

    def flush(self) -> None:
        """Pass as many frames to TCP as it and the target accept."""
        buffer, transport = self._buffer, self._transport
        while buffer and self._takes and transport is not None and not transport.is_closing():
            count = min(len(buffer), _WRITE_FRAMES, self._room())
            if count == 0:
                break
            self._flown += count
            transport.write(buffer.popleft() if count == 1 else b"".join([buffer.popleft() for _ in range(count)]))
        if not buffer:
            self.probes.clear()
        if len(buffer) > BUFFER // 2:
            self._was_full = True
        elif self._was_full and self.is_open:
            self._was_full = False
            self._closer.drained(self.target)

    def _room(self) -> int:
        """The number of frames that may leave now."""
        if not (self._has_credit and self.is_open):
            return WINDOW
        # The target reports every _CREDIT_FRAMES frames, so up to one fewer may be handled but not reported.
        return WINDOW + _CREDIT_FRAMES - 1 - (self._flown - self._handled)

    def pause(self) -> None:
        """Stop writing: TCP takes no more."""
        self._takes = False

    def resume(self) -> None:
        """Resume writing: TCP takes frames again."""
        if self.is_open and self.target_life is not None:
            self._takes = True
            self.flush()

    def close(self) -> None:
        """Accept no more frames; data already in the kernel may still arrive."""
        self.is_open = self._takes = False
        self._buffer.clear()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None


class Dialled(asyncio.Protocol):
    """The connection of a pipe, on which the target sends Welcome, and then how much it has handled."""

    _transport: asyncio.Transport
    _too_late: asyncio.TimerHandle

    def __init__(self, pipe: Pipe, hello: Hello, closer: Closer) -> None:
        self._pipe, self._hello, self._closer = pipe, hello, closer
        self._splitter = Splitter(HANDSHAKE_MAX)
        self._reason = "no welcome came"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._too_late = asyncio.get_running_loop().call_later(HANDSHAKE_S, transport.abort)
        if self._pipe.is_open:
            self._pipe.attach(transport)
            transport.write(encode_frame(self._hello))
        else:  # The buffer overflowed meanwhile.
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)
        try:
            while self._pipe.is_open and (payload := self._splitter.take()) is not None:
                if self._pipe.target_life is not None:
                    self._pipe.credit(decode_as(CREDIT, payload).handled)
                    continue
                welcome = decode_as(WELCOME, payload)
                self._closer.welcomed(self._pipe, welcome)
                self._too_late.cancel()
                self._reason = "the connection has ended"
                self._pipe.welcome(welcome.life)
        except BadFrame as error:
            self._reason = str(error)
            self._transport.abort()

    def pause_writing(self) -> None:
        self._pipe.pause()

    def resume_writing(self) -> None:
        self._pipe.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_late.cancel()
        if self._pipe.is_open:
            self._closer.pipe_ended(self._pipe, self._reason)


class Incoming(asyncio.Protocol):
    """A connection dialled by another party. A client gets its answers on it, by `answers`."""

    _transport: asyncio.Transport
    _too_late: asyncio.TimerHandle

    def __init__(self, closer: Closer) -> None:
        self.source = NodeId("")  # Empty until it is known.
        self.life = 0
        self.is_ended = False
        self.answers: Pipe | None = None
        self._closer, self._codec = closer, closer.codec
        self._splitter = Splitter(HANDSHAKE_MAX)
        self._unread = 0
        self._handled = 0  # Frames handled, and those reported to the source.
        self._credited = 0
        self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._too_late = asyncio.get_running_loop().call_later(HANDSHAKE_S, self._transport.abort)

    def welcome(self, hello: Hello, welcome: Welcome, answers: Pipe | None) -> None:
        """Accept messages of that source from now on."""
        self.source, self.life, self.answers = hello.source, hello.life, answers
        self._splitter.limit = DATA_MAX
        self._too_late.cancel()
        self._transport.write(encode_frame(welcome))
        if answers is not None:
            answers.attach(self._transport)
            answers.welcome(hello.life)

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)
        self._hand_on()

    def consumed(self) -> None:
        """Note that the machine has handled one of the messages."""
        self._unread -= 1
        self._count()
        if self._is_full and self._unread <= WINDOW // 2 and not self.is_ended:
            self._is_full = False
            self._hand_on()
            if not self._is_full:
                self._transport.resume_reading()

    def end(self) -> None:
        """Deliver nothing more."""
        self.is_ended = True
        self._transport.abort()

    def pause_writing(self) -> None:
        if self.answers is not None:
            self.answers.pause()

    def resume_writing(self) -> None:
        if self.answers is not None:
            self.answers.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_late.cancel()
        if not self.is_ended:
            self.is_ended = True
            self._closer.incoming_ended(self, is_bad=False)

    def _hand_on(self) -> None:
        try:
            while not self.is_ended and (payload := self._splitter.take()) is not None:
                self._take(payload)
                if self._unread >= WINDOW:
                    self._is_full = True
                    self._transport.pause_reading()
                    return
        except BadFrame:
            self.end()
            self._closer.incoming_ended(self, is_bad=True)

    def _take(self, payload: bytes) -> None:
        if not self.source:
            self._closer.greeted(self, decode_as(HELLO, payload))
            return
        message = self._codec.decode(payload)
        if isinstance(message, ProbeFrame):
            self._count()
            self._closer.probe_seen(self.source, message.nonce)
        else:
            self._unread += 1
            self._closer.receive(self, message)

    def _count(self) -> None:
        self._handled += 1
        if (
            self._handled - self._credited >= _CREDIT_FRAMES
            and self.answers is None
            and not self._transport.is_closing()
        ):
            self._credited = self._handled
            self._transport.write(encode_frame(Credit(self._handled)))
