"""What the client makes of a transaction, and what the subscriber makes of a response."""

import msgspec
import pytest

from clusters.etcd import rows
from clusters.etcd.messages import MESSAGES, message
from clusters.etcd.subscriber import deliveries
from clusters.servers.values import appended, elements, encoded, held, overwritten
from harness.core.record import MicroOp


def test_reads_see_the_transaction_s_own_appends_in_order_and_no_later_ones() -> None:
    mops = (MicroOp("r", 1), MicroOp("append", 1, 7), MicroOp("r", 1), MicroOp("append", 1, 8), MicroOp("r", 2))
    done, after = appended(mops, {1: [5], 2: []})
    assert [mop.value for mop in done] == [[5], 7, [5, 7], 8, []]
    assert after == {1: [5, 7, 8], 2: []}


def test_reads_of_registers_see_the_transaction_s_own_last_write() -> None:
    mops = (MicroOp("w", "a", 1), MicroOp("r", "a"), MicroOp("w", "a", 2), MicroOp("r", "b"), MicroOp("r", "a"))
    assert [mop.value for mop in overwritten(mops, {"a": 0, "b": None})] == [1, 1, 2, None, 2]


def test_a_comparison_with_revision_zero_is_sent() -> None:
    sent = message("Compare", key=b"k", result=0, target=2, mod_revision=0).SerializeToString()
    assert b"\x30\x00" in sent  # Field 6, a varint: 0.
    assert MESSAGES["Compare"].FromString(sent).HasField("mod_revision")


def test_each_revision_of_a_response_is_a_unit_with_its_number_of_rows() -> None:
    def event(key: object, value: object, revision: int, kind: int = 0) -> object:
        kv = message("KeyValue", key=rows.key_of(key), value=encoded(value), mod_revision=revision)  # type: ignore[arg-type]  # Json.
        return message("Event", type=kind, kv=kv)

    found = list(deliveries([event(1, [4, 5], 3), event("a", 9, 3), event(2, [6], 4), event(2, [6], 5, 1)]))
    assert [(row.position, row.ordinal, row.unit_rows, row.key, row.value) for row in found] == [
        (3, 0, 2, 1, 5),
        (3, 1, 2, "a", 9),
        (4, 0, 1, 2, 6),
    ]


def test_keys_of_lists_registers_and_cells_are_apart_and_only_cells_are_not_streamed() -> None:
    assert len({rows.key_of(1), rows.key_of("1"), rows.cell_of(1)}) == 3
    for key in (1, "1", "weird/\x00key"):
        assert rows.STREAMED <= rows.key_of(key) < rows.STREAMED_END
        assert rows.shown(rows.key_of(key), msgspec.json.encode([3] if key == 1 else 3))[0] == key
    assert not rows.STREAMED <= rows.cell_of(1) < rows.STREAMED_END


@pytest.mark.parametrize("damaged", [b"", b"[1,2", b"\xff\xfe", b"\x00[1]"])
def test_bytes_that_no_client_stored_are_an_observation_that_no_client_wrote(damaged: bytes) -> None:
    told = f"damaged: {damaged.hex()}"
    assert (elements(damaged), held(damaged)) == ([told], told)
    assert rows.shown(rows.key_of(1), damaged) == (1, told)
    assert rows.shown(b"s/l/" + damaged, b"[5]") == (told, 5)
    assert elements(b"7") == [7]  # A number where a list was: what is shown is shown.
