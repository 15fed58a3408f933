"""Transactions under locks: the order of requests, the fence, and leases that end before their time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkers.own.history import History
from clusters.etcd import rows
from clusters.etcd.checks import leases
from clusters.etcd.client import EtcdClient
from clusters.etcd.locks import GONE
from clusters.servers.client import Progress
from harness.core.machine import NodeId, Settings
from harness.core.record import MicroOp
from harness.core.seams import Address, Completion, Invocation

SECOND = 1_000_000_000
APPENDS = (MicroOp("append", 2, 7), MicroOp("append", 1, 7))


class Member:
    """Answers what it is asked, and writes nothing if the lock is gone."""

    def __init__(self, *, is_gone: bool) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.is_gone = is_gone

    async def ask(self, call: str, request: Any) -> Any:
        self.asked.append((call, request))
        match call:
            case "grant":
                return SimpleNamespace(ID=5)
            case "lock":
                return SimpleNamespace(key=request.name + b"/5")
            case "txn" if any(each.HasField("request_put") for each in request.success):
                is_done = not (self.is_gone and request.compare)
                return SimpleNamespace(succeeded=is_done, header=SimpleNamespace(revision=9))
        return SimpleNamespace(responses=[SimpleNamespace(response_range=SimpleNamespace(kvs=[]))] * 2)


def carried_out(locks: str, *, is_gone: bool) -> tuple[Member, Completion]:
    settings = Settings(options={"locks": locks, "reads": "linearizable", "compaction": "off"})
    client, member = EtcdClient(0, {NodeId("n1"): Address("h", 1)}, settings), Member(is_gone=is_gone)
    invocation = Invocation(f="txn", mops=APPENDS)
    return member, asyncio.run(client._carry_out(cast("Any", member), invocation, Progress()))


@pytest.mark.parametrize("locks", ["fenced", "bare"])
def test_lists_are_locked_in_one_order_before_they_are_read_and_released_after_the_write(locks: str) -> None:
    member, done = carried_out(locks, is_gone=False)
    assert [call for call, _ in member.asked] == ["grant", "lock", "lock", "txn", "txn", "revoke"]
    assert [request.name for call, request in member.asked if call == "lock"] == [rows.lock_of(1), rows.lock_of(2)]
    write = member.asked[4][1]
    fences = [(each.key, each.create_revision, each.result) for each in write.compare]
    assert fences == ([(rows.lock_of(key) + b"/5", 0, 1) for key in (1, 2)] if locks == "fenced" else [])
    assert (done.outcome, done.txn) == ("ok", 9)


def test_only_a_fenced_write_notices_that_its_lock_is_gone() -> None:
    assert carried_out("fenced", is_gone=True)[1] == Completion(outcome="fail", error=GONE)
    assert carried_out("bare", is_gone=True)[1].outcome == "ok"


@pytest.mark.parametrize(
    ("seconds", "error", "outcome", "found"),
    [(1.9, GONE, "fail", 1), (2.1, GONE, "fail", 0), (1.9, "a list has changed", "fail", 0), (1.9, GONE, "info", 0)],
)
def test_a_lock_that_is_gone_sooner_than_its_lease_is_a_finding(
    seconds: float, error: str, outcome: str, found: int
) -> None:
    op = SimpleNamespace(
        index=3,
        invoke_ns=SECOND,
        complete_ns=SECOND + int(seconds * SECOND),
        error=error,
        outcome=outcome,
        mops=APPENDS,
    )
    read = SimpleNamespace(index=4, invoke_ns=0, complete_ns=1, error=None, outcome="ok", mops=(MicroOp("r", 1),))
    judged = leases(cast("History", SimpleNamespace(operations=lambda *_: [op, read])))
    assert len(judged.findings) == found
    assert judged.witnesses == {"early-lease": int(outcome != "info")}
    if found:
        assert judged.findings[0].sentence == "T3 lost its lock within 1.900 s, though its lease is for 2 s."
