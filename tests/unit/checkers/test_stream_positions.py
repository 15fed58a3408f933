"""S15, S17, S23 and S24 by hand: positions of partitions, of owners, in real time, and read again."""

import numpy as np
import pytest

from checkers.streams.rules.logs.real_time_order import Placed, RealTime, real_time_order
from checkers.streams.rules.logs.rewritten_offset import rewritten_offsets
from checkers.streams.rules.logs.zombie import zombie_events
from checkers.streams.rules.watermarks.watermark_above_partitions import watermarks_above_partitions
from tests.worlds.streams.cases import accused, contract, shown, view

ABOVE, ZOMBIE, REWRITTEN = ["watermark-above-partitions"], ["zombie"], ["rewritten-offset"]
LEAST: dict[str, object] = {"is_whole_least": True}
OWNERS: dict[str, object] = {"epochs": "owners"}
ONE: dict[str, object] = {"events_at_position": "one", "replay": "session", "order_key": "none"}


# S15


@pytest.mark.parametrize(("whole", "anomalies"), [(4, []), (5, []), (6, ABOVE)])
def test_the_whole_is_not_above_a_part(whole: int, anomalies: list[str]) -> None:
    log = f"open@0 w[1]@5 w[2]@7 w@{whole}"
    assert accused(log, "", **LEAST) == anomalies
    assert accused(log) == []


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("open@0 w[1]@5 w[1]@7 w@7", []),
        ("open@0 w@9 w[1]@5", []),  # Of that it had not been told.
        ("open[1]@3 open[2]@3 w[2]@9 w@4", ABOVE),  # A partition counts from where it was opened.
        ("open[1]@3 open[2]@3 w[2]@9 w@3", []),
        ("open@0 w[2]@9 open[1]@3 w@4", ABOVE),  # A new one, too.
        ("open@0 w[2]@9 open[1] w@9", []),  # How far that is, nobody said.
        ("open@0 w[1]@5 w[2]@9 close[1] w@9", []),
        ("open@0 w[1]@5 w[2]@9 end[1] w@9", []),
        ("open@0 w[1]@5 w[2]@9 end[2] w@9", ABOVE),
        ("open@0 w[1]@5 end[1] w[1]@6 w@9", ["event-after-end"]),
        ("open@0 w[1]@5 end[1] open[1]@6 w@9", ABOVE),
        ("open@0 w[1]@5 w[2]@9 gap[1] w@9", []),
        ("open@0 w[1]@5 w[2]@9 gap[1] w[1]@6 w@9", ABOVE),
        ("open@0 w[2]@9 gap[1]@3 w@9", []),  # Where that is, is no word on how far the partition is.
        ("open@0 w[0]@5 w@9", ABOVE),
        ("open@0 w[0]@9 w[1]@5 w[0]@9", []),
        ("open@0 w[1]@5 gap w@9", []),
        ("s1/1 open@0 w[1]@5 s1/2 open@0 w@9", []),
        ("s1 open@0 w[1]@5 s2 open@0 w@9", []),
    ],
)
def test_a_partition_counts_while_it_is_open(log: str, anomalies: list[str]) -> None:
    assert accused(log, "", **LEAST) == anomalies


def test_a_partition_that_rests_bounds_nothing() -> None:
    assert accused("open@0 w[1]@5 w@9", "", **(LEAST | {"wm_idle": "rests"})) == []
    assert accused("open@0 w[1]@5 w@9", "", **(LEAST | {"is_position_global": False})) == []


def test_the_lowest_partition_is_the_evidence_and_differing_ones_are_witnesses() -> None:
    log = "open@0 w[1]@5 w[2]@7 w[3]@4 w@9 w[3]@5 w[2]@5 w@9"
    found = watermarks_above_partitions(view(log, "", **LEAST))
    assert shown(log, found) == [("w@9", "w[3]@4"), ("w@9", "w[1]@5")]
    assert found.witnesses == 2
    assert watermarks_above_partitions(view("open@0 w[1]@5 w@5", "", **LEAST)).witnesses == 0
    assert watermarks_above_partitions(view("open@0 w[1]@5 w[2]@5 w@5", "", **LEAST)).witnesses == 0
    assert watermarks_above_partitions(view("open@0 w[1]@5 w[2]@6 w@5", "", **LEAST)).witnesses == 1


