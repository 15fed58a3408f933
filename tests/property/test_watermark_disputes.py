"""What the graph of watermarks had to see, its slow definition sees; and the two opinions never dispute, while both are
right, in worlds without fault and with every fault.

SEAMARK_FUZZ_COUNT is the number of seeds of each kind, SEAMARK_FUZZ_SEED where they begin.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.names import PLAIN
from checkers.history.registers import Order
from checkers.history.streams import StreamLog, merged, placed, placement
from checkers.streams import check as streams
from checkers.streams.check import finding
from checkers.streams.rules.logs.split_view import SPLIT_VIEW, rows_at, splits
from checkers.streams.rules.watermarks.torn_unit import TORN_UNIT
from checkers.streams.task import judged
from checkers.streams.view import stream_view
from checkers.watermarks.check import Options, check_source
from checkers.watermarks.cycles.steps import NAMES
from checkers.watermarks.disputes import SEEN, Definition, why
from checkers.watermarks.second_opinion import second_opinion
from harness.core.verdict import Finding
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.oracles.watermark_classes import components
from tests.oracles.watermark_edges import all_pairs
from tests.oracles.watermark_graph import edges
from tests.oracles.watermark_source import World
from tests.worlds.streams.cases import views
from tests.worlds.streams.sources import KINDS
from tests.worlds.streams.spoilers import SPOILERS, columns_of, journal
from tests.worlds.streams.worlds import world

COUNT = count(2)
SEEDS = range(FIRST_SEED, FIRST_SEED + COUNT)
MANY = 10  # From so many seeds on whole checks are made of every world, not only of a few.
OPTIONS = Options(forbidden=frozenset(NAMES), order=Order(commits=True))


def worlds(kind: str, seed: int) -> Iterator[tuple[str, World]]:
    """Plain and odd worlds of that kind, and each with each fault that fits."""
    for one in (world(seed, kind, is_simple=True, subscribers=None if kind == "keys" else 2), world(seed, kind)):
        yield "correct", one
        for fault, spoil in SPOILERS.items():
            if bad := spoil(one, seed):
                yield f"{fault}, seed {seed}: {bad.did}", bad.world


def asked(one: World) -> Iterator[tuple[Finding, str]]:
    """What the rules find torn or split in a world, with why the graph need not have seen it."""
    deliveries, result = columns_of(one)
    writes = placed(result, merged([placement(deliveries, result)]))
    outcome = judged(StreamLog("", ("s1", "s2"), ("s0", "s1", "s2"), ()), deliveries, writes, one.contract)
    definition = Definition(deliveries, writes, one.contract)
    for torn in (finding(example, PLAIN) for example in outcome.examples if example.anomaly == TORN_UNIT.name):
        yield torn, definition.torn(torn)
    view = stream_view(deliveries, writes, one.contract)
    for split in splits(views(outcome))[0]:
        rows = [row for each in rows_at(view, (split.one, split.other)).values() for row in each.tolist()]
        events = tuple(int(deliveries.seq[row]) for row in sorted(rows))
        apart = Finding(fingerprint="", anomaly=SPLIT_VIEW.name, checker="", sentence="", events=events)
        yield apart, definition.split(apart)


def has_cycle(one: World) -> bool:
    """Has the graph by definition a cycle, sessions beginning with what was received, or with the source's state?"""
    into, out, _ = all_pairs(one)
    return bool(components(edges(one))) or any((op, mark) in into for mark, op in out)


@pytest.mark.parametrize("kind", KINDS)
def test_what_had_to_be_seen_is_a_cycle_by_definition(kind: str) -> None:
    for what, one in (each for seed in SEEDS for each in worlds(kind, seed)):
        for told, reason in asked(one):
            assert reason != SEEN or has_cycle(one), f"{told.anomaly}, {what}"


def test_most_of_what_is_torn_had_to_be_seen() -> None:
    met = Counter(
        (told.anomaly, reason == SEEN)
        for kind in ("locks", "timestamps")
        for seed in range(6)
        for _, one in worlds(kind, seed)
        for told, reason in asked(one)
    )
    assert met[TORN_UNIT.name, True] > met[TORN_UNIT.name, False] > 0
    assert met[SPLIT_VIEW.name, True] > 0
    assert met[SPLIT_VIEW.name, False] > 0


@pytest.mark.parametrize("kind", ("locks", "epochs", "keys") if COUNT < MANY else KINDS)
def test_opinions_that_are_right_dispute_nothing(kind: str, tmp_path: Path) -> None:
    compared = 0
    tried = [each for seed in SEEDS for each in worlds(kind, seed)]
    for place, (what, one) in enumerate(tried if COUNT >= MANY else tried[:5]):
        folder = tmp_path / str(place)
        write_history(journal(one), folder)
        engine = LocalEngine(1)
        graph = check_source(folder, folder, one.contract, engine, OPTIONS)
        result = second_opinion(
            graph, streams.check(folder, Context(engine=engine, contract=one.contract)), why(folder, one.contract)
        )
        assert result is None or not result.findings, what
        compared += result is not None
    assert compared
