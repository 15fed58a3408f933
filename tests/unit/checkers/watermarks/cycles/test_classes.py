"""Cycles of one class, where another way of the same length is of another class."""

import numpy as np
import pytest

from checkers.graph.edges import IN, OPEN_END, OUT, PROCESS, REALTIME, RW, WR, WW
from checkers.graph.paths import UNORDERED
from checkers.watermarks.cycles.classes import classes
from checkers.watermarks.cycles.steps import Component, Step

MARK = 3
SINGLE = "G-single-watermark"


def component(*dependencies: Step, process: tuple[int, ...] = (2, 1, 2, UNORDERED)) -> Component:
    """Three operations, the first two before the third in time; a watermark with the third, and without the others."""
    through = (Step(2, MARK, IN, 0, 1), Step(MARK, 0, OUT, 0, 0), Step(MARK, 1, OUT, 0, 0))
    return Component(
        number=np.array([1, 2, 5, 9]),
        end=np.array([5, 4, 6, OPEN_END]),
        process=np.array(process),
        is_mark=[False, False, False, True],
        steps=(*dependencies, *through),
    )


def test_a_step_of_time_that_a_dependency_names_does_not_hide_one_that_has_no_other_name() -> None:
    loops = classes(component(Step(1, 0, WW), Step(0, 2, WR), Step(1, 2, RW)), frozenset()).loops
    assert set(loops) == {"G1c-watermark", "G0-watermark-realtime"}
    assert [step.kind for step in loops["G0-watermark-realtime"].steps] == [REALTIME, IN, OUT]
    assert loops["G0-watermark-realtime"].steps[0].source == 1


def test_where_all_that_time_orders_has_another_name_there_is_no_cycle_by_time_alone() -> None:
    loops = classes(component(Step(0, 2, WR), Step(1, 2, WR)), frozenset()).loops
    assert set(loops) == {"G1c-watermark"}


@pytest.mark.parametrize(("process", "name"), [((2, 1, 2, UNORDERED), "-process"), ((0, 1, 2, UNORDERED), "-realtime")])
def test_two_kinds_between_the_same_two_count_as_the_first_of_them(process: tuple[int, ...], name: str) -> None:
    both = (Step(0, 2, WW), Step(0, 2, WR))
    for dependencies in (both, both[::-1]):
        loops = classes(component(*dependencies, Step(1, 2, WR), process=process), frozenset()).loops
        assert [step.kind for step in loops["G0-watermark"].steps] == [WW, IN, OUT]
        assert f"G0-watermark{name}" not in loops


def test_the_order_of_a_process_reaches_over_a_pair_that_has_another_name() -> None:
    one = Component(
        number=np.array([1, 3, 5, 9]),
        end=np.array([2, 4, 6, OPEN_END]),
        process=np.array([7, 7, 7, UNORDERED]),
        is_mark=[False, False, False, True],
        steps=(Step(0, 1, WR), Step(1, 2, WR), Step(2, MARK, IN, 0, 1), Step(MARK, 0, OUT, 0, 0)),
    )
    assert [step.kind for step in classes(one, frozenset()).loops["G0-watermark-process"].steps] == [PROCESS, IN, OUT]


def after_many_pairs(*last: Step, pairs: int = 20) -> Component:
    """Pairs of operations whose rw closes a cycle only with a second rw, from C to D; E is before all."""
    c, e, d, mark = range(2 * pairs, 2 * pairs + 4)
    steps = [step for a in range(0, c, 2) for step in (Step(a, a + 1, RW), Step(a + 1, c, WR), Step(e, a, WW))]
    return Component(
        number=np.arange(mark + 1),
        end=np.full(mark + 1, OPEN_END),
        process=np.full(mark + 1, UNORDERED),
        is_mark=[False] * mark + [True],
        steps=(*steps, Step(c, d, RW), Step(d, mark, IN, 0, 1), Step(mark, e, OUT, 0, 0), *last),
    )


def test_a_forbidden_class_is_found_behind_however_many_edges_that_do_not_show_it() -> None:
    found = classes(after_many_pairs(Step(41, 40, WW)), frozenset({SINGLE}))
    assert (SINGLE in found.loops, found.undecided) == (True, frozenset())


def test_where_no_edge_closes_a_path_of_a_class_it_is_absent() -> None:
    found = classes(after_many_pairs(), frozenset({SINGLE}))
    assert (set(found.loops), found.undecided) == ({"G-nonadjacent-watermark"}, frozenset())


def test_a_forbidden_class_is_undecided_where_the_search_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.graph.search._REACH_BUDGET", 0)
    assert classes(after_many_pairs(pairs=20), frozenset({SINGLE})).undecided == {SINGLE}
    assert classes(after_many_pairs(pairs=10), frozenset({SINGLE})).undecided == frozenset()
    assert classes(after_many_pairs(pairs=20), frozenset()).undecided == frozenset()


def test_a_forbidden_class_is_undecided_where_the_shortest_paths_are_made_of_other_cycles() -> None:
    """Of one wr that only clients close, and one ww that a watermark does, no path is both."""
    both = component(Step(1, 0, WW), Step(0, 1, WR), Step(0, 2, WW))
    found = classes(both, frozenset({"G1c-watermark"}))
    assert set(found.loops) == {"G0-watermark"}
    assert found.undecided == {"G1c-watermark"}
