"""What orders the versions of registers, against plain loops over all pairs of transactions on a register."""

from collections.abc import Iterator
from random import Random

import networkx as nx
import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from checkers.history.registers import Order, Trust
from checkers.history.transactions import Operation, Store, to_transactions
from checkers.transactions.registers.order import Before, by_commits, by_process, by_reads, by_real_time, orders
from checkers.transactions.registers.rows import ABSENT, register_rows
from checkers.transactions.registers.versions import Registers, resolved
from harness.core.columns import FAIL, NEVER, OK, Bools
from tests.amount import count
from tests.worlds.registers import transactions as histories

Pairs = set[tuple[int, int]]
SOURCES = ("commits", "writes-follow-reads", "process", "real-time")


def drawn(draw: Random) -> list[Operation]:
    """A small history, spoiled or not, with commits of which some are the same and some are not known."""
    make = draw.choice((histories.correct, histories.stale))
    made = make(draw, count=draw.randint(1, 12), keys=draw.randint(1, 3), processes=draw.randint(1, 4))
    made = histories.spoiled(draw, made) if draw.random() < 0.7 else made
    commits = draw.choice((draw.sample(range(50), len(made)), [draw.randrange(4) for _ in made]))
    return [replace(op, commit=at if draw.random() < 0.8 else NEVER) for op, at in zip(made, commits, strict=True)]


def registers_of(made: list[Operation]) -> Registers:
    return resolved(register_rows(to_transactions(made)))[0]


def pairs(before: Before) -> Pairs:
    """The pairs, each of which must be there once."""
    rows = list(zip(before.earlier.tolist(), before.later.tolist(), strict=True))
    assert len(set(rows)) == len(rows)
    return set(rows)


def reached(some: Pairs) -> Pairs:
    """All pairs that follow."""
    graph: nx.DiGraph[int] = nx.DiGraph(list(some))
    return {(one, other) for one in graph for other in nx.descendants(graph, one)}


def rows(registers: Registers, *, is_ok: bool) -> Iterator[int]:
    """The touches of operations that succeeded, or of those that may have happened."""
    outcome = registers.rows.touches.outcome.tolist()
    return (row for row, end in enumerate(outcome) if (end == OK if is_ok else end != FAIL))


def told(registers: Registers) -> Bools:
    """The versions whose writer is known, and may have happened."""
    outcome = registers.rows.touches.outcome
    result = np.zeros(registers.size, np.bool_)
    for version in range(registers.count):
        writer = int(registers.writer[version])
        result[version] = writer >= 0 and outcome[writer] != FAIL
    return result


def all_in_real_time(registers: Registers, is_included: Bools) -> Pairs:
    """One before another, as who left the one ended before who met the other began."""
    touches, first, last = registers.rows.touches, registers.first.tolist(), registers.last.tolist()
    return {
        (last[one], first[other])
        for one in rows(registers, is_ok=True)
        for other in rows(registers, is_ok=False)
        if registers.touch_code[one] == registers.touch_code[other] and touches.after[one] <= touches.op[other]
        if last[one] != first[other] and is_included[last[one]] and is_included[first[other]]
    }


def all_by_process(registers: Registers, is_included: Bools) -> Pairs:
    """From what a process left to what it met the next time, unless it did both at once."""
    touches, result = registers.rows.touches, Pairs()
    newest: dict[tuple[int, int], int] = {}
    for row in sorted(rows(registers, is_ok=True), key=lambda row: int(touches.op[row])):
        first, last = int(registers.first[row]), int(registers.last[row])
        if not (is_included[first] and is_included[last]):
            continue
        before = newest.get((int(touches.process[row]), int(registers.touch_code[row])))
        newest[int(touches.process[row]), int(registers.touch_code[row])] = row
        if before is not None and touches.after[before] <= touches.op[row] and registers.last[before] != first:
            result.add((int(registers.last[before]), first))
    return result


def all_by_reads(registers: Registers) -> Pairs:
    touches = registers.rows.touches
    both = [row for row in rows(registers, is_ok=True) if touches.read[row] != ABSENT and touches.write[row] != ABSENT]
    versions = [(int(registers.read_version[row]), int(registers.write_version[row])) for row in both]
    return {(read, written) for read, written in versions if read != written}


