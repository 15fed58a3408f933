"""Skewed and oversized histories cost in proportion to their size: work is counted, not timed.

Work is what the steps that can grow faster than their input touch: positions that runs expand to, elements compared,
edges on their way to slices. Four times the input may cost five times the work, where a quadratic step costs sixteen.
"""

from collections import Counter
from importlib import import_module

import numpy as np
import pytest

from checkers.columns import runs, table
from checkers.engine.datasets import LocalEngine
from checkers.graph import certificate
from checkers.graph.edges import OPEN_END, WW, Edges, ImplicitRw, Inference, Members, all_edges
from checkers.graph.sightings import Report
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from harness.core.columns import Bools, Int64s
from harness.core.verdict import Judgement
from tests.bench.skew import Shape, cut, endless, hot_key, long_transactions, read_once, storm, unseen_storm

ENGINE = LocalEngine(1)
USERS = (
    "transactions.list_rows",
    "transactions.list_versions",
    "transactions.list_anomalies",
    "graph.certificate",
    "graph.edges",
    "transactions.registers.order",
    "transactions.registers.rows",
    "transactions.registers.edges",
)
CHUNKS = 4


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one number for each step."""
    counted: list[int] = []

    def expand(start: Int64s, length: Int64s) -> Int64s:
        counted.append(int(length.sum()))
        return runs.expand(start, length)

    def common_prefix(
        left: Int64s, right: Int64s, *, left_start: Int64s, right_start: Int64s, length: Int64s
    ) -> Int64s:
        counted.append(int(length.sum()))
        return runs.common_prefix(left, right, left_start=left_start, right_start=right_start, length=length)

    for name in USERS:
        module = import_module(f"checkers.{name}")
        for step in (expand, common_prefix):
            if hasattr(module, step.__name__):
                monkeypatch.setattr(module, step.__name__, step)
    return counted


def cost(work: list[int], shape: Shape, count: int) -> tuple[int, Judgement]:
    work.clear()
    parts = cut(shape(count), CHUNKS)
    work.clear()
    judgement = check_sources(parts, ENGINE, Options(partitions=4))
    return sum(work), judgement


@pytest.mark.parametrize("shape", [hot_key, read_once, storm, endless])
def test_four_times_the_operations_cost_less_than_five_times_the_work(work: list[int], shape: Shape) -> None:
    small, judgement = cost(work, shape, 5_000)
    large, again = cost(work, shape, 20_000)
    assert not judgement.findings
    assert not again.findings
    assert 4_000 < small < large < 5 * small


def test_what_nobody_saw_is_not_paired_with_those_who_did_not_see_it(work: list[int]) -> None:
    touched, judgement = cost(work, unseen_storm, 20_000)
    assert judgement.witnesses["G2-item"] == 10_000
    assert touched < 20_000  # Of a hundred million pairs.


def missed(count: int) -> Inference:
    """So many appends to one key, one after the other, and as many reads after them that saw none."""
    nodes, group = np.arange(2 * count, dtype=np.int32), np.zeros(count, np.int32)
    writer, reader = nodes[:count], nodes[count:]
    implicit = ImplicitRw(Members(group, reader, reader + 1), Members(group, writer, writer + 1))
    return Inference(all_edges([]), implicit, Report((), Counter()), ())


def test_appends_that_all_readers_missed_are_not_paired_with_them_on_the_way_to_slices(work: list[int]) -> None:
    known = certificate.ends([], last=3_999)
    shares = dict(certificate.route(missed(2_000), known=known, slice_ids=certificate.SLICE_IDS))
    assert (shares[0].windows.start.tolist(), shares[0].windows.stop.tolist()) == ([0], [4_000])
    assert sum(work) < 2_000  # Of four million pairs.


def test_a_chain_of_operations_without_an_end_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[int] = []

    def counted(edges: Edges, rows: Int64s | Bools) -> Edges:
        touched.append(int(rows.sum()) if rows.dtype == np.bool_ else len(rows))
        return table.take(edges, rows)

    def expand(start: Int64s, length: Int64s) -> Int64s:
        touched.append(int(length.sum()))
        return runs.expand(start, length)

    monkeypatch.setattr(certificate, "take", counted)
    monkeypatch.setattr(certificate, "expand", expand)
    nodes, ends = np.arange(2_000, dtype=np.int32), np.full(1_999, OPEN_END, np.int32)
    chain = Edges(nodes[:-1], nodes[1:], ends, ends, np.full(1_999, WW, np.int8))
    assert not len(certificate.ends([chain], last=1_999).op)
    assert sum(touched) < 2_000  # Of two million, if each step looked at all that are left.


@pytest.mark.parametrize(("stop", "expected"), [(40, 20 * 20), (30, 20 * 10), (15, 0)])
def test_pairs_inside_of_a_window_are_counted_without_being_made(work: list[int], stop: int, expected: int) -> None:
    known = certificate.ends([], last=39)
    windows = certificate.Windows(np.array([0]), np.array([stop]))
    assert certificate.inside_count(missed(20), windows=windows, known=known) == expected
    assert not work
    assert len(certificate.inside(missed(20), windows=windows, known=known).source) == expected


def test_work_grows_with_micro_operations_and_not_with_their_number_in_one_transaction(work: list[int]) -> None:
    short, _ = cost(work, long_transactions, 100)
    long, judgement = cost(work, long_transactions, 1_000)
    assert judgement.witnesses["internal"] > 0
    assert long < 1.5 * short
