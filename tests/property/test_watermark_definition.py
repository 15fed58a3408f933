"""The slow definition of the watermark graph says what was meant: small worlds, each with the one thing that it shows.

A world is a log and a source in the small language; versions stand in the order of their writing, operations follow one
another unless they are `together`, and everything was received when they were over, unless `early`.
"""

from dataclasses import replace

import msgspec
import pytest

from harness.core.columns import FAIL, INFO, NEVER, OK
from harness.core.promises import StreamContract
from tests.oracles.watermark_classes import level, names
from tests.oracles.watermark_graph import Cuts, edges
from tests.oracles.watermark_source import Edge, Read, Transaction, Using, World
from tests.worlds.streams.language import events, key_of, writes

CONTRACT = StreamContract(closed="<=", cut="delivery", position="offset", wm_scope="subscriber", unit_rows="each")
TWO = "ok@1 x=1 y=2"
X, Y = key_of("x"), key_of("y")


def small(
    log: str,
    source: str,
    *,
    reads: str = "",
    as_of: tuple[int, int] | None = None,
    together: bool = False,
    early: bool = False,
    **changes: object,
) -> World:
    """`reads`: words like `1x2`, operation 1 read x as 2, and `1x-`, as nothing. `as_of`: an operation, and where."""
    ranks: dict[int, int] = {}
    written = []
    for w in writes(source):
        if w.outcome != FAIL:
            ranks[w.key] = ranks.get(w.key, 0) + 1
        written.append(replace(w, version=ranks[w.key] if w.outcome != FAIL else NEVER))
    seen = [(int(word[0]), key_of(word[1]), NEVER if word[2] == "-" else int(word[2:])) for word in reads.split()]
    count = max([w.op for w in written] + [op for op, _, _ in seen]) + 1
    transactions = []
    for op in range(count):
        outcome = next((w.outcome for w in written if w.op == op), OK)
        begin, end = (op, 500) if together else (10 * op, 10 * op + 5)
        transactions.append(
            Transaction(
                index=op,
                process=op,
                invoke=begin,
                complete=NEVER if outcome == INFO else end,
                outcome=outcome,
                reads=tuple(Read(key=key, value=value) for reader, key, value in seen if reader == op),
                as_of=as_of[1] if as_of and as_of[0] == op else NEVER,
            )
        )
    happened = events(log)
    return World(
        transactions=tuple(transactions),
        writes=tuple(written),
        log=tuple(happened),
        received=tuple(t if early else 1000 + t for t in range(len(happened))),
        contract=msgspec.structs.replace(CONTRACT, **changes),
    )


def classes(one: World, using: Using | None = None) -> set[str]:
    return {cycle.name for cycle in names(edges(one, using))}


def of_watermarks(one: World) -> set[tuple[str, str, str]]:
    """The in and out edges in short: ("t0", "in", "w2")."""
    drawn = (e for e in edges(one, Using(realtime=False)) if e.kind in {"in", "out"})
    return {(f"{e.source[0]}{e.source[1]}", e.kind, f"{e.target[0]}{e.target[1]}") for e in drawn}


# Faults


def test_a_transaction_half_of_which_came_before_a_watermark_is_torn() -> None:
    assert classes(small("open@0 x=1@1 w@1 y=2@1", TWO)) == {"torn-watermark"}
    assert classes(small("open@0 x=1@1 y=2@1 w@1", TWO)) == set()


def test_a_row_ahead_of_its_watermark_tears_nothing_under_a_cut_by_position() -> None:
    ahead = "open@0 x=1@5 w@3 y=2@5 w@5"
    assert classes(small(ahead, "ok@5 x=1 y=2", cut="position")) == set()
    assert classes(small(ahead, "ok@5 x=1 y=2", cut="delivery")) == {"torn-watermark"}
    assert edges(small(ahead, "ok@5 x=1 y=2", cut="unknown")) == []


