"""S09 and S10 by hand: what a watermark closes has arrived, and arrived whole; and what only looks otherwise."""

from dataclasses import replace

import pytest

from checkers.streams.closings import missing_events
from checkers.streams.rules.watermarks.torn_unit import torn_units
from checkers.streams.view import defect, stream_view
from harness.core.columns import NEVER
from tests.worlds.streams.cases import contract, found, outcome, view
from tests.worlds.streams.language import deliveries_of, events, source_of, writes

ONE = "ok@4 x=1"
PAIR = "ok@4 x=1 y=2"


@pytest.mark.parametrize(
    ("watermark", "closed", "anomalies"),
    [
        (3, "<=", []),
        (4, "<=", ["missing-event"]),
        (5, "<=", ["missing-event"]),
        (3, "<", []),
        (4, "<", []),
        (5, "<", ["missing-event"]),
    ],
)
def test_a_write_is_missing_once_a_watermark_closes_it(watermark: int, closed: str, anomalies: list[str]) -> None:
    assert found(f"open@0 w@{watermark}", ONE, closed=closed) == anomalies
    assert found(f"open@0 x=1@4 w@{watermark}", ONE, closed=closed) == []


@pytest.mark.parametrize(("start", "after", "at"), [(3, 1, 1), (4, 0, 1), (5, 0, 0)])
def test_a_session_owes_what_lies_behind_its_start(start: int, after: int, at: int) -> None:
    log = f"open@{start} w@9"
    assert len(found(log, ONE, resume="after")) == after
    assert len(found(log, ONE, resume="at")) == at


def test_what_came_late_is_late_and_not_missing() -> None:
    assert found("open@0 w@5 x=1@4", ONE) == ["late-event"]
    assert found("open@0 w@4 x=1@4", ONE) == ["late-event-boundary"]


def test_a_key_that_never_had_an_event_is_missed_all_the_same() -> None:
    assert found("open@0 x=1@1 w@5", "ok@1 x=1; ok@2 z=7") == ["missing-event"]


def test_a_missing_write_is_reported_once_a_scope_under_the_first_watermark() -> None:
    ruling = missing_events(view("open@0 w@2 w@4 w@5 s1/2 open@0 w@9", ONE))
    assert ruling.watermark.tolist() == [2, 5]
    assert missing_events(view("open@0 w@4 s1/2 open@0 w@9", ONE, wm_scope="subscriber")).watermark.tolist() == [1]


@pytest.mark.parametrize(
    "source",
    [
        "info@4 x=1",  # Nobody saw it.
        "info x=1",
        "fail x=1",
        "fail@4 x=1",
        "ok x=1",  # It happened, but nobody knows where.
        "info@4 x=1 y=2",
    ],
)
def test_only_what_certainly_happened_at_a_known_position_is_owed(source: str) -> None:
    assert missing_events(view("open@0 w@9", source)).watermark.tolist() == []


def test_a_delivered_value_places_the_rest_of_its_operation() -> None:
    for source in ("info x=1 y=2", "ok x=1 y=2", "info@4 x=1 y=2"):
        assert found("open@0 x=1@4 w@5", source, cut="unknown") == ["missing-event", "torn-unit"]
    # A value that two operations wrote places neither.
    assert found("open@0 x=1@4 w@5", "info x=1 y=2; info x=1") == []


def test_another_subscriber_s_delivery_places_a_write_too() -> None:
    assert found("s1 open@0 x=1@4 w@5 s2 open@0 w@5", "info x=1") == ["missing-event"]
    assert found("s1 open@0 x=1@4 w@3 s2 open@0 w@3", "info x=1") == []


@pytest.mark.parametrize(("scope", "anomalies"), [("session", ["missing-event"]), ("subscriber", []), ("global", [])])
def test_a_delivery_counts_in_the_watermark_s_scope(scope: str, anomalies: list[str]) -> None:
    assert found("s1/1 open@0 x=1@4 s1/2 open@0 w@5", ONE, wm_scope=scope) == anomalies


def test_a_delivery_by_another_subscriber_counts_only_globally() -> None:
    log = "s1 open@0 x=1@4 s2 open@0 w@5"
    assert found(log, ONE, wm_scope="subscriber") == ["missing-event"]
    assert found(log, ONE, wm_scope="global") == []


