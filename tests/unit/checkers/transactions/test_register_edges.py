"""What the check says of registers by hand: names, sentences, what it does not know, and that it says so."""

import pytest
from msgspec.structs import replace

from checkers.engine.datasets import LocalEngine
from checkers.history.names import Names
from checkers.history.registers import ORDER, Initial, Order, Trust
from checkers.history.transactions import Load, Operation, Store, to_transactions
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.columns import NOTHING, OK
from harness.core.verdict import Finding, Judgement
from tests.bench import generated
from tests.worlds.small_language import concurrent, sequential

ENGINE = LocalEngine(1)
GIVEN = Order(process=Trust.GIVEN, real_time=Trust.GIVEN)
UNTIMED = Order(process=Trust.NONE, real_time=Trust.NONE)
EVERYTHING = frozenset({"G2-realtime", "G1-realtime", "internal", "lost-update", "cyclic-versions", "garbage-read"})


def shown(identity: int) -> str:
    return chr(identity) if identity > 96 else str(identity)


OPTIONS = Options(name=Names(shown), prohibited=(EVERYTHING,), initial=Initial(is_declared=True))


def judged(operations: list[Operation], order: Order = ORDER, options: Options = OPTIONS) -> Judgement:
    return check_sources([to_transactions(operations)], ENGINE, replace(options, order=order))


def only(operations: list[Operation], order: Order = ORDER) -> Finding:
    (finding,) = judged(operations, order).findings
    return finding


def names(operations: list[Operation], order: Order = ORDER) -> set[str]:
    return {finding.anomaly for finding in judged(operations, order).findings}


@pytest.mark.parametrize(
    ("texts", "order", "anomaly"),
    [
        (("wx1 ry=1", "wy1 rx=1"), ORDER, "G1c"),
        (("wx1 wy1", "rx=1 ry="), ORDER, "G-single"),
        (("wx1", "rx=1 ry=", "wy1", "ry=1 rx="), ORDER, "G-nonadjacent"),
        (("rx= wy1", "ry= wx1"), ORDER, "G2-item"),
        (("rx= wx1", "rx=1 wx2", "rx=1 wx3"), ORDER, "lost-update"),
        (("1:wx1", "~wx2", "1:rx="), ORDER, "G-single-process"),
        (("wx1", "wx2", "rx=1"), ORDER, "G-single-realtime"),
        (("1:wx1", "1:wx2", "1:rx=1"), ORDER, "G-single-process"),
        (("rx=1", "wx1"), ORDER, "G1c-realtime"),
        (("!wx1", "rx=1"), ORDER, "G1a"),
        (("wx1 wx2", "rx=1"), ORDER, "G1b"),
        (("wx1 rx=2",), ORDER, "internal"),
        (("rx= rx=1",), ORDER, "internal"),
        (("rx=1 wx1",), ORDER, "future-read"),
        (("rx=1",), ORDER, "unwritten-read"),
        (("wx1", "wx2", "rx=1"), GIVEN, "cyclic-versions"),
        (("wx1", "rx="), GIVEN, "cyclic-versions"),
        (("rx=1 wx2", "rx=2 wx1"), UNTIMED, "cyclic-versions"),
        (("1:wx1 wy2", "2:wx2 wy1", "1:rx=2", "2:ry=2"), Order(process=Trust.GIVEN, real_time=Trust.NONE), "G0"),
    ],
)
def test_a_history_by_hand_has_its_anomaly(texts: tuple[str, ...], order: Order, anomaly: str) -> None:
    in_turn = anomaly.endswith(("-process", "-realtime")) or anomaly in {"cyclic-versions", "G0"}
    assert anomaly in names((sequential if in_turn else concurrent)(*texts), order)


@pytest.mark.parametrize(
    "operations",
    [
        sequential("wx1 rx=1", "rx=1 wx2", "rx=2"),
        concurrent("wx1", "rx=", "rx=1"),  # Before and after a concurrent write.
        concurrent("wx1", "wx2", "rx=1", "rx=2"),
        sequential("~wx1", "rx=", "rx=1"),  # An unclear write takes effect when it likes,
        sequential("~wx1", "wx2", "rx=2", "rx=1"),  # even after a later one,
        sequential("~wx1", "wx2", "rx=2"),  # or never.
        sequential("!wx1", "rx="),
        sequential("wx1 rx?", "rx=1"),
        concurrent("1:wx1", "1:wx2", "1:rx=1"),  # A process that overlaps itself has no order.
        concurrent("wx1 wx2 rx=2", "rx=", "rx=2"),
        sequential("wx1", "wx1", "rx?"),  # Nobody reads what was written twice.
    ],
)
@pytest.mark.parametrize("order", [ORDER, GIVEN, UNTIMED])
def test_a_legal_history_has_no_finding(operations: list[Operation], order: Order) -> None:
    judgement = judged(operations, order)
    assert judgement.findings == ()
    assert judgement.unknown == {}