@pytest.mark.parametrize(("closed", "found"), [("<", set()), ("<=", {"torn-watermark"})])
def test_what_stands_at_the_watermark_is_in_it_if_it_closes_that(closed: str, found: set[str]) -> None:
    assert classes(small("open@0 x=1@5 w@5 y=2@5", "ok@5 x=1 y=2", cut="position", closed=closed)) == found
    assert classes(small("open@0 x=1@5 w@4 y=2@5", "ok@5 x=1 y=2", cut="position", closed=closed)) == set()
    assert classes(small("open@0 x=1@5 w@6 y=2@5", "ok@5 x=1 y=2", cut="position", closed=closed)) == {"torn-watermark"}


def test_a_late_row_contradicts_who_read_it_or_overwrote_it() -> None:
    late = "open@0 y=2@2 w@2 x=1@1"
    assert classes(small(late, "ok@1 x=1; ok@2 y=2", reads="1x1", together=True)) == {"G1c-watermark"}
    assert classes(small(late, "ok@1 x=1; ok@2 y=2", together=True)) == set()
    over = "open@0 x=2@2 w@2 x=1@1"
    assert classes(small(over, "ok@1 x=1; ok@2 x=2", together=True)) == {"G0-watermark"}
    assert classes(small(over, "ok@1 x=1; ok@2 x=2", together=True), Using(delivery=False)) == set()


def test_a_missing_row_contradicts_real_time_if_its_version_has_a_place() -> None:
    world = small("open@0 y=2@2 w@2", "ok@1 x=1; ok@2 y=2")
    assert classes(world) == {"G0-watermark-realtime"}
    assert classes(world, Using(realtime=False)) == set()
    assert classes(world, Using(versions=False)) == set()
    assert classes(small("open@0 y=2@2 w@2", "ok@1 x=1; ok@2 y=2", together=True)) == set()
    assert classes(small("open@0 y=2@2 w@2", "info@1 x=1; ok@2 y=2")) == set()


def test_an_rw_edge_does_not_hide_that_one_ended_before_the_other_began() -> None:
    world = small("open@0 y=2@2 w@2", "ok@1 x=1; ok@2 y=2", reads="0y-")
    assert classes(world) == {"G0-watermark-realtime", "G2-item-watermark"}
    assert (level(edges(world)), level(edges(world), through="rt")) == (3, 1)


def test_two_subscribers_that_saw_one_position_differently_are_split() -> None:
    log = "s1 open@0 s2 open@0 s1 x=1@1 w@1 s2 w@1 x=1@1"
    assert classes(small(log, "ok@1 x=1")) == {"split-watermark"}
    assert classes(small(log, "ok@1 x=1", is_position_global=False)) == set()


def test_two_subscribers_that_agree_on_no_order_are_a_fork() -> None:
    log = "s1 open@0 s2 open@0 s1 x=1@1 w@1 y=2@2 s2 y=2@2 w@2 x=1@1"
    assert classes(small(log, "ok@1 x=1; ok@2 y=2", together=True)) == {"fork-watermark"}


def test_a_read_at_a_position_is_the_watermark_of_that_position() -> None:
    log = "open@0 x=1@1 w@2"
    assert classes(small(log, "ok@1 x=1", reads="1x-", as_of=(1, 2))) == {"split-watermark"}
    assert classes(small(log, "ok@1 x=1", reads="1x1", as_of=(1, 2))) == set()
    assert classes(small(log, "ok@1 x=1", reads="1x-", as_of=(1, 0))) == set()
    assert classes(small(log, "ok@1 x=1", reads="1x-", as_of=(1, 2), closed="<")) == set()


def test_a_watermark_holds_only_the_last_write_of_a_key() -> None:
    log = "open@0 x=1@1.0 w@1 x=2@1.1"
    assert classes(small(log, "ok@1 x=1 x=2")) == {"intermediate-watermark"}
    assert classes(small("open@0 x=1@1.0 x=2@1.1 w@1", "ok@1 x=1 x=2")) == set()


