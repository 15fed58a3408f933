"""One epoch for each transaction; epochs rise without holes, and none is used twice."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from checkers.history.names import Names
from clusters.ndb.checks import epochs
from clusters.ndb.checks.epochs import DOUBLE, SHAPE
from harness.core.promises import Bounds
from harness.core.verdict import Judgement
from tests.worlds.epoch_cases import BOUNDS, ENGINE, Epoch, Story, name


def judged(story: Story, folder: Path, bounds: Bounds = BOUNDS) -> Judgement:
    return epochs.check(story.write(folder), Context(engine=ENGINE, bounds=bounds, name=Names(name)))


def anomalies(judgement: Judgement) -> list[str]:
    return [finding.anomaly for finding in judgement.findings]


def test_a_row_in_another_epoch_than_the_answer_is_found(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 3))
    row = story.told("row", (7, 4), unit=100)
    (finding,) = judged(story, tmp_path).findings
    assert (finding.anomaly, finding.ops, finding.events) == (DOUBLE, (0,), (row,))
    assert finding.sentence == (
        "Transaction 100 has epoch 7/3 in the answer to its client (T0) and 7/4 in the row of x that s1 received."
    )


def test_two_sessions_that_show_two_epochs_are_found(tmp_path: Path) -> None:
    story = Story()
    story.told("row", (7, 3), unit=5)
    story.told("row", (7, 3), unit=5, who="s2", session=4)
    story.told("row", (7, 2), unit=5, who="s2", session=5)
    judgement = judged(story, tmp_path)
    assert anomalies(judgement) == [DOUBLE]
    assert judgement.witnesses[DOUBLE] == 1


def test_a_commit_in_another_epoch_than_the_answer_says_is_found(tmp_path: Path) -> None:
    story = Story()
    story.end(story.begin("ax1"), "ax1", (7, 3), commit=(7, 2))
    assert anomalies(judged(story, tmp_path)) == [DOUBLE]


def test_a_transaction_that_is_shown_once_is_no_witness(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 3))
    story.op("rx1", (7, 2))
    story.told("row", (7, 3), unit=5)
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[DOUBLE]) == ((), 0)


def test_a_transaction_that_is_shown_alike_everywhere_is_a_witness(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1", (7, 3))
    story.told("row", (7, 3), unit=100)
    story.told("row", (7, 3), unit=100, who="s2")
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[DOUBLE]) == ((), 1)


@pytest.mark.parametrize("after", [(7, 4), (8, 0), (11, 0)])
def test_the_next_epoch_and_the_first_of_a_later_gci_may_follow(tmp_path: Path, after: Epoch) -> None:
    story = Story()
    story.marks((7, 3), after)
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[SHAPE]) == ((), 1)


@pytest.mark.parametrize("after", [(7, 5), (8, 1)])
def test_an_epoch_that_is_passed_over_is_found(tmp_path: Path, after: Epoch) -> None:
    story = Story()
    story.marks((7, 3), after)
    (finding,) = judged(story, tmp_path).findings
    assert finding.events == (0, 1)
    assert finding.sentence == (
        f"In session 1 of s1 epoch 7/3 was followed by {after[0]}/{after[1]}, neither the next one nor the first of a "
        "later GCI, and no view had changed in between."
    )


@pytest.mark.parametrize("known", [(7, 3), (7, 4), (6, 0)])
def test_an_epoch_may_be_passed_over_where_the_view_changes(tmp_path: Path, known: Epoch) -> None:
    story = Story()
    story.marks((7, 3))
    story.view(2, known)
    story.marks((7, 6))
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[SHAPE]) == ((), 0)


def test_a_view_that_the_subscriber_hears_of_late_counts_by_its_epoch(tmp_path: Path) -> None:
    story = Story()
    story.view(2, (7, 4))
    story.marks((7, 3), (7, 6))
    assert judged(story, tmp_path).findings == ()


@pytest.mark.parametrize("kind", ["open", "gap"])
def test_an_epoch_may_be_passed_over_where_the_subscription_is_opened_anew(tmp_path: Path, kind: str) -> None:
    story = Story()
    story.marks((7, 3))
    story.told(kind, (7, 5))
    story.marks((7, 6))
    assert judged(story, tmp_path).findings == ()


def test_sessions_and_subscribers_are_compared_with_themselves_only(tmp_path: Path) -> None:
    story = Story()
    story.marks((7, 3))
    story.marks((7, 9), who="s2")
    story.marks((7, 6), session=2)
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[SHAPE]) == ((), 0)


def test_a_watermark_that_goes_back_is_another_finding(tmp_path: Path) -> None:
    story = Story()
    story.marks((7, 3), (7, 1), (7, 3))
    assert [finding.count for finding in judged(story, tmp_path).findings] == [1]


def test_where_the_bits_of_an_epoch_are_not_known_no_hole_is_told(tmp_path: Path) -> None:
    story = Story()
    story.marks((7, 3), (7, 9))
    assert judged(story, tmp_path, Bounds()).findings == ()


def used(seen: str) -> Story:
    """Epoch 9/2 was seen before the restart."""
    story = Story()
    if seen == "answer":
        story.op("ax1", (9, 2))
    else:
        story.told(seen, (9, 2), unit=5)
    return story


@pytest.mark.parametrize("seen", ["answer", "row", "watermark"])
@pytest.mark.parametrize("first", [(9, 0), (9, 2)])
def test_epochs_that_are_used_again_after_a_restart_are_found(tmp_path: Path, seen: str, first: Epoch) -> None:
    story = used(seen)
    story.restart(8, first)
    (finding,) = judged(story, tmp_path).findings
    assert finding.anomaly == SHAPE
    assert finding.sentence.startswith(f"After restart 1 of the whole cluster epochs begin with 9/{first[1]}, but")
    assert "epoch 9/2: epochs are used twice." in finding.sentence


def test_restarts_that_use_epochs_again_are_one_finding(tmp_path: Path) -> None:
    story = used("answer")
    story.restart(8, (9, 0))
    story.op("ax2", (9, 5))
    story.restart(8, (9, 0), number=2)
    (finding,) = judged(story, tmp_path).findings
    assert (finding.count, finding.ops) == (2, (0,))


@pytest.mark.parametrize("seen", ["answer", "row", "watermark"])
def test_a_restart_that_jumps_over_all_epochs_is_a_witness(tmp_path: Path, seen: str) -> None:
    story = used(seen)
    story.restart(8, (10, 0))
    story.op("ax2", (10, 0))
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[SHAPE]) == ((), 1)


def test_the_initial_start_is_no_restart(tmp_path: Path) -> None:
    story = used("answer")
    story.restart(0, (1, 0), number=0)
    judgement = judged(story, tmp_path)
    assert (judgement.findings, judgement.witnesses[SHAPE]) == ((), 0)


def test_an_old_epoch_after_a_restart_is_found(tmp_path: Path) -> None:
    story = Story()
    story.restart(8, (10, 0))
    story.op("ax1", (9, 4))
    (finding,) = judged(story, tmp_path).findings
    assert finding.sentence.endswith("but T0, which was invoked after it, was answered with epoch 9/4.")


def test_what_was_under_way_at_a_restart_may_have_an_epoch_of_either_side(tmp_path: Path) -> None:
    story = Story()
    one, other = story.begin("ax1"), story.begin("ax2")
    story.restart(8, (10, 0))
    story.end(one, "ax1", (9, 4))
    story.end(other, "ax2", (10, 0))
    story.told("row", (9, 4), unit=100)
    assert judged(story, tmp_path).findings == ()
