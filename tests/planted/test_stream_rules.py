"""Faults put into the tutorial's feed from outside, which only the rules about starts and futures see."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from checkers.engine import protocol
from checkers.engine.datasets import LocalEngine
from checkers.streams.check import check
from clusters.tutorial.feed import Feed
from clusters.tutorial.messages import Watermark
from clusters.tutorial.promises import STREAM
from harness.core.machine import Context, NodeId
from harness.core.record import Footer
from harness.core.verdict import Judgement
from harness.record.formats.parquet.parquet import write_history
from harness.scenario.scenario import Scenario
from tests.scenario.simulated import Simulated

SEED = 1
# What the tutorial keeps to as well, though it promises nothing of it.
CONTRACT = msgspec.structs.replace(STREAM, wm_scope="subscriber", wm_idle="rests", realtime="follows")
Judge = Callable[[], Judgement]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    def judged() -> Judgement:
        simulated = Simulated(Scenario(cluster="tutorial", seed=SEED, time_s=8))
        footer = Footer(0, simulated.reason, simulated.unseed)
        write_history([*simulated.evidence, footer], tmp_path / "history")
        return check(tmp_path / "history", protocol.Context(engine=LocalEngine(1), contract=CONTRACT))

    return judged


def test_without_a_fault_nothing_is_found_and_much_is_witnessed(judge: Judge) -> None:
    judgement = judge()
    assert judgement.findings == ()
    expected = {"resume-hole": 1, "lost-tail": 1, "watermark-from-future": 100, "real-time-order": 100}
    assert all(judgement.witnesses[name] >= count for name, count in expected.items()), judgement.witnesses


def test_a_feed_that_resumes_one_too_late_leaves_a_hole(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it leaves out had come in the session before, above its last watermark: no other rule sees it."""
    right = Feed.open

    def late(self: Feed, subscriber: NodeId, session: int, after: int) -> None:
        right(self, subscriber, session, after + (after > 0))

    monkeypatch.setattr(Feed, "open", late)
    assert {finding.anomaly for finding in judge().findings} == {"resume-hole"}


def test_a_feed_that_announces_what_nobody_has_written_yet_is_from_the_future(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ahead(self: Feed, committed: int, context: Context) -> None:
        for subscriber, session in self._sessions.items():
            context.send(subscriber, Watermark(session, committed + 50))

    monkeypatch.setattr(Feed, "announce", ahead)
    assert "watermark-from-future" in {finding.anomaly for finding in judge().findings}
