"""A server that is slow to start: whoever watches is told once, with what it said; in the end it is an error."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from harness.core.errors import DeployError
from harness.core.machine import NodeId
from harness.runtimes.containers import readiness
from harness.runtimes.containers.crew import NodeContainer


@dataclass
class Slow:
    """A container and its control: ready after so many questions."""

    after: int
    status: str = "running"
    asked: int = 0
    id: str = "0"
    name: str = "n1"
    log: bytes = field(default=b"opening\nrecovering\n")

    async def ready(self, within_s: float) -> bool:
        self.asked += 1
        await asyncio.sleep(0)
        return self.asked > self.after

    def reload(self) -> None:
        pass

    def logs(self, tail: int) -> bytes:
        return self.log


def wait_for(slow: Slow, within_s: float, *, may_end: bool = False) -> None:
    part = cast("Any", slow)
    each = NodeContainer(node=NodeId("n1"), folder="/data", container=part, control=part, may_end=may_end)
    asyncio.run(readiness.ready(each, within_s))


def test_a_server_that_starts_in_time_is_not_spoken_of(capfd: pytest.CaptureFixture[str]) -> None:
    wait_for(Slow(3), 60)
    assert capfd.readouterr().err == ""


def test_a_slow_server_is_told_of_once_with_the_tail_of_its_log(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "NOTE_AFTER_S", 0.0)
    wait_for(Slow(3), 60)
    assert capfd.readouterr().err == "note: n1 is not ready after 0 s; it said: opening / recovering\n"


def test_a_server_that_never_starts_or_has_ended_is_an_error_with_its_log() -> None:
    with pytest.raises(DeployError, match="n1 is running and not ready; it said: opening / recovering"):
        wait_for(Slow(1_000_000), 0)
    with pytest.raises(DeployError, match="n1 is exited and not ready"):
        wait_for(Slow(1_000_000, status="exited"), 60)


def test_a_server_that_a_fault_lets_end_before_it_is_ready_is_no_error() -> None:
    wait_for(ended := Slow(1_000_000, status="exited"), 60, may_end=True)
    assert ended.asked == 1
