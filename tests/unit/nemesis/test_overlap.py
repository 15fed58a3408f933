import pytest

from nemesis.overlap import conflict
from nemesis.plan import Step
from nemesis.topology import ends


def step(fault: str, *targets: str, at: int = 0, until: int = 10, **args: int | str) -> Step:
    return Step(fault=fault, package="any", at_ns=at, until_ns=until, targets=targets, args=args)


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (step("crash", "n1"), step("pause", "n1", at=9, until=12), "both strike n1"),
        (step("cut", "n1>n2", "n2>n1"), step("delay", "n2>n1"), "both strike n2>n1"),
        (step("clock", "n1"), step("crash", "n1"), "both strike n1"),
        (step("cut", "n1>n2", "n2>n1"), step("crash", "n1"), "ends at n1, which crash holds down"),
        (step("pause", "n1", "n2"), step("delay", "client>n1", "client>n2"), "which pause holds down"),
        (step("delay", "n1>n2"), step("crash", "n2", "n3", point="p"), "ends at n2, which crash"),
        (step("stall", "n1>s1", "n1>s2"), step("consumer", "s1"), "keeps messages from s1"),
        (step("reset", "n1>s1"), step("consumer", "s1"), "keeps messages from s1"),
        (step("limit-data", "n1>n2"), step("pause", "n1"), "ends at n1, which pause holds down"),
        (step("disk-full", "n1"), step("crash", "n1", "n2", point="p"), "both strike n1"),
    ],
)
def test_what_hides_another_fault_is_named(one: Step, other: Step, reason: str) -> None:
    assert reason in str(conflict(one, other))
    assert conflict(one, other) == conflict(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (step("crash", "n1", until=5), step("pause", "n1", at=5)),
        (step("crash", "n1"), step("crash", "n2")),
        (step("cut", "n1>n2", "n3>n2"), step("crash", "n1")),
        (step("cut", "n1>n2", "n2>n3"), step("crash", "n1", "n3", point="p")),
        (step("delay", "n1>s1"), step("consumer", "s1")),
        (step("stall", "n1>s2"), step("consumer", "s1")),
        (step("clock", "n1"), step("cut", "n1>n2")),
    ],
)
def test_what_can_have_its_effect_beside_another_may_stand(one: Step, other: Step) -> None:
    assert conflict(one, other) is None
    assert conflict(other, one) is None


def test_the_ends_of_a_link_are_told_and_what_is_none_has_none() -> None:
    assert ends("n1>n2") == ("n1", "n2")
    assert [ends(word) for word in ("n1", "n1>", ">n2", "")] == [("", "")] * 4
