"""Whole streams through crashes, take-overs and hand-overs: exactly what was committed, once, or a marker.

Seeds are ours, so that a failure names the one that shows it.
"""

from collections import Counter
from dataclasses import replace

import pytest

from clusters.ndb import planted
from clusters.ndb.shape import DATA_NODES, SUBSCRIBERS
from harness.core.draw import Stream
from tests.unit.clusters.ndb.stream_anomalies import anomalies
from tests.unit.clusters.ndb.stream_nodes import Plan
from tests.unit.clusters.ndb.stream_world import StreamWorld

CRASH = Plan(seed=0)
RESTART = replace(CRASH, epochs=24, is_rejoining=True, is_crashing_again=True)
TIGHT = replace(RESTART, max_records=4, max_buffered_rows=6, event_buffer=60, nap_permille=60)
SMALL_BUFFER = replace(CRASH, max_buffered_rows=4)


def finished(plan: Plan, seed: int, *bugs: str) -> StreamWorld:
    """That world at rest. Some of its links to subscribers are slow."""
    draw = Stream(seed, "slow")
    pairs = [(node, subscriber) for node in DATA_NODES for subscriber in SUBSCRIBERS]
    slow = tuple(pair for pair in pairs if draw.chance(1, 4))
    world = StreamWorld(replace(plan, seed=seed, slow=slow, bugs=frozenset(bugs)))
    world.run()
    return world


def found_in(world: StreamWorld) -> Counter[str]:
    return sum((anomalies(world, subscriber) for subscriber in SUBSCRIBERS), Counter())


def gaps_in(world: StreamWorld) -> Counter[str]:
    return Counter(str(event.value) for each in SUBSCRIBERS for event in world.delivered(each) if event.kind == "gap")


def test_after_a_crash_every_epoch_is_shown_once_with_exactly_its_rows() -> None:
    goals: Counter[str] = Counter()
    for seed in range(120):
        world = finished(CRASH, seed)
        assert (seed, found_in(world), gaps_in(world)) == (seed, Counter(), Counter())
        goals.update(world.goals())
        goals["a row was sent that was never committed"] += any(row in world.sent for row in world.undone)
    assert goals["an epoch was resent"] > 100
    assert goals["a resent row was dropped as known"] > 80
    assert goals["a row was sent that was never committed"] > 3


def test_a_restarted_node_gets_its_buckets_back_and_can_take_over() -> None:
    handed_over = taken_over = 0
    for seed in range(40):
        world = finished(RESTART, seed)
        assert (seed, found_in(world), gaps_in(world)) == (seed, Counter(), Counter())
        handed_over += world.has_handed_over
        taken_over += len(world.gone) == 2
    assert handed_over > 10
    assert taken_over > 10


def test_with_tight_limits_whatever_is_missing_is_marked() -> None:
    gaps: Counter[str] = Counter()
    for seed in range(40):
        world = finished(TIGHT, seed)
        assert (seed, found_in(world)) == (seed, Counter())
        gaps += gaps_in(world)
        marked = {dump.position for dump in world.dumps("missing")}
        inconsistent = [
            event.position for each in SUBSCRIBERS for event in world.delivered(each) if event.value == "inconsistent"
        ]
        assert all(position in marked for position in inconsistent)
        assert bool(world.dumps("disconnect")) == ("a lagging subscriber was disconnected" in world.goals())
    assert min(gaps["disconnected"], gaps["inconsistent"], gaps["out-of-memory"]) > 2


def test_the_same_seed_gives_the_same_stream() -> None:
    once, again = finished(TIGHT, 3), finished(TIGHT, 3)
    assert [once.delivered(each) for each in SUBSCRIBERS] == [again.delivered(each) for each in SUBSCRIBERS]


@pytest.mark.parametrize(
    ("bug", "plan", "anomaly", "seeds", "at_least"),
    [
        (planted.LIB_ANY_NODE_COMPLETES, CRASH, "missing", 15, 12),
        (planted.BUCKET_COUNT_NOT_SET, CRASH, "missing", 30, 3),
        (planted.FREE_ON_OWN_ACK, CRASH, "stall", 30, 2),
        (planted.HANDOVER_DOUBLE, RESTART, "duplicate", 10, 4),
        (planted.OOB_SILENT, SMALL_BUFFER, "missing", 12, 3),
    ],
)
def test_each_planted_bug_shows_its_anomaly(bug: str, plan: Plan, anomaly: str, seeds: int, at_least: int) -> None:
    hits = sum(found_in(finished(plan, seed, bug))[anomaly] > 0 for seed in range(seeds))
    assert hits >= at_least
