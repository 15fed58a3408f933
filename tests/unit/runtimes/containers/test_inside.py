import struct

import pytest

from harness.runtimes.containers.engine.inside import joined


def frame(stream: int, content: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(content)) + content


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", b""),
        (frame(1, b"one "), b"one "),
        (frame(1, b"one ") + frame(2, b"two ") + frame(1, b"three"), b"one two three"),
        (frame(1, b""), b""),
        (frame(1, b"one ") + frame(1, b"two")[:-1], b"one tw"),
        (frame(1, b"one ") + frame(1, b"two")[:5], b"one "),
    ],
)
def test_what_both_streams_say_is_told_in_order_and_as_far_as_it_goes(answer: bytes, said: bytes) -> None:
    assert joined(answer) == said
