"""Each simple check agrees with its definition on random histories, legal and not.

SEAMARK_FUZZ_COUNT says how many histories of each kind; the default is what `make test` has time for.
"""

from random import Random

import pytest

from checkers.invariants import bank, causal, counter, forks, monotonic, queues, sets
from checkers.invariants.operations import Mop, Op
from harness.core.columns import OK
from harness.core.record import Json
from harness.core.verdict import Judgement
from tests.amount import FIRST_SEED, count
from tests.oracles import invariants as oracle
from tests.worlds.plain_operations import Event, Type, a, r, told, txn

COUNT = count(200)
PROCESSES = range(4)
SEEDS = range(FIRST_SEED, FIRST_SEED + COUNT)


def history(draw: Random, ask: dict[str, tuple[Json, ...]], answer: dict[str, tuple[Json, ...]]) -> tuple[Op, ...]:
    """A few processes that ask and get answers in any interleaving; one with an unclear answer stops."""
    events: list[Event] = []
    opened: dict[int, tuple[str, Json]] = {}
    alive = list(PROCESSES)
    for _ in range(draw.randint(4, 20)):
        if not alive:
            break
        process = draw.choice(alive)
        if process not in opened:
            f = draw.choice(sorted(ask))
            opened[process] = (f, draw.choice(ask[f]))
            events.append((process, "invoke", *opened[process]))
            continue
        f, asked = opened.pop(process)
        kind: Type = draw.choices(("ok", "fail", "info"), (8, 1, 1))[0]
        if kind == "info":
            alive.remove(process)
        events.append((process, kind, f, draw.choice(answer[f]) if f in answer else asked))
    return told(*events)


def ops_of(judgement: Judgement, anomaly: str) -> int:
    return sum(finding.count for finding in judgement.findings if finding.anomaly == anomaly)


def test_a_counter_s_bounds_are_the_least_and_the_greatest_sum() -> None:
    wrong = 0
    for seed in SEEDS:
        ops = history(Random(seed), {"add": (1, 2, -1), "read": (None,)}, {"read": (-1, 0, 1, 2, 3)})
        expected = oracle.impossible_counts(ops)
        assert ops_of(counter.judged(ops), "counter-out-of-bounds") == len(expected), f"seed {seed}"
        wrong += bool(expected)
    assert COUNT // 10 < wrong < COUNT


def test_a_set_loses_what_its_definition_says() -> None:
    lost_count = stale_count = 0
    reads: tuple[Json, ...] = ([], [1], [2], [1, 2], [1, 2, 3])
    for seed in SEEDS:
        ops = history(Random(seed), {"add": (1, 2, 3), "read": (None,)}, {"read": reads})
        lost, stale = oracle.gone(ops)
        judgement = sets.judged(ops)
        assert ops_of(judgement, "lost-element") == len(lost), f"seed {seed}"
        assert ops_of(judgement, "stale-element") == len(stale), f"seed {seed}"
        lost_count, stale_count = lost_count + bool(lost), stale_count + bool(stale)
    assert min(lost_count, stale_count) > COUNT // 20


def test_causal_reverse_is_found_where_any_pair_of_writes_shows_it() -> None:
    wrong = 0
    reads: tuple[Json, ...] = ([], [1], [2], [1, 2], [1, 2, 3], [3, 4], [1, 2, 3, 4])
    for seed in SEEDS:
        draw = Random(seed)
        ops = history(draw, {"write": tuple(range(1, 30)), "read": (None,)}, {"read": reads})
        asked = [op.argument for op in ops if op.f == "write"]
        if len(set(map(str, asked))) < len(asked):
            continue  # Each value is written once.
        expected = oracle.reversed_reads(ops)
        assert ops_of(causal.judged_causal(ops), "causal-reverse") == len(expected), f"seed {seed}"
        wrong += bool(expected)
    assert wrong > COUNT // 50


