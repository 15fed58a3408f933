"""A subscriber of a watch that is silent because it begins behind everything there is goes on from what it has."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from clusters.etcd import subscriber
from clusters.etcd.messages import message
from clusters.etcd.subscriber import REVISION, EtcdSubscriber
from clusters.servers.client import Broken
from harness.core.machine import Delivery, NodeId, Settings
from harness.core.seams import Address

N1, S1 = NodeId("n1"), NodeId("s1")


class Member:
    """Has two revisions, of one list; answers a progress request unless the watch begins behind both."""

    last = 2

    def __init__(self, _: Address) -> None:
        self.begin = 0
        self.answers: Iterator[Any] = iter(())

    async def __aenter__(self) -> "Member":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def connected(self, within_s: float) -> None:
        pass

    def watch(self) -> "Member":
        return self

    async def tell(self, request: Any) -> None:
        self.begin = request.create_request.start_revision
        self.answers = self.answering()

    def answering(self) -> Iterator[Any]:
        header = message("ResponseHeader", revision=self.last)
        yield message("WatchResponse", header=header, created=True)
        for revision in range(max(1, self.begin), self.last + 1):
            pair = message("KeyValue", key=b"s/l/1", value=b"[%d]" % revision, mod_revision=revision)
            yield message("WatchResponse", header=header, events=[message("Event", kv=pair)])
        if self.begin <= self.last:
            yield message("WatchResponse", header=header)

    def repeat(self, request: Any, every_s: float) -> None:
        assert request.progress_request is not None

    async def received(self, within_s: float) -> Any:
        return next(self.answers, None)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("kept", "sessions"),
    [
        (0, [["row 1", "row 2", "watermark 2"]]),
        (1, [["row 2", "watermark 2"]]),
        (2, [[], ["watermark 2"], ["watermark 2"]]),
    ],
)
def test_every_session_has_the_rest_and_a_silent_one_is_followed_by_one_that_hears_the_notification(
    kept: int, sessions: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        own: dict[str, object] = {REVISION: kept}
        reader = EtcdSubscriber(S1, {N1: Address("n1", 1)}, Settings(), own)
        for expected in sessions:
            seen: list[str] = []

            async def deliver(event: Delivery, seen: list[str] = seen) -> None:
                if event.kind != "open":
                    seen.append(f"{event.kind} {event.position}")

            with pytest.raises(Broken, match="sends nothing more"):
                await reader.receive(deliver)
            assert seen == expected
        assert own[REVISION] == Member.last

    monkeypatch.setattr(subscriber, "Line", Member)
    asyncio.run(main())
