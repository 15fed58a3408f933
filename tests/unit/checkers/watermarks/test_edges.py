"""What a watermark contains, what it lacks, and how watermarks are chained: one case for each promise."""

import numpy as np
import pytest

from checkers.watermarks.edges import node_pairs, watermark_edges
from checkers.watermarks.versions import key_order, shown_writes, states_at
from harness.core.columns import NEVER
from tests.worlds.streams.cases import contract
from tests.worlds.streams.language import deliveries_of, events, source_of, writes

TWO = "ok@1 x=1#0 y=2#0; ok@2 x=3#1"


def links(log: str, source: str, **changes: object) -> set[str]:
    """The edges in words: T0>W0 where W0, the first watermark received, contains T0, and W0>T1 where it does not."""
    written = source_of(writes(source))
    columns = node_pairs(deliveries_of(events(log)), written, contract(**changes))
    base = int(written.op.max(initial=-1)) + 1
    return {f"{_word(one, base)}>{_word(two, base)}" for pairs in columns for one, two in pairs.tolist()}


def _word(number: int, base: int) -> str:
    return f"T{number}" if number < base else f"W{number - base}"


def test_a_watermark_contains_what_came_before_it_and_lacks_what_came_after() -> None:
    assert links("open@0 x=1@1 y=2@1.1 w@1 x=3@2 w@2", TWO) == {"T0>W0", "W0>T1", "T1>W1", "W0>W1"}


def test_a_torn_transaction_is_contained_and_lacked() -> None:
    assert {"T0>W0", "W0>T0"} <= links("open@0 x=1@1 w@1 y=2@1.1 w@1", TWO)


def test_a_row_above_a_watermark_is_not_in_it_under_a_cut_by_position() -> None:
    log = "open@0 x=1@5 w@1 y=2@5.1 w@5"
    source = "ok@5 x=1#0 y=2#0"
    assert links(log, source, cut="position") == {"W0>T0", "T0>W1", "W0>W1"}
    assert {"T0>W0", "W0>T0"} <= links(log, source, cut="delivery")


@pytest.mark.parametrize(("closed", "position", "is_in"), [
    ("<=", 1, False), ("<=", 2, True), ("<=", 3, True), ("<", 1, False), ("<", 2, False), ("<", 3, True),
])  # fmt: skip
def test_what_is_below_at_and_above_a_position_is_closed_as_declared(closed: str, position: int, is_in: bool) -> None:
    found = links(f"open@0 x=1@2 w@{position}", "ok@2 x=1#0", cut="position", closed=closed)
    assert found == ({"T0>W0"} if is_in else {"W0>T0"})


def test_without_a_declared_cut_there_is_no_node() -> None:
    assert links("open@0 x=1@1 w@1 y=2@1.1 w@1", TWO, cut="unknown") == set()


def test_a_row_that_never_came_is_lacked_by_the_last_watermark() -> None:
    assert links("open@0 x=1@1 w@1 w@2", "ok@1 x=1#0; ok@2 y=2#0") == {"T0>W0", "W1>T1", "W0>W1"}


@pytest.mark.parametrize("cut", ["delivery", "position"])
def test_a_gap_before_the_first_watermark_takes_nothing_from_the_state_with_which_the_session_began(cut: str) -> None:
    source = "ok@1 x=1#0; ok@2 x=3#1"
    assert links("open@1 gap w@2", source, cut=cut) == {"T0>W0"}
    assert links("open@1 gap:y w@2", source, cut=cut) == {"T0>W0", "W0>T1"}
    assert links("open@1 w@0 gap w@2", source, cut="position") == {"T0>W1", "W0>W1"}


def test_a_version_that_may_be_skipped_is_not_lacked_when_a_replay_shows_it() -> None:
    log = "open@0 x=3@2 w@2 s1/2 open@0 x=1@1 x=3@2 w@2"
    source = "ok@1 x=1#0; ok@2 x=3#1"
    assert "W0>T0" not in links(log, source, versions="latest", wm_scope="subscriber")
    assert "W0>T0" in links(log, source, wm_scope="subscriber")


