"""Orders of versions that are forced: proofs against brute force, cases by hand, and how much is looked at."""

from collections.abc import Iterator
from itertools import islice, pairwise, permutations, product
from random import Random

import numpy as np
import pytest

from checkers.axioms.execution import UNRANKED, Execution, part
from checkers.axioms.levels import Level, is_ordered
from checkers.axioms.orders import forced
from checkers.axioms.orders.cycles import ChosenStep, Contradiction
from checkers.graph.edges import PROCESS, RW, WR, WW
from checkers.history.transactions import Load, Operation, Store, to_transactions
from harness.core.columns import NOTHING, Int64s
from tests.bench.axioms import NAMES, TIMES
from tests.oracles import axioms
from tests.unit.checkers.axioms.test_ladder import history, of
from tests.worlds.drawn_transactions import cut
from tests.worlds.weak_histories import drawn
from tests.worlds.weak_stores import causal

SEED = 20261125
LEVELS = list(Level)
Orders = dict[int, tuple[int, ...]]  # Of each key the operations that wrote it, from the first version to the last.


def proof(ours: Execution, level: Level, order: int = 0) -> Contradiction | None:
    found = forced.decided(ours, level, order, np.arange(len(ours.op)))
    return found if isinstance(found, Contradiction) else None


def orders_of_time(ours: Execution, level: Level) -> list[int]:
    """Those for which the level is defined, and which have no cycle with reads alone."""
    return [order for order in TIMES if is_ordered(ours, order) and (not order or level is not Level.UPDATE)]


def orders(ours: Execution) -> Iterator[Orders]:
    """All orders of versions that keep the known order of lists."""
    installs = ours.installs
    keys = sorted(set(installs.key.tolist()))
    choices = []
    for key in keys:
        rows = np.flatnonzero(installs.key == key).tolist()
        choices.append(
            [
                [int(ours.op[installs.writer[row]]) for row in chosen]
                for chosen in permutations(rows)
                if all(
                    UNRANKED in (installs.rank[one], installs.rank[other]) or installs.rank[one] <= installs.rank[other]
                    for one, other in pairwise(chosen)
                )
            ]
        )
    for chosen in product(*choices):
        yield {int(ours.keys[key]): tuple(writers) for key, writers in zip(keys, chosen, strict=True)}


def is_there(step: ChosenStep, known: axioms.Facts, order: Orders) -> bool:
    """True if the history has that step with that order of versions."""
    place = {writer: at for at, writer in enumerate(order.get(step.key, ()))}
    if step.kind == WR:
        return any((read.writer, read.reader) == step[:2] for read in known.reads)
    if step.kind == WW:
        return place[step.source] < place[step.target]
    if step.kind == RW:
        return step.source != step.target and any(
            (read.reader, read.key) == (step.source, step.key) and place.get(read.writer, -1) < place[step.target]
            for read in known.reads
        )
    return False


def is_forbidden(cycle: tuple[ChosenStep, ...], level: Level) -> bool:
    """True if the level forbids a cycle of those kinds."""
    kinds = [step.kind for step in cycle]
    before = [kind for kind, after in zip(kinds, (*kinds[1:], kinds[0]), strict=True) if after == RW]
    match level:
        case Level.PARALLEL:
            return len(before) <= 1
        case Level.UPDATE:
            return not before or (len(before) == 1 and len(cycle) == 2)
        case Level.SNAPSHOT:
            return RW not in before
        case Level.PREFIX:
            return RW not in before and WW not in before
        case _:
            return True


