from collections import Counter

from harness.core.generators.dice import Dice


def test_the_same_dice_give_the_same_number_and_stay_as_they_are() -> None:
    dice = Dice.named(7, "workload")
    number, after = dice.below(1000)
    assert dice.below(1000) == (number, after)
    assert dice == Dice.named(7, "workload")
    assert after.position == 1


def test_another_name_or_seed_gives_other_numbers() -> None:
    drawn = [Dice.named(seed, name).below(2**60)[0] for seed in (1, 2) for name in ("a", "b")]
    assert len(set(drawn)) == 4


def test_draws_are_below_their_bounds_and_reach_all_of_them() -> None:
    seen: Counter[int] = Counter()
    dice = Dice.named(1, "uniform")
    for _ in range(6000):
        number, dice = dice.below(6)
        seen[number] += 1
    assert sorted(seen) == list(range(6))
    assert all(850 < count < 1150 for count in seen.values())


def test_many_draws_at_once_follow_their_own_bounds() -> None:
    bounds = [1, 2, 3, 5, 8, 13, 21, 34, 55, 10**18]
    drawn, after = Dice.named(1, "many").each_below(bounds)
    assert all(0 <= number < bound for number, bound in zip(drawn, bounds, strict=True))
    assert after.position == 2
    assert Dice.named(1, "many").each_below([]) == ([], Dice.named(1, "many"))


def test_numbers_are_the_same_on_every_machine_and_version() -> None:
    assert Dice.named(7, "workload").each_below([1000] * 4)[0] == KNOWN


KNOWN = [886, 0, 718, 286]