@pytest.mark.parametrize(
    ("log", "missed"),
    [
        ("open@0 w@5", ["x=9", "x=1"]),
        ("open@0 gap w@5", []),
        ("open@0 gap x=9@2 w@5", ["x=1"]),  # Covered again from its row at 2 on.
        ("open@0 gap x=8@6 w@7", []),
        ("open@0 gap:y w@5", ["x=9", "x=1"]),
        ("open@0 gap:x w@5", []),
        ("open@0 w@3 gap w@5", ["x=9"]),
        ("open@0 x=9@2 gap x=9@2 w@5", []),  # A repetition does not cover anew,
        ("open@0 x=9@2 gap ~x=9@2 w@5", ["x=1"]),  # a snapshot does.
        ("open:y@0 w@5", []),
        ("open:x@0 w@5", ["x=9", "x=1"]),
        ("open w@5", []),
        ("w@5", []),
        ("open@0 close w@5", []),
    ],
)
def test_only_live_coverage_is_owed(log: str, missed: list[str]) -> None:
    source = "ok@2 x=9; ok@4 x=1; ok@6 x=8"
    ruling = missing_events(view(log, source))
    assert [f"x={value}" for value in view(log, source).writes.value[ruling.write].tolist()] == missed


def test_a_watermark_of_a_partition_closes_the_keys_of_that_partition() -> None:
    source = "ok@1 x=1; ok@4 x=2"
    assert found("open@0 x[1]=1@1 w[1]@5", source) == ["missing-event"]
    assert found("open@0 x[1]=1@1 w[2]@5", source) == []
    assert found("open@0 x[1]=1@1 w@5", source) == ["missing-event"]
    assert found("open@0 x[1]=1@1 x[2]=1@1 w[1]@5", source) == []  # Nobody knows where x belongs.
    assert found("open@0 w[1]@5", ONE) == []


@pytest.mark.parametrize(
    ("versions", "source", "log", "anomalies"),
    [
        ("every", "ok@4 x=1; ok@6 x=2", "open@0 x=2@6 w@6", ["missing-event"]),
        ("latest", "ok@4 x=1; ok@6 x=2", "open@0 x=2@6 w@6", []),
        ("latest", "ok@4 x=1; ok@6 x=2", "open@0 x=2@6 w@5", ["missing-event"]),  # The watermark does not close it.
        ("latest", "ok@4 x=1; ok@6 y=2", "open@0 y=2@6 w@6", ["missing-event"]),
        ("latest", "ok@4 x=1; ok@3 x=2", "open@0 x=2@3 w@6", ["missing-event"]),
        ("latest", "ok@4 x=1 x=2", "open@0 x=2@4.1 w@6", []),
        ("latest", "ok@4 x=1 x=2", "open@0 x=1@4.0 w@6", ["missing-event", "torn-unit"]),
        ("latest-per-epoch", "ok@4e1 x=1; ok@6e1 x=2", "open@0 x=2@6 e1 w@6", []),
        ("latest-per-epoch", "ok@4e1 x=1; ok@6e2 x=2", "open@0 x=2@6 e2 w@6", ["missing-event"]),
    ],
)
def test_a_newer_version_stands_for_one_that_may_be_skipped(
    versions: str, source: str, log: str, anomalies: list[str]
) -> None:
    assert found(log, source, versions=versions) == anomalies


def test_only_a_row_that_was_written_and_is_known_to_be_newer_stands_for_another() -> None:
    marker = "s1/1 open@0 w@6 s1/2 open:x@5"
    assert found(marker, ONE, versions="latest", wm_scope="subscriber") == ["missing-event"]
    assert found("open@0 x=9@5 w@6", "ok@4 x=1; fail x=9", versions="latest") == ["missing-event"]
    same = {"identity": "position+key+value", "is_position_unique": False}
    assert found("open@0 x=2@4 w@4", "ok@4 x=1; ok@4 x=2", versions="latest", **same) == []  # Nobody knows the order.
    assert found("open@0 x=2@4 w@4", "ok@4 x=1#2; ok@4 x=2#1", versions="latest", **same) == ["missing-event"]