@pytest.mark.parametrize("lists", [True, False])
def test_each_order_of_versions_has_a_cycle_of_the_proof_and_what_holds_has_no_proof(lists: bool) -> None:
    print(f"seed {SEED}")
    broken, proven, assumed = 0, 0, 0
    for number in range(150):
        draw = Random(SEED + number)
        operations = drawn(draw, lists=lists)
        ours = of(*cut(draw, operations), is_declared=True)
        for level in LEVELS:
            for order in orders_of_time(ours, level):
                found = proof(ours, level, order)
                is_broken = not axioms.holds(operations, NAMES[level], TIMES[order])
                assert is_broken or found is None, (SEED + number, level, order)
                broken, proven = broken + is_broken, proven + (found is not None)
                if found is None or order:
                    continue
                assumed += len(found.cycles) > 1
                known = axioms.facts(operations, "")
                for cycle in found.cycles:
                    assert is_forbidden(cycle, level), (SEED + number, level, cycle)
                    assert all(one.target == other.source for one, other in pairwise((*cycle, cycle[0])))
                for versions in islice(orders(ours), 200):
                    there = [all(is_there(step, known, versions) for step in cycle) for cycle in found.cycles]
                    assert any(there), (SEED + number, level, found, versions)
    assert broken > 100
    assert proven > broken * 0.7
    assert lists or assumed > 5


def test_what_a_reader_sees_came_before_what_it_read() -> None:
    # T4 reads 2 of key 0 and sees T0, so 1 came before 2. T6 sees T2 and read 1 of key 0, which lost to 2.
    seen = history(
        (Store(0, 1), Store(1, 1)),
        (Store(0, 2), Store(2, 1)),
        (Load(0, 2), Load(1, 1)),
        (Load(0, 1), Load(2, 1)),
    )
    found = proof(of(to_transactions(seen)), Level.PARALLEL)
    assert found is not None
    assert {tuple(sorted(step.kind for step in cycle)) for cycle in found.cycles} == {(WR, RW)}
    assert len(found.cycles) == 2
    assert set(found.ops) == {0, 2, 4, 6}
    assert proof(of(to_transactions(seen[:3])), Level.PARALLEL) is None


def test_a_write_that_was_seen_is_no_initial_version() -> None:
    stale = history((Store(0, 1),), (Load(0, 1), Store(1, 1)), (Load(1, 1), Load(0, NOTHING)))
    assert proof(of(to_transactions(stale)), Level.UPDATE) is None  # It does not see what T2 saw.
    for level in (level for level in LEVELS if level is not Level.UPDATE):
        found = proof(of(to_transactions(stale)), level)
        assert found is not None
        assert len(found.cycles) == 1
        assert set(found.ops) == {0, 2, 4}


def test_of_two_that_overwrite_each_other_one_sees_the_other() -> None:
    # Each misses what the other wrote to key 0 or 1, and both wrote key 2: a skew, but no lost update.
    skew = history((Load(0, NOTHING), Store(1, 1), Store(2, 1)), (Load(1, NOTHING), Store(0, 1), Store(2, 2)))
    for level in LEVELS:
        found = proof(of(to_transactions(skew)), level)
        assert (found is None) == (level is Level.PREFIX), level
    assert proof(of(to_transactions(history(skew[0].mops, skew[1].mops[:2]))), Level.PARALLEL) is None


def test_what_leaves_an_order_open_is_no_contradiction() -> None:
    blind = history((Store(0, 1), Store(1, 1)), (Store(0, 2), Store(1, 2)), (Load(0, 1), Load(1, 1)))
    assert all(proof(of(to_transactions(blind)), level) is None for level in LEVELS)
    empty = history((Load(0, NOTHING),))
    assert all(proof(of(to_transactions(empty)), level) is None for level in LEVELS)


def store(transactions: int) -> list[Operation]:
    return list(causal(Random(SEED), transactions=transactions, sessions=20, keys=50))


def test_a_store_that_breaks_the_model_early_is_read_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(whole: Execution, nodes: Int64s) -> tuple[Execution, Int64s]:
        looked.append(len(nodes))
        return part(whole, nodes)

    monkeypatch.setattr(forced, "part", counted)
    for size in (2_000, 4_000):
        whole = of(to_transactions(store(size)))
        for level in LEVELS:
            looked.clear()
            assert proof(whole, level, PROCESS) is not None
            assert looked == [forced.FIRST]
    monkeypatch.setattr(forced, "FIRST", 2)
    monkeypatch.setattr(forced, "MOST", 10)
    looked.clear()
    assert proof(whole, Level.PARALLEL, PROCESS) is None
    assert looked == [2, 4, 8, 10]