def test_a_watermark_that_went_back_is_another_fault() -> None:
    assert accused("open@0 w@9 w[1]@5 w@6", "", **LEAST) == ["watermark-regress"]


# S17


@pytest.mark.parametrize(("position", "anomalies"), [(4, []), (5, []), (6, ZOMBIE)])
def test_an_older_owner_puts_nothing_behind_what_a_newer_one_put(position: int, anomalies: list[str]) -> None:
    """What it had put in before may be delivered later."""
    log = f"open@0 x=1@5 e2 y=2@{position} e1"
    assert accused(log, "", order_key="key", **OWNERS) == anomalies
    assert accused(log, "", order_key="key") == []


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("open@0 x=1@1 e1 y=2@2 e1 x=3@3 e2 y=4@4 e2", []),
        ("s1 open@0 x=1@5 e2 s1/2 open@0 y=2@6 e1", ZOMBIE),
        ("open@0 x=1@5 e2 y=2@6", []),  # Whose that is, it does not say.
        ("open@0 ~x=1@5 e2 y=2@6 e1", []),
    ],
)
def test_owners_are_compared_in_the_order_of_the_log(log: str, anomalies: list[str]) -> None:
    assert accused(log, "", **OWNERS) == anomalies


def test_each_partition_has_owners_of_its_own_where_its_positions_are() -> None:
    log = "open@0 x[1]=1@5 e2 y[2]=2@6 e1"
    assert accused(log, "", **OWNERS) == ZOMBIE
    assert accused(log, "", is_position_global=False, **OWNERS) == []


@pytest.mark.parametrize(("end", "anomalies"), [("", ZOMBIE), ("end", []), ("end[1]", []), ("end[2]", ZOMBIE)])
def test_a_log_that_ended_is_another_one_when_it_is_read_again(end: str, anomalies: list[str]) -> None:
    log = f"s1/1 open@0 x[1]=1@4 e1 y[1]=2@5 e1 {end} s1/2 open@0 x[1]=3@4 e2"
    changes = {"is_position_global": False, "identity": "position+key+value"}
    assert accused(log, "", **OWNERS, **changes) == anomalies


def test_witnesses_are_changes_of_owners() -> None:
    assert zombie_events(view("open@0 x=1@1 e1 y=2@2 e1", "", **OWNERS)).witnesses == 0
    found = zombie_events(view("open@0 x=1@1 e1 y=2@2 e2 x=3@3 e3 x=4@4 e1 x=4@4 e1", "", **OWNERS))
    assert (found.watermark.tolist(), found.row.tolist(), found.witnesses) == ([4], [3], 2)


# S24


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("s1/1 open@0 x=1@4 s1/2 open@0 x=1@4", []),
        ("s1/1 open@0 x=1@4 s1/2 open@0 y=1@4", REWRITTEN),
        ("s1/1 open@0 x=1@4 s1/2 open@0 y=1@3", []),
        ("s1/1 open@0 x=1@4 s1/2 open@0 y=1@5", []),
        ("open@0 x=1@4 y=1@4", REWRITTEN),
        ("s1/1 open@0 x=1@4 x=2@5 s1/2 open@0 x=2@5", []),  # What is old may be gone.
        ("s1/1 open@0 x=1@4 end s1/2 open@0 y=1@4", []),  # Another log by the same name.
        ("s1/1 open@0 ~x=1@4 s1/2 open@0 y=1@4", []),
    ],
)
def test_an_offset_shows_one_event_for_ever(log: str, anomalies: list[str]) -> None:
    assert accused(log, "", **ONE) == anomalies
    assert accused(log, "", **(ONE | {"events_at_position": "many"})) == []


@pytest.mark.parametrize(
    ("log", "anomalies"),
    [
        ("s1/1 open@0 x=1@4 s2 open@0 y=1@4", REWRITTEN),
        ("s1/1 open@0 x=1@4 end s1/2 open@0 y=1@4 s2 open@0 x=1@4", []),  # It lags, and reads the old log.
        ("s1/1 open@0 x=1@4 end s2 open@0 y=1@4", []),  # It comes late, and reads the new one.
        ("s1/1 open@0 x=1@4 end s1/2 open@0 y=1@4 s2 open@0 x=1@4 end s2/2 open@0 y=1@4", []),
        ("s1/1 open@0 x=1@4 s2 open@0 x=1@4 end s1 end s1/2 open@0 y=1@4 s2/2 open@0 z=1@4", REWRITTEN),
        ("s1/1 open@0 x=1@4 end s1/2 open@0 y=1@4 s2 open@0 x=1@4 z=1@4", REWRITTEN),
    ],
)
def test_readers_of_one_log_may_be_on_both_sides_of_its_end(log: str, anomalies: list[str]) -> None:
    assert accused(log, "", wm_scope="global", **ONE) == anomalies


