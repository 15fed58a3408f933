"""What the check of the watermark graph finds in small histories, what it lets pass, and what it says."""

from pathlib import Path

import pytest

from checkers.watermarks import components
from checkers.watermarks.cycles.classes import Classes
from checkers.watermarks.cycles.forbidden import forbidden
from checkers.watermarks.cycles.steps import NAMES
from checkers.words.transactional import WATERMARK
from tests.worlds.streams.cases import contract
from tests.worlds.streams.watermark_cases import found, judged

TORN = "0 ax1 ay2 @1; 1 rx1 ry2; open@0 x=1@1 w@1 y=2@1.1 w@1"
WHOLE = "0 ax1 ay2 @1; 1 rx1 ry2; open@0 x=1@1 y=2@1.1 w@1"
TWO_SUBSCRIBERS = "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; s2 open@0 w@1 x=1@1 w@2"
MODELS = {"G1c", "G0", "G-single", "G-nonadjacent", "G2-item"}


def test_a_torn_transaction_is_found_and_told(tmp_path: Path) -> None:
    [finding] = judged(tmp_path, TORN).findings
    assert finding.anomaly == "torn-watermark"
    assert finding.sentence == (
        "T0 wrote value 1 of key #0, which s1 had received before watermark 1; s1 received value 2 of key #1, "
        "which T0 wrote, only after "
        "watermark 1. So each of these comes before itself: the cut of one subscriber is inconsistent."
    )
    assert finding.ops == (0,)
    assert len(finding.events) == 3
    assert [(step.source, step.target, step.relation) for step in finding.cycle] == [
        ("T0", "W s1/1", "watermark"),
        ("W s1/1", "T0", "watermark"),
    ]


def test_a_class_that_is_not_searched_beside_a_narrower_one_is_unknown(tmp_path: Path) -> None:
    torn = judged(tmp_path, TORN, frozenset({"torn-watermark", "G0-watermark", "intermediate-watermark"}))
    assert torn.unknown == {"G0-watermark": "undecided: the torn watermark found here hides any weaker violation"}
    assert not judged(tmp_path, TORN, frozenset({"torn-watermark"})).unknown
    assert not judged(tmp_path, TORN, frozenset({"G0-watermark"})).unknown  # What is legal hides nothing.


def test_a_search_that_does_not_end_leaves_its_class_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unsearched = Classes({}, frozenset({"G0-watermark"}))
    monkeypatch.setattr(components, "classes", lambda *_: unsearched)
    assert set(judged(tmp_path, TORN).unknown) == {"G0-watermark"}


def test_what_was_not_searched_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "COMPONENTS", 0)
    torn = judged(tmp_path, TORN)
    assert torn.findings == ()
    assert torn.unknown["torn-watermark"].startswith("search-too-long: 1 components")


def test_what_cannot_break_a_promise_needs_no_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skew = "begin 0 ry ax1 @2; begin 1 ay2 @1; 1 ends; open@0 y=2@1 w@1; 0 ends; x=1@2 w@2; 2 rx1 ry2"
    promised = frozenset({"torn-watermark", "G1c-watermark"})
    monkeypatch.setattr(components, "COMPONENTS", 0)
    assert not judged(tmp_path, skew, promised).unknown
    assert judged(tmp_path, skew, promised).facts["components"] == 1
    assert set(judged(tmp_path, skew, promised | {"G2-item-watermark"}).unknown) > promised


def test_many_watermarks_between_two_are_one_step(tmp_path: Path) -> None:
    watermarks = " ".join(f"w@{position}" for position in range(1, 200))
    [finding] = judged(tmp_path, f"0 ax1 ay2 @1; 1 rx1 ry2; open@0 x=1@1 {watermarks} y=2@1.1 w@200").findings
    assert [(step.source, step.target) for step in finding.cycle] == [
        ("T0", "W s1/1"),
        ("W s1/1", "W s1/199"),
        ("W s1/199", "T0"),
    ]
    assert "; s1 received watermark 1 before watermark 199; s1 received value 2 of key #1" in finding.sentence
    assert len(finding.events) == 4


def test_a_whole_transaction_is_no_finding_and_a_witness(tmp_path: Path) -> None:
    judgement = judged(tmp_path, WHOLE)
    assert not judgement.findings
    assert judgement.witnesses["torn-watermark"] == 1
    assert judgement.witnesses["intermediate-watermark"] == 0
    assert judgement.facts["version_order"] == {"lists": 2}


def test_a_row_ahead_of_its_watermark_is_legal_under_a_cut_by_position(tmp_path: Path) -> None:
    ahead = "0 ax1 ay2 @5; 1 rx1 ry2; open@0 x=1@5 w@4 y=2@5.1 w@5"
    assert not found(tmp_path, ahead, cut="position")
    assert found(tmp_path, ahead, cut="delivery") == ["torn-watermark"]


