"""Whatever comes as a message of the stream, the reader tells something or refuses it by name."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from clusters.postgres.pgoutput import Alive, Committed, Reader
from harness.core.errors import ProtocolError
from tests.worlds.pgoutput import ALIVE, WHOLE

MESSAGES = [bytes.fromhex(message) for message in (*WHOLE, ALIVE)]


@given(st.lists(st.one_of(st.binary(max_size=80), st.sampled_from(MESSAGES)), max_size=12))
def test_any_bytes_in_any_order_are_read_or_refused(messages: list[bytes]) -> None:
    reader = Reader()
    for message in messages:
        with suppress(ProtocolError):
            assert isinstance(reader.read(message), Committed | Alive | None)


@given(st.sampled_from(range(len(MESSAGES))), st.data())
def test_a_message_that_is_cut_short_never_gives_a_transaction_of_its_own(place: int, data: st.DataObject) -> None:
    reader = Reader()
    for message in MESSAGES[:place]:
        reader.read(message)
    short = MESSAGES[place][: data.draw(st.integers(0, len(MESSAGES[place]) - 1))]
    with suppress(ProtocolError):
        assert reader.read(short) is None