def test_the_segment_of_a_version_ends_before_a_gap() -> None:
    found = links("open@0 x=1@1 w@1 gap w@2 w@3", TWO)
    assert "W0>T1" in found
    assert not {"W1>T1", "W2>T1"} & found


def test_after_a_gap_a_key_is_covered_from_its_next_row_on() -> None:
    source = "ok@1 x=1#0; ok@2 x=2#1; ok@3 x=3#2; ok@4 x=4#3"
    assert {"W2>T3", "T2>W2"} <= links("open@0 x=1@1 w@1 gap w@2 x=3@3 w@3", source)
    assert "W2>T2" not in links("open@0 x=1@1 w@1 gap x=1@1 w@2 w@3", source)


def test_what_coverage_began_with_is_contained_whenever_it_comes() -> None:
    source = "ok@1 x=1#0; ok@2 x=2#1; ok@3 x=3#2"
    log = "open@0 x=1@1 w@1 gap x=3@3 w@3 s1/2 open@1 x=2@2 x=3@3 w@3"
    found = links(log, source, wm_scope="subscriber")
    assert "W0>T1" in found
    assert "W1>T1" not in found


def test_a_session_begins_with_the_state_at_its_position() -> None:
    source = "ok@1 x=1#0; ok@2 x=2#1; ok@3 x=3#2"
    assert links("open@2 w@2", source) == {"T1>W0", "W0>T2"}
    assert links("open@2 w@2", source, resume="at") == {"T0>W0", "W0>T1"}


def test_a_session_whose_start_nobody_knows_begins_with_the_first_row_of_each_key() -> None:
    source = "ok@1 x=1#0; ok@2 x=2#1; ok@3 x=3#2"
    assert links("open w@1 x=2@2 w@2", source) == {"T1>W1", "W1>T2", "W0>W1"}
    assert links("w@1 x=2@2 w@2", source) == {"T1>W1", "W1>T2", "W0>W1"}


def test_the_state_is_unknown_where_a_version_has_no_position() -> None:
    assert links("open@2 w@2", "ok@1 x=1#0; ok x=2#1; ok@3 x=3#2") == set()


def test_a_row_of_a_backfill_is_in_and_never_late() -> None:
    found = links("open w@1 ~x=1@1 w@2", "ok@1 x=1#0; ok@3 x=2#1")
    assert found == {"T0>W1", "W1>T1", "W0>W1"}


def test_a_repeated_row_changes_nothing_and_an_older_one_replaces_no_newer() -> None:
    source = "ok@1 x=1#0; ok@2 x=2#1; ok@3 x=3#2"
    once = links("open@0 x=1@1 x=2@2 w@2 w@3", source)
    assert links("open@0 x=1@1 x=2@2 w@2 x=1@1 x=2@2 w@3", source) == once
    assert "W1>T2" in once


def test_a_chain_is_cut_where_a_watermark_goes_back() -> None:
    assert "W0>W1" not in links("open@0 x=1@1 w@2 w@1 w@2", TWO)
    assert "W1>W2" in links("open@0 x=1@1 w@2 w@1 w@2", TWO)


def test_watermarks_of_partitions_are_chains_of_their_own() -> None:
    source = "ok@1 x[0]=1#0 y[1]=2#0; ok@2 y[1]=3#1"
    found = links("open@0 x[0]=1@1 w[0]@1 y[1]=2@1.1 w[1]@1 w[0]@2 y[1]=3@2", source)
    assert found == {"T0>W0", "T0>W1", "W1>T1", "W0>W2"}


@pytest.mark.parametrize(("scope", "is_one"), [("session", False), ("subscriber", True)])
def test_a_chain_goes_on_in_the_next_session_if_its_scope_is_wider(scope: str, is_one: bool) -> None:
    log = "s1/1 open@0 x=1@1 w@1 s1/2 open@1 w@1"
    assert ("W0>W1" in links(log, "ok@1 x=1#0", wm_scope=scope)) is is_one


def test_what_no_watermark_contained_does_not_count_in_the_next_session() -> None:
    log = "s1/1 open@0 x=1@1 w@1 x=3@2 s1/2 open@1 w@1"
    assert "T1>W1" not in links(log, TWO, wm_scope="subscriber")


