"""Epochs and successors, by hand: a split, a merge, a roll, and what is only partly recorded."""

from clusters.pravega.controller.processor import copies
from clusters.pravega.records import Copied, Epoch, History, Segment, Span, first_history
from clusters.pravega.shape import SPACE, key_hash

HALF = SPACE // 2
A, B = Span(0, HALF, Segment(0, 0)), Span(HALF, SPACE, Segment(1, 0))
C = Span(0, SPACE, Segment(2, 1))
TWO, ONE = Epoch(0, 0, (A, B)), Epoch(1, 1, (C,))


def test_a_new_stream_has_one_epoch_that_cuts_all_keys() -> None:
    spans = first_history().active.spans
    assert [span.low for span in spans] + [SPACE] == [0] + [span.high for span in spans]
    assert first_history().active.at(key_hash("k")) in {span.segment for span in spans}


def test_an_active_segment_has_no_successors_and_a_merged_one_waits_for_both() -> None:
    assert History((TWO,)).successors(A.segment) is None
    merged = History((TWO, ONE), 1)
    both = (Copied(C, (A.segment, B.segment)),)
    assert merged.successors(A.segment) == merged.successors(B.segment) == both


def test_a_split_segment_is_the_predecessor_of_both() -> None:
    split = History((Epoch(0, 0, (C,)), Epoch(1, 1, (A, B))), 1)
    assert split.successors(C.segment) == (Copied(A, (C.segment,)), Copied(B, (C.segment,)))


def test_what_is_recorded_and_not_current_is_not_in_the_stream() -> None:
    partial = History((TWO, ONE), 0)
    assert partial.successors(A.segment) is None
    assert partial.listed() == (TWO,)


def test_a_roll_leads_through_the_old_segments_and_back() -> None:
    rolled, again = copies(TWO.spans, 2), copies(ONE.spans, 3)
    history = History((TWO, ONE, Epoch(2, 0, rolled), Epoch(3, 1, again)), 3)
    assert [copied.span for copied in history.successors(C.segment) or ()] == list(rolled)
    through = history.successors(rolled[0].segment)
    assert through == (Copied(again[0], tuple(span.segment for span in rolled)),)
    assert history.successors(again[0].segment) is None


def test_a_segment_that_a_scale_leaves_alone_is_followed_after_its_last_epoch() -> None:
    quarter = HALF // 2
    kept = (Span(0, quarter, Segment(2, 1)), Span(quarter, HALF, Segment(3, 1)), B)
    history = History((TWO, Epoch(1, 1, kept), Epoch(2, 2, (Span(0, SPACE, Segment(4, 2)),))), 2)
    assert [copied.span.segment for copied in history.successors(A.segment) or ()] == [Segment(2, 1), Segment(3, 1)]
    assert [copied.span.segment for copied in history.successors(B.segment) or ()] == [Segment(4, 2)]
