"""Cycles by hand: written from their least operation on, and named by their steps."""

import pytest

from checkers.graph.classes import Cycle, from_least, name
from checkers.graph.edges import (
    PROCESS,
    REALTIME,
    RW,
    RW_BY_PROCESS,
    RW_BY_REALTIME,
    WR,
    WW,
    WW_BY_PROCESS,
    WW_BY_REALTIME,
)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((WW, WW), "G0"),
        ((WW, WR), "G1c"),
        ((WR, RW), "G-single"),
        ((WR, RW, WR, RW), "G-nonadjacent"),
        ((RW, RW), "G2-item"),
        ((RW, WR, RW), "G2-item"),  # The last and the first are adjacent, too.
        ((WW, PROCESS), "G0-process"),
        ((WR, REALTIME), "G1c-realtime"),
        ((RW, PROCESS, REALTIME), "G-single-realtime"),
        ((WR, WW_BY_PROCESS), "G-single-process"),
        ((WR, WW_BY_REALTIME), "G-single-realtime"),
        ((WR, RW_BY_PROCESS), "G-single-process"),
        ((RW, RW_BY_REALTIME), "G2-item-realtime"),
        ((RW_BY_PROCESS, WR, RW, WR), "G-nonadjacent-process"),
    ],
)
def test_a_cycle_is_named_by_its_steps(kinds: tuple[int, ...], expected: str) -> None:
    assert "".join(name(kinds)) == expected


@pytest.mark.parametrize(
    ("ops", "kinds", "expected"),
    [
        ([7, 3, 5], [WW, WR, RW], Cycle((3, 5, 7), (WR, RW, WW))),
        # Steps of order in a row are one, by real time if any of them is,
        ([3, 5, 7, 9], [WW, PROCESS, REALTIME, RW], Cycle((3, 5, 9), (WW, REALTIME, RW))),
        ([3, 5, 7, 9], [WW, REALTIME, PROCESS, RW], Cycle((3, 5, 9), (WW, REALTIME, RW))),
        ([3, 5, 7], [WW, PROCESS, PROCESS], Cycle((3, 5), (WW, PROCESS))),
        # also where the list of steps ends between them.
        ([5, 7, 3], [PROCESS, WW, PROCESS], Cycle((3, 7), (PROCESS, WW))),
        ([7, 3, 5], [PROCESS, WW, REALTIME], Cycle((3, 5), (WW, REALTIME))),
    ],
)
def test_a_cycle_is_written_from_its_least_operation_on(ops: list[int], kinds: list[int], expected: Cycle) -> None:
    assert from_least(ops, kinds) == expected
