"""The table of regions: whatever order news come in, each slot belongs to its newest region."""

import random

import pytest

from clusters.ticdc.regions.messages import FIRST, Region
from clusters.ticdc.regions.table import RegionTable
from clusters.ticdc.shape import SLOTS, slot_of


def history(dice: random.Random) -> list[Region]:
    """All regions that ever were: splits, and merges of neighbours, at random. The last ones cover all slots."""
    present, ever, number = list(FIRST), list(FIRST), 100
    for _ in range(dice.randint(1, 12)):
        place = dice.randrange(len(present))
        region = present[place]
        if dice.random() < 0.5 and region.end - region.start > 1:
            number += 1
            slot = dice.randrange(region.start + 1, region.end)
            after = [
                Region(region.id, region.version + 1, region.start, slot),
                Region(number, region.version + 1, slot, region.end),
            ]
            present[place : place + 1] = after
        elif place:
            left = present[place - 1]
            after = [Region(left.id, max(left.version, region.version) + 1, left.start, region.end)]
            present[place - 1 : place + 1] = after
        else:
            continue
        ever += after
    return ever


@pytest.mark.parametrize("seed", range(40))
def test_the_newest_region_of_each_slot_counts_whatever_comes_first(seed: int) -> None:
    dice = random.Random(seed)
    ever = history(dice)
    news = [dice.choice(ever) for _ in range(dice.randint(0, 2 * len(ever)))]
    table = RegionTable()
    for region in news:
        table.learn((region,))
    starts = [region.start for region in table.regions]
    assert starts[0] == 0
    assert [region.end for region in table.regions] == [*starts[1:], SLOTS]
    for key in range(200):
        newest = max((region for region in (*FIRST, *news) if region.holds(key)), key=lambda region: region.version)
        found = table.of(key)
        assert (found.id, found.version) == (newest.id, newest.version)
        assert found.start <= slot_of(key) < found.end


def test_it_says_whether_anything_was_new() -> None:
    table = RegionTable()
    assert not table.learn(FIRST)
    assert table.learn((Region(9, 1, 5, 10),))
    assert not table.learn((Region(9, 1, 5, 10), Region(8, 1, 7, 9)))


def test_keys_are_grouped_by_region_in_the_order_of_their_first_key() -> None:
    parts = RegionTable().parts(range(6))
    assert [key for keys in parts.values() for key in keys] != list(range(6))
    assert sorted(key for keys in parts.values() for key in keys) == list(range(6))
    assert [keys[0] for keys in parts.values()] == sorted(keys[0] for keys in parts.values())
    assert all(region.holds(key) for region, keys in parts.items() for key in keys)
