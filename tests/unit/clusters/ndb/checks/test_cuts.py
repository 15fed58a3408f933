"""Whether an epoch contains what its transactions follow: each kind of edge, and what is legal."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from checkers.history.names import Names
from clusters.ndb.checks import cuts
from clusters.ndb.checks.cuts import NOT_CLOSED
from harness.core.verdict import Judgement
from tests.worlds.epoch_cases import BOUNDS, ENGINE, Story, name


def judged(story: Story, folder: Path) -> Judgement:
    return cuts.check(story.write(folder), Context(engine=ENGINE, bounds=BOUNDS, name=Names(name)))


def overlapping(*acts: tuple[str, tuple[int, int]]) -> Story:
    """Transactions that all overlap, with their epochs."""
    story = Story()
    began = [story.begin(text) for text, _ in acts]
    for index, (text, at) in zip(began, acts, strict=True):
        story.end(index, text, at)
    return story


def test_a_write_after_a_write_of_a_later_epoch_is_found(tmp_path: Path) -> None:
    (finding,) = judged(overlapping(("ax1", (7, 3)), ("ax2", (7, 2)), ("Rx12", (7, 3))), tmp_path).findings
    assert finding.anomaly == NOT_CLOSED
    assert finding.ops == (0, 1)
    assert finding.sentence == (
        "T1 appended 2 to x after T0 had appended 1: T0 precedes T1. But T0 has epoch 7/3, and T1 the earlier epoch "
        "7/2, which therefore contains T1 without what came before it."
    )


def test_a_write_between_two_others_does_not_hide_them(tmp_path: Path) -> None:
    acts = (("ax1", (7, 3)), ("ax2", (7, 3)), ("ax3", (7, 2)), ("Rx123", (7, 3)))
    (finding,) = judged(overlapping(*acts), tmp_path).findings
    assert finding.ops == (1, 2)


def test_a_writer_without_epoch_between_two_others_does_not_hide_them(tmp_path: Path) -> None:
    story = Story()
    first, lost, last = story.begin("ax1"), story.begin("ax2"), story.begin("ax3")
    story.end(first, "ax1", (7, 3))
    story.end(lost, None, None, "info")
    story.end(last, "ax3", (7, 2))
    story.op("rx123", (7, 3))
    (finding,) = judged(story, tmp_path).findings
    assert finding.ops == (first, last)


def test_a_read_of_what_a_later_epoch_wrote_is_found(tmp_path: Path) -> None:
    (finding,) = judged(overlapping(("ax1", (7, 3)), ("rx1 ay2", (7, 2))), tmp_path).findings
    assert finding.sentence.startswith("T1 read x with 1 in it, which T0 had appended: T0 precedes T1. But T0 has")


def test_an_epoch_that_falls_in_real_time_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 3))
    story.op("ay2", (7, 2))
    (finding,) = judged(story, tmp_path).findings
    assert finding.sentence.startswith("T0 had been answered before T1 was invoked: T0 precedes T1. But")


def test_a_locked_read_that_misses_an_older_epoch_is_found(tmp_path: Path) -> None:
    (finding,) = judged(overlapping(("Rx ay1", (7, 3)), ("ax2", (7, 2)), ("Rx2", (7, 3))), tmp_path).findings
    assert finding.sentence.startswith("T0 read x under a lock until its commit, without 2, which T1 appended: T0")


@pytest.mark.parametrize("read", ["rx", "rx Rx"])
def test_a_read_without_lock_may_miss_an_older_epoch(tmp_path: Path, read: str) -> None:
    story = overlapping((f"{read} ay1", (7, 3)), ("ax2", (7, 2)), ("Rx2", (7, 3)))
    assert judged(story, tmp_path).findings == ()


def test_what_wrote_nothing_may_report_an_epoch_that_has_passed(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 3))
    story.op("rx1", (7, 2))
    story.op("Rx1", (7, 2))
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses) == ((), {NOT_CLOSED: 0})


def test_an_append_that_nobody_saw_has_no_place_among_the_versions(tmp_path: Path) -> None:
    acts = (("ax1", (7, 3)), ("ax2", (7, 2)), ("Rx1", (7, 3)))
    assert judged(overlapping(*acts), tmp_path).findings == ()


def test_the_worst_edge_of_each_kind_is_told_and_all_are_counted(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (9, 0))
    story.op("ax2", (8, 0))
    story.op("rx12 ax3", (7, 0))
    story.op("rx123", (9, 0))
    findings = judged(story, tmp_path).findings
    assert [(finding.count, finding.ops) for finding in findings] == [(2, (0, 2)), (1, (0, 2)), (2, (0, 2))]
    assert len({finding.fingerprint for finding in findings}) == 3


def test_witnesses_are_edges_between_two_writers(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("Rx1 ax2", (7, 1))
    story.op("rx12", (7, 1))
    judgement = judged(story, tmp_path)
    assert judgement.facts["edges"] == {"ww": 1, "wr": 1, "rw": 0}
    assert judgement.witnesses == {NOT_CLOSED: 2}


def test_a_key_with_one_element_twice_leaves_the_rest_unknown(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 0))
    story.op("ax1", (7, 1))
    assert set(judged(story, tmp_path).unknown) == {NOT_CLOSED}