def test_a_marker_of_one_partition_leaves_the_others_as_they_were() -> None:
    log = "open@0 y[1]=1@2 open[0]@5 w@9"
    assert found(log, "ok@2 y=1; ok@3 y=3") == ["missing-event"]


def test_a_partition_that_only_others_have_seen_is_not_taken_for_another_session_s() -> None:
    log = "s1/1 open@0 s1/2 close[0] s1/1 w@5"
    unseen = stream_view(deliveries_of(events(log)), source_of(writes("ok@4 x[1]=1")), contract())
    assert missing_events(unseen).watermark.tolist() == [2]


def test_with_exclusive_watermarks_a_newer_version_at_the_watermark_stands_for_nothing() -> None:
    log = "open@0 x=2@6 w@6"
    assert found(log, "ok@4 x=1; ok@6 x=2", versions="latest", closed="<") == ["missing-event"]
    assert found(log.replace("w@6", "w@7"), "ok@4 x=1; ok@6 x=2", versions="latest", closed="<") == []


def test_a_stream_without_events_for_writes_that_change_nothing_owes_none() -> None:
    source = "ok@1 x=1; ok@4 x=1"
    assert found("open@0 x=1@1 w@5", source, has_noop_events=False) == []
    assert found("open@0 x=1@1 w@5", source, has_noop_events=True) == ["missing-event"]


def test_where_only_final_rows_are_sent_no_other_is_owed() -> None:
    source = "ok@4 x=1 x=2 y=3"
    assert found("open@0 x=2@4 y=3@4 w@4", source, unit_rows="final") == []
    assert found("open@0 x=2@4.1 y=3@4.2 w@4", source, unit_rows="each") == ["missing-event", "torn-unit"]
    assert found("open@0 y=3@4 w@4", source, unit_rows="final") == ["missing-event", "torn-unit"]


def test_of_two_leaders_at_one_position_the_value_tells_who_is_missing() -> None:
    source = "ok@4 x=1; ok@4 x=2"
    ruling = missing_events(view("open@0 x=2@4 w@4", source))
    assert ruling.write.tolist() == [0]
    assert found("open@0 x=1@4 x=2@4 w@4", source) == []


# S10


@pytest.mark.parametrize("cut", ["delivery", "position", "unknown"])
def test_a_watermark_that_closes_half_a_unit_tears_it(cut: str) -> None:
    assert found("open@0 x=1@4.0 w@4 y=2@4.1", PAIR, cut=cut) == ["late-event-boundary", "torn-unit"]
    assert found("open@0 x=1@4.0 y=2@4.1 w@4", PAIR, cut=cut) == []
    assert found("open@0 w@4 x=1@4.0 y=2@4.1", PAIR, cut=cut) == ["late-event-boundary"]


@pytest.mark.parametrize(
    ("watermark", "cut", "closed", "is_torn"),
    [
        (3, "delivery", "<=", True),
        (3, "position", "<=", False),
        (3, "unknown", "<=", False),
        (4, "position", "<=", True),
        (4, "position", "<", False),
        (4, "delivery", "<", True),
        (5, "position", "<", True),
    ],
)
def test_a_watermark_between_the_rows_of_a_unit_tears_it_if_the_cut_is_by_delivery_or_it_closes(
    watermark: int, cut: str, closed: str, is_torn: bool
) -> None:
    log = f"open@0 x=1@4.0 w@{watermark} y=2@4.1"
    assert ("torn-unit" in found(log, PAIR, cut=cut, closed=closed)) is is_torn


def test_a_unit_that_is_missing_whole_is_not_torn() -> None:
    assert found("open@0 w@5", PAIR) == ["missing-event"]


def test_a_unit_half_of_which_is_not_covered_is_not_torn() -> None:
    assert found("open:x@0 x=1@4.0 w@5", PAIR) == []
    assert found("open@4 x=1@4.0 w@5", PAIR) == []
    assert found("open@4 x=1@4.0 w@5", PAIR, resume="at") == ["missing-event", "torn-unit"]
    assert found("open@0 gap:y x=1@4.0 w@5", PAIR) == []


