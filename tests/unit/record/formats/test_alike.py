"""Values that are decoded as structs are the same JSON, and the same msgpack, as those decoded as dictionaries."""

import msgspec
import pytest

from harness.core.draw import Draw, Stream
from harness.core.record import Json
from harness.record.formats.alike import decoded_lines, decoder_of, type_like
from tests.amount import FIRST_SEED, count

JSON = msgspec.json.Encoder(order="sorted")
MSGPACK = msgspec.msgpack.Encoder(order="deterministic")
NAMES = ("id", "a", "ab", "b", "é", "漢", "😀", "", "f0", "f1", "id ", "A", "{", "'")
VALUES: tuple[Json, ...] = (None, 1, -1, 0.5, 1 << 60, "x", True, [], {"b": 1, "a": [{}]})
OTHERS: tuple[Json, ...] = (None, "(deleted)", 7, [], [1, {"id": 2}], {})
ODD = ('"', "\\", "\n", "\x00")  # No field of a struct can have such a name.


def drawn(draw: Stream, names: tuple[str, ...]) -> Json:
    return {name: draw.choice(VALUES) for name in names}


def values_of(draw: Stream) -> list[Json]:
    """Rows or keys, of which some may be of other tables, deleted, or without a value."""
    names = tuple(each for each in NAMES if draw.chance(1, 3)) + (draw.choice(ODD),) * draw.chance(1, 8)
    rows: list[Json] = [drawn(draw, names) for _ in range(draw.between(1, 20))]
    for _ in range(draw.below(3)):
        rows.insert(draw.below(len(rows) + 1), draw.choice((*OTHERS, drawn(draw, names[1:]))))
    return [["s.t", row] for row in rows] if draw.chance(1, 2) else rows


def test_structs_are_encoded_as_dictionaries_are() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(300)):
        values = values_of(Draw(seed).stream("alike"))
        lines = JSON.encode_lines(values)
        plain = msgspec.json.Decoder().decode_lines(lines)
        found = decoded_lines(lines, plain[0])
        assert JSON.encode_lines(found) == lines, seed
        assert MSGPACK.encode(found) == MSGPACK.encode(plain), seed


def test_a_struct_refuses_objects_with_other_names() -> None:
    decoder = decoder_of(type_like({"b": 1, "a": None}))
    assert JSON.encode(decoder.decode('{"b": [1.5], "\\u0061": {"z": 0, "y": 1}}')) == b'{"a":{"y":1,"z":0},"b":[1.5]}'
    for text in ('{"b": 1}', '{"a": 1, "b": 2, "c": 3}', "[]", "7"):
        with pytest.raises(msgspec.ValidationError):
            decoder.decode(text)
    assert isinstance(decoder_of(type_like({str(n): n for n in range(1000)})).decode("{}"), dict)
