"""The net change of each row in an epoch."""

import pytest

from clusters.ndb.planted import MERGE_LOSES_DELETE_INSERT
from clusters.ndb.stream.merge import merged
from clusters.ndb.stream.messages import Row
from harness.core.record import Json

EPOCH = 5
Image = int | None


def net(*changes: tuple[Image, int], bugs: tuple[str, ...] = ()) -> list[Json]:
    """The merged event of a row with these changes, by before-image and value; a list changes, too."""
    rows = [Row(1, EPOCH, 0, 10, "row1", value, before) for before, value in changes]
    told = merged(3, [*rows[:1], Row(1, EPOCH, 0, 11, 7, 1), *rows[1:]], frozenset(bugs))
    assert all((each.object, each.key, each.position) == ("merged", "row1", EPOCH) for each in told)
    return [each.value for each in told]  # type: ignore[misc]  # Shown values are Json here.


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (((None, 1),), [[3, None, 1]]),
        (((None, 1), (1, 2)), [[3, None, 2]]),
        (((None, 1), (1, -2)), []),
        (((4, 1), (1, 2)), [[3, 4, 2]]),
        (((4, 1), (1, -2)), [[3, 4, None]]),
        (((4, -1), (None, 2)), [[3, 4, 2]]),
        (((4, -1), (None, 2), (2, -3)), [[3, 4, None]]),
        (((None, 1), (1, -2), (None, 3)), [[3, None, 3]]),
    ],
)
def test_a_row_has_one_merged_event_for_an_epoch(changes: tuple[tuple[Image, int], ...], expected: list[Json]) -> None:
    assert net(*changes) == expected


def test_under_the_bug_a_row_deleted_and_inserted_again_is_a_new_one() -> None:
    assert net((4, -1), (None, 2), bugs=(MERGE_LOSES_DELETE_INSERT,)) == [[3, None, 2]]
