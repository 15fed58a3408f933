"""Frames on a TCP connection: four bytes of length (big-endian), and that many bytes of msgpack.

Theory of operation.
1. There is one data connection for each ordered pair of addresses, dialled by the source. Its first frame is
   `Hello`; the other end answers `Welcome`, and only then the source sends messages. A proxy in between accepts
   connections even if nobody listens behind it: so a connection without a Welcome counts as refused.
2. A message is a tagged Struct of the cluster, a `Call` or an `Answer` around one, or a `ProbeFrame`. Together they
   are one union, decoded in one step: on the wire a type is named only by its tag.
3. A frame is refused if it claims more than its limit or does not decode. No memory is reserved for the claimed
   length.
"""

import functools
import importlib
import operator
import struct
import sys
from collections.abc import Sequence
from typing import Any, Final, TypeGuard, TypeVar, cast, get_origin

import msgspec

from harness.core.errors import ScenarioError, SeamarkError
from harness.core.machine import Answer, Call, Message, NodeId

T = TypeVar("T")

DATA_MAX: Final = 16 << 20  # The most bytes of one message.
CONTROL_MAX: Final = 1 << 20  # The most bytes of one frame of the control channel.
HANDSHAKE_MAX: Final = 1 << 10  # The most bytes of Hello and Welcome.
_HEAD: Final = struct.Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()
_COMPACT_AT: Final = 1 << 16


class BadFrame(SeamarkError):
    """The other end sent an invalid frame: close the connection."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first frame of a data connection: the dialling node, its life, and this connection's number to the target."""

    source: NodeId
    life: int = 0
    number: int = 0


class Welcome(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Hello`: from now on messages are accepted."""

    node: NodeId
    life: int


class Credit(msgspec.Struct, frozen=True, tag=True):
    """The number of frames of this connection that the target has handled so far."""

    handled: int


class ProbeFrame(msgspec.Struct, frozen=True, tag="seamark.Probe"):
    """A frame that is not for the machine: its receiver reports it on the control channel."""

    nonce: int


class Splitter:
    """Splits the bytes of a connection into frames."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._start = 0

    def feed(self, received: bytes) -> None:
        """Add received bytes."""
        if self._start >= _COMPACT_AT or self._start == len(self._buffer):
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += received

    def take(self) -> bytes | None:
        """The payload of the next frame, or None until more bytes arrive. Raises BadFrame if it exceeds the limit."""
        start = self._start + _HEAD.size
        if len(self._buffer) < start:
            return None
        (length,) = _HEAD.unpack_from(self._buffer, self._start)
        if length > self.limit:
            raise BadFrame(f"a frame claims {length:,} bytes, and the limit is {self.limit:,}")
        end = start + length
        if len(self._buffer) < end:
            return None
        self._start = end
        return bytes(self._buffer[start:end])


def encode_frame(message: Message, limit: int = DATA_MAX) -> bytes:
    """The frame of a message. Raises ValueError if it exceeds the limit, or msgpack cannot encode it."""
    try:
        payload = _ENCODER.encode(message)
    except (OverflowError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(message).__name__} cannot be sent: {error}") from error
    if len(payload) > limit:
        raise ValueError(f"{type(message).__name__} of {len(payload):,} bytes passes the limit of {limit:,} bytes")
    return _HEAD.pack(len(payload)) + payload


def decode_as(decoder: msgspec.msgpack.Decoder[T], payload: bytes | msgspec.Raw) -> T:
    """The decoded payload. Raises BadFrame if the decoder rejects it."""
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(f"a frame of {len(payload):,} bytes does not decode: {error}") from error


HELLO: Final = msgspec.msgpack.Decoder(Hello)
WELCOME: Final = msgspec.msgpack.Decoder(Welcome)
CREDIT: Final = msgspec.msgpack.Decoder(Credit)


class Codec:
    """The decoder of messages from one cluster's machines and clients; `encode_frame` is its counterpart."""

    def __init__(self, types: Sequence[type[Message]]) -> None:
        # The bodies of `Call` and `Answer` are declared as any message: here they are one of these types.
        body: Any = union_of(types)
        fields = [("number", int), ("body", body)]
        self._call: Any = msgspec.defstruct("Call", fields, tag="Call", frozen=True)
        self._answer: Any = msgspec.defstruct("Answer", fields, tag="Answer", frozen=True)
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(
            union_of((*types, self._call, self._answer, ProbeFrame))
        )
        self._bodies: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(body)

    def decode(self, payload: bytes) -> Message:
        """The message of a frame. Raises BadFrame if it is invalid."""
        message: Any = decode_as(self._decoder, payload)
        kind = type(message)
        if kind is self._call:
            return Call(message.number, message.body)
        if kind is self._answer:
            return Answer(message.number, message.body)
        return cast("Message", message)

    def decode_record(self, payload: bytes | msgspec.Raw) -> Message:
        """A record that a machine wrote to its disk. Raises BadFrame if it is of none of its types."""
        return decode_as(self._bodies, payload)


def union_of(types: Sequence[type[Message]]) -> object:
    """The union of types known only at run time."""
    return functools.reduce(operator.or_, types)


def codec_of(cluster: str) -> Codec:
    """The codec for the messages of a cluster, named as in NodeConfig."""
    name = cluster.partition(":")[0]
    importlib.import_module(name)
    return Codec(wire_types(name))


def wire_types(package: str) -> tuple[type[Message], ...]:
    """All tagged Structs that a package's modules (or the one module of that name) define, in order of their tags.

    A module names the types of shared parts that its machines send or store in `WIRE`, generic ones with their
    parameters. Only imported modules count: those with a cluster's messages are imported with the cluster. Raises
    ScenarioError if two types have the same tag.
    """
    types: dict[str, type[Message]] = {str(kind.__struct_config__.tag): kind for kind in (Call, Answer, ProbeFrame)}
    for name, module in sorted(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            own = [kind for kind in vars(module).values() if _is_tagged(kind) and kind.__module__ == name]
            for kind in (*own, *getattr(module, "WIRE", ())):
                tag = str((get_origin(kind) or kind).__struct_config__.tag)
                other = types.setdefault(tag, kind)
                if other is not kind:
                    raise ScenarioError(f"{kind} and {other} have the same tag {tag!r}: no wire can tell them apart")
    return tuple(kind for _, kind in sorted(types.items()) if kind not in (Call, Answer, ProbeFrame))


def _is_tagged(value: object) -> TypeGuard[type[Message]]:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__struct_config__.tag is not None
