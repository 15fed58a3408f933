"""Features are what a run reached, in names that other runs can share."""

from harness.core.machine import NodeId
from harness.core.record import Complete, Fault, Mark, Probe, State, StreamEvent
from harness.hunt.reach import Reach

MS = 1_000_000
D1, D2 = NodeId("d1"), NodeId("d2")


def reach_under_a_cut() -> Reach:
    reach = Reach()
    reach.observe(Mark(100 * MS, "load"))
    reach.observe(Fault(200 * MS, 0, "begin", "partition", ("d1>d3",)))
    return reach


def test_a_goal_is_told_apart_by_the_faults_around_it_and_by_its_place() -> None:
    reach = reach_under_a_cut()
    reach.reached(210 * MS, D1, "resent")
    reach.reached(220 * MS, D2, "resent")
    reach.observe(Fault(300 * MS, 0, "end", "partition", ("d1>d3",)))
    reach.reached(310 * MS, D2, "healed")
    assert reach.features == {
        "resent": 110 * MS,
        "resent in partition here": 110 * MS,
        "resent in partition elsewhere": 120 * MS,
        "healed": 210 * MS,
    }


def test_two_things_shortly_after_each_other_are_a_feature_of_their_own() -> None:
    reach = Reach()
    reach.reached(0, D1, "a")
    reach.reached(30 * MS, D1, "b")
    reach.reached(40 * MS, D2, "c")
    reach.reached(100 * MS, D2, "d")
    assert [name for name in reach.features if ">" in name] == ["a > b same", "a > c other", "b > c other"]


def test_faults_in_force_together_are_named_together() -> None:
    reach = reach_under_a_cut()
    reach.observe(Fault(205 * MS, 1, "begin", "crash", ("d2",)))
    reach.reached(210 * MS, D2, "resent")
    assert "resent in crash+partition" in reach.features
    assert "resent in crash here" in reach.features


def test_numbers_count_by_powers_of_two_so_that_runs_can_agree() -> None:
    one, other = Reach(), Reach()
    for reach, rows in ((one, 33), (other, 64)):
        reach.observe(Probe(1, "d1", "buffered-rows", rows))
        reach.observe(State(2, "d1", "disconnect", "s1", ["lagging", 5, rows * 1000]))
        reach.observe(Complete(0, 3, "info", error=f"timeout after {rows} ms"))
    assert one.features == other.features
    assert "probe buffered-rows 64" in one.features
    assert "state disconnect lagging-8-65536" in one.features
    assert "info timeout after # ms" in one.features


def test_a_long_wait_for_a_watermark_counts_from_its_beginning() -> None:
    def event(ms: int, kind: str) -> StreamEvent:
        return StreamEvent(ms * MS, "s1", 1, 0, kind)

    reach = Reach()
    for each in (event(0, "open"), event(500, "watermark"), event(2_600, "watermark"), event(2_700, "close")):
        reach.observe(each)
    reach.observe(event(9_000, "open"))  # What passed without a session was no wait.
    assert {name: at for name, at in reach.features.items() if "no watermark" in name} == {
        "no watermark for 2 s": 500 * MS
    }
