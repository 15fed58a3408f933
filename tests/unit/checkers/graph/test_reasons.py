"""Reasons and findings of cycles: whose reason is quoted, and how a step is named."""

from dataclasses import dataclass

import pytest

from checkers.graph.edges import CHAIN, IN, OUT, PROCESS, REALTIME, RW, RW_BY_PROCESS, WR, WW, WW_BY_REALTIME
from checkers.graph.reasons import Reason, around, cycle_finding, relation_of, shown, told, why


@dataclass
class Reader:
    """Shows one kind of dependency."""

    name: str
    kind: int

    def why(self, earlier: int, later: int, kind: int) -> Reason | None:
        return Reason(f"{self.name}: {earlier} before {later}", (9,)) if kind == self.kind else None


def test_the_first_witness_with_a_reason_is_quoted() -> None:
    witnesses = (Reader("one", WW), Reader("two", WR), Reader("three", WR))
    assert why(witnesses, 1, 2, WR) == Reason("two: 1 before 2", (9,))
    assert why(witnesses, 1, 2, RW) is None


@pytest.mark.parametrize(
    ("kinds", "relation"),
    [
        ((WW, WW_BY_REALTIME), "ww"),
        ((WR,), "wr"),
        ((RW, RW_BY_PROCESS), "rw"),
        ((PROCESS,), "process"),
        ((REALTIME,), "realtime"),
        ((IN, OUT, CHAIN), "watermark"),
    ],
)
def test_every_kind_of_step_has_a_relation(kinds: tuple[int, ...], relation: str) -> None:
    assert {relation_of(kind) for kind in kinds} == {relation}


def test_a_finding_tells_its_steps_and_keeps_the_small_letter_of_a_name() -> None:
    steps = [shown("T1", "T2", PROCESS, "process 3 ran T1 before T2"), shown("T2", "T1", RW, "T2 missed T1")]
    finding = cycle_finding("G0", "c", steps, told(steps, f"So {around((1, 2))}."), facts=((1, 2),), ops=(1, 2))
    assert finding.sentence == "Process 3 ran T1 before T2; T2 missed T1. So T1 before T2 before T1."
    named = [shown("W s1/2", "T1", OUT, "s1 did not have it")]
    other = cycle_finding("G0", "c", named, told(named, "So."), facts=((1, 3),), ops=(1,))
    assert other.sentence == "s1 did not have it. So."
    assert other.fingerprint != finding.fingerprint
