"""Watermarks and commits go on, within their bounds, unless something excuses them."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from checkers.engine.protocol import Context
from checkers.history.intervals import longest, merged, outside, total
from checkers.state import liveness
from harness.core.promises import StreamContract
from harness.core.verdict import Judgement
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies


def judged(run: Run, folder: Path, **changes: object) -> Judgement:
    return liveness.check(run.write(folder), Context(engine=ENGINE, bounds=replace(BOUNDS, **changes)))


def streamed(*subscribers: str, pause: tuple[int, int] = (0, 0), until: int = 3000) -> Run:
    """Sessions with a watermark every 100 ms, but for s1 none inside the pause."""
    run = Run()
    for subscriber in subscribers:
        run.event(0, subscriber, "open", 0)
        times = [ms for ms in range(100, until, 100) if subscriber != "s1" or not pause[0] < ms < pause[1]]
        run.watermarks(subscriber, times)
    run.mark(until, "end")
    return run


def test_a_stream_that_goes_on_is_a_witness_with_each_pause(tmp_path: Path) -> None:
    judgement = judged(streamed("s1"), tmp_path)
    assert anomalies(judgement) == []
    assert judgement.witnesses["stall"] == 30
    assert judgement.witnesses["lag"] == 0


@pytest.mark.parametrize(("end", "expected"), [(1400, []), (1500, ["stall"])])
def test_a_pause_longer_than_the_bound_is_a_stall(tmp_path: Path, end: int, expected: list[str]) -> None:
    judgement = judged(streamed("s1", pause=(1000, end)), tmp_path)
    assert anomalies(judgement) == expected


@pytest.mark.parametrize(
    ("position", "answered", "closed", "expected"),
    [
        (100, 1000, "<=", []),  # The last watermark, 100, speaks of it.
        (101, 1000, "<=", ["stall"]),
        (100, 1000, "<", ["stall"]),  # It speaks of what is below.
        (99, 1000, "<", []),
        (101, 1599, "<=", ["stall"]),
        (101, 1600, "<=", []),  # Only 400 ms are left, which is the bound.
    ],
)
def test_a_watermark_that_rests_is_due_when_something_is_above_it(
    tmp_path: Path, position: int, answered: int, closed: str, expected: list[str]
) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.watermarks("s1", [100])
    run.append(answered - 1, {1: 1}, at=position)
    run.mark(2000, "end")
    history = run.write(tmp_path)
    rests = StreamContract(closed=closed, cut="position", position="offset", wm_idle="rests")  # type: ignore[arg-type]  # One of its two values.
    judgement = liveness.check(history, Context(engine=ENGINE, bounds=BOUNDS, contract=rests))
    assert anomalies(judgement) == expected
    assert anomalies(
        liveness.check(history, Context(engine=ENGINE, bounds=BOUNDS, contract=replace(rests, wm_idle="moves")))
    ) == ["stall"]
    assert judgement.witnesses["stall"] == (position > 100 or (position == 100 and closed == "<"))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (((500, 101), (1900, 103)), ["stall"]),
        (((500, 103), (1900, 101)), ["stall"]),
        (((500, 99), (1900, 101)), []),
    ],
)
def test_a_watermark_is_due_from_the_first_answer_above_it_whatever_the_order_of_positions(
    tmp_path: Path, answers: tuple[tuple[int, int], ...], expected: list[str]
) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.watermarks("s1", [100])
    for ms, position in answers:
        run.append(ms - 1, {1: position}, at=position)
    run.mark(2000, "end")
    rests = StreamContract(closed="<=", cut="position", position="offset", wm_idle="rests")
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=BOUNDS, contract=rests))
    assert anomalies(judgement) == expected


@pytest.mark.parametrize(
    ("again", "span", "expected"), [(100, None, ["stall"]), (101, None, []), (101, "p1", ["stall"])]
)
def test_a_watermark_that_says_the_same_again_is_no_progress(
    tmp_path: Path, again: int, span: str | None, expected: list[str]
) -> None:
    """The source answered with 105 at 0.5 s, and keep-alives come every 0.2 s."""
    run = Run()
    run.event(0, "s1", "open", 0)
    run.event(100, "s1", "watermark", 100)
    run.append(499, {1: 1}, at=105)
    for number, ms in enumerate(range(600, 2000, 200)):
        run.event(ms, "s1", "watermark", again + number * (again > 100), span=span)
    run.mark(2000, "end")
    rests = StreamContract(closed="<=", cut="position", position="offset", wm_idle="rests")
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=BOUNDS, contract=rests))
    assert anomalies(judgement) == expected


def test_a_source_without_writes_leaves_a_watermark_at_rest(tmp_path: Path) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.event(100, "s1", "open")  # From where on, nobody said.
    run.append(200, {1: 1}, "info")
    run.append(300, {1: 2}, "fail")
    run.mark(2000, "end")
    rests = StreamContract(closed="<=", cut="position", position="offset", wm_idle="rests")
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=BOUNDS, contract=rests))
    assert (anomalies(judgement), judgement.witnesses["stall"]) == ([], 0)


def test_the_watermark_of_a_partition_shows_no_write_that_is_due(tmp_path: Path) -> None:
    """Partition p2 has no writes. The only one is of p1, whose watermark has passed it."""
    run = Run()
    run.event(0, "s1", "open", 0)
    run.append(50, {1: 1}, at=90)
    run.event(100, "s1", "watermark", 90, span="p1")
    run.event(100, "s1", "watermark", 10, span="p2")
    run.mark(2000, "end")
    rests = StreamContract(closed="<=", cut="position", position="offset", wm_idle="rests")
    bounds = replace(BOUNDS, behind_ns=400_000_000)
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=bounds, contract=rests))
    assert anomalies(judgement) == []


@pytest.mark.parametrize(
    ("kind", "span", "expected"), [("error", None, []), ("end", None, []), ("end", "p1", ["stall"])]
)
def test_a_stream_that_ended_does_not_stall(tmp_path: Path, kind: str, span: str | None, expected: list[str]) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.watermarks("s1", [100, 200])
    run.event(210, "s1", kind, span=span)
    run.mark(2000, "end")
    assert anomalies(judged(run, tmp_path)) == expected


def test_a_stall_is_told_with_its_times(tmp_path: Path) -> None:
    (found,) = judged(streamed("s1", "s2", pause=(1000, 1600)), tmp_path).findings
    assert found.sentence == (
        "s1 got no watermark for 0.600 s, from 1.000 s to 1.600 s, though no fault was in force; 0.400 s is the bound."
    )


def test_the_time_to_the_first_watermark_and_to_the_end_counts(tmp_path: Path) -> None:
    assert anomalies(judged(streamed("s1", pause=(0, 700)), tmp_path / "1")) == ["stall"]
    assert anomalies(judged(streamed("s1", pause=(2000, 3000)), tmp_path / "2")) == ["stall"]
    assert anomalies(judged(streamed("s1", pause=(0, 9000)), tmp_path / "3")) == ["stall"]


@pytest.mark.parametrize(
    ("kind", "targets", "begin", "end", "expected"),
    [
        ("partition", "d1>d2", 1000, 1900, []),
        ("crash", "d1", 900, 1500, []),  # Up to 1700 with its grace: 300 ms are left.
        ("crash", "d1", 900, 1300, ["stall"]),  # Up to 1500: 500 ms are left.
        ("crash", "d1", 1500, 1700, ["stall"]),  # 500 ms before it.
        ("slow-subscriber", "s1>d1", 1000, 1900, []),
    ],
)
def test_a_fault_and_its_grace_excuse_a_pause(
    tmp_path: Path, kind: str, targets: str, begin: int, end: int, expected: list[str]
) -> None:
    run = streamed("s1", pause=(1000, 2000))
    run.fault(kind, targets, begin, end)
    assert anomalies(judged(run, tmp_path)) == expected


@pytest.mark.parametrize("targets", ["s2", "s2>d1 d1>s2"])
def test_a_pause_while_only_another_subscriber_is_struck_is_a_lag(tmp_path: Path, targets: str) -> None:
    run = streamed("s1", "s2", pause=(1000, 2000))
    run.fault("slow-subscriber", targets, 900, 2100)
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == ["lag"]
    assert "s1 got no watermark for 1.000 s" in judgement.findings[0].sentence


def test_pauses_in_a_fault_of_another_subscriber_are_witnesses_of_lag(tmp_path: Path) -> None:
    run = streamed("s1", "s2")
    run.fault("slow-subscriber", "s2", 1050, 1450)
    assert judged(run, tmp_path).witnesses["lag"] == 5


def test_a_fault_without_effect_is_no_witness(tmp_path: Path) -> None:
    run = streamed("s1", "s2")
    run.fault("slow-subscriber", "s2", 1050, 1450, effect=0)
    assert judged(run, tmp_path).witnesses["lag"] == 0


def test_a_user_that_naps_gets_no_watermarks_meanwhile(tmp_path: Path) -> None:
    run = streamed("s1", pause=(1000, 2000))
    for ms in range(1100, 2000, 100):
        run.probe(ms, "s1", "user-lag", 5)
    assert anomalies(judged(run, tmp_path)) == []


def test_the_nap_of_another_user_is_no_excuse(tmp_path: Path) -> None:
    run = streamed("s1", "s2", pause=(1000, 2000))
    for ms in range(1100, 2000, 100):
        run.probe(ms, "s2", "user-lag", 5)
    assert anomalies(judged(run, tmp_path)) == ["stall"]


def test_events_that_are_discarded_for_want_of_memory_are_marked(tmp_path: Path) -> None:
    run = streamed("s1", pause=(1000, 2000))
    run.event(1050, "s1", "gap", 1050, value="out-of-memory")
    run.event(1950, "s1", "open", 1900)
    assert anomalies(judged(run, tmp_path)) == []


def test_between_two_sessions_there_is_no_stream(tmp_path: Path) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.watermarks("s1", [100, 200])
    run.event(210, "s1", "gap", 201, value="disconnected")
    run.event(210, "s1", "close")
    run.event(1500, "s1", "open", 1500, session=2)
    run.watermarks("s1", [1600], session=2)
    run.mark(1700, "end")
    assert anomalies(judged(run, tmp_path)) == []


def test_a_subscriber_that_died_says_nothing_more(tmp_path: Path) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.watermarks("s1", [100, 200])
    run.event(1500, "s1", "open", 1500, session=2)
    run.mark(1600, "end")
    assert anomalies(judged(run, tmp_path)) == []


def test_what_is_not_declared_is_not_judged(tmp_path: Path) -> None:
    run = streamed("s1", pause=(1000, 2000))
    run.probe(1000, "d1", "commit-blocked-ns", 900_000_000)
    judgement = judged(run, tmp_path, stall_ns=None, blocked_ns=None)
    assert (anomalies(judgement), set(judgement.witnesses.values())) == ([], {0})


@pytest.mark.parametrize(
    ("waited_ms", "fault", "expected"),
    [
        (90, None, []),
        (150, None, ["stall"]),
        (150, ("pause", "s1", 1), ["lag"]),
        (900, ("pause", "d2", 1), []),
        (900, ("clock", "d2", 850), ["stall"]),
    ],
)
def test_a_commit_waits_for_an_epoch_no_longer_than_the_bound(
    tmp_path: Path, waited_ms: int, fault: tuple[str, str, int] | None, expected: list[str]
) -> None:
    run = streamed("s1")
    if fault is not None:
        kind, target, begin = fault
        run.fault(kind, target, begin, 2500)
    run.probe(1000, "d1", "commit-blocked-ns", waited_ms * 1_000_000)
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == expected


def test_intervals_are_merged_and_cut_out() -> None:
    disturbed = merged([(50, 60), (10, 20), (15, 30), (30, 31)])
    assert disturbed == [(10, 31), (50, 60)]
    assert outside(0, 100, disturbed) == [(0, 10), (31, 50), (60, 100)]
    assert outside(20, 55, disturbed) == [(31, 50)]
    assert outside(12, 30, disturbed) == []
    assert outside(31, 31, disturbed) == []
    assert (longest([]), longest([(0, 3), (5, 9)]), total([(0, 3), (5, 9)])) == (0, 4, 7)


Stretches = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1])))


@given(Stretches, st.integers(0, 20), st.integers(0, 20))
def test_what_is_outside_is_every_moment_that_no_interval_holds(
    stretches: list[tuple[int, int]], begin: int, end: int
) -> None:
    def moments(intervals: list[tuple[int, int]]) -> set[int]:
        return {moment for start, stop in intervals for moment in range(start, stop)}

    pieces = outside(begin, end, merged(stretches))
    assert moments(pieces) == moments([(begin, end)]) - moments(stretches)
    assert all(start < stop for start, stop in pieces)
    assert all(stop <= start for (_, stop), (start, _) in pairwise(pieces))


@pytest.mark.parametrize(
    ("passed_ms", "fault", "expected"),
    [
        (500, None, []),
        (501, None, ["stale-watermark"]),
        (501, (50, 60), []),  # With its grace it excuses all until 260.
        (601, (900, 950), ["stale-watermark"]),
    ],
)
def test_a_watermark_passes_a_write_in_time_after_its_answer(
    tmp_path: Path, passed_ms: int, fault: tuple[int, int] | None, expected: list[str]
) -> None:
    """It goes on all the time: nothing stalls."""
    run = Run()
    run.event(0, "s1", "open", 0)
    run.append(99, {1: 1}, at=50)
    for ms in range(10, 490, 10):
        run.event(ms, "s1", "watermark", ms // 10)
    run.event(passed_ms, "s1", "watermark", 50)
    if fault is not None:
        run.fault("crash", "d1", *fault)
    run.mark(1000, "end")
    contract = StreamContract(closed="<=", cut="position", position="offset")
    bounds = replace(BOUNDS, behind_ns=400_000_000, stall_ns=None)
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=bounds, contract=contract))
    assert anomalies(judgement) == expected
    assert judgement.witnesses["stale-watermark"] > 0


def test_a_session_that_is_opened_lower_passes_again_what_it_had_passed(tmp_path: Path) -> None:
    run = Run()
    run.event(0, "s1", "open", 0)
    run.append(10, {1: 1}, at=50)
    run.event(20, "s1", "watermark", 60)
    run.event(900, "s1", "open", 40)
    run.event(950, "s1", "watermark", 45)
    run.event(1000, "s1", "watermark", 60)
    run.mark(1000, "end")
    contract = StreamContract(closed="<=", cut="position", position="offset")
    bounds = replace(BOUNDS, behind_ns=400_000_000, stall_ns=None)
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=bounds, contract=contract))
    assert (anomalies(judgement), judgement.witnesses["stale-watermark"]) == ([], 1)


@pytest.mark.parametrize(("first_ms", "passed_ms", "expected"), [(600, 610, []), (100, 610, ["stale-watermark"])])
def test_until_a_session_has_its_first_watermark_only_stalls_count(
    tmp_path: Path, first_ms: int, passed_ms: int, expected: list[str]
) -> None:
    """The first leaders of a source are still to be elected, or what was missed to be sent."""
    run = Run()
    run.event(0, "s1", "open", 0)
    run.append(10, {1: 1}, at=50)
    run.event(first_ms, "s1", "watermark", 20)
    run.event(passed_ms, "s1", "watermark", 60)
    run.mark(1000, "end")
    contract = StreamContract(closed="<=", cut="position", position="offset")
    bounds = replace(BOUNDS, behind_ns=400_000_000, stall_ns=None)
    judgement = liveness.check(run.write(tmp_path), Context(engine=ENGINE, bounds=bounds, contract=contract))
    assert anomalies(judgement) == expected
