"""yours: a toy store with one bug. A lesson of five minutes: find the bug, shrink it, mend it.

1. Find it. The store keeps lists on one node and writes each transaction to a log on disk. It promises that an answered
   transaction survives a loss of power. Runs of ten seconds under faults show otherwise, and end with ANOMALY:

       seamark run --cluster yours.py:yours --time 10 --seed 1 --count 20 --until-found

2. Look. Open the page that the last lines name, and there the page of the red run. Its red box quotes the promise and
   the operations: a client was answered, the node lost power, and a later read misses the write.

3. Shrink it. The smallest run with the same finding has a few operations and one fault, and comes with a pytest file:

       seamark shrink latest --cluster yours.py:yours

4. Mend it. Search this file for "Lesson", and make the change that the comment describes. When the bug is gone, the
   pytest file that the line "test" of step 3 names passes:

       pytest store/yours/*/test_*.py

5. Be sure. Each of fifty seeds draws other faults and another load:

       seamark run --cluster yours.py:yours --time 10 --seed 1 --count 50 --jobs 2

Next: docs/add-your-own-cluster.md explains each part of this file; docs/your-own-system.md tests a real server.
"""

from typing import Any

import msgspec

from seamark import (
    Answer,
    Call,
    CallFailed,
    Client,
    Completion,
    Connection,
    Context,
    Dump,
    Durable,
    Event,
    Invocation,
    Links,
    Machine,
    MachineCluster,
    MicroOp,
    Node,
    NodeId,
    Promise,
    Received,
    Settings,
    Synced,
)

N1 = NodeId("n1")
PROMISES = (
    Promise(
        id="YOURS-1",
        text="Transactions take effect one after the other, and an answered transaction survives a loss of power.",
        source="the lesson",
        forbids=("stale-acknowledged", "strict-serializable"),
    ),
)


class Transact(msgspec.Struct, frozen=True, tag=True):
    """A transaction: the client's request, and the record in the log."""

    mops: tuple[MicroOp, ...]


class Done(msgspec.Struct, frozen=True, tag=True):
    """The answer: the same steps, with the lists that the reads saw."""

    mops: tuple[MicroOp, ...]


class Store:
    """The node: lists in memory, and a log on disk. It acts through its context only."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        """Start, or start again: the log holds all synced transactions."""
        self.lists: dict[Any, tuple[Any, ...]] = {}
        self.waiting: dict[int, tuple[NodeId, Answer]] = {}
        self.count = 0
        for entry in durable.log("log"):
            if isinstance(entry, Transact):
                self.applied(entry.mops)

    def handle(self, event: Event, context: Context) -> None:
        """Handle one event: a client's request, or the disk's word that a sync is done."""
        match event:
            case Received(client, Call(number, Transact(mops))):
                self.count += 1
                answer = Answer(number, Done(self.applied(mops)))
                context.append("log", Transact(mops))
                context.sync(self.count)
                # Lesson: the log is not on disk yet, and the client gets its answer. Mend it: replace the next line by
                #     self.waiting[self.count] = (client, answer)
                context.send(client, answer)
                context.point("before-synced")  # A fault may strike here, by this name.
            case Synced(token) if token in self.waiting:
                context.send(*self.waiting.pop(token))
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Record the state, when the run is over and all is quiet."""
        for key, elements in self.lists.items():
            context.dump(Dump(object="row", key=key, value=list(elements)))

    def applied(self, mops: tuple[MicroOp, ...]) -> tuple[MicroOp, ...]:
        """Apply the transaction's steps to the lists; the same steps with what the reads saw."""
        results = []
        for mop in mops:
            if mop.f == "append":
                self.lists[mop.key] = (*self.lists.get(mop.key, ()), mop.value)
                results.append(mop)
            else:
                results.append(MicroOp("r", mop.key, list(self.lists.get(mop.key, ()))))
        return tuple(results)


class StoreClient:
    """One client process. `fail` means certainly not done; an unclear outcome is `info`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """Send one transaction, once."""
        try:
            answer = await self.connection.call(N1, Transact(invocation.mops or ()), timeout_ns)
        except CallFailed as failure:
            return Completion(outcome="fail" if failure.is_definite else "info", error=str(failure), node=N1)
        if isinstance(answer, Done):
            return Completion(outcome="ok", mops=answer.mops, node=N1)
        return Completion(outcome="info", error=f"not an answer: {answer}", node=N1)


class yours(MachineCluster):  # noqa: N801  The user's own name.
    """The cluster as data: nodes, links, promises, faults and workloads."""

    name = "yours"
    summary = "lists on one node, with a bug to mend"
    nodes = (Node(N1, "data"),)
    links: Links = {("client", "data"): "fifo", ("data", "client"): "fifo"}  # noqa: RUF012  A lesson needs no ClassVar.
    promises = PROMISES
    points = ("before-synced",)
    faults = ("power", "slow-link", "pause")
    settle_ns = 10_000_000_000

    def machine(self, node: NodeId) -> Machine:
        """The machine of a node."""
        return Store()

    def client(self, process: int, connection: Connection, settings: Settings) -> Client:
        """The client of one process."""
        return StoreClient(connection)
