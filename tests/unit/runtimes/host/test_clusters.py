"""Whole clusters over real connections: from a transaction of their own client to their subscribers."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from clusters.ndb import Cluster as Ndb
from clusters.tutorial import Cluster as Tutorial
from harness.core.machine import Delivery, Message, NodeId, Settings
from harness.core.record import MicroOp
from harness.core.seams import CallFailed, Client, Completion, Connection, Invocation, MachineCluster
from harness.runtimes.host.control import AskDump, Delivered, Dumped, Stated
from tests.unit.runtimes.host import nodes as processes
from tests.unit.runtimes.host.nodes import Control, Nodes, run, until

TIMEOUT_NS = 1_000_000_000
ROUNDS = 5


class TcpConnection(Connection):
    """One call at a time, each node on a connection of its own."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._clients: dict[NodeId, processes.Client] = {}
        self._number = 0

    async def call(self, node: NodeId, message: Message, timeout_ns: int) -> Message:
        try:
            async with asyncio.timeout(timeout_ns / 1e9):
                if node not in self._clients:
                    self._number += 1
                    self._clients[node] = await self._nodes.client(node, "client-1", self._number)
                return await self._clients[node].call(message)
        except (TimeoutError, EOFError, ConnectionError) as error:
            self._clients.pop(node, None)
            raise CallFailed(repr(error), is_definite=False) from error

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("cluster", [Tutorial(), Ndb()], ids=["tutorial", "ndb"])
def test_transactions_reach_all_subscribers_whole_and_in_order(tmp_path: Path, cluster: MachineCluster) -> None:
    names = [node.id for node in cluster.nodes]

    async def scenario(nodes: Nodes) -> None:
        nodes.settings = Settings(parameters={each.name: each.high for each in cluster.parameters})
        controls = dict(zip(names, await nodes.ready(*names), strict=True))
        subscribers = [controls[node.id] for node in cluster.nodes if node.role == "subscriber"]
        for subscriber in subscribers:
            await until(subscriber.delivered)  # A session is open; it begins behind a position.
        client = cluster.client(0, TcpConnection(nodes), nodes.settings)
        begins = [deliveries(subscriber)[0].position or 0 for subscriber in subscribers]
        commits: list[int] = []
        while len(commits) < ROUNDS or commits[-1] <= max(begins):
            value = len(commits)
            done = await committed(client, MicroOp("append", 1, value), MicroOp("append", 2, value))
            commits.append(done.commit_ts or 0)
        read = await committed(client, MicroOp("r", 1))
        assert read.mops is not None
        assert read.mops[0].value == list(range(len(commits)))

        for subscriber, begin in zip(subscribers, begins, strict=True):
            values = [value for value, commit in enumerate(commits) if commit > begin]
            pairs = [(key, value) for key in (1, 2) for value in values]
            await until(partial(has_rows, subscriber, len(pairs)))
            assert sorted(rows(subscriber)) == pairs
            assert [value for key, value in rows(subscriber) if key == 1] == values
        for control in controls.values():
            control.tell(AskDump(1))
            await control.first(Dumped)
        assert [item for control in controls.values() for item in control.items() if isinstance(item, Stated)]

    run(tmp_path, scenario, names, f"clusters.{cluster.name}:Cluster")


async def committed(client: Client, *mops: MicroOp) -> Completion:
    """The completion, as soon as the cluster takes the transaction."""
    while True:
        completion = await client.invoke(Invocation(f="txn", mops=mops), TIMEOUT_NS)
        if completion.outcome == "ok":
            return completion
        assert completion.outcome == "fail", f"a transaction without faults is unclear: {completion}"


def deliveries(subscriber: Control) -> list[Delivery]:
    return [item.delivery for item in subscriber.items() if isinstance(item, Delivered)]


def has_rows(subscriber: Control, count: int) -> bool:
    return len(rows(subscriber)) == count


def rows(subscriber: Control) -> list[tuple[int, int]]:
    """The rows that a subscriber has seen."""
    found = [(delivery.key, delivery.value) for delivery in deliveries(subscriber) if delivery.kind == "row"]
    return [(key, value) for key, value in found if isinstance(key, int) and isinstance(value, int)]