def test_a_unit_begun_in_one_session_and_taken_up_in_the_next_is_whole_at_the_end() -> None:
    log = "s1/1 open@0 x=1@4.0 s1/2 open@0 w@0 x=1@4.0 y=2@4.1 w@4"
    for scope in ("session", "subscriber"):
        assert found(log, PAIR, wm_scope=scope) == []
    broken = "s1/1 open@0 x=1@4.0 s1/2 open@0 y=2@4.1 w@4"
    assert found(broken, PAIR, wm_scope="subscriber") == []
    assert found(broken, PAIR, wm_scope="session") == ["missing-event", "torn-unit"]


def test_superseded_rows_do_not_tear_a_unit() -> None:
    source = "ok@4 x=1 y=2; ok@6 x=3"
    assert found("open@0 y=2@4.1 x=3@6 w@6", source, versions="latest") == []
    assert found("open@0 y=2@4.1 x=3@6 w@6", source) == ["missing-event", "torn-unit"]
    # What comes after the watermark replaced nothing at it.
    late = found("open@0 y=2@4.1 w@6 x=3@6", source, versions="latest")
    assert late == ["late-event-boundary", "torn-unit"]


def test_a_torn_unit_is_reported_once_with_what_had_come_and_what_had_not() -> None:
    ruling = torn_units(view("open@0 x=1@4.0 w@4 w@5 y=2@4.1 w@6", PAIR))
    assert (ruling.watermark.tolist(), ruling.row.tolist(), ruling.write.tolist()) == ([2], [1], [1])


def test_an_epoch_is_a_unit_where_the_contract_says_so() -> None:
    source = "ok@4 x=1; ok@4 y=2"
    log = "open@0 x=1@4 w@4 y=2@4"
    epoch = {"position": "epoch", "identity": "position+key+value"}
    assert found(log, source, atomic_unit="epoch", **epoch) == ["late-event-boundary", "torn-unit"]
    assert found(log, source, atomic_unit="transaction", **epoch) == ["late-event-boundary"]
    by_column = "open@0 x=1@4 e1 w@4 y=2@5 e1 w@5"
    assert found(by_column, "ok@4e1 x=1; ok@5e1 y=2", atomic_unit="epoch") == ["torn-unit"]
    assert found(by_column, "ok@4e1 x=1; ok@5e1 y=2", atomic_unit="epoch", cut="position") == []
    assert found(by_column, "ok@4e1 x=1; ok@5e2 y=2", atomic_unit="epoch") == []
    # The rest of an epoch may lie above all that was delivered.
    assert found("open@0 x=1@4 e1 w@4", "ok@4e1 x=1; ok@5e1 y=2", atomic_unit="epoch") == ["torn-unit"]


def test_nothing_is_torn_where_nothing_is_atomic() -> None:
    assert found("open@0 x=1@4.0 w@4 y=2@4.1", PAIR, atomic_unit="none") == ["late-event-boundary"]


def test_the_end_of_a_batch_tears_what_it_parts() -> None:
    log = "open@0 x=1@4.0 commit y=2@4.1 commit w@4"
    for unit in ("batch", "response"):
        assert found(log, PAIR, atomic_unit=unit, cut="position") == ["torn-unit"]
        assert found("open@0 x=1@4.0 y=2@4.1 commit w@4", PAIR, atomic_unit=unit) == []
    assert found(log, PAIR, atomic_unit="transaction", cut="position") == []


def test_the_end_of_a_batch_tears_what_two_sessions_share() -> None:
    log = "s1/1 open@0 s1/2 open@0 s1/1 x=1@4.0 s1/2 y=2@4.1 s1/1 commit"
    shared = {"wm_scope": "subscriber", "cut": "position"}
    assert found(log, PAIR, atomic_unit="batch", **shared) == ["torn-unit"]
    assert found(log.replace("s1/2 y", "y"), PAIR, atomic_unit="batch", **shared) == []
    assert found(log, PAIR, atomic_unit="transaction", **shared) == []


def test_a_unit_over_partitions_is_torn_only_if_it_is_global() -> None:
    log = "open@0 x[1]=1@4.0 w@4 y[2]=2@4.1"
    assert "torn-unit" in found(log, PAIR, unit_scope="global")
    assert "torn-unit" not in found(log, PAIR, unit_scope="partition")
    assert "torn-unit" not in found("open@0 x[1]=1@4.0 w[1]@4 y[2]=2@4.1", PAIR)