def all_by_commits(registers: Registers) -> Pairs:
    touches = registers.rows.touches
    seen = {int(registers.read_version[row]) for row in rows(registers, is_ok=True)} | set(
        registers.odd_version.tolist()
    )
    certain = set(rows(registers, is_ok=True))
    writes = [
        row
        for row in rows(registers, is_ok=False)
        if registers.write_version[row] >= 0 and (row in certain or int(registers.write_version[row]) in seen)
    ]
    return {
        (int(registers.write_version[one]), int(registers.write_version[other]))
        for one in writes
        for other in writes
        if registers.touch_code[one] == registers.touch_code[other]
        and touches.commit[one] < touches.commit[other] < NEVER
        and registers.write_version[one] != registers.write_version[other]
    }


@settings(max_examples=count(200))
@given(seed=st.integers(0, 2**48))
def test_each_source_orders_what_all_pairs_show(seed: int) -> None:
    draw = Random(seed)
    made = drawn(draw)
    note("\n".join(map(str, made)))
    registers = registers_of(made)
    for is_included in (told(registers), np.ones(registers.size, np.bool_)):
        every = all_in_real_time(registers, is_included)
        kept = pairs(by_real_time(registers, is_included))
        assert kept <= every
        assert every <= reached(kept)
        assert pairs(by_process(registers, is_included)) == all_by_process(registers, is_included)
    assert pairs(by_reads(registers)) == all_by_reads(registers)
    commits, every = pairs(by_commits(registers)), all_by_commits(registers)
    assert commits <= every
    known = [op.commit for op in made if op.commit != NEVER]
    if len(set(known)) == len(known):
        assert every <= reached(commits)


def expected(registers: Registers, order: Order) -> tuple[Pairs, list[tuple[str, list[int]]]]:
    """What is given, source by source: none orders a register where a circle comes of it."""
    everything = np.ones(registers.size, np.bool_)
    given = [
        (order.commits, by_commits(registers)),
        (order.writes_follow_reads, by_reads(registers)),
        (order.process is Trust.GIVEN, by_process(registers, everything)),
        (order.real_time is Trust.GIVEN, by_real_time(registers, everything)),
    ]
    first = {(registers.count + int(registers.code[version]), version) for version in range(registers.count)}
    known, circles = Pairs(), list[tuple[str, list[int]]]()
    for source, (is_used, before) in zip(SOURCES, given, strict=True):
        more = pairs(before) if is_used else Pairs()
        graph: nx.DiGraph[int] = nx.DiGraph(list(known | more | first))
        found = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
        bad = {int(registers.code[version]) for part in found for version in part}
        known |= {pair for pair in more if int(registers.code[pair[0]]) not in bad}
        circles += [(source, part) for part in found]
    return known, sorted(circles)


@settings(max_examples=count(200))
@given(seed=st.integers(0, 2**48))
def test_a_source_counts_where_no_circle_comes_of_it(seed: int) -> None:
    draw = Random(seed)
    made = drawn(draw)
    order = Order(
        writes_follow_reads=draw.random() < 0.7,
        commits=draw.random() < 0.5,
        process=draw.choice(list(Trust)),
        real_time=draw.choice(list(Trust)),
    )
    note("\n".join(map(str, [order, *made])))
    registers = registers_of(made)
    found = orders(registers, order)
    known, circles = expected(registers, order)
    assert pairs(found.given) == known
    assert sorted((circle.source, sorted(circle.versions.tolist())) for circle in found.cycles) == circles
    is_included = told(registers)
    by_time = pairs(by_process(registers, is_included)) if order.process is Trust.TIMED else set()
    assert pairs(found.process) == by_time
    by_time = pairs(by_real_time(registers, is_included)) if order.real_time is Trust.TIMED else set()
    assert pairs(found.real_time) == by_time


def test_real_time_takes_one_pair_for_each_write_where_one_follows_the_other() -> None:
    made = [Operation(at, at, OK, at + 1, (Store(1, at + 1),)) for at in range(100)]
    registers = registers_of(made)
    assert len(by_real_time(registers, told(registers)).earlier) == 99