def test_a_queue_is_unfounded_at_some_moment_or_it_is_not() -> None:
    wrong = lost = 0
    for seed in SEEDS:
        ops = history(Random(seed), {"enqueue": (1, 2, 3), "dequeue": (None,)}, {"dequeue": (1, 2, 3)})
        expected = oracle.unfounded(ops)
        assert bool(queues.judged_queue(ops).findings) == expected, f"seed {seed}"
        missing = oracle.surely_lost(ops)
        assert ops_of(queues.judged_total_queue(ops), "lost-element") == missing, f"seed {seed}"
        wrong, lost = wrong + expected, lost + bool(missing)
    assert COUNT // 10 < wrong < COUNT
    assert COUNT // 10 < lost < COUNT


def reads_of(draw: Random, key: int, elements: list[int]) -> Mop:
    return r(key, *elements[: draw.randint(0, len(elements))])


def test_any_two_reads_fork_or_the_neighbours_do_not() -> None:
    wrong = 0
    for seed in SEEDS:
        draw = Random(seed)
        lists = {key: [key * 10 + place for place in range(draw.randint(0, 2))] for key in range(draw.randint(2, 3))}
        ops = tuple(
            txn(number, *(reads_of(draw, key, elements) for key, elements in lists.items()))
            for number in range(draw.randint(1, 4))
        )
        expected = oracle.forked(ops)
        judgement = forks.judged_long_fork(ops)
        assert bool(judgement.findings) == expected, f"seed {seed}"
        assert judgement.witnesses["long-fork"] or not expected
        wrong += expected
    assert COUNT // 10 < wrong < COUNT


@pytest.mark.parametrize("size", [3, 8])
def test_any_two_transactions_are_skewed_or_none_is_found(size: int) -> None:
    """Whoever reads, reads a beginning of the list as it becomes; the order of appends is drawn first."""
    wrong = 0
    for seed in SEEDS:
        draw = Random(seed)
        targets = [draw.randrange(2) for _ in range(size)]
        lists = {key: [number for number in range(size) if targets[number] == key] for key in range(2)}
        ops = tuple(txn(number, *_skewer(draw, number, targets[number], lists)) for number in range(size))
        expected = oracle.skewed(ops)
        assert bool(forks.judged_write_skew(ops).findings) == expected, f"seed {seed}"
        wrong += expected
    assert COUNT // 20 < wrong < COUNT


def _skewer(draw: Random, number: int, target: int, lists: dict[int, list[int]]) -> tuple[Mop, ...]:
    """Reads mostly all that came before it, and sometimes less."""
    reads = []
    for key, elements in lists.items():
        before = [each for each in elements if each < number]
        length = len(before) if draw.randrange(4) else draw.randint(0, len(before))
        reads.append(r(key, *before[:length]))
    return (*reads, a(target, number))


def test_a_process_goes_back_where_two_reads_in_a_row_say_so() -> None:
    wrong = 0
    for seed in SEEDS:
        draw = Random(seed)
        shown: list[tuple[int, ...]] = [(), (1,), (1, 2), (2,), (1, 2, 3)]
        ops = tuple(
            txn(number, r(0, *draw.choice(shown)), process=draw.randrange(2)) for number in range(draw.randint(1, 6))
        )
        expected = oracle.went_back(ops)
        assert ops_of(monotonic.judged(ops), "non-monotonic-read") == len(expected), f"seed {seed}"
        wrong += bool(expected)
    assert COUNT // 10 < wrong < COUNT


def test_a_bank_is_wrong_where_a_read_splits_a_transfer() -> None:
    torn_count = 0
    for seed in SEEDS:
        draw = Random(seed)
        keys = range(3)
        ops: list[Op] = []
        lists: dict[int, list[str]] = {key: [] for key in keys}
        for number in range(draw.randint(2, 8)):
            source, target = draw.sample(keys, 2)
            taken, given = f'"{number}:-{number + 1}"', f'"{number}:+{number + 1}"'
            lists[source].append(taken)
            lists[target].append(given)
            ops.append(txn(number, a(source, taken), a(target, given)))
        cut = draw.choice(keys) if draw.randrange(2) else None
        shown = {key: each[:-1] if key == cut else each for key, each in lists.items()}
        read = txn(len(ops), *(r(key, *each) for key, each in shown.items()))
        is_torn = cut is not None and bool(lists[cut])
        assert ops_of(bank.judged((*ops, read)), "wrong-total") == is_torn, f"seed {seed}"
        torn_count += is_torn
    assert COUNT // 10 < torn_count < COUNT
    assert read.outcome == OK