def test_without_a_cut_nothing_is_judged_and_the_verdict_says_why(tmp_path: Path) -> None:
    judgement = judged(tmp_path, TORN, cut="unknown")
    assert not judgement.findings
    assert judgement.unknown["torn-watermark"].startswith("cut: unknown")


def test_without_watermarks_nothing_is_exercised(tmp_path: Path) -> None:
    judgement = judged(tmp_path, "0 ax1 @1; open@0 x=1@1")
    assert not judgement.findings
    assert set(judgement.witnesses.values()) == {0}
    assert not judgement.unknown


def test_a_late_row_is_found_by_what_had_read_it(tmp_path: Path) -> None:
    late = "0 ax1 @1; 1 rx1 ay2 @2; 2 rx1 ry2; open@0 y=2@2 w@2 x=1@1 w@3"
    assert found(tmp_path, late) == ["G1c-watermark"]


def test_a_missing_row_is_found_in_real_time(tmp_path: Path) -> None:
    missing = "0 ax1 @1; 1 ay2 @2; 2 rx1 ry2; open@0 y=2@2 w@2"
    assert found(tmp_path, missing) == ["G0-watermark-realtime"]


def test_a_stream_that_lags_contradicts_nothing(tmp_path: Path) -> None:
    assert not found(tmp_path, "0 ax1 @1; 1 ax2 @2; 2 rx1,2; open@0 x=1@1 w@1 x=2@2 w@2")


def test_concurrent_transactions_may_come_in_either_order(tmp_path: Path) -> None:
    assert not found(tmp_path, "begin 0 ax1 @1; begin 1 ay2 @2; 0 ends; 1 ends; 2 rx1 ry2; open@0 y=2@2 w@2 x=1@1 w@3")


def test_two_subscribers_that_differ_at_one_position_are_found(tmp_path: Path) -> None:
    [finding] = judged(tmp_path, TWO_SUBSCRIBERS).findings
    assert finding.anomaly == "split-watermark"
    assert "s1's watermark 1 and s2's watermark 1 are of one position, so of one state" in finding.sentence
    assert "2 chains of watermarks disagree" in finding.sentence


def test_a_transaction_that_one_subscriber_missed_for_long_is_found_among_many_that_none_missed(tmp_path: Path) -> None:
    """All of these are in one component: each watermark precedes itself by the late row."""
    count = range(2, 42)
    appends, elements = "; ".join(f"{n - 1} ay{n} @{n}" for n in count), ",".join(map(str, count))
    rows = " ".join(f"y={n}@{n} w@{n}" for n in count)
    streams = f"s1 open@0 x=1@1 w@1 {rows} w@50; s2 open@0 w@1 {rows} x=1@1 w@50"
    journal = f"0 ax1 @1; {appends}; 41 rx1 ry{elements}; {streams}"
    [finding] = judged(tmp_path, journal, frozenset({"split-watermark"})).findings
    assert (finding.anomaly, finding.ops) == ("split-watermark", (0,))


@pytest.mark.parametrize("journal", [
    "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; s2 open@0 w@0 x=1@1 w@2",  # At another position.
    "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; s2 open:x@0 w@1 x=1@1 w@2",  # With another coverage.
    "0 ax1 @1; 1 rx1; s1 open@0 w[0]@1; s2 open@0 x[1]=1@1 w[1]@1",  # Of another partition.
])  # fmt: skip
def test_watermarks_that_are_not_one_node_may_differ(journal: str, tmp_path: Path) -> None:
    assert not found(tmp_path, journal)


def test_positions_that_are_not_global_make_no_node(tmp_path: Path) -> None:
    assert not found(tmp_path, TWO_SUBSCRIBERS, is_position_global=False)


def test_a_position_repeated_behind_a_row_is_another_node_under_a_cut_by_delivery(tmp_path: Path) -> None:
    journal = "0 ax1 @1; 1 rx1; s1 open@0 w@1 x=1@1 w@1; s2 open@0 x=1@1 w@1"
    assert not found(tmp_path, journal)
    assert found(tmp_path, journal, cut="position") == ["intermediate-watermark"]


def test_two_subscribers_without_a_common_order_are_found(tmp_path: Path) -> None:
    fork = "begin 0 ax1 @1; begin 1 ay2 @2; 0 ends; 1 ends; 2 rx1 ry2; s1 open@0 x=1@1 w@1; s2 open@0 y=2@2 w@2"
    assert found(tmp_path, fork) == ["fork-watermark"]


def test_a_read_as_of_a_watermark_is_one_with_it(tmp_path: Path) -> None:
    stale = "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; 2 rx @1?"
    [finding] = judged(tmp_path, stale).findings
    assert finding.anomaly == "split-watermark"
    assert "a read as of the same position does not show what T0 wrote" in finding.sentence


