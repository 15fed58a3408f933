"""The child process of a run in containers: what it has begun to remove, it removes."""

import asyncio
import itertools
from pathlib import Path

import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.child import WallClock, removed_after
from harness.runtimes.simulation.loop import VirtualLoop


class Deployed:
    """Takes a second to be removed."""

    def __init__(self) -> None:
        self.left = ["container", "network"]

    async def close(self, logs: Path | None = None) -> None:
        while self.left:
            await asyncio.sleep(0.5)
            self.left.pop()


def carried_out(lasts_s: float, interrupted_after_s: float, error: Exception | None = None) -> tuple[list[str], bool]:
    """What is left of a deployment whose test is interrupted, and whether it ended as interrupted."""
    deployed = Deployed()

    async def test() -> None:
        async with removed_after(deployed, Path()):
            await asyncio.sleep(lasts_s)
            if error is not None:
                raise error

    async def main() -> bool:
        testing = asyncio.ensure_future(test())
        await asyncio.sleep(interrupted_after_s)
        testing.cancel()
        await asyncio.wait([testing])
        return testing.cancelled()

    return deployed.left, VirtualLoop().run(main())


@pytest.mark.parametrize("at_s", [0.5, 1.0, 1.2, 1.7])
def test_an_interrupt_leaves_nothing_behind_also_while_everything_is_removed(at_s: float) -> None:
    assert carried_out(1.0, at_s) == ([], True)


def test_an_interrupt_while_everything_is_removed_after_an_error_leaves_nothing_behind() -> None:
    assert carried_out(1.0, 1.2, DeployError("gone")) == ([], True)


def test_without_an_interrupt_everything_is_removed_too() -> None:
    assert carried_out(1.0, 5.0) == ([], False)


def test_what_was_done_before_the_run_begins_is_none_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = itertools.count(1_000, 60_000_000_000)  # A minute between two looks, as building an image takes.
    monkeypatch.setattr("harness.runtimes.containers.child.time.monotonic_ns", lambda: next(now_ns))
    clock = WallClock()
    clock.begin()
    assert clock.now_ns() == 60_000_000_000
    assert clock.epoch_ns == 60_000_001_000
