"""S23 from a history's files: which operations have a position, who ran them, and until when they may have acted."""

from pathlib import Path

import pytest

from checkers.history.streams import read_writes
from checkers.streams.rules.logs.real_time_order import read_placed, real_time_order
from harness.core.columns import NEVER
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, MicroOp, Outcome, Record
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.damage import flip_bit
from tests.worlds.streams.cases import contract


def operation(index: int, process: int, *keys: str, outcome: Outcome = "ok", position: int | None) -> list[Record]:
    """One that is answered before the next begins."""
    mops = tuple(MicroOp("append", key, 10 * index + n) for n, key in enumerate(keys))
    return [
        Invoke(index, index, index, process, "txn", None, mops),
        Complete(index, index, outcome, None, mops, commit_ts=position),
    ]


def test_placed_are_the_operations_that_have_a_position_each_once(tmp_path: Path) -> None:
    records = [
        *operation(0, 7, "x", "y", position=4),
        *operation(1, 8, "x", position=None),
        *operation(2, 9, "y", outcome="info", position=5),
        *operation(3, 7, "x", position=6),
        *operation(4, 7, "x", outcome="fail", position=7),  # It wrote nothing.
    ]
    write_history(records, tmp_path)
    found = read_placed(tmp_path, read_writes(tmp_path))
    assert found.op.tolist() == [0, 2, 3]
    assert found.process.tolist() == [7, 9, 7]
    assert found.position.tolist() == [4, 5, 6]
    assert found.invoke_seq.tolist() == [0, 4, 6]
    assert found.complete_seq.tolist() == [1, NEVER, 7]  # Whoever got no answer may act later.


def test_an_unclear_operation_had_not_ended_when_a_lower_position_was_given(tmp_path: Path) -> None:
    records = [*operation(0, 7, "x", outcome="info", position=5), *operation(1, 8, "x", position=4)]
    write_history(records, tmp_path)
    found = real_time_order(read_placed(tmp_path, read_writes(tmp_path)), contract(realtime="follows"))
    assert (found.first, found.witnesses) == (None, 0)


def test_a_witness_begins_after_an_operation_of_another_process_had_ended(tmp_path: Path) -> None:
    records = [
        *operation(0, 7, "x", position=4),
        *operation(1, 7, "x", position=5),  # Only its own process has ended anything.
        *operation(2, 8, "x", position=6),
        *operation(3, 7, "x", position=7),
    ]
    write_history(records, tmp_path)
    found = real_time_order(read_placed(tmp_path, read_writes(tmp_path)), contract(realtime="follows"))
    assert (found.first, found.witnesses) == (None, 2)


def test_a_flipped_bit_in_a_page_is_damage(tmp_path: Path) -> None:
    write_history([*operation(0, 7, "x", position=4), *operation(1, 8, "x", position=5)], tmp_path)
    writes = read_writes(tmp_path)
    flip_bit(tmp_path / "ops.parquet", "process")
    with pytest.raises(HistoryError, match="cannot be read"):
        read_placed(tmp_path, writes)