def test_a_read_as_of_another_position_is_no_matter_of_watermarks(tmp_path: Path) -> None:
    judgement = judged(tmp_path, "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; 2 rx @0?")
    assert not judgement.findings
    assert judgement.facts["reads_as_of"] == {"one-with-a-watermark": 0, "left-out": 1}


def test_what_a_subscriber_has_seen_later_reads_see_where_that_is_declared(tmp_path: Path) -> None:
    journal = "begin 0 ax1 @1; s1 open@0 x=1@1 w@1; 1 rx; 0 ends; 2 rx1"
    assert found(tmp_path, journal, realtime="reads") == ["G-single-watermark-realtime"]
    assert not found(tmp_path, journal)


def test_write_skew_in_the_order_of_commits_is_g2_item(tmp_path: Path) -> None:
    skew = "begin 0 ry ax1 @2; begin 1 ay2 @1; 1 ends; open@0 y=2@1 w@1; 0 ends; x=1@2 w@2; 2 rx1 ry2"
    assert found(tmp_path, skew) == ["G2-item-watermark"]


def test_classes_that_are_legal_are_observations(tmp_path: Path) -> None:
    judgement = judged(tmp_path, TORN, forbidden=frozenset())
    assert not judgement.findings
    assert list(judgement.facts["observations"]) == ["torn-watermark"]  # type: ignore[arg-type]  # It is a dict.


def test_every_class_has_its_line_in_the_list_of_names() -> None:
    assert set(NAMES) == set(WATERMARK)


def test_a_contract_forbids_no_more_than_follows_from_it() -> None:
    plain = {"order-watermark", "intermediate-watermark", "torn-watermark", "split-watermark"}
    snapshots = {"G0-watermark", "G1c-watermark", "G-single-watermark", "G-nonadjacent-watermark"}
    assert forbidden(contract(cut="unknown"), MODELS) == frozenset()
    assert forbidden(contract(), ()) == plain
    assert forbidden(contract(), MODELS) == plain | snapshots
    assert forbidden(contract(order_key="key"), MODELS) == plain
    assert forbidden(contract(order_key="key", position="epoch"), {"G0", "G1c"}) == plain | {
        "G0-watermark",
        "G1c-watermark",
    }
    assert forbidden(contract(atomic_unit="none"), MODELS) == {"order-watermark"}
    assert forbidden(contract(unit_scope="partition", is_position_global=False), MODELS) == frozenset()


def test_watermarks_of_one_position_in_a_chain_are_one_node_or_none_is(tmp_path: Path) -> None:
    # The session in the middle covers one key only, so its watermark is a node of its own.
    journal = "0 ax1 @1; 1 rx1; s1/1 open@0 x=1@1 w@1 s1/2 open:x@1 w@1 s1/3 open@1 w@1"
    assert not found(tmp_path, journal, wm_scope="subscriber", cut="position")


def test_a_backfill_above_a_watermark_says_nothing_of_it(tmp_path: Path) -> None:
    journal = "0 ax1 @3; 1 rx1 ax2 @5; 2 rx1,2; s1/1 open@0 w@1 x=1@3 x=2@5 s1/2 open@6 ~x=2@5 w@5 w@5"
    assert not found(tmp_path, journal, wm_scope="subscriber", cut="position")


MOVED = (
    "0 ax1 ay2 @1; 1 ax3 @2; 2 rx1,3 ry2; open[0]@0 open[1]@0 y[1]=2@1 w[1]@1 x[0]=1@1 w[0]@1 end[0] x[1]=3@2 w[1]@2"
)


@pytest.mark.parametrize("is_global", [True, False])
def test_a_watermark_says_nothing_about_a_key_that_moves_to_its_partition_later(
    tmp_path: Path, is_global: bool
) -> None:
    assert found(tmp_path, MOVED, is_position_global=is_global) == []


def test_positions_of_two_partitions_do_not_order_versions(tmp_path: Path) -> None:
    """Key x had its first version at 5 in one partition, and its second at 2 in another; nobody read it as a list."""
    log = "0 ax1 @5; 1 ax3 ay2 @2; 2 ry2; s1 open[0]@0 x[0]=1@5 end[0] open[1]@0 x[1]=3@2 y[1]=2@2.1 w@6"
    judgement = judged(tmp_path, log, is_position_global=False)
    assert (judgement.findings, judgement.facts["version_order"]) == ((), {"lists": 1})


def test_where_all_speaks_of_the_whole_stream_a_key_may_move(tmp_path: Path) -> None:
    late = "0 ax1 ay2 @1; 1 ax3 @2; 2 rx1,3 ry2; open@0 y[1]=2@1 w@1 x[0]=1@1.1 x[1]=3@2 w@2"
    assert found(tmp_path, late) == ["torn-watermark"]
    assert found(tmp_path, late, is_position_global=False) == []
