"""A history that is read by row groups, by several threads: the same as read at once; and what its readers were."""

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from checkers.columns.facts import Facts
from checkers.history.around import NOTHING_AROUND, read_around
from checkers.history.streams import (
    DELIVERED,
    EventsFile,
    SourceFiles,
    StreamLog,
    merged,
    placed,
    placement_by,
    read_deliveries,
    read_writes,
    stream_logs,
)
from checkers.history.version_ranks import read_ranked, reading
from harness.core.columns import NEVER, Deliveries, SourceWrites
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, MicroOp, Outcome, Record, StreamEvent
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.damage import flip_bit
from tests.worlds.streams.cases import contract

F = TypeVar("F")


def operation(index: int, *mops: MicroOp, outcome: Outcome = "ok", position: int | None) -> list[Record]:
    """One that is answered before the next begins."""
    asked = tuple(msgspec.structs.replace(mop, value=None) if mop.f == "r" else mop for mop in mops)
    return [
        Invoke(index, index, index, index, "txn", None, asked),
        Complete(index, index, outcome, None, mops, commit_ts=position),
    ]


def append(key: str, value: int) -> MicroOp:
    return MicroOp("append", key, value)


def read(key: str, *found: int) -> MicroOp:
    return MicroOp("r", key, [*found])


def history(folder: Path, *, read_at: int | None = 5) -> Path:
    """Five operations, of which the second and the last only read, and what one subscriber received of them."""
    records: list[Record] = [
        *operation(0, append("x", 1), append("y", 1), position=1),
        *operation(1, read("x", 1), read("y", 1), position=read_at),
        *operation(2, append("x", 2), read("y", 1), outcome="info", position=None),
        *operation(3, append("y", 2), read("x", 1, 2), position=3),
        *operation(4, read("y", 1, 2), read("x", 1, 2), outcome="info", position=None),
    ]
    events = [("open", {}, 0), ("row", {"key": "x", "value": 1}, 1), ("row", {"key": "y", "value": 1}, 1)]
    events += [("row", {"key": "x", "value": 2}, 2), ("watermark", {}, 2), ("row", {"key": "y", "value": 2}, 3)]
    for number, (kind, what, position) in enumerate(events):
        records.append(StreamEvent(100 + number, "s1", 1, number, kind, position=position, **what))  # type: ignore[arg-type]  # The fields of an event, by name.
    write_history(records, folder)
    return folder


def regrouped(folder: Path, ops_a_group: int) -> None:
    """Write the files again in row groups of so many operations, or events."""
    tables = {name: pq.ParquetFile(folder / f"{name}.parquet").read() for name in ("ops", "mops", "events")}
    op = np.array(tables["mops"]["op"].to_pylist())
    for name, table in tables.items():
        cuts = np.arange(0, len(table) + ops_a_group, ops_a_group)
        if name == "mops":
            cuts = np.searchsorted(op, np.arange(0, op.max() + 1 + ops_a_group, ops_a_group))
        with pq.ParquetWriter(folder / f"{name}.parquet", table.schema, write_page_checksum=True) as file:
            for begin, end in pairwise(cuts.tolist()):
                file.write_table(table.slice(begin, end - begin), row_group_size=max(1, end - begin))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("ops_a_group", [1, 2, 3])
def test_row_groups_read_side_by_side_are_the_whole(tmp_path: Path, ops_a_group: int, threads: int) -> None:
    folder = history(tmp_path / "history")
    log = stream_logs(folder, contract())[0]
    known = merged([placement_by(log, folder)])
    writes = read_ranked(folder, placed(read_writes(folder), known))
    assert writes.version.tolist() == [0, 0, 1, NEVER]
    assert writes.position.tolist() == [1, 1, 2, 3]
    expected = [columns_of(read_deliveries(log)), columns_of(writes)]
    regrouped(folder, ops_a_group)
    for told in (known, None):  # The only log tells itself what all tell.
        with reading(log, folder, told, threads=threads) as found:
            assert [columns_of(each) for each in (found.deliveries(), found.writes)] == expected
            assert found.readers.position.tolist() == [5, NEVER]


def test_logs_that_share_read_their_source_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = history(tmp_path / "history")
    regrouped(folder, 2)
    [log] = stream_logs(folder, contract())
    opened: list[Path] = []

    def begin(files: SourceFiles, source: Path, *, has_times: bool = True) -> None:
        opened.append(source)
        start(files, source, has_times=has_times)

    start = SourceFiles.__init__
    monkeypatch.setattr(SourceFiles, "__init__", begin)
    alone, together = placement_by(log, folder), Facts()
    with reading(log, folder, alone) as found:
        expected = (columns_of(found.deliveries()), columns_of(found.writes), found.readers.position.tolist())
    assert len(opened) == 2
    opened.clear()
    placements = [placement_by(log, folder, shared=together) for _ in range(3)]
    assert (merged(placements).op.tolist(), len(opened)) == (alone.op.tolist(), 1)
    with reading(log, folder, alone, shared=together) as one, reading(log, folder, alone, shared=together) as other:
        assert one.writes is other.writes
        for each in (other, one):
            assert (columns_of(each.deliveries()), columns_of(each.writes), each.readers.position.tolist()) == expected
    assert len(opened) == 2
    with reading(log, folder, alone, has_times=False, shared=together) as timeless:
        assert timeless.writes.invoke_seq.tolist() == [NEVER] * 4  # Another question, and not the answer before.


