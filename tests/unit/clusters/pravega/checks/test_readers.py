"""The deliveries of a group beside the stream: what is missing, out of order, twice, or wrong."""

from pathlib import Path

import pytest

from clusters.pravega.checks.readers import check
from clusters.pravega.shape import SPACE
from harness.core.record import Complete, Invoke, StreamEvent
from tests.unit.clusters.pravega.checks.shown import LEFT, TWO, Shown, found, plain
from tests.worlds.run_cases import MS

ONE = [(0, SPACE, 2, 1)]


def stream() -> Shown:
    """Two events in the first segment, one behind it."""
    run = Shown()
    run.epochs((0, TWO), (1, ONE))
    run.segment("0/0", [plain(LEFT, 1, 1), plain(LEFT, 2, 2)], is_sealed=True)
    run.segment("1/0", is_sealed=True)
    run.segment("2/1", [plain(LEFT, 3, 3)])
    run.drained()
    for reader, session in (("r1", 1), ("r2", 2)):
        run.event(reader, "open", session=session)
    return run


def read(run: Shown, reader: str, session: int, *places: tuple[str, int, int]) -> Shown:
    for span, position, value in places:
        run.event(reader, "row", span, position, LEFT, value, session=session)
    return run


OLD, NEW = (("0/0", 0, 1), ("0/0", 1, 2)), (("2/1", 0, 3),)


def test_a_group_delivers_all_in_order_whoever_reads_it(tmp_path: Path) -> None:
    run = stream()
    run.event("r1", "open", "0/0", 0)
    read(run, "r1", 1, *OLD)
    run.event("r1", "end", "0/0")
    read(run, "r2", 2, *NEW)
    judgement = run.judged(check, tmp_path)
    assert found(judgement) == []
    assert judgement.witnesses == {
        "unlike-stream": 3, "group-lost": 3, "group-order": 1, "group-repeat": 0, "wrong-end": 1
    }  # fmt: skip


def test_what_nobody_delivered_is_lost_once_the_readers_are_through(tmp_path: Path) -> None:
    run = read(stream(), "r1", 1, *OLD)
    assert found(run.judged(check, tmp_path / "a")) == [("group-lost", 1)]
    run.records = [each for each in run.records if not isinstance(each, Invoke | Complete)]
    assert found(run.judged(check, tmp_path / "b")) == []


def test_a_successor_before_its_predecessor_is_out_of_order(tmp_path: Path) -> None:
    run = read(read(stream(), "r2", 2, *NEW), "r1", 1, *OLD)
    assert found(run.judged(check, tmp_path)) == [("group-order", 1)]


@pytest.mark.parametrize(("reader", "session"), [("r2", 2), ("r1", 1)])
def test_an_event_comes_once_as_long_as_its_readers_live(tmp_path: Path, reader: str, session: int) -> None:
    run = read(read(stream(), "r1", 1, *OLD), reader, session, *OLD, *NEW)
    assert found(run.judged(check, tmp_path)) == [("group-repeat", 2)]


@pytest.mark.parametrize("is_earlier", [True, False])
def test_what_a_removed_reader_had_may_come_again_before_and_after(tmp_path: Path, is_earlier: bool) -> None:
    run = stream()
    one, other = (("r1", 1), ("r2", 2)) if is_earlier else (("r2", 2), ("r1", 1))
    read(read(run, *one, *OLD), *other, *OLD, *NEW)
    run.event("r1", "open", session=3)  # Session 1 is over.
    assert found(run.judged(check, tmp_path)) == []


def test_a_row_that_does_not_stand_there_is_told(tmp_path: Path) -> None:
    run = read(stream(), "r1", 1, ("0/0", 0, 1), ("0/0", 1, 9), ("0/0", 2, 2), *NEW)
    assert ("unlike-stream", 2) in found(run.judged(check, tmp_path))


@pytest.mark.parametrize(("span", "rows"), [("0/0", OLD[:1]), ("2/1", NEW)])
def test_an_end_where_none_is_is_wrong(tmp_path: Path, span: str, rows: tuple[tuple[str, int, int], ...]) -> None:
    run = stream()
    run.event("r1", "open", span, 0)
    read(run, "r1", 1, *rows)
    run.event("r1", "end", span)
    assert ("wrong-end", 1) in found(run.judged(check, tmp_path))


def test_a_segment_that_was_given_away_ends_where_its_next_owner_began(tmp_path: Path) -> None:
    run = stream()
    run.event("r1", "open", "0/0", 0)
    read(run, "r1", 1, *OLD[:1])
    run.event("r2", "open", "0/0", 1, session=2)
    read(run, "r2", 2, *OLD[1:])
    run.event("r1", "open", "0/0", 2)
    run.event("r1", "end", "0/0")
    read(run, "r1", 1, *NEW)
    judgement = run.judged(check, tmp_path)
    assert (found(judgement), judgement.witnesses["group-repeat"]) == ([], 1)


def test_a_scale_while_nodes_show_the_stream_ends_segments_that_they_have_shown_as_open(tmp_path: Path) -> None:
    """In containers nodes do not show their parts at one moment."""
    run = read(stream(), "r1", 1, *OLD, *NEW)
    run.records.append(StreamEvent(1000 * MS, "r1", 1, 99, "end", "2/1"))
    judgement = run.judged(check, tmp_path)
    assert (found(judgement), judgement.witnesses["wrong-end"]) == ([], 0)
