"""The messages of a change stream, as a server of PostgreSQL 15.18 sent them."""

import struct

import pytest

from clusters.postgres.pgoutput import Alive, Committed, Reader, Row, lsn, status
from harness.core.errors import ProtocolError
from tests.worlds.pgoutput import ALIVE, BEGIN, COMMIT, INSERT, LIST_1, REGISTER_0, WHOLE

# UPDATE register_0 SET key = '"r9"', which sends the old key as well.
MOVE_BEGIN = "77000000000096bc20000000000096bc20000303ce550cee9e42000000000096bcb8000303ce550cc019000002e1"
MOVE = (
    "77000000000096bc20000000000096bc20000303ce550ceeac55000040154b00027400000004227230226e"
    "4e0002740000000422723922740000000137"
)
MOVE_COMMIT = "77000000000096bce8000000000096bce8000303ce550ceeb34300000000000096bcb8000000000096bce8000303ce550cc019"


def read(*messages: str) -> list[Committed | Alive | None]:
    reader = Reader()
    return [reader.read(bytes.fromhex(message)) for message in messages]


def test_a_transaction_is_told_at_its_commit_with_its_rows_in_order() -> None:
    *before, last = read(*WHOLE)
    assert before == [None] * 6
    assert last == Committed(
        0x2DD,
        0x969198,
        (Row("list_1", (b"1", b"1")), Row("list_1", (b"1", b"1\n2")), Row("register_0", (b'"r0"', b"7"))),
    )


def test_the_position_of_a_transaction_is_the_end_of_its_commit_record() -> None:
    """Its begin names where that record begins, and so does the first number of the commit."""
    begin_of_record, end_of_record = 0x969168, 0x969198
    assert begin_of_record.to_bytes(8).hex() in BEGIN
    [committed] = [new for new in read(*WHOLE) if new is not None]
    assert committed.position == end_of_record


def test_a_keep_alive_in_the_middle_of_a_transaction_takes_nothing_from_it() -> None:
    result = read(*WHOLE[:4], ALIVE, *WHOLE[4:])
    assert result[4] == Alive(0x969198, asks=False)
    assert result[-1] == read(*WHOLE)[-1]


def test_a_keep_alive_may_ask_for_an_answer() -> None:
    assert read(ALIVE[:-2] + "01") == [Alive(0x969198, asks=True)]


def test_of_an_update_that_tells_the_old_key_the_new_row_is_taken() -> None:
    assert read(REGISTER_0, MOVE_BEGIN, MOVE, MOVE_COMMIT)[-1] == Committed(
        0x2E1, 0x96BCE8, (Row("register_0", (b'"r9"', b"7")),)
    )


def test_a_table_is_described_once_a_session_and_known_from_then_on() -> None:
    first, *_, again = [new for new in read(*WHOLE, BEGIN, INSERT, COMMIT) if new is not None]
    assert isinstance(first, Committed)
    assert isinstance(again, Committed)
    assert again.rows == first.rows[:1]


def test_nulls_are_told_apart_from_texts() -> None:
    null = INSERT.replace("0002740000000131740000000131", "00026e740000000131")
    committed = read(BEGIN, LIST_1, null, COMMIT)[-1]
    assert isinstance(committed, Committed)
    assert committed.rows[0].columns == (None, b"1")


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ((INSERT,), "outside a transaction"),
        ((BEGIN, INSERT), "never described"),
        ((COMMIT,), "without its begin"),
        ((BEGIN, LIST_1, INSERT[:-2]), "cut short"),
        ((BEGIN[:60],), "cut short"),
        ((ALIVE[:20],), "cut short"),
        (("78" + ALIVE[2:],), "unknown kind"),
        (("",), "unknown kind"),
        ((BEGIN, LIST_1, INSERT.replace("740000000131740000000131", "7574000000013100")), "as b'u'"),
        ((BEGIN, BEGIN[:50] + "44"), "deleted"),
    ],
)
def test_what_the_protocol_does_not_allow_is_refused_by_name(messages: tuple[str, ...], why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        read(*messages)


def test_a_status_confirms_one_position_in_all_three_senses() -> None:
    kind, written, flushed, applied, _, asks = struct.unpack("!cqqqqB", status(0x969198, asks=True))
    assert (kind, written, flushed, applied, asks) == (b"r", 0x969198, 0x969198, 0x969198, 1)
    assert status(1)[-1] == 0


@pytest.mark.parametrize(("position", "text"), [(0, "0/0"), (0x969198, "0/969198"), (0x1F_0000_00A0, "1F/A0")])
def test_positions_are_written_as_the_server_reads_them(position: int, text: str) -> None:
    assert lsn(position) == text