def test_an_info_write_that_somebody_saw_has_happened_with_all_that_it_wrote() -> None:
    finding = only(concurrent("~wx1 wy1", "rx=1 ry="))
    assert finding.anomaly == "G-single"
    assert finding.ops == (0, 1)


@pytest.mark.parametrize(
    ("texts", "model", "anomaly"),
    [
        # T0 reads T1's x the second time, and T1 reads T0's y.
        (("rx= rx=1 wy1", "ry=1 wx1"), "read-committed", "G1c"),
        (("wx1", "rx=1 wx2", "rx=2 rx=1"), "consistent-view", "G-single"),
    ],
)
def test_a_second_read_of_a_register_counts_like_the_first(texts: tuple[str, ...], model: str, anomaly: str) -> None:
    found = check_sources([to_transactions(concurrent(*texts))], ENGINE, Options(model=model)).findings
    assert anomaly in {finding.anomaly for finding in found}


def test_a_second_read_of_an_own_value_is_from_nobody_else() -> None:
    assert names(sequential("wx3", "wx1 wx2 rx=1")) == {"internal"}


def test_a_timed_order_counts_only_in_models_with_that_order() -> None:
    stale = sequential("wx1", "wx2", "rx=1")
    serializable = judged(stale, options=Options(model="serializable"))
    assert serializable.findings == ()
    assert serializable.facts["not_ruled_out_strongest"] == ["serializable", "strong-read-committed"]
    # Strict serializability is broken whatever orders the versions: the axioms say it where no such order is given.
    assert names(stale, UNTIMED) == {"fractured-read-realtime"}


def test_what_a_timed_order_proves_is_not_said_of_weaker_models() -> None:
    """Were 2 before 1, T2 would have read what T1 had overwritten: only then is there no circle of ww."""
    judgement = judged(sequential("wx1", "wx2", "rx=1"))
    assert judgement.facts["ruled_out_weakest"] == ["strong-parallel-snapshot-isolation"]


@pytest.mark.parametrize(
    ("operations", "order", "sentence"),
    [
        (concurrent("!wx1", "rx=1"), ORDER, "T1 read x as 1, but T0, which wrote 1, failed."),
        (
            concurrent("wx1 wx2", "rx=1"),
            ORDER,
            "T1 read x as 1, but T0 wrote that and then more: an intermediate state.",
        ),
        (concurrent("wx1 rx="), ORDER, "T0 read x as nothing, but it had itself written 1."),
        (concurrent("rx= rx=1", "wx1"), ORDER, "T0 read x as 1, but it had itself read nothing."),
        (concurrent("rx=1 wx1"), ORDER, "T0 read x as 1 before it wrote that."),
        (
            concurrent("rx=1"),
            ORDER,
            "T0 read x as 1, which no operation wrote; nor was it declared as the initial value.",
        ),
        (
            concurrent("rx= wx1", "rx= wx2"),
            ORDER,
            "T0 and T1 both read x as nothing, and both wrote to it: one did not see the other's update.",
        ),
        (
            sequential("wx1", "wx2", "rx=1"),
            GIVEN,
            "The versions of x have no order: 1 is before 2, as T0, which wrote 1, ended before the start of T1, which "
            "wrote 2; 2 is before 1, as T1, which wrote 2, ended before the start of T2, which read 1.",
        ),
        (
            concurrent("rx=1 wx2", "rx=2 wx1"),
            UNTIMED,
            "The versions of x have no order: 1 is before 2, as T0 read 1 before it wrote 2; 2 is before 1, as T1 read "
            "2 before it wrote 1.",
        ),
        (
            concurrent("wx1 wy1", "rx=1 ry="),
            ORDER,
            "T1 read x as 1, which T0 wrote; T1 read y as nothing, and T0 wrote 1, which counts as later (y held "
            "nothing at first). So "
            "T0 before T1 before T0: no order allows that.",
        ),
        (
            sequential("wx1", "wx2", "rx=1"),
            ORDER,
            "T2 read x as 1, and T1 wrote 2, which counts as later (T0, which wrote 1, ended before "
            "the start of T1, which wrote 2), although T1 had finished before T2 began.",
        ),
        (
            sequential("1:wx1", "1:wx2", "1:rx=1"),
            ORDER,
            "Process 1 ran T1 before T2; T2 read x as 1, and T1 wrote 2, which counts as later (process 1 ran T0, "
            "which wrote 1, before T1, which wrote 2). So T1 before T2 before T1: no order allows that.",
        ),
    ],
)
def test_an_anomaly_is_a_sentence(operations: list[Operation], order: Order, sentence: str) -> None:
    assert sentence in {finding.sentence for finding in judged(operations, order).findings}


