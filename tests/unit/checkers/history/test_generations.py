"""Which operations stand with a generation, and what of several generations is one judgement."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from checkers.history.generations import merged, placement_of_streams, restarts, spans
from checkers.history.streams import NOTHING_DERIVED
from harness.core.errors import HistoryError
from harness.core.promises import StreamContract
from harness.core.record import State
from harness.core.verdict import Finding, Judgement
from tests.worlds.epoch_cases import BITS, Story, epoch

STREAM = StreamContract(closed="<=", cut="position", position="epoch")


def standing(story: Story, folder: Path, generation: int) -> dict[int, str]:
    """The operations of a generation, and whether they stand as they are."""
    history = story.write(folder)
    ops = pq.read_table(history / "ops.parquet").sort_by("index")
    reported = placement_of_streams(history, STREAM)
    found = spans(ops, restarts(history), saved_bits=BITS, reported=reported)
    kept = np.flatnonzero((found.first <= generation) & (generation <= found.last)).tolist()
    return {index: "unclear" if found.unclear[index] else "as it is" for index in kept}


def twice() -> Story:
    """Two generations: of the first only GCI 7 was saved."""
    story = Story()
    story.op("ax1", (7, 9))
    story.op("ax2", (8, 0))
    story.op("rx1", (7, 9))
    story.op("ax3", None, "fail")
    story.op("ax4", None, "info")
    story.restart(7, (9, 0))
    story.op("ax5", (9, 0))
    return story


def test_the_first_generation_has_what_was_lost_later(tmp_path: Path) -> None:
    as_it_is = dict.fromkeys([0, 1, 2, 3], "as it is")
    assert standing(twice(), tmp_path, 0) == as_it_is | {4: "unclear"}


def test_a_later_generation_has_the_saved_writers_and_no_older_reader(tmp_path: Path) -> None:
    as_it_is = dict.fromkeys([0, 3, 5], "as it is")
    assert standing(twice(), tmp_path, 1) == as_it_is | {4: "unclear"}


def test_what_one_restart_saved_another_may_lose(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("ax2", (8, 0))
    story.restart(8, (10, 0), number=1)
    story.op("ax3", (10, 0))
    story.restart(7, (11, 0), number=3)
    story.op("ax4", (11, 0))
    assert list(standing(story, tmp_path, 1)) == [0, 1, 2]
    assert list(standing(story, tmp_path, 2)) == [0, 3]


def test_an_epoch_that_is_used_twice_belongs_where_it_can(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (9, 0))
    story.restart(7, (8, 0))
    story.op("ax2", (9, 0))
    assert list(standing(story, tmp_path, 0)) == [0]
    assert list(standing(story, tmp_path, 1)) == [1]


def test_an_operation_over_a_restart_belongs_to_its_epoch(tmp_path: Path) -> None:
    story = Story()
    one, other, unknown = story.begin("ax1"), story.begin("ax2"), story.begin("rx")
    story.restart(7, (9, 0))
    story.end(one, "ax1", (8, 0))
    story.end(other, "ax2", (9, 0))
    story.end(unknown, "rx", None)
    assert standing(story, tmp_path, 0) == {0: "as it is", 2: "unclear"}
    assert standing(story, tmp_path, 1) == {1: "as it is", 2: "unclear"}


@pytest.mark.parametrize(("restored", "later"), [(7, {}), (8, {0: "unclear"})])
def test_an_unclear_operation_stands_until_a_restart_leaves_it_out(
    tmp_path: Path, restored: int, later: dict[int, str]
) -> None:
    """Its client gave up long before, and x = 1 was delivered."""
    story = Story()
    story.op("ax1", None, "info")
    story.told("row", (8, 0))
    story.restart(restored, (9, 0))
    assert standing(story, tmp_path, 0) == {0: "unclear"}
    assert standing(story, tmp_path, 1) == later


def test_an_unclear_operation_that_committed_after_a_restart_is_not_what_it_left_out(tmp_path: Path) -> None:
    """T0 was given up before the restart, T1 behind it with a number that an earlier generation may have used."""
    story = Story()
    story.op("ay2", None, "info")
    story.restart(7, (9, 0))
    story.op("ax1", None, "info")
    story.told("row", (8, 0))
    assert standing(story, tmp_path, 1) == {0: "unclear", 1: "unclear"}
    over = Story()
    over.op("ax1", None, "info")
    over.restart(7, (9, 0))
    over.told("row", (9, 0))
    assert standing(over, tmp_path, 1) == {0: "unclear"}


def test_without_a_contract_or_events_nothing_is_told(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", None, "info")
    assert placement_of_streams(story.write(tmp_path), STREAM) is NOTHING_DERIVED
    story.told("row", (8, 0))
    assert placement_of_streams(story.write(tmp_path), None) is NOTHING_DERIVED
    assert placement_of_streams(story.write(tmp_path), STREAM).op.tolist() == [0]


def test_a_generation_begins_where_the_first_node_installs_its_view(tmp_path: Path) -> None:
    story = Story()
    story.view(3, (8, 0), "d1")
    story.op("ax1", (8, 0))
    story.view(5, (9, 0), "d2")
    story.op("ax2", (9, 0))
    story.view(5, (9, 0), "d1")
    story.restart(7, (9, 0))
    story.op("ax3", (9, 0))
    (restart,) = restarts(story.write(tmp_path))
    assert story.records[restart.seq] == State(3, "d2", "view", 5, ["d1", "d2"], epoch((9, 0)))
    assert list(standing(story, tmp_path, 0)) == [0]
    assert list(standing(story, tmp_path, 1)) == [1, 2]


def test_of_two_reports_of_a_restart_the_first_counts(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (6, 0))
    story.op("ax2", (8, 0))
    story.restart(7, (9, 0))
    story.op("ax3", (9, 0))
    story.restart(7, (9, 0))
    story.op("ax4", (9, 0))
    (restart,) = restarts(story.write(tmp_path))
    assert (restart.number, restart.restored) == (1, 7)
    assert list(standing(story, tmp_path, 0)) == [0, 1]
    assert list(standing(story, tmp_path, 1)) == [0, 2, 3]


def test_a_history_without_states_has_no_restart(tmp_path: Path) -> None:
    history = Story().write(tmp_path)
    assert restarts(history) == ()
    (history / "states.parquet").unlink()
    assert restarts(history) == ()


def test_restarts_come_in_their_order_without_the_initial_start(tmp_path: Path) -> None:
    story = Story()
    story.restart(0, (1, 0), number=0)
    story.restart(3, (5, 0), number=1)
    story.restart(5, (8, 0), number=2)
    found = restarts(story.write(tmp_path))
    assert [(each.number, each.restored, each.first_epoch) for each in found] == [
        (1, 3, epoch((5, 0))),
        (2, 5, epoch((8, 0))),
    ]


def test_a_generation_begins_with_the_first_node_that_installs_its_view(tmp_path: Path) -> None:
    """d2 coordinates the restart, but d3 has answered before d2 tells of it."""
    story = Story()
    story.records.append(State(5, "d2", "view", 1, ["d2", "d3"]))
    story.op("ax1", (9, 0))
    story.records.append(State(20, "d3", "view", 2, ["d2", "d3"]))
    story.op("ax2", (12, 0))
    story.records.append(State(21, "d2", "view", 2, ["d2", "d3"]))
    story.records.append(State(21, "d2", "restart", 1, [8, epoch((12, 0))]))
    assert standing(story, tmp_path, 0) == {0: "as it is"}
    assert standing(story, tmp_path, 1) == {1: "as it is"}


def test_a_restart_that_says_something_else_is_damage(tmp_path: Path) -> None:
    story = Story()
    story.records.append(State(0, "d1", "restart", 1, "soon"))
    with pytest.raises(HistoryError, match="a restart that cannot be read"):
        restarts(story.write(tmp_path))


def test_generations_become_one_judgement() -> None:
    def judgement(fingerprint: str, count: int, unknown: dict[str, str]) -> Judgement:
        finding = Finding(fingerprint=fingerprint, anomaly="G0", checker="c", sentence=f"{count}.", count=count)
        return Judgement(checker="c", findings=(finding,), witnesses={"G0": count}, unknown=unknown, facts={"n": count})

    one = judgement("a", 1, {"G0": "too large", "G1a": "so, too"})
    result = merged([one, judgement("a", 2, {}), judgement("b", 4, {"G1a": "later"})])
    assert [(finding.fingerprint, finding.count) for finding in result.findings] == [("a", 1), ("b", 4)]
    assert result.witnesses == {"G0": 7}
    assert result.unknown == {"G1a": "so, too"}
    assert result.facts == {"n": 4, "generations": 3}
    assert merged([one]) is one
