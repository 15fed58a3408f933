"""What all clients of servers share: requests that are repeated, and nodes that lead to a server."""

import asyncio
from collections.abc import Iterable

import pytest

from clusters.servers.client import Broken, Line, Progress, Refused, ServerClient, in_time
from harness.core.machine import NodeId
from harness.core.seams import Address, Completion, Invocation

GUIDES = (NodeId("q1"), NodeId("q2"), NodeId("q3"))
SERVER = NodeId("n2")


def repeated(answers: Iterable[object], within_s: float = 5.0) -> object:
    left = iter(answers)

    async def attempt() -> object:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return asyncio.run(in_time(attempt, within_s, "INFO"))


def test_a_request_is_repeated_until_it_is_answered_without_an_error() -> None:
    assert repeated([Refused("not yet"), Broken("gone"), 7]) == 7


def test_a_request_that_never_succeeds_fails_with_its_last_error() -> None:
    with pytest.raises(OSError, match=r"^INFO: no leader$"):
        repeated([Refused("no leader")] * 9, within_s=0.25)


class Client(ServerClient[Line]):
    """A client whose first `lost` guides know no server."""

    def __init__(self, lost: int, breaks: bool = False) -> None:
        doors = dict.fromkeys((*GUIDES, SERVER), Address("nowhere", 0))
        super().__init__(0, doors, GUIDES)
        self.lost, self.breaks = lost, breaks
        self.asked: list[NodeId] = []

    def _dial(self, address: Address) -> Line:
        breaks = self.breaks

        class Dialled:
            async def connected(self, within_s: float) -> None:
                if breaks:
                    raise Broken("refused")

            async def close(self) -> None: ...

        return Dialled()

    async def _server_by(self, node: NodeId, within_s: float) -> NodeId:
        self.asked.append(node)
        if len(self.asked) <= self.lost:
            raise Broken("it knows no server")
        return SERVER

    async def _carry_out(self, line: Line, invocation: Invocation, progress: Progress) -> Completion:
        return Completion(outcome="ok")


def invoked(client: Client, times: int = 1) -> list[Completion]:
    async def all_of_them() -> list[Completion]:
        return [await client.invoke(Invocation(f="read"), 10**9) for _ in range(times)]

    return asyncio.run(all_of_them())


def test_a_client_asks_the_next_guide_until_one_leads_to_a_server_and_names_that_server() -> None:
    client = Client(lost=2)
    assert [done.node for done in invoked(client, 3)] == [SERVER] * 3
    assert client.asked == [*GUIDES]


@pytest.mark.parametrize(("client", "node"), [(Client(lost=3), "q3"), (Client(lost=0, breaks=True), SERVER)])
def test_an_operation_fails_if_no_guide_leads_to_a_server_that_accepts_it(client: Client, node: str) -> None:
    [done] = invoked(client)
    assert (done.outcome, done.node) == ("fail", node)
    assert client.asked == [*GUIDES]  # Each once.