def test_what_a_subscriber_has_seen_a_later_operation_sees_only_where_that_is_promised() -> None:
    log = "open@0 x=1@1 w@1"
    seen = small(log, "info@1 x=1", reads="1x-", early=True, realtime="reads")
    assert classes(seen) == {"G-single-watermark-realtime"}
    assert classes(small(log, "info@1 x=1", reads="1x-", early=True, realtime="none")) == set()
    assert classes(replace(seen, received=tuple(100 + t for t in range(3)))) == set()
    assert classes(small(log, "info@1 x=1", reads="1x-", early=True, realtime="reads", as_of=(1, 0))) == set()


# What is legal


def test_rows_that_come_again_change_nothing() -> None:
    log = "open@0 x=1@1 y=2@1 w@1 x=3@2 x=1@1 w@2"
    assert classes(small(log, "ok@1 x=1 y=2; ok@2 x=3")) == set()


def test_a_session_holds_nothing_above_where_it_resumes() -> None:
    log = "open@0 x=1@1 w@1 x=2@2 s1/2 open@1 w@1 x=2@2 y=3@2 w@2"
    for scope in ("session", "subscriber"):
        assert classes(small(log, "ok@1 x=1; ok@2 x=2 y=3", wm_scope=scope)) == set()


def test_what_came_again_below_the_start_belongs_to_it() -> None:
    log = "open@0 x=1@1 y=2@1 w@1 s1/2 open@1 w@1 x=1@1 w@1 x=3@2"
    world = small(log, "ok@1 x=1 y=2; ok@2 x=3", wm_scope="session", is_position_global=False)
    assert classes(world) == set()
    assert {("w5", "out", "t1"), ("t0", "in", "w5")} <= of_watermarks(world)


def test_a_repeated_row_below_an_unknown_start_does_not_begin_coverage() -> None:
    world = small("open@2 x=1@1 w@2 x=2@2 x=3@3 w@3", "ok@1 x=1; ok@2 x=2; ok@3 x=3")
    assert classes(world) == set()
    assert [Cuts(world).covered(m) for m in (2, 5)] == [[], [X]]


def test_a_gap_ends_coverage_until_the_next_row() -> None:
    lost = "open@0 x=1@1 w@1 gap w@2 x=3@3 w@3"
    world = small(lost, "ok@1 x=1; ok@2 x=2 y=4; ok@3 x=3", reads="2y4")
    assert classes(world) == set()
    assert Cuts(world).covered(2) == [X, Y]
    assert Cuts(world).covered(4) == []
    assert Cuts(world).covered(6) == [X]
    silent = lost.replace("gap ", "")
    assert classes(small(silent, "ok@1 x=1; ok@2 x=2 y=4; ok@3 x=3", reads="2y4")) != set()


def test_what_a_gap_lost_and_a_later_session_brings_was_in_the_watermarks_between() -> None:
    log = "open@0 x=1@1 w@1 gap x=3@3 w@3 s1/2 open@1 x=2@2 x=3@3 w@3"
    assert classes(small(log, "ok@1 x=1; ok@2 x=2; ok@3 x=3")) == set()


def test_a_resumption_behind_skipped_versions_holds_nothing_that_is_known() -> None:
    log = "open@0 x=1@1 y=2@3 x=3@3 w@3 s1/2 open@2 w@2 y=2@3"
    source = "ok@1 x=1; ok@2 x=4; ok@3 y=2 x=3"
    world = small(log, source, versions="latest", wm_scope="session")
    assert classes(world) == set()
    assert Cuts(world).covered(6) == []
    whole = small(log.replace("x=1@1", "x=1@1 x=4@2"), source, wm_scope="session")
    assert Cuts(whole).covered(7) == [X, Y]


def test_partitions_have_chains_of_their_own() -> None:
    log = "open@0 x[0]=1@5 w[0]@9 w[1]@1 y[1]=2@5 w[1]@9"
    source = "ok@5 x[0]=1 y[1]=2"
    for scope in ("session", "subscriber", "partition"):
        assert classes(small(log, source, wm_scope=scope, cut="position")) == set()
    assert classes(small(log.replace("w[1]@1 y", "w[1]@9 y"), source, cut="position")) != set()
    in_order = small(log, source, wm_scope="global", cut="position")
    assert classes(in_order) == set()
    chained = [e for e in edges(in_order) if e.kind == "chain"]
    assert [(e.source, e.target) for e in chained] == [(("w", 3), ("w", 2))]


