"""Members leave and join by requests to those that stay, and an answer that was lost does no harm."""

import asyncio
from typing import Any

import pytest

from clusters.etcd import line, members
from clusters.etcd.messages import message
from clusters.etcd.service import peer_url, service
from clusters.servers.client import Refused
from harness.core.machine import NodeId, Settings
from harness.core.seams import Address

N1, N2, N3 = NodeId("n1"), NodeId("n2"), NodeId("n3")
DOORS = {N2: Address("n2", 1), N3: Address("n3", 1)}
SETTINGS = Settings(options={"version": "3.7.3", "reads": "linearizable", "compaction": "off"})


class Cluster:
    """Stands for all members; `down` give no answer, and `loses` has the calls whose answer is lost, each once."""

    def __init__(self) -> None:
        self.numbers = {peer_url(node): number for number, node in enumerate((N1, N2, N3), 1)}
        self.down: set[str] = set()
        self.loses: list[str] = []
        self.changes: list[str] = []

    def line(self, address: Address) -> "Line":
        return Line(self, address.host)


class Line:
    def __init__(self, cluster: Cluster, host: str) -> None:
        self.cluster, self.host = cluster, host

    async def __aenter__(self) -> "Line":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def connected(self, within_s: float) -> None:
        if self.host in self.cluster.down:
            raise OSError("no connection")

    async def ask(self, call: str, request: Any) -> Any:
        numbers = self.cluster.numbers
        if call == "member_list":
            assert request.linearizable
            found = [message("Member", ID=number, peerURLs=[url]) for url, number in numbers.items()]
            return message("MemberListResponse", members=found)
        self.cluster.changes.append(call)
        if call == "member_add":
            numbers[request.peerURLs[0]] = 9
        else:
            [url] = [url for url, number in numbers.items() if number == request.ID]
            del numbers[url]
        if call in self.cluster.loses:
            self.cluster.loses.remove(call)
            raise Refused("UNAVAILABLE: etcdserver: request timed out")
        return None


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(line, "Line", made.line)
    return made


def test_a_member_is_removed_and_added_once_by_any_that_answers(cluster: Cluster) -> None:
    async def main() -> None:
        cluster.down, cluster.loses = {"n2"}, ["member_remove", "member_add"]
        for change in (members.remove, members.add):
            with pytest.raises(OSError, match="n3: UNAVAILABLE"):
                await change(N1, DOORS, SETTINGS)
            await change(N1, DOORS, SETTINGS)
            assert (N1 in await members.listed(DOORS, SETTINGS)) == (change is members.add)
        assert cluster.changes == ["member_remove", "member_add"]

    asyncio.run(main())


def test_a_new_member_joins_those_that_exist(cluster: Cluster) -> None:
    async def main() -> None:
        await members.remove(N3, DOORS, SETTINGS)
        await members.remove(N1, DOORS, SETTINGS)
        joining = await members.add(N1, DOORS, SETTINGS)
        assert "--initial-cluster-state=existing" in joining.command
        assert "--initial-cluster=n1=http://n1:2380,n2=http://n2:2380" in joining.command
        first = service(N1, {}, SETTINGS)
        assert "--initial-cluster-state=new" in first.command
        assert (joining.image, joining.folder, joining.port) == (first.image, first.folder, first.port)

    asyncio.run(main())


def test_nobody_left_to_ask_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(OSError, match="there is no other member"):
        asyncio.run(members.listed({}, SETTINGS))