def test_without_a_source_a_unit_has_as_many_rows_as_it_says() -> None:
    assert found("open@0 x=1@4.0 u7*2 w@4") == ["torn-unit"]
    assert found("open@0 x=1@4.0 u7*2 y=2@4.1 u7*2 w@4") == []
    assert found("open@0 x=1@4.0 u7*1 w@4") == []
    assert found("open@0 x=1@4.0 u7*2 w@4 y=2@4.1 u7*2") == ["late-event-boundary", "torn-unit"]
    assert found("open@0 gap x=1@4.0 u7*2 w@4") == []  # The gap may have held the other.


def test_without_a_source_rows_that_name_no_unit_are_events_of_their_own() -> None:
    unit = "x=1@4.0 u7*2 y=2@4.1 u7*2"
    # The first subscriber had the row of another unit, which bears the same number and no name.
    assert "torn-unit" not in found(f"s1 open@0 x=3@4.0 w@4 s2 open@0 {unit} w@4")
    assert "torn-unit" in found(f"s1 open@0 x=1@4.0 w@4 s2 open@0 {unit} w@4")
    # What a unit lacks, a row without a unit may have superseded.
    log = f"s1 open@0 {unit} w@4 s2 open@0 y=2@4.1 u7*2 x=3@5.0 w@5"
    assert found(log, versions="latest") == []
    assert found(log) == ["torn-unit"]


def test_witnesses_are_watermarks_that_newly_close_something() -> None:
    log = "open@0 x=1@1 w@1 w@1 x=2@2.0 y=3@2.1 w@2 w@2 y=4@3 w@9"
    witnesses = outcome(log, "ok@1 x=1; ok@2 x=2 y=3; ok@3 y=4", order_key="none").witnesses
    assert (witnesses["missing-event"], witnesses["torn-unit"]) == (3, 1)
    assert outcome("open@9 w@9", PAIR).witnesses["missing-event"] == 0
    assert outcome("open@0 w@9").witnesses["missing-event"] == 0


def test_a_stream_that_lacks_what_its_contract_needs_cannot_be_judged() -> None:
    def why(log: str, **changes: object) -> str | None:
        return defect(deliveries_of(events(log)), contract(**changes))

    assert why("open@0 x=1@4 w@4") is None
    assert "identity" in (why("", identity="position+key") or "")
    assert why("", identity="position+key", unit_rows="final") is None
    assert why("open@0 x=1 w@4") == "the event at journal position 101, and 0 more, came without position: record it"
    assert "partition" in (why("x[0]=1@4 w@4", wm_scope="partition") or "")
    assert why("x[0]=1@4 w[0]@4", wm_scope="partition") is None
    assert why("x=1@4 w@4", wm_scope="partition") is None


@pytest.mark.parametrize(
    ("changes", "needs_number"),
    [
        ({}, True),
        ({"identity": "position+key+value"}, False),
        ({"unit_rows": "final"}, False),
        ({"unit_rows": "final", "is_position_unique": False}, True),
        ({"unit_rows": "final", "is_position_unique": False, "atomic_unit": "epoch"}, False),
    ],
)
def test_rows_need_a_number_in_their_unit_only_where_nothing_else_tells_them_apart(
    changes: dict[str, object], needs_number: bool
) -> None:
    log = [replace(event, ordinal=NEVER) for event in events("open@0 x=1@4 w@4")]
    assert (defect(deliveries_of(log), contract(**changes)) is not None) is needs_number


def test_facts_count_what_is_legal_and_odd() -> None:
    facts = outcome("open@0 x=1@4 x=1@4 gap w@5 z=9@8 s1/2 open@4 w@6", "ok@4 x=1; ok y=1; info y=2").facts
    assert (facts["repeated-events"], facts["phantom-events"], facts["gap-markers"]) == (1, 1, 1)
    assert (facts["sessions"], facts["watermarks"], facts["events"]) == (2, 2, 3)
    source = outcome("open@0", "ok@4 x=1; ok y=1; info y=2; fail z=1").source
    assert source == {"writing-operations": 2, "unplaced-operations": 1, "unobserved-info-operations": 1}
