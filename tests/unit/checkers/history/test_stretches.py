"""What is written so that many generations can be judged at once: its rows are counted, not the time."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from checkers.history.generations import restarts
from checkers.history.stretches import ONCE, Stretches, Weights, write_stretches
from tests.worlds.epoch_cases import BITS, Story

X = "x"


def stretches_of(story: Story, folder: Path) -> Stretches | None:
    history, place = story.write(folder), folder / "stretches"
    place.mkdir()
    return write_stretches(history, place, restarts(history), saved_bits=BITS)


def written(folder: Path) -> int:
    """The rows of all files below the folder."""
    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


def soak(generations: int) -> Story:
    """Each generation uses a key of its own, delivers to a stream, and fails once; all is saved before each restart."""
    story = Story()
    for number in range(generations):
        if number:
            story.restart(number, (number + 1, 0), number=number)
        key, at = chr(1000 + number), (number + 1, 0)
        for element in range(1, 6):
            story.op(f"a{key}{element}", at)
            story.told("row", at)
        story.op(f"r{key}12345", at)
        story.op(f"a{key}6", None, "fail")
        story.op(f"a{key}7", None, "info")
    return story


@pytest.mark.parametrize("few", [10, 40])
def test_rows_grow_with_the_operations_and_not_with_their_generations(tmp_path: Path, few: int) -> None:
    counts = []
    for generations in (few, 4 * few):
        folder = tmp_path / str(generations)
        assert stretches_of(soak(generations), folder) is not None
        counts.append(written(folder / "stretches"))
    assert 0 < counts[1] <= 1.2 * 4 * counts[0]


def test_a_key_has_a_stretch_with_its_readers_and_one_without(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (1, 0))
    story.op("rx1", (1, 0))
    for number in (1, 2, 3):
        story.restart(number, (number + 1, 0), number=number)
    stretches = stretches_of(story, tmp_path)
    assert stretches is not None
    assert list(zip(stretches.first.tolist(), stretches.last.tolist(), strict=True))[:2] == [(0, 0), (1, 2)]


def test_what_was_lost_has_no_stretch_after_the_restart_that_lost_it(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (2, 0))
    story.restart(1, (3, 0), number=1)
    story.restart(3, (4, 0), number=2)
    stretches = stretches_of(story, tmp_path)
    assert stretches is not None
    assert (stretches.first[0], stretches.last[0]) == (0, 0)


def test_a_key_that_only_failed_operations_touched_is_left_out(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", None, "fail")
    for number in (1, 2):
        story.restart(number, (number + 1, 0), number=number)
    stretches = stretches_of(story, tmp_path)
    assert stretches is not None
    assert pq.read_metadata(stretches.folder / "mops.parquet").num_rows == 0


def test_a_snapshot_in_a_stream_leaves_each_generation_to_itself(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (1, 0))
    story.told("row", (1, 0))
    story.restart(1, (2, 0), number=1)
    history = story.write(tmp_path)
    events = pq.read_table(history / "events.parquet")
    place = events.schema.get_field_index("kind")
    snapshot = events.set_column(place, events.schema.field("kind"), [["backfill"] * len(events)])
    pq.write_table(snapshot, history / "events.parquet")
    (tmp_path / "stretches").mkdir()
    assert write_stretches(history, tmp_path / "stretches", restarts(history), saved_bits=BITS) is None


def test_what_is_about_a_key_counts_once_for_each_generation_of_its_stretch() -> None:
    keys = np.array([2, 0, 2, 1])
    # Stretch 0 spans generations 0 and 1, stretch 2 generation 3, and number 1 is none.
    known = Stretches(folder=Path(), generations=4, first=np.array([0, 2, 3]), last=np.array([1, 1, 3]))
    assert Weights(known).count(keys) == 1 + 2 + 1 + 0
    assert Weights(known).of(np.array([2, 0])).count(np.array([1, 1, 0])) == 2 + 2 + 1
    assert Weights(known).generations(keys).tolist() == [True, True, False, True]
    assert Weights(known).generations(keys[3:]).tolist() == [False] * 4


def test_without_stretches_all_counts_once() -> None:
    keys = np.array([5, 5, 7])
    assert ONCE.count(keys) == ONCE.of(keys).count(np.array([0, 1, 2])) == 3
    assert ONCE.generations(keys).tolist() == [True]
    assert ONCE.generations(keys[:0]).tolist() == [False]
