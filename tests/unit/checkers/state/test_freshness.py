"""Whether reads of one key are as fresh as real time demands."""

from pathlib import Path

from checkers.engine.protocol import Context
from checkers.history.names import Names
from checkers.state import freshness
from checkers.state.freshness import STALE
from harness.core.verdict import Judgement
from tests.worlds.epoch_cases import ENGINE, Story, name


def judged(story: Story, folder: Path) -> Judgement:
    return freshness.check(story.write(folder), Context(engine=ENGINE, name=Names(name)))


def test_a_read_without_an_answered_append_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("ax2", (7, 0))
    story.op("rx1", (7, 0))
    story.op("rx12", (7, 0))
    (finding,) = judged(story, tmp_path).findings
    assert finding.ops == (1, 2)
    assert finding.sentence == (
        "T2 read x as [1], without 2: T1 had appended that, and its success had been answered before T2 was invoked."
    )


def test_an_append_that_no_read_ever_shows_is_missed_by_all_after_it(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("rx", (7, 0))
    story.op("rx", (7, 0))
    (finding,) = judged(story, tmp_path).findings
    assert (finding.count, finding.ops) == (2, (0, 1))


def test_a_read_that_is_older_than_one_before_it_is_found(tmp_path: Path) -> None:
    story = Story()
    open_ = story.begin("ax1")
    story.op("rx1", (7, 0))
    story.op("rx", (7, 0))
    story.end(open_, "ax1", (7, 0))
    (finding,) = judged(story, tmp_path).findings
    assert finding.sentence == (
        "T2 read x as [], without 1, which T1 had already read there, and had been answered before T2 was invoked."
    )


def test_a_read_without_what_its_own_transaction_appended_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1 rx", (7, 0))
    (finding,) = judged(story, tmp_path).findings
    assert finding.sentence == "T0 read x as [], without 1, which it had itself appended before."


def test_an_odd_read_is_compared_element_by_element(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("ax2", (7, 0))
    story.op("rx2", (7, 0))
    story.op("rx12", (7, 0))
    (finding,) = judged(story, tmp_path).findings
    assert finding.ops == (0, 2)


def test_what_is_under_way_may_be_seen_or_not(tmp_path: Path) -> None:
    story = Story()
    first = story.begin("ax1")
    story.op("rx1", (7, 0))
    second = story.begin("rx")
    story.end(first, "ax1", (7, 0))
    story.end(second, "rx1", (7, 0))
    assert judged(story, tmp_path).findings == ()


def test_reads_that_overlap_may_see_different_versions(tmp_path: Path) -> None:
    story = Story()
    writer = story.begin("ax1")
    late = story.begin("rx")
    story.op("rx1", (7, 0))
    story.end(late, "rx", (7, 0))
    story.end(writer, "ax1", (7, 0))
    assert judged(story, tmp_path).findings == ()


def test_two_keys_of_one_read_only_transaction_may_be_of_different_moments(tmp_path: Path) -> None:
    story = Story()
    writer = story.begin("ax1 ay2")
    story.op("Rx1", (7, 0))
    story.op("ry", (7, 0))
    story.end(writer, "ax1 ay2", (7, 0))
    assert judged(story, tmp_path).findings == ()


def test_unclear_and_failed_appends_demand_nothing(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", None, "info")
    story.op("ax2", None, "fail")
    story.op("rx", (7, 0))
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses) == ((), {STALE: 0})


def test_a_repeated_element_does_not_make_a_read_look_old(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("ax2", (7, 0))
    story.op("rx121", (7, 0))
    assert judged(story, tmp_path).findings == ()


def test_witnesses_are_reads_after_something_that_they_could_miss(tmp_path: Path) -> None:
    story = Story()
    story.op("rx", (7, 0))
    story.op("ax1 rx1", (7, 0))
    story.op("rx1 ry", (7, 0))
    assert judged(story, tmp_path).witnesses == {STALE: 2}
