"""Actions that wait for the disk: each once, when its own sync is done."""

from typing import cast

import pytest

from clusters.parts.syncs import Syncs
from harness.core.machine import Context


class Disk:
    def __init__(self) -> None:
        self.tokens: list[int] = []

    def sync(self, token: int) -> None:
        self.tokens.append(token)


def test_an_action_is_carried_out_once_when_its_own_sync_is_done() -> None:
    syncs, disk, done = Syncs(), Disk(), list[str]()
    for name in ("one", "two"):
        syncs.sync(cast("Context", disk), lambda name=name: done.append(name))  # type: ignore[misc] # A bound name.
    first, second = disk.tokens
    assert done == []
    syncs.synced(second)
    assert done == ["two"]
    syncs.synced(first)
    assert done == ["two", "one"]
    with pytest.raises(KeyError):
        syncs.synced(first)