@pytest.mark.parametrize(("count", "rw"), [(8, 8 * 7), (9, 9)])
def test_readers_of_what_many_overwrote_are_witnesses_one_by_one(count: int, rw: int) -> None:
    """Up to four edges for each reader and writer they are counted by edges, from there on by readers."""
    texts = ["wx1", *(f"rx=1 wx{value}" for value in range(2, 2 + count))]
    assert judged(concurrent(*texts), UNTIMED).facts["edges"] == {"ww": count, "wr": count, "rw": rw}


def test_the_order_of_lists_and_of_registers_is_one_share() -> None:
    known = judged(concurrent("ax1", "rx1", "wy1", "ry=1")).facts["version_order_known_permille"]
    assert known == judged(concurrent("ax1", "rx1")).facts["version_order_known_permille"] == 1000


def test_orders_of_time_are_witnesses_of_what_is_closed_by_them() -> None:
    """T1 had read 1 and ended before T2 began, which wrote 2, while T0, which wrote 1, was still open."""
    made = [Operation(0, 0, OK, 3, (Store(1, 1),)), Operation(1, 1, OK, 2, (Load(1, 1),))]
    witnesses = judged([*made, Operation(2, 2, OK, 3, (Store(1, 2),))]).witnesses
    assert (witnesses["G2-item"], witnesses["G2-item-process"], witnesses["G2-item-realtime"]) == (0, 0, 1)


def test_who_read_nothing_is_counted_once_as_a_witness() -> None:
    """T0 wrote after it had read nothing: that orders its value behind nothing, as it is for all who read nothing."""
    judgement = judged(concurrent("rx= wx1", "rx=", "rx=1"))
    assert judgement.facts["edges"] == {"ww": 0, "wr": 1, "rw": 2}


@pytest.mark.parametrize(
    ("operations", "order", "ops"),
    [
        (sequential("wx1", "wx2", "rx=1"), ORDER, (1, 2, 0)),  # T0 is in no cycle, but wrote what is earlier.
        (sequential("1:wx1", "1:wx2", "1:rx=1"), ORDER, (1, 2, 0)),
        (concurrent("wx1 wy1", "rx=1 ry="), ORDER, (0, 1)),
    ],
)
def test_what_orders_versions_is_among_the_evidence(
    operations: list[Operation], order: Order, ops: tuple[int, ...]
) -> None:
    assert only(operations, order).ops == ops


def test_all_of_a_circle_of_versions_is_evidence() -> None:
    circle = judged(concurrent("rx=1 wx2", "rx=2 wx3", "rx=3 wx1"), UNTIMED)
    assert {finding.anomaly: finding.ops for finding in circle.findings}["cyclic-versions"] == (0, 1, 2)


def test_commits_order_versions_where_that_is_asked() -> None:
    placed = [replace(op, commit=op.index) for op in concurrent("wx1 wy1", "wx2 ry=1")]
    swapped = [replace(op, commit=2 - op.index) for op in placed]
    order = Order(commits=True, process=Trust.NONE, real_time=Trust.NONE)
    assert judged(placed, order).findings == ()
    finding = only(swapped, order)
    assert finding.anomaly == "G1c"
    assert "(the system committed 2 before 1)" in finding.sentence


def test_a_value_that_was_written_twice_and_read_is_unknown_and_the_others_are_judged() -> None:
    judgement = judged(concurrent("wx1", "wx1", "rx=1", "ry= wy1", "ry= wy2"))
    assert {finding.anomaly for finding in judgement.findings} == {"lost-update", "G2-item"}
    assert judgement.unknown["G1a"] == (
        "duplicate-writes: 1 was written to x more than once (T0); nothing follows for 1 such key"
    )
    assert "internal" not in judgement.unknown


def test_a_failed_write_beside_another_one_of_its_value_explains_nothing() -> None:
    for failed in ("!wx1", "!wx1 wx2", "!wx2 wx1"):
        again = judged(sequential(failed, "wx1", "rx=1"))
        assert (again.findings, again.unknown) == ((), {})
    assert judged(sequential("!wx1", "!wx1", "rx=1")).unknown  # Nobody knows which of the two was read.
    assert names(sequential("!wx1 wy2", "wx1", "rx=1 ry=2")) == {"G1a"}