def test_a_check_that_clears_the_shared_facts_takes_nothing_from_one_that_has_begun(tmp_path: Path) -> None:
    """Two checks of one stream share a reading: the first ends, and clears, just after the second got its source."""
    folder = history(tmp_path / "history")
    [log] = stream_logs(folder, contract())
    alone = placement_by(log, folder)

    class Cleared(Facts):
        is_first = True

        def of(self, name: Hashable, make: Callable[[], F]) -> F:
            found = super().of(name, make)
            if self.is_first:
                self.is_first = False
                with reading(log, folder, alone, shared=self):
                    pass
                self.clear()
            return found

    with reading(log, folder, alone) as found:
        expected = columns_of(found.writes)
    with reading(log, folder, alone, shared=Cleared()) as found:
        assert columns_of(found.writes) == expected


def test_the_only_log_tells_of_which_partition_keys_are_though_no_position_is_asked_for(tmp_path: Path) -> None:
    records = operation(0, append("x", 1), append("y", 1), position=1)
    for number, (key, span) in enumerate([("x", "p"), ("y", "q")]):
        records.append(StreamEvent(100 + number, "s1", 1, number, "row", key=key, value=1, position=1, span=span))
    write_history(records, tmp_path / "history")
    log = stream_logs(tmp_path / "history", contract())[0]
    for told in (merged([placement_by(log, tmp_path / "history")]), None):
        with reading(log, tmp_path / "history", told) as found:
            assert found.writes.span.tolist() == [0, 1]


def columns_of(table: Deliveries | SourceWrites) -> dict[str, list[int]]:
    return {name: getattr(table, name).tolist() for name in table.__struct_fields__}


def test_readers_are_the_operations_that_wrote_nothing_and_an_unclear_one_has_no_end(tmp_path: Path) -> None:
    folder = history(tmp_path / "history")
    log = stream_logs(folder, contract())[0]
    with reading(log, folder, placement_by(log, folder)) as found:
        readers = found.readers
    assert readers.position.tolist() == [5, NEVER]
    assert readers.invoke_seq.tolist() == [2, 8]
    assert readers.complete_seq.tolist() == [3, NEVER]
    resting = contract(wm_idle="rests", is_position_global=True)
    assert read_around(folder, readers, resting, {}, ()).readers is readers
    ticking = contract(wm_idle="advances", is_position_global=True)
    assert read_around(folder, readers, ticking, {}, ()).readers is NOTHING_AROUND.readers


def test_operations_that_wrote_nothing_do_not_count_where_they_are_given_no_positions(tmp_path: Path) -> None:
    folder = history(tmp_path / "history", read_at=None)
    log = stream_logs(folder, contract())[0]
    with reading(log, folder, placement_by(log, folder)) as found:
        assert found.readers is NOTHING_AROUND.readers
    with reading(log, folder, placement_by(log, folder), has_times=False) as found:
        assert found.readers is NOTHING_AROUND.readers


@pytest.mark.parametrize(("name", "column"), [("ops", "invoke_seq"), ("mops", "key"), ("events", "key")])
def test_a_flipped_bit_in_any_file_is_damage(tmp_path: Path, name: str, column: str) -> None:
    folder = history(tmp_path / "history")
    log = stream_logs(folder, contract())[0]
    known = placement_by(log, folder)
    flip_bit(folder / f"{name}.parquet", column)
    with pytest.raises(HistoryError, match="cannot be read"), reading(log, folder, known) as found:
        found.deliveries()


@pytest.mark.parametrize("names", [DELIVERED, ("seq", "key")])
def test_logs_that_share_read_the_events_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]
) -> None:
    """Events of ten subscribers alternate: a log that is read by itself has the rows of all read."""
    who = [f"s{number}" for number in range(10)]
    records: list[Record] = [
        StreamEvent(at, who[at * 7 % 10], 1, at // 10, "row", key=f"k{at % 3}", value=at, position=at)
        for at in range(100)
    ]
    write_history(records, tmp_path / "history")
    logs = stream_logs(tmp_path / "history", contract())
    opened: list[StreamLog] = []

    def begin(file: EventsFile, log: StreamLog, names: Sequence[str] = DELIVERED) -> None:
        opened.append(log)
        start(file, log, names)

    start = EventsFile.__init__
    monkeypatch.setattr(EventsFile, "__init__", begin)
    alone = [columns_of(read_deliveries(log, names)) for log in logs]
    assert [log["seq"] for log in alone] == [[at for at in range(100) if at * 7 % 10 == who] for who in range(10)]
    assert len(opened) == 10
    for shared, times in ((Facts(), 1), (copy(Facts()), 10)):  # Another process has a copy.
        opened.clear()
        found = [columns_of(read_deliveries(log, names, shared=shared)) for log in logs]
        assert [{**log, "subscriber": each["subscriber"]} for log, each in zip(alone, found, strict=True)] == found
        assert len(opened) == times