def test_nothing_is_not_the_first_version_of_a_key_that_was_deleted() -> None:
    world = small("open@0 x=1@1 w@1", "ok@1 x=1; ok@2 x=2; ok@3 y=3", reads="2x-")
    assert "rw" in {e.kind for e in edges(world)}
    deleted = replace(world, writes=(world.writes[0], replace(world.writes[1], value=NEVER), world.writes[2]))
    assert not {e.kind for e in edges(deleted)} & {"rw", "wr"}


def test_what_nobody_wrote_ends_coverage_until_a_row_that_is_known() -> None:
    world = small("open@0 x=9@1 w@1 x=2@2 w@2", "ok@1 x=1; ok@2 x=2; fail x=9")
    cuts = Cuts(world)
    assert (cuts.covered(2), cuts.covered(4)) == ([], [X])
    assert classes(world) == set()


def test_an_unclear_write_counts_only_if_somebody_saw_it() -> None:
    unseen = small("open@0 y=2@2 w@2", "info@1 x=1; ok@2 y=2")
    assert of_watermarks(unseen) == {("t1", "in", "w2")}
    seen = small("open@0 y=2@2 w@2 x=1@1", "info@1 x=1; ok@2 y=2")
    assert of_watermarks(seen) == {("t1", "in", "w2"), ("w2", "out", "t0")}


def test_a_snapshot_is_never_late() -> None:
    log = "open@0 y=2@2 w@2 ~x=1@1 w@2"
    source = "ok@1 x=1; ok@2 y=2"
    unordered = Using(versions=False, realtime=False)
    assert [e.kind for e in edges(small(log, source, together=True), unordered)].count("out") == 0
    assert [e.kind for e in edges(small(log.replace("~", ""), source), unordered)].count("out") == 1


def test_a_repeated_position_is_one_node_only_if_nothing_came_between() -> None:
    heartbeat = small("open@0 x=1@1 w@1 w@1", "ok@1 x=1")
    assert len(set(Cuts(heartbeat).nodes.values())) == 1
    between = small("open@0 w@1 x=1@1 w@1", "ok@1 x=1")
    assert len(set(Cuts(between).nodes.values())) == 2
    by_position = small("open@0 w@1 x=1@1 w@1", "ok@1 x=1", cut="position")
    assert classes(by_position) == {"intermediate-watermark"}


def test_a_watermark_that_goes_back_begins_a_new_chain() -> None:
    world = small("open@0 x=1@1 w@5 w@3 x=2@4 w@4", "ok@1 x=1; ok@4 x=2", is_position_global=False)
    assert [len(marks) for marks in Cuts(world).chains.values()] == [1, 2]
    assert ("w2", "out", "t1") in of_watermarks(world)  # By the order of versions, not by delivery.


# Levels


def test_snapshots_forbid_cycles_in_which_no_two_reads_that_missed_stand_side_by_side() -> None:
    def edge(source: str, kind: str, target: str) -> Edge:
        return Edge(source=(source[0], int(source[1])), target=(target[0], int(target[1])), kind=kind, chain=("c",))

    seen = [edge("t0", "in", "w0"), edge("w0", "out", "t1")]
    missed = [*seen, edge("t1", "ww", "t2"), edge("t2", "rw", "t3"), edge("t3", "wr", "t0")]
    assert ({n.name for n in names(missed)}, level(missed)) == ({"G-single-watermark"}, 2)
    into = [*seen, edge("t1", "wr", "t2"), edge("t2", "rw", "t0")]
    assert ({n.name for n in names(into)}, level(into)) == ({"G-single-watermark"}, 2)
    beside = [*seen, edge("t1", "rw", "t0")]
    assert ({n.name for n in names(beside)}, level(beside)) == ({"G2-item-watermark"}, 3)
    none = [*seen, edge("t0", "rw", "t1")]
    assert (names(none), level(none)) == (set(), 0)
