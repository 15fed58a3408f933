"""A slow user costs others neither memory nor its subscriber's session."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from checkers.engine.protocol import Context
from clusters.ndb.checks import backlog
from harness.core.verdict import Judgement
from tests.unit.checkers.state.test_liveness import streamed
from tests.worlds.run_cases import BOUNDS, ENGINE, Run, anomalies


def judged(run: Run, folder: Path, **changes: object) -> Judgement:
    return backlog.check(run.write(folder), Context(engine=ENGINE, bounds=replace(BOUNDS, **changes)))


def test_without_a_bound_no_buffer_is_judged(tmp_path: Path) -> None:
    run = Run()
    run.probe(10, "d1", "records", 100)
    judgement = judged(run, tmp_path, records=None)
    assert (anomalies(judgement), set(judgement.witnesses.values())) == ([], {0})


@pytest.mark.parametrize(("records", "expected", "witnesses"), [(3, [], 0), (9, [], 1), (10, ["memory-growth"], 1)])
def test_a_node_keeps_as_many_epochs_as_it_may_and_one_more(
    tmp_path: Path, records: int, expected: list[str], witnesses: int
) -> None:
    run = Run()
    run.probe(10, "d1", "records", records)
    judgement = judged(run, tmp_path)
    assert anomalies(judgement) == expected
    assert judgement.witnesses["memory-growth"] == witnesses


def napping(*, disconnected: bool) -> Run:
    run = streamed("s1", pause=(1000, 1900))
    for ms in range(1100, 1900, 100):
        run.probe(ms, "s1", "user-lag", 5)
    if disconnected:
        run.state(1800, "d1", "disconnect", "s1", ["lagging", 9, 600_000_000], 1200)
    return run


def test_long_naps_in_a_session_that_goes_on_are_witnesses(tmp_path: Path) -> None:
    judgement = judged(napping(disconnected=False), tmp_path)
    assert anomalies(judgement) == []
    assert judgement.witnesses["user-blocks-acknowledgements"] == 5


def test_a_subscriber_that_is_disconnected_because_its_user_naps_is_a_finding(tmp_path: Path) -> None:
    judgement = judged(napping(disconnected=True), tmp_path)
    assert anomalies(judgement) == ["user-blocks-acknowledgements"]


@pytest.mark.parametrize("targets", ["s1>d1", "s1", "d3"])
def test_a_fault_may_hold_acknowledgements_up_while_the_user_naps(tmp_path: Path, targets: str) -> None:
    run = napping(disconnected=True)
    run.fault("slow-subscriber", targets, 900, 1300)
    assert anomalies(judged(run, tmp_path)) == []
