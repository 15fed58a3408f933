"""When the graph of watermarks, or the rules of streams, had to see what the other of the two found."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.streams import merged, placed, placement
from checkers.streams import check as streams
from checkers.watermarks.cycles.steps import NAMES
from checkers.watermarks.disputes import APART, LOST, OPEN_POSITION, SEEN, SHARED, WHOLE, Definition, why
from harness.core.verdict import Finding
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.streams.cases import contract
from tests.worlds.streams.language import deliveries_of, events, source_of, writes
from tests.worlds.streams.watermark_cases import judged, records

LATE = "0 ax1 ay2 @1; 1 rx1 ry2; open@0 x=1@1 w@1 y=2@1.1 w@1"
NEXT = "0 ax1 ay2 @1; 1 rx1 ry2; open@0 x=1@1 w@1"
UNREAD = "0 ax1 ay2 @1; 1 rx1; open@0 x=1@1 w@1"
REPLACED = "0 ax1 ay2 @1; 1 ay3 @2; 2 rx1 ry2,3; open@0 x=1@1 y=3@2 w@2"
BEHIND_ANOTHER = "0 ay3 @1; 1 ax1 ay2 @2; 2 rx1 ry3,2; open@0 x=1@2 w@2"  # Of y both are missing: 3 is next.
ADMITTED = "0 ax1 ay2 @1; 1 rx1 ry2; open@0 x=1@1 w@1 gap y=2@1.1 w@1"
UNKNOWN_VALUE = "0 ax1 ay2 @1; 1 rx1 ry2; open@0 y=9@1 x=1@1 w@1"
BACK = "0 ax1 ay2 @2; 1 rx1 ry2; open@0 x=1@2 w@2 w@1"
HELD = "0 ay3 @1; 1 ax1 ay2 @2; 2 rx1 ry3,2; open@1 x=1@2 w@2"
RESUMED_ABOVE = "0 ax1 ay2 @1; 1 rx1 ry2; s1/1 open@2; s1/2 open@0 x=1@1 w@1 y=2@1.1 w@1"  # It had all up to 2.
STARTED = "0 ax1 ay2 @3; 1 rx1 ry2; open@0 w@1; s1/2 open@1 x=1@3 w@3 y=2@3.1 w@3"

SPLIT_NEXT = "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; s2 open@0 w@1"
SPLIT_UNREAD = "0 ax1 @1; s1 open@0 x=1@1 w@1; s2 open@0 w@1"
SPLIT_APART = "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; s2 open@0 w@2"
SPLIT_TWICE = "0 ax1 @1; 1 rx1; s1 open@0 x=1@1 w@1; s2 open@0 w@1 w@1"  # Perhaps two nodes: nobody claims one.


def reasons(folder: Path, journal: str, anomaly: str, **changes: object) -> list[str]:
    """Why the graph need not have seen what the rules find of that kind."""
    write_history(records(journal), folder)
    how = contract(**changes)
    ask = why(folder, how)
    found = [
        finding
        for finding in streams.check(folder, Context(engine=LocalEngine(1), contract=how)).findings
        if finding.anomaly == anomaly
    ]
    assert found, "the rules find nothing to ask about"
    return [ask(finding) for finding in found]


@pytest.mark.parametrize(
    ("journal", "reason"),
    [
        (LATE, SEEN),
        (NEXT, SEEN),
        (STARTED, SEEN),
        (HELD, SEEN),  # What a session begins with is held: the missing version is next to it.
        (UNREAD, LOST),
        (REPLACED, LOST),
        (BEHIND_ANOTHER, LOST),
        (ADMITTED, LOST),
        (RESUMED_ABOVE, LOST),
        (UNKNOWN_VALUE, LOST),
        (BACK, WHOLE),
    ],
)
def test_a_torn_unit_had_to_be_seen_if_its_row_came_later_or_was_next(
    journal: str, reason: str, tmp_path: Path
) -> None:
    # Positions are of several transactions here, so that they order no versions: only reads do.
    how: dict[str, object] = {"is_position_unique": False, "identity": "position+key+value"}
    assert reasons(tmp_path, journal, "torn-unit", **how)[0] == reason


def test_positions_that_are_trusted_order_versions_that_nobody_read(tmp_path: Path) -> None:
    assert reasons(tmp_path, UNREAD, "torn-unit") == [SEEN]


def test_an_epoch_torn_between_transactions_is_whole_for_the_graph(tmp_path: Path) -> None:
    journal = "0 ax1 @5; 1 ay2 @5; 2 rx1 ry2; open@0 x=1@5 w@5"
    how: dict[str, object] = {"position": "epoch", "atomic_unit": "epoch", "unit_rows": "final", "cut": "position"}
    how |= {"is_position_unique": False, "identity": "position+key+value"}
    assert reasons(tmp_path, journal, "torn-unit", **how) == [WHOLE]


def test_what_comes_later_tells_nothing_where_versions_may_be_skipped(tmp_path: Path) -> None:
    how: dict[str, object] = {"is_position_unique": False, "identity": "position+key+value", "versions": "latest"}
    unread = "0 ax1 ay2 @1; 1 rx1; open@0 x=1@1 w@1 y=2@1.1 w@1"
    assert reasons(tmp_path, unread, "torn-unit", **how) == [LOST]


@pytest.mark.parametrize(
    ("journal", "reason"),
    [
        (SPLIT_NEXT, SEEN),
        (SPLIT_UNREAD, LOST),
        (SPLIT_APART, APART),
        (SPLIT_TWICE, APART),
    ],
)
def test_a_split_view_had_to_be_seen_if_two_watermarks_are_one_node(journal: str, reason: str, tmp_path: Path) -> None:
    how: dict[str, object] = {"is_position_unique": False, "identity": "position+key+value", "wm_scope": "subscriber"}
    assert reasons(tmp_path, journal, "split-view", **how) == [reason]


@pytest.mark.parametrize("journal", [LATE, NEXT, STARTED, HELD, SPLIT_NEXT])
def test_what_had_to_be_seen_is_seen(journal: str, tmp_path: Path) -> None:
    how: dict[str, object] = {"is_position_unique": False, "identity": "position+key+value", "wm_scope": "subscriber"}
    assert judged(tmp_path, journal, frozenset(NAMES), **how).findings


@pytest.mark.parametrize(
    ("journal", "changes", "reason"),
    [
        (LATE, {}, SEEN),
        ("0 ax1 ay2 @5; 1 rx1 ry2; open@0 x=1@5 w@4 y=2@5.1 w@5", {}, OPEN_POSITION),  # It ran ahead: that is legal.
        ("0 ax1 ay2; 1 rx1 ry2; open@0 x=1@9 w@4 y=2@9.1 w@9", {}, OPEN_POSITION),
        (LATE, {"closed": "<"}, OPEN_POSITION),
        (LATE, {"wm_scope": "global"}, SHARED),
    ],
)
def test_the_rules_had_to_see_what_watermarks_close(
    journal: str, changes: dict[str, object], reason: str, tmp_path: Path
) -> None:
    [finding] = judged(tmp_path, journal, frozenset(NAMES), **changes).findings
    assert finding.anomaly == "torn-watermark"
    assert why(tmp_path, contract(**changes))(finding) == reason


def test_a_finding_without_operations_is_no_dispute(tmp_path: Path) -> None:
    write_history(records(LATE), tmp_path)
    nothing = Finding(fingerprint="", anomaly="torn-watermark", checker="", sentence="")
    assert why(tmp_path, contract())(nothing) == OPEN_POSITION


def answer(log: str, source: str, anomaly: str = "torn-unit", **changes: object) -> str:
    """What the definition says of a finding that shows all events of the log, and is about the first operation."""
    deliveries, written = deliveries_of(events(log)), source_of(writes(source))
    written = placed(written, merged([placement(deliveries, written)]))
    definition = Definition(deliveries, written, contract(**changes))
    finding = Finding(
        fingerprint="", anomaly=anomaly, checker="", sentence="", ops=(0,), events=tuple(deliveries.seq.tolist())
    )
    return definition.torn(finding) if anomaly == "torn-unit" else definition.split(finding)


TWO = "ok@1 x=1 y=2"


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("open@0 x=1@1 w@1 y=2@1.1", SEEN),
        ("open@0 ~x=1@1 w@1 y=2@1.1", WHOLE),  # A snapshot's row.
        ("open@0 w@1 x=1@1 y=2@1.1", WHOLE),  # It came later.
        ("open@0 x=1@1 w[0]@1 y=2@1.1", WHOLE),  # Of one partition.
        ("s1/1 open@0 x=1@1 s1/2 open@0 w@1 y=2@1.1", WHOLE),
        ("s1 open@0 x=1@1 s2 open@0 w@1 y=2@1.1", WHOLE),
        ("open@0 x=1@1 gap w@1 y=2@1.1", WHOLE),
    ],
)
def test_a_watermark_contains_rows_that_came_before_it_in_its_session(log: str, reason: str) -> None:
    assert answer(log, TWO) == reason


@pytest.mark.parametrize(("cut", "ahead", "behind"), [("delivery", SEEN, SEEN), ("position", LOST, SEEN)])
def test_rows_ahead_of_a_watermark_are_in_it_where_the_cut_is_by_delivery(cut: str, ahead: str, behind: str) -> None:
    source = "ok@5 x=1 y=2"
    assert answer("open@0 x=1@5 w@3 y=2@5.1 w@5", source, cut=cut) == ahead
    assert answer("open@0 x=1@5 w@5 y=2@5.1", source, cut=cut) == behind


@pytest.mark.parametrize(
    ("log", "source"),
    [
        ("open@0 x=1@1 y=2@1.1 w@1 y=2@1.1", TWO),  # It had come, and comes again.
        ("open@0 y=9@1 x=1@1 w@1 y=2@1.1", TWO),  # Nobody knows what y was before.
        ("open@0 ~y=9@1 x=1@3 w@3 y=2@3.1", "ok@3 x=1 y=2; ok@1 y=9"),  # Nor what the snapshot had.
        ("open@1 x=1@1 w@2 y=2@1.1", TWO),  # The session began with both.
        ("open@1 x=1@2 w@1 y=2@2.1", "ok@2 x=1 y=2"),  # The watermark says nothing beyond the beginning.
        ("open[0]@0 x[0]=1@1 w@1 y[0]=2@1.1", "ok@1 x[0]=1 y[0]=2"),
        ("open:y@0 x=1@1 w@1 y=2@1.1", TWO),
        ("open x=1@1 w@1 y=2@1.1", TWO),  # From where on, nobody knows.
        ("open@0 x=1@1 w@1 open@0 y=2@1.1", TWO),
        ("open@0 x=1@1 w@1 y=2@1.1", "ok@1 x=1 y=2; ok y=3"),  # One version of y may be anywhere.
        ("open@0 x=1@1 w@1 y=2@1.1", "ok@1 x=1 y=2; info y=3#7"),  # This one, too: somebody read it.
    ],
)
def test_where_coverage_is_in_doubt_nothing_had_to_be_seen(log: str, source: str) -> None:
    assert answer(log, source) == LOST


@pytest.mark.parametrize(("source", "reason"), [("ok@3 x=1 y=2#1; ok@2 y=5#2", SEEN), ("ok@3 x=1 y=2; ok@2 y=5", LOST)])
def test_what_never_came_had_to_be_seen_if_it_is_the_next_by_rank_or_else_by_position(source: str, reason: str) -> None:
    assert answer("open@0 x=1@3 w@3", source) == reason


def test_what_is_next_to_a_version_without_a_rank_nobody_knows() -> None:
    log = "open@0 y=3@1 x=1@3 w@3"
    assert answer(log, "ok@3 x=1 y=2; ok@1 y=3") == SEEN
    how: dict[str, object] = {"is_position_unique": False, "identity": "position+key+value"}
    assert answer(log, "ok@3 x=1#1 y=2#2; ok@1 y=3#1", "torn-unit", **how) == SEEN
    assert answer(log, "ok@3 x=1#1 y=2#2; ok@1 y=3", "torn-unit", **how) == LOST


def test_a_version_without_a_rank_with_which_a_session_began_leaves_doubt() -> None:
    log, source = "open@1 x=1@2 w@2 y=2@2.1", "ok@2 x=1#1 y=2#2; ok@1 y=3"
    assert answer(log, source) == SEEN
    assert answer(log, source, is_position_unique=False, identity="position+key+value") == LOST


@pytest.mark.parametrize(("resume", "reason"), [("after", LOST), ("at", SEEN)])
def test_a_session_that_resumes_at_a_position_does_not_begin_with_it(resume: str, reason: str) -> None:
    assert answer("open@1 x=1@1 w@2 y=2@1.1", TWO, resume=resume) == reason


@pytest.mark.parametrize("other", ["fail y=2", "fail@1 y=3", "info y=3", "ok z=3"])
def test_a_write_that_failed_that_nobody_saw_or_of_another_key_leaves_no_doubt(other: str) -> None:
    assert answer("open@0 x=1@1 w@1 y=2@1.1", f"{TWO}; {other}") == SEEN


@pytest.mark.parametrize(("wm_scope", "reason"), [("session", SEEN), ("subscriber", WHOLE)])
def test_a_new_session_begins_a_chain_where_watermarks_bind_sessions(wm_scope: str, reason: str) -> None:
    log = "s1/1 open@0 w@5 s1/2 open@0 x=1@1 w@1 y=2@1.1"
    assert answer(log, TWO, wm_scope=wm_scope) == reason


@pytest.mark.parametrize(
    ("log", "changes", "reason"),
    [
        ("s1 open@0 x=1@1 w@1 s2 open@0 w@1 x=1@1", {}, SEEN),
        ("s1 open@0 x=1@1 w@1 s2 open@0 w@1 x=1@1", {"is_position_global": False}, APART),
        ("s1 open@0 w@1 x=1@1 w@2 s2 open@0 w@1 x=1@1", {}, APART),  # The one that they share came before the row.
        ("s1 open@0 x=1@1 w@1 w@1 s2 open@0 w@1 x=1@1", {}, APART),  # Perhaps two nodes.
        ("s1 open@0 x=1@1 w@1 w[0]@1 s2 open@0 w@1 x=1@1", {}, SEEN),
    ],
)
def test_two_subscribers_share_a_watermark_of_one_position(log: str, changes: dict[str, object], reason: str) -> None:
    assert answer(log, "ok@1 x=1", "split-view", wm_scope="subscriber", **changes) == reason