def test_to_empty_a_register_is_to_write_its_first_value_again() -> None:
    emptied = sequential("wx1", "wx7", "rx=")
    assert "G-single-realtime" in names(emptied)
    judgement = judged(emptied, options=replace(OPTIONS, initial=Initial((7,))))
    assert judgement.findings == ()
    assert judgement.unknown["G1a"].startswith("duplicate-writes: x held nothing at first, and that was written")
    named = judged(emptied, options=replace(OPTIONS, name=Names(shown, initial="7"), initial=Initial((7,))))
    assert named.unknown["G1a"] == (
        "duplicate-writes: x held 7 at first, and that was written again (T1); nothing follows for 1 such key"
    )
    unread = judged(sequential("wx1", "wx7", "ry="), options=replace(OPTIONS, initial=Initial((7,))))
    assert (unread.findings, unread.unknown) == ((), {})
    (stale,) = judged(sequential("wx1", "wx7", "rx=1"), options=replace(OPTIONS, initial=Initial((7,)))).findings
    assert stale.anomaly == "fractured-read-realtime"
    assert stale.sentence.startswith("T1 had ended before T2 began, and T1 wrote x, but T2 read what T0 wrote")


def test_a_key_that_is_a_list_and_a_register_is_unknown() -> None:
    judgement = judged(concurrent("ax1", "wx2", "rx=2", "rx1", "rx2", "ry= wy1", "ry= wy2"))
    assert {finding.anomaly for finding in judgement.findings} == {"lost-update", "G2-item"}
    assert judgement.unknown["G0"] == (
        "mixed-key: x is used as a list (T0) and as a register; nothing follows for 1 such key"
    )


def test_a_read_of_null_makes_no_register_of_a_list() -> None:
    (update,) = (each for each in judged(concurrent("rx= rx ax1", "rx ax2")).findings if each.anomaly == "lost-update")
    assert update.sentence == (
        "T0 and T1 both read x as [], and both appended to it: one did not see the other's update."
    )


def test_lists_and_registers_of_one_history_are_one_graph() -> None:
    assert names(concurrent("ax1 wy1", "rx1 ry=")) == {"G-single"}
    assert names(concurrent("ax1 wy1", "rx ry=1")) == {"G-single"}


def test_each_anomaly_has_witnesses_where_it_could_have_been_seen() -> None:
    judgement = judged(concurrent("wx1 rx=1", "!wy1", "ry=", "wz1 wz2", "rz=2 wz3", "rz=2"))
    witnesses = judgement.witnesses
    assert witnesses["internal"] == 1
    assert (witnesses["G1a"], witnesses["G1b"], witnesses["garbage-read"]) == (1, 2, 2)
    assert (witnesses["lost-update"], witnesses["future-read"], witnesses["cyclic-versions"]) == (1, 1, 1)
    assert (witnesses["G0"], witnesses["G1c"], witnesses["G2-item"]) == (1, 3, 1)
    timed = judged(sequential("wx1", "wx2", "rx=2")).witnesses
    assert (timed["G2-item"], timed["G2-item-realtime"]) == (0, 0)  # Real time implies all that follows.
    assert judged(concurrent("1:wx1", "2:rx=1")).witnesses["G2-item-process"] == 0


def test_the_verdict_says_what_orders_the_versions() -> None:
    facts = judged(sequential("wx1", "rx=1 wx2", "rx=2"), GIVEN).facts
    assert facts["version_order"] == {
        "initial-state": "given",
        "commits": "not used",
        "writes-follow-reads": "given",
        "process": "given",
        "real-time": "given",
    }
    assert facts["version_pairs"] == {"given": 1, "process": 0, "real-time": 0}
    assert facts["version_order_known_permille"] == 1000
    assert "version_order" not in judged(sequential("ax1")).facts


def test_many_lost_updates_of_one_version_need_no_edge_for_each_pair() -> None:
    operations = [Operation(index, index, 0, 1000, (Load(120, 1), Store(120, index + 2))) for index in range(1000)]
    first = Operation(1000, 1000, 0, 1001, (Load(120, NOTHING), Store(120, 1)))
    judgement = judged([*operations, first], UNTIMED)
    assert judgement.facts["edges"] == {"ww": 1000, "wr": 1000, "rw": 1001}


@pytest.mark.parametrize("order", [ORDER, GIVEN, UNTIMED])
def test_a_large_correct_history_is_strictly_serializable(order: Order) -> None:
    whole = generated.registers_of(generated.transactions(30_000, seed=11))
    judgement = check_sources(generated.halves(whole), ENGINE, Options(order=order))
    assert judgement.findings == ()
    assert judgement.unknown == {}
    assert judgement.facts["windows"] == 0


def test_a_large_history_with_stale_reads_is_not() -> None:
    whole = generated.registers_of(generated.transactions(30_000, seed=11, stale_permille=1))
    judgement = check_sources(generated.halves(whole), ENGINE)
    assert {finding.anomaly for finding in judgement.findings} & {"G-single-realtime", "G-single-process", "G-single"}
