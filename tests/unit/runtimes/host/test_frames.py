"""Frames and the codec: what is sent arrives as it was, and what is no frame is refused."""

import struct
import sys
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from clusters.parts.cas_store import Cas, Write
from clusters.parts.fenced_log import Stored
from clusters.parts.log_messages import AppendEntries, Entry, Vote
from clusters.parts.routing import Elsewhere
from clusters.pravega.messages import Asked, Told
from clusters.ticdc.rows.messages import CommitKeys
from harness.core.errors import ScenarioError
from harness.core.machine import Answer, Call, Message, NodeId
from harness.runtimes.host.frames import (
    DATA_MAX,
    HELLO,
    BadFrame,
    Codec,
    Hello,
    ProbeFrame,
    Splitter,
    codec_of,
    decode_as,
    encode_frame,
    wire_types,
)
from tests.unit.runtimes.host.scripted import Note

CODECS = {name: codec_of(f"clusters.{name}:Cluster") for name in ("tutorial", "ndb")}
TYPES = [
    pytest.param(CODECS[name], kind, id=f"{name}-{kind.__name__}")
    for name in CODECS
    for kind in wire_types(f"clusters.{name}")
]
INTEGERS = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)

PLAIN: dict[type, st.SearchStrategy[Any]] = {
    inspect.IntType: INTEGERS,
    inspect.StrType: st.text(max_size=8),
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
    inspect.AnyType: JSON,
}


def values_of(info: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of that type."""
    if type(info) in PLAIN:
        return PLAIN[type(info)]
    match info:
        case inspect.LiteralType(values):
            return st.sampled_from(values)
        case inspect.UnionType(types):
            return st.one_of([values_of(each) for each in types])
        case inspect.ListType(item_type=item):
            return st.lists(values_of(item), max_size=3)
        case inspect.VarTupleType(item_type=item):
            return st.lists(values_of(item), max_size=3).map(tuple)
        case inspect.TupleType(item_types):
            return st.tuples(*[values_of(each) for each in item_types])
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values_of(key), values_of(value), max_size=3)
        case inspect.StructType(cls, fields):
            return st.builds(cls, **{field.name: values_of(field.type) for field in fields})
        case _:
            raise NotImplementedError(info)


@pytest.mark.parametrize(("codec", "kind"), TYPES)
def test_every_message_of_every_cluster_arrives_as_it_was_sent(codec: Codec, kind: type[Message]) -> None:
    @settings(max_examples=15)
    @given(values_of(inspect.type_info(kind)))
    def law(message: Message) -> None:
        for sent in (message, Call(3, message), Answer(4, message)):
            arrived = codec.decode(encode_frame(sent)[4:])
            assert arrived == sent
            assert type(arrived) is type(sent)
        assert codec.decode_record(msgspec.msgpack.encode(message)) == message

    law()


def test_a_probe_is_told_from_messages() -> None:
    assert CODECS["ndb"].decode(encode_frame(ProbeFrame(5))[4:]) == ProbeFrame(5)


def test_clusters_have_all_their_messages_on_the_wire() -> None:
    assert {"View", "Call"} & {kind.__name__ for kind in wire_types("clusters.tutorial")} == {"View"}
    assert {"Row", "Prepare", "HeartBeat"} <= {kind.__name__ for kind in wire_types("clusters.ndb")}


def test_messages_of_a_shared_part_are_decoded_with_their_commands() -> None:
    codec, entry = codec_of("clusters.ticdc:Cluster"), Entry(1, CommitKeys(5, 6, (7,)))
    for record in (Vote(3, NodeId("k1")), entry):
        assert codec.decode_record(encode_frame(record)[4:]) == record
    message = AppendEntries(1, 1, 0, 0, (entry,), 0, 5)
    assert codec.decode(encode_frame(message)[4:]) == message


def test_records_of_the_parts_that_pravega_shares_are_decoded() -> None:
    codec = codec_of("clusters.pravega:Cluster")
    for record in (Stored("0", (b"command",)), Write("stream/state", 3, None, 2), Told(7, Elsewhere(NodeId("s1")))):
        assert codec.decode_record(encode_frame(record)[4:]) == record
    asked = Asked(4, Cas("stream/state", 3, b"value"))
    assert codec.decode(encode_frame(asked)[4:]) == asked


def test_two_messages_of_one_tag_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("twins.one", "twins.two"):
        module = ModuleType(name)
        vars(module)["Same"] = msgspec.defstruct("Same", [("number", int)], tag=True, frozen=True, module=name)
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ScenarioError, match="same tag 'Same'"):
        wire_types("twins")


def test_a_message_may_not_take_the_name_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("impostor")
    vars(module)["Call"] = msgspec.defstruct("Call", [("number", int)], tag=True, frozen=True, module="impostor")
    monkeypatch.setitem(sys.modules, "impostor", module)
    with pytest.raises(ScenarioError, match="same tag 'Call'"):
        wire_types("impostor")


@given(st.lists(st.binary(max_size=30), max_size=10), st.lists(st.integers(1, 20), max_size=30))
def test_frames_are_the_same_however_they_are_cut(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(struct.pack(">I", len(payload)) + payload for payload in payloads)
    splitter, taken = Splitter(30), []
    while stream:
        size = cuts.pop() if cuts else len(stream)
        splitter.feed(stream[:size])
        stream = stream[size:]
        while (payload := splitter.take()) is not None:
            taken.append(payload)
    assert taken == payloads


def test_a_frame_of_the_limit_passes_and_one_byte_more_does_not() -> None:
    splitter = Splitter(10)
    splitter.feed(struct.pack(">I", 10) + b"x" * 10 + struct.pack(">I", 11))
    assert splitter.take() == b"x" * 10
    with pytest.raises(BadFrame, match="claims 11 bytes, and the limit is 10"):
        splitter.take()


def test_a_message_over_the_limit_is_not_sent() -> None:
    with pytest.raises(ValueError, match=r"Note of [0-9,]+ bytes passes the limit of 16,777,216 bytes"):
        encode_frame(Note(1, "x" * DATA_MAX))


def test_a_number_that_msgpack_cannot_hold_is_not_sent() -> None:
    with pytest.raises(ValueError, match="Note cannot be sent"):
        encode_frame(Note(2**64))


@given(st.binary(max_size=200))
def test_no_garbage_gets_through(garbage: bytes) -> None:
    for decode in (CODECS["ndb"].decode, lambda payload: decode_as(HELLO, payload)):
        try:
            message = decode(garbage)
        except BadFrame:
            continue
        assert isinstance(message, msgspec.Struct)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",  # No msgpack at all.
        b"\x91" * 5000,  # Nested without end.
        b"\xdd\xff\xff\xff\xff",  # Claims an array of four thousand million.
        b"\xc6\xff\xff\xff\xff",  # Claims so many bytes.
        b"\x81\xa4type\xa4Nope",
        b"\x81\xa4type\xa2\xff\xff",  # No UTF-8.
        msgspec.msgpack.encode({"type": "Call", "number": 1, "body": {"type": "Call", "number": 1, "body": None}}),
        msgspec.msgpack.encode(Hello(NodeId("a"), 1)),
    ],
)
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises(BadFrame):
        CODECS["tutorial"].decode(payload)