def test_one_key_with_two_values_is_a_divergent_repetition_where_that_can_be_told() -> None:
    log = "s1/1 open@0 x=1@4 s1/2 open@0 x=2@4"
    assert accused(log, "", **ONE) == ["divergent-duplicate"]
    assert accused(log, "", identity="position+key+value", **ONE) == REWRITTEN


def test_partitions_have_offsets_of_their_own_where_positions_are() -> None:
    log = "open@0 x[1]=1@4 y[2]=1@4"
    assert accused(log, "", **ONE) == REWRITTEN
    assert accused(log, "", is_position_global=False, **ONE) == []
    again = "open@0 x[1]=1@4 end[{}] open[1]@0 y[1]=1@4"
    assert accused(again.format(1), "", is_position_global=False, **ONE) == []
    assert accused(again.format(2), "", is_position_global=False, **ONE) == REWRITTEN
    assert accused(again.format(0), "", is_position_global=False, **ONE) == REWRITTEN


def test_witnesses_are_offsets_read_in_two_sessions() -> None:
    assert rewritten_offsets(view("open@0 x=1@4 x=1@4", "", **ONE)).witnesses == 0
    found = rewritten_offsets(view("s1/1 open@0 x=1@4 y=1@5 s1/2 open@0 x=1@4 z=1@5 z=1@6", "", **ONE))
    assert (found.watermark.tolist(), found.row.tolist(), found.witnesses) == ([5], [2], 2)


# S23


def timed(*ops: tuple[int, int, int], processes: tuple[int, ...] = (), **changes: object) -> RealTime:
    """Operations by position, place of invocation, and of answer."""
    columns = [np.array(column, np.int64) for column in zip(*ops, strict=True)]
    numbers = np.arange(len(ops))
    process = np.array(processes, np.int64) if processes else numbers
    placed = Placed(op=numbers, process=process, position=columns[0], invoke_seq=columns[1], complete_seq=columns[2])
    return real_time_order(placed, contract(**({"realtime": "follows"} | changes)))


@pytest.mark.parametrize(("position", "sole", "shared"), [(4, 1, 1), (5, 1, 0), (6, 0, 0)])
def test_a_write_behind_another_has_the_higher_position(position: int, sole: int, shared: int) -> None:
    ops = ((5, 1, 2), (position, 3, 4))
    for count, is_unique in ((sole, True), (shared, False)):
        found = timed(*ops, is_position_unique=is_unique).first
        assert (found.count if found else 0) == count
    found = timed(*ops, has_noop_events=False).first  # A delete of nothing may be answered with the last revision.
    assert (found.count if found else 0) == shared
    assert timed(*ops, realtime="none").first is None
    assert timed(*ops, is_position_global=False).first is None


@pytest.mark.parametrize(("ended", "count"), [(2, 1), (3, 0), (4, 0)])
def test_only_what_had_ended_before_is_compared(ended: int, count: int) -> None:
    found = timed((5, 1, ended), (4, 3, 9)).first
    assert (found is not None) == bool(count)


def test_the_highest_before_is_the_evidence_and_all_are_counted() -> None:
    found = timed((5, 1, 2), (9, 1, 2), (4, 3, 4), (8, 5, 6)).first
    assert found is not None
    assert (found.op, found.position, found.before, found.before_position, found.count) == (2, 4, 1, 9, 2)


def test_witnesses_of_real_time_are_pairs_of_two_clients() -> None:
    ops = ((4, 1, 2), (5, 3, 4))
    assert timed(*ops).witnesses == 1
    assert timed(*ops, processes=(7, 7)).witnesses == 0
    assert timed((4, 1, 9), (5, 3, 4)).witnesses == 0
    assert timed(*ops, realtime="none").witnesses == 0