def test_a_state_holds_what_lists_put_before_a_version_of_a_lower_position() -> None:
    source = source_of(writes("ok@5 x=1#0; ok@3 x=2#1; ok@7 x=3#2"))
    order = key_order(source, contract())
    position = np.array([2, 3, 4, 6, 7])
    code = np.zeros(5, np.int64)
    assert states_at(order, source, code=code, position=position, with_it=True).tolist() == [-1, 1, 1, 1, 2]


def test_an_unknown_version_ends_coverage_until_a_known_one_comes() -> None:
    source = "ok@1 x=1#0; ok@3 x=3#1; ok@4 x=4#2"
    found = links("open@0 x=1@1 w@1 x=7@2 w@2 x=3@3 w@3", source)
    assert found == {"T0>W0", "W0>T1", "T1>W2", "W2>T2", "W0>W1", "W1>W2"}


def test_a_failed_write_is_no_version() -> None:
    assert links("open@0 x=1@1 w@1 w@2", "ok@1 x=1#0; fail x=2; ok@3 x=3#1") == {"T0>W0", "W1>T2", "W0>W1"}


def test_an_unclear_write_is_one_once_somebody_saw_it() -> None:
    assert "W0>T1" in links("open@0 x=1@1 w@1", "ok@1 x=1#0; info x=2#1")
    assert "W0>T1" not in links("open@0 x=1@1 w@1", "ok@1 x=1#0; info x=2")


def test_two_versions_of_one_transaction_have_a_watermark_between() -> None:
    assert {"T0>W0", "W0>T0"} <= links("open@0 x=1@1.0 w@1 x=2@1.1 w@1", "ok@1 x=1#0 x=2#1")


@pytest.mark.parametrize(("source", "shown"), [
    ("ok@1 x=1; ok@2 x", 1),  # The only delete of the key.
    ("ok@1 x; ok@2 x", 1),  # Two, one of them at the position of the row.
    ("ok@2 x; ok@2 x", -2),  # Nobody knows which.
    ("ok@1 x", -2),  # The only one is at another position.
])  # fmt: skip
def test_a_delete_is_attributed_by_position_or_as_the_only_one(source: str, shown: int) -> None:
    written = writes(" ".join(word if "=" in word or "@" in word or word == ";" else "x=0" for word in _words(source)))
    columns = source_of(written)
    columns.value[columns.value == 0] = NEVER
    log = deliveries_of(events("x=0@2"))
    log.value[:] = NEVER
    assert shown_writes(log, columns).tolist() == [shown]


def _words(source: str) -> list[str]:
    return source.replace(";", " ;").split()


def test_the_order_is_that_of_lists_and_else_that_of_positions_where_these_are_declared() -> None:
    columns = source_of(writes("ok@2 x=1#0 y=5; ok@1 x=2#1 y=6; ok@3 x=3"))
    assert key_order(columns, contract()).counts == {"lists": 2, "positions": 3, "none": 0}
    assert key_order(columns, contract(is_position_unique=False)).counts == {"lists": 2, "positions": 0, "none": 3}
    assert key_order(columns, contract(order_key="none")).counts == {"lists": 2, "positions": 0, "none": 3}


def test_without_an_order_delivery_alone_gives_edges() -> None:
    source, changes = "ok@1 x=1; ok@2 x=2", {"order_key": "none"}
    assert links("open x=1@1 w@1 x=2@2 w@2", source, **changes) == {"T0>W0", "W0>T1", "T1>W1", "W0>W1"}
    assert links("open x=1@1 w@1", source, **changes) == {"T0>W0"}


def test_witnesses_are_watermarks_that_newly_contain_a_write() -> None:
    log, source = deliveries_of(events("open@0 w@0 x=1@1 y=2@1.1 w@1 w@1 x=3@2 w@2")), source_of(writes(TWO))
    found = watermark_edges(log, source, contract())
    assert (found.witnesses.tolist(), found.passing.mark.tolist()) == ([1, 3], [])
    twice = source_of(writes("ok@1 x=1#0 x=2#1"))
    again = watermark_edges(deliveries_of(events("open@0 x=1@1.0 x=2@1.1 w@1")), twice, contract())
    assert again.passing.mark.tolist() == [0]
