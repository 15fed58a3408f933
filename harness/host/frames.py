"""Frames on a TCP connection: four bytes of length (big-endian), and so many bytes of msgpack.

Theory of operation.
1. Of data connections there is one for each ordered pair of addresses, dialled by the source. Its first frame is
   `Hello`; the other end answers `Welcome`, and only then the source sends messages. A proxy in between accepts also
   when nobody is behind it: so a connection without a Welcome counts as refused.
2. A message is a tagged Struct of the cluster, a `Call` or an `Answer` around one, or a `ProbeFrame`. All of them make
   one union, which is decoded in one step: no type is named on the wire but by its tag.
3. A frame is refused if it claims more than its limit or does not decode. Nothing is reserved for what was claimed.
"""

import functools
import importlib
import operator
import struct
import sys
from collections.abc import Sequence
from typing import Any, Final, TypeGuard, TypeVar, cast

import msgspec

from harness.core.errors import ScenarioError, SeamarkError
from harness.core.machine import Answer, Call, Message, NodeId

T = TypeVar("T")

DATA_MAX: Final = 16 << 20  # Bytes of one message.
CONTROL_MAX: Final = 1 << 20  # Bytes of one frame of the control channel.
HANDSHAKE_MAX: Final = 1 << 10  # Bytes of Hello and Welcome.
_HEAD: Final = struct.Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()
_COMPACT_AT: Final = 1 << 16


class BadFrame(SeamarkError):
    """The other end sent what is no frame of ours: the connection is to be closed."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first frame of a data connection: who dials, in which life, and its how manieth connection to you this is."""

    source: NodeId
    life: int = 0
    number: int = 0


class Welcome(msgspec.Struct, frozen=True, tag=True):
    """The answer to it: from now on messages are taken."""

    node: NodeId
    life: int


class Credit(msgspec.Struct, frozen=True, tag=True):
    """How many frames of this connection the target has handled so far."""

    handled: int


class ProbeFrame(msgspec.Struct, frozen=True, tag="seamark.Probe"):
    """Not for the machine: whoever receives it reports it on the control channel."""

    nonce: int


class Splitter:
    """Cuts what arrives on a connection into frames."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._start = 0

    def feed(self, received: bytes) -> None:
        """Add what has arrived."""
        if self._start >= _COMPACT_AT or self._start == len(self._buffer):
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += received

    def take(self) -> bytes | None:
        """The payload of the next frame, or None until more has arrived. Raises BadFrame if it passes the limit."""
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
    """The frame of a message. Raises ValueError if it passes the limit, or holds what msgpack cannot."""
    try:
        payload = _ENCODER.encode(message)
    except (OverflowError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(message).__name__} cannot be sent: {error}") from error
    if len(payload) > limit:
        raise ValueError(f"{type(message).__name__} of {len(payload):,} bytes passes the limit of {limit:,} bytes")
    return _HEAD.pack(len(payload)) + payload


def decode_as(decoder: msgspec.msgpack.Decoder[T], payload: bytes | msgspec.Raw) -> T:
    """What the payload holds. Raises BadFrame if that is not what the decoder decodes."""
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(f"a frame of {len(payload):,} bytes does not decode: {error}") from error


HELLO: Final = msgspec.msgpack.Decoder(Hello)
WELCOME: Final = msgspec.msgpack.Decoder(Welcome)
CREDIT: Final = msgspec.msgpack.Decoder(Credit)


class Codec:
    """Decodes what machines of one cluster, and its clients, send; `encode_frame` is its other half."""

    def __init__(self, types: Sequence[type[Message]]) -> None:
        # `Call` and `Answer` say of their body only that it is a message: here it is one of these types.
        body: Any = union_of(types)
        fields = [("number", int), ("body", body)]
        self._call: Any = msgspec.defstruct("Call", fields, tag="Call", frozen=True)
        self._answer: Any = msgspec.defstruct("Answer", fields, tag="Answer", frozen=True)
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(
            union_of((*types, self._call, self._answer, ProbeFrame))
        )
        self._bodies: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(body)

    def decode(self, payload: bytes) -> Message:
        """The message of a frame. Raises BadFrame if there is none."""
        message: Any = decode_as(self._decoder, payload)
        kind = type(message)
        if kind is self._call:
            return Call(message.number, message.body)
        if kind is self._answer:
            return Answer(message.number, message.body)
        return cast("Message", message)

    def decode_record(self, payload: bytes | msgspec.Raw) -> Message:
        """What a machine had written to its disk. Raises BadFrame if that is none of its types."""
        return decode_as(self._bodies, payload)


def union_of(types: Sequence[type[Message]]) -> object:
    """The union of types that are known only at run time."""
    return functools.reduce(operator.or_, types)


def codec_of(cluster: str) -> Codec:
    """The codec for the messages of a cluster, which is named as in NodeConfig."""
    name = cluster.partition(":")[0]
    importlib.import_module(name)
    return Codec(wire_types(name))


def wire_types(package: str) -> tuple[type[Message], ...]:
    """All tagged Structs that the modules of a package (or the one module of that name) define, in order of their tags.

    Only modules that have been imported count: those that machines speak with are imported with their cluster. Raises
    ScenarioError if two types have the same tag.
    """
    types: dict[str, type[Message]] = {str(kind.__struct_config__.tag): kind for kind in (Call, Answer, ProbeFrame)}
    for name, module in sorted(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for kind in vars(module).values():
                if _is_tagged(kind) and kind.__module__ == name:
                    tag = str(kind.__struct_config__.tag)
                    other = types.setdefault(tag, kind)
                    if other is not kind:
                        raise ScenarioError(
                            f"{kind} and {other} have the same tag {tag!r}: no wire can tell them apart"
                        )
    return tuple(kind for _, kind in sorted(types.items()) if kind not in (Call, Answer, ProbeFrame))


def _is_tagged(value: object) -> TypeGuard[type[Message]]:
    return isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__struct_config__.tag is not None
