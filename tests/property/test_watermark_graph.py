"""The graph of watermarks, with its few edges, is that of the full definition: in closure, components and classes; and
the whole check accuses no correct world of what its kind forbids.

SEAMARK_FUZZ_COUNT is the number of worlds of each kind, SEAMARK_FUZZ_SEED where their seeds begin.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import networkx as nx
import numpy as np
import pytest
from msgspec import structs

from checkers.columns.table import take
from checkers.engine.datasets import LocalEngine
from checkers.graph.certificate import Ends, Region, Windows
from checkers.graph.edges import OPEN_END, Edges, Inference
from checkers.history.names import Dictionary
from checkers.history.registers import Initial, Order
from checkers.watermarks import task as watermark_kernel
from checkers.watermarks.check import Options, check_source
from checkers.watermarks.cycles.classes import classes
from checkers.watermarks.cycles.steps import NAMES, is_wider, name_of
from checkers.watermarks.edges import node_pairs
from checkers.watermarks.order_elsewhere import agreed, places, received, shows_order
from checkers.watermarks.task import Derived, Placed, numbered
from harness.core.columns import NEVER, WATERMARK
from harness.core.verdict import Finding, Judgement
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.oracles.watermark_classes import Named, names
from tests.oracles.watermark_edges import all_pairs, is_plain
from tests.oracles.watermark_graph import edges
from tests.oracles.watermark_source import World
from tests.property.watermark_components import components_of
from tests.worlds.streams.language import deliveries_of, source_of
from tests.worlds.streams.legal import is_legal
from tests.worlds.streams.observed import broken, observed, spoiled
from tests.worlds.streams.sources import KINDS
from tests.worlds.streams.spoilers import SPOILERS, journal
from tests.worlds.streams.worlds import world

COUNT = count(10)
SEEDS = range(FIRST_SEED, FIRST_SEED + COUNT)
_NONE = np.empty(0, np.int64)
EVERYWHERE = Region(Windows(np.array([0]), np.array([OPEN_END])), Ends(_NONE, _NONE, 0))


def closure(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    graph = nx.DiGraph(sorted(pairs))
    return {(one, two) for one in graph for two in nx.descendants(graph, one)}


def has_chains_of_one_subscriber(one: World) -> bool:
    return one.contract.wm_scope in ("session", "subscriber")


def has_order(one: World) -> bool:
    """Has every version a place in the order, and do positions agree with it?

    Positions would give one, which the definition does not ask. Where the two contradict each other, what a state at a
    position holds is another thing by each.
    """
    placed: dict[int, list[tuple[int, int]]] = {}
    for w in (w for w in one.writes if NEVER not in (w.version, w.position)):
        placed.setdefault(w.key, []).append((w.version, w.position))
    is_one_order = all(
        position == sorted(position) for r in placed.values() for position in [[p for _, p in sorted(r)]]
    )
    return is_one_order and all(w.version != NEVER or w.position == NEVER for w in one.writes)


@pytest.mark.parametrize("kind", KINDS)
def test_the_few_edges_reach_what_all_edges_reach(kind: str) -> None:
    compared = 0
    for seed in SEEDS:
        for one in map(observed, [*spoiled(kind, seed), broken(seed, kind)]):
            if has_chains_of_one_subscriber(one) and has_order(one) and is_plain(one):
                writes = source_of(list(one.writes))
                few = node_pairs(deliveries_of(list(one.log)), writes, one.contract)
                lean: set[tuple[int, int]] = {(a, b) for pairs in few for a, b in pairs.tolist()}
                assert closure(lean) == closure(set().union(*all_pairs(one))), f"seed {seed}"
                compared += len(lean) > 0
    assert compared >= COUNT // 2


def unordered(one: World) -> World:
    """The world where no list was read, and where positions do not tell the order of versions."""
    contract = msgspec.structs.replace(one.contract, is_position_unique=False)
    return replace(one, writes=tuple(replace(w, version=NEVER) for w in one.writes), contract=contract)


def pairs_by_log(one: World) -> set[tuple[int, int]]:
    """The few edges of all logs, each with what the others tell it."""
    source = source_of(list(one.writes))
    names = sorted({event.subscriber for event in one.log})
    logs = {name: deliveries_of([event for event in one.log if event.subscriber == name]) for name in names}
    found = agreed(
        [received(name, log, source, one.contract) for name, log in logs.items() if shows_order(one.contract)]
    )
    marks = [event.subscriber for event in one.log if event.kind == WATERMARK]
    base, result = max((w.op for w in one.writes), default=-1) + 1, set[tuple[int, int]]()
    for name, log in logs.items():
        number = [*range(base), *(base + place for place, who in enumerate(marks) if who == name)]
        few = node_pairs(log, source, one.contract, places(found, name, len(source.op)))
        result |= {(number[a], number[b]) for pairs in few for a, b in pairs.tolist()}
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_orders_versions_other_subscribers_do(kind: str) -> None:
    result = 0
    for seed in SEEDS:
        for one in map(unordered, map(observed, [*spoiled(kind, seed), broken(seed, kind)])):
            if has_chains_of_one_subscriber(one) and is_plain(one):
                few, every = pairs_by_log(one), set().union(*all_pairs(one))
                nobody = replace(one, contract=msgspec.structs.replace(one.contract, order_key="none"))
                few_alone, every_alone = pairs_by_log(nobody), set().union(*all_pairs(nobody))
                # Where positions alone tell what sessions begin with, the two are not equal to begin with.
                assert closure(few | every_alone) == closure(every | few_alone), f"seed {seed}"
                result += closure(every) != closure(every_alone)
    assert result > 0 or kind == "epochs" or COUNT < 20  # Versions of epochs may be skipped.


@pytest.mark.parametrize("kind", KINDS)
def test_the_classes_found_are_the_least_of_those_there_are(kind: str) -> None:
    shown: Counter[str] = Counter()
    for seed in SEEDS:
        for one in spoiled(kind, seed):
            drawn = edges(without_reads_as_of(one))
            there = {cycle.name for cycle in names(drawn)} & set(NAMES)
            loops = [loop for part in components_of(one, drawn) for loop in classes(part, frozenset()).loops.values()]
            assert all(name_of(loop.steps) == loop.anomaly for loop in loops)
            found = {loop.anomaly for loop in loops}
            assert least(found) == least(there), f"seed {seed}"
            shown.update(found)
    assert sum(shown.values()) >= COUNT // 4


def without_reads_as_of(one: World) -> World:
    """The world without what was read as of a position: a read that is one with a watermark is of two kinds."""
    plain = (t if t.as_of == NEVER else replace(t, as_of=NEVER, reads=()) for t in one.transactions)
    return replace(one, transactions=tuple(plain))


def least(found: set[str]) -> set[str]:
    return {name for name in found if not any(other != name and is_wider(name, other) for other in found)}


def judged(one: World, folder: Path, forbidden: frozenset[str] = frozenset(NAMES)) -> Judgement:
    write_history(journal(one), folder)
    initial = Initial((Dictionary(folder).identity(None),))
    options = Options(forbidden=forbidden, order=Order(commits=True), initial=initial)
    return check_source(folder, folder, one.contract, LocalEngine(1), options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_correct_world_is_accused_of_nothing_that_its_kind_forbids(kind: str, tmp_path: Path) -> None:
    witnessed = 0
    for seed in SEEDS:
        one = world(seed, kind)
        if any(w.value == NEVER for w in one.writes):
            continue  # What a register shows after a delete is a question for the transactions' own check.
        judgement = judged(one, tmp_path / str(seed))
        wrong = [f for f in judgement.findings if not is_legal(kind, of_one_chain(f))]
        assert not wrong, f"seed {seed}: {[finding.sentence for finding in wrong]}"
        witnessed += max(judgement.witnesses.values()) > 0
    assert witnessed >= COUNT // 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_correct_world_is_accused_of_nothing_where_only_subscribers_order_versions(kind: str, tmp_path: Path) -> None:
    result = 0
    for seed in SEEDS:
        one = unordered(world(seed, kind))
        if all(w.value != NEVER for w in one.writes):
            judgement = judged(one, tmp_path / str(seed))
            wrong = [f.sentence for f in judgement.findings if not is_legal(kind, of_one_chain(f))]
            assert not wrong, f"seed {seed}: {wrong}"
            result += "deliveries" in version_order(judgement)
    assert result > 0 or kind == "epochs" or COUNT < 50


def test_a_missing_row_is_found_by_what_another_subscriber_received(tmp_path: Path) -> None:
    found, alone, seen = 0, 0, 0
    for seed in range(FIRST_SEED, FIRST_SEED + 2 * COUNT):
        bad = SPOILERS["missing"](world(seed, "locks", is_simple=True, subscribers=2), seed)
        if bad is not None and all(w.value != NEVER for w in bad.world.writes):
            one = unordered(bad.world)
            nobody = replace(one, contract=msgspec.structs.replace(one.contract, order_key="none"))
            found += bool(judged(one, tmp_path / f"{seed}").findings)
            alone += bool(judged(nobody, tmp_path / f"{seed} alone").findings)
            seen += 1
    assert seen >= COUNT // 2
    assert (found >= seen // 2, alone) == (True, 0)


def inside(region: Region, found: Edges) -> list[tuple[int, ...]]:
    """The edges between nodes of the region, as rows."""
    is_inside = region.has(found.source, found.source_after) & region.has(found.target, found.target_after)
    kept = take(found, is_inside)
    columns = (kept.source, kept.target, kept.source_after, kept.target_after)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_region_has_all_edges_between_its_nodes_and_what_real_time_implies_changes_no_judgement(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate asks for the edges that real time does not imply; with all edges the judgement is the same."""
    left_out = regions = windows = 0

    def look(every: Edges, item: Derived, places: Placed) -> None:
        nonlocal regions
        assert len(inside(EVERYWHERE, every)) == len(every.source)
        third = max(1, int(every.target.max(initial=0)) // 3)
        for begin in (0, third, 2 * third):
            part = structs.replace(EVERYWHERE, windows=Windows(np.array([begin]), np.array([begin + third // 2 + 1])))
            wanted = inside(part, every)
            assert inside(part, numbered(item, places=places, region=part).edges) == wanted
            regions += 0 < len(wanted) < len(every.source)

    def whole(item: Derived, *, places: Placed, region: Region | None = None) -> Inference:
        nonlocal left_out
        every, queried = (numbered(item, places=places, region=each) for each in (EVERYWHERE, region))
        if region is None:
            look(every.edges, item, places)
        left_out += len(every.edges.source) - len(queried.edges.source)
        return every

    for seed in SEEDS:
        for number, one in enumerate(spoiled(kind, seed)):
            with monkeypatch.context() as patch:
                patch.setattr(watermark_kernel, "numbered", whole)
                judgement = judged(one, tmp_path / f"{seed} {number}")
            if all(w.value != NEVER for w in one.writes):
                assert judged(one, tmp_path / f"{seed} {number} lean") == judgement, f"seed {seed}"
                windows += judgement.facts.get("windows", 0) != 0
    assert regions > COUNT
    assert left_out > 0
    assert windows > 0


def version_order(judgement: Judgement) -> dict[str, int]:
    order = judgement.facts.get("version_order", {})
    assert isinstance(order, dict)
    return msgspec.convert(order, dict[str, int])


def of_one_chain(finding: Finding) -> Named:
    return Named(name=finding.anomaly, chains=1, is_locked=False)


@pytest.mark.parametrize(("fault", "percent"), [("torn", 95), ("late", 38), ("missing", 51), ("whole late", 10)])
def test_faults_are_found_as_often_as_was_stated(fault: str, percent: int, tmp_path: Path) -> None:
    found = seen = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 2 * COUNT):
        bad = SPOILERS[fault](world(seed, "locks", is_simple=True, subscribers=1), seed)
        if bad is not None and all(w.value != NEVER for w in bad.world.writes):
            found += bool(judged(bad.world, tmp_path / str(seed)).findings)
            seen += 1
    assert seen >= COUNT // 2
    assert 100 * found >= (percent - (5 if COUNT >= 300 else 15)) * seen
