"""Cases that random logs of two consumers, and files of users, showed to differ from plain definitions of the rules."""

import pytest

from tests.worlds.streams.cases import accused

INFO_BESIDE = "ok@4 z=2; info z=5"


def test_a_reader_that_lags_behind_another_one_of_its_partition_goes_back_nowhere() -> None:
    source = "ok@1 x[1]=1; ok@2 x[1]=2"
    ahead = "s1 open@0 x[1]=1@1 x[1]=2@2 w[1]@2"
    behind = "s2 open@0 x[1]=1@1 w[1]@1 x[1]=2@2 w[1]@2"
    assert accused(f"{ahead} {behind}", source, wm_scope="partition") == []
    assert accused(f"{ahead} close {behind}", source, wm_scope="partition") == ["watermark-regress"]


def test_of_two_versions_at_one_position_whose_order_is_unknown_either_may_be_skipped() -> None:
    source, log = "ok@4e1 x=1; ok@4e1 x=2", "open@0 x=2@4 e1 w@5"
    changes = {"versions": "latest-per-epoch", "is_position_unique": False, "identity": "position+key+value"}
    assert accused(log, source, **changes) == []
    assert accused(log, "ok@4e1 x=1#1; ok@4e1 x=2#2", **changes) == []
    assert accused(log, "ok@4e1 x=1#2; ok@4e1 x=2#1", **changes) == ["missing-event"]
    assert accused(log, source, **changes | {"versions": "every"}) == ["missing-event"]
    last = accused(log, "ok@4e1 x=2 x=1", **changes)  # One operation wrote x=1 last.
    assert last == ["missing-event", "torn-unit"]


def test_a_row_of_an_unclear_write_at_the_place_of_another_write_diverges() -> None:
    assert accused("open@0 z=2@4 z=5@4 w@5", INFO_BESIDE, replay="session") == ["divergent-duplicate"]
    assert accused("open@0 z=2@4 z=5@4 w@5", INFO_BESIDE, replay="session", is_position_unique=False) == []
    assert accused("open@0 z=2@4 z=5@6 w@7", INFO_BESIDE, replay="session") == []


@pytest.mark.parametrize("marks", ["w[1]@2 w[2]@2", "w[2]@2 w[1]@2"])
@pytest.mark.parametrize("unit_scope", ["partition", "global"])
def test_a_unit_of_one_partition_is_torn_once_all_partitions_have_passed_it(marks: str, unit_scope: str) -> None:
    log = f"open@0 y[2]=1@1 x[1]=1@2 u7*2 {marks}"
    declared = {"wm_scope": "partition", "cut": "position", "unit_scope": unit_scope}
    assert accused(log, **declared) == ["torn-unit"]
    assert accused(log.replace("w[2]@2", "w[2]@1"), **declared) == []  # Its other row may come on the other partition.
