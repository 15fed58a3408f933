"""A server that knows nothing of this project: lists in an append-only file, one JSON line a transaction.

Run as `python -c SERVER PORT FILE`. A request is a list of [f, key, value]; the answer is the same with reads filled
in. With `FORGETFUL` it keeps nothing on disk. It also sends each transaction to those who said "follow N", from the
N-th on, and after each "mark N": how many it has sent.
"""

import asyncio
import json
from typing import Any

from harness.core.machine import Delivery, NodeId, Settings
from harness.core.promises import Promise, StreamContract
from harness.core.record import MicroOp
from harness.core.seams import Address, Completion, Deliver, Doors, Invocation, Node, Service
from harness.core.system import System

SERVER = """
import asyncio, json, os, sys

port, path = int(sys.argv[1]), sys.argv[2]
lists, log, followers, news = {}, [], 0, asyncio.Event()


def apply(mops):
    for mop in mops:
        if mop[0] == "append":
            lists.setdefault(mop[1], []).append(mop[2])
        else:
            mop[2] = list(lists.get(mop[1], []))


async def follow(start, writer):
    while True:
        for number in range(start, len(log)):
            writer.write(json.dumps(["txn", number + 1, log[number]]).encode() + b"\\n")
        start = max(start, len(log))
        writer.write(json.dumps(["mark", start]).encode() + b"\\n")
        await writer.drain()
        await asyncio.sleep(0.05)


async def serve(reader, writer):
    while line := await reader.readline():
        request = json.loads(line)
        if isinstance(request, int):
            asyncio.ensure_future(follow(request, writer))
            continue
        apply(request)
        written = [mop for mop in request if mop[0] == "append"]
        if written:
            log.append([mop[1:] for mop in written])
            try:
                file.write(json.dumps(written) + "\\n")
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os._exit(1)
        writer.write(json.dumps([len(log), request]).encode() + b"\\n")
        await writer.drain()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", port, limit=1 << 24)
    await server.serve_forever()


if path.endswith("forgotten") and os.path.exists(path):
    os.remove(path)
if os.path.exists(path):
    for line in open(path):
        if line.endswith("\\n"):
            apply(json.loads(line))
            log.append([mop[1:] for mop in json.loads(line)])
file = open(path, "a")
asyncio.run(main())
"""
N1, S1 = NodeId("n1"), NodeId("s1")
PORT = 6000
LIMIT = 1 << 24
FORGETFUL = "forgetful"
PROMISE = Promise(
    id="NB-1",
    text="Transactions are strictly serializable.",
    source="tests/system/notebook.py",
    forbids=("strict-serializable",),
)
STREAM_PROMISE = Promise(
    id="NB-2",
    text="A mark says that all before it was delivered, whole and in order.",
    source="tests/system/notebook.py",
    forbids=("missing-event", "torn-unit", "late-event", "late-event-boundary", "order-inversion"),
)
STREAM = StreamContract(closed="<=", cut="position", position="offset", replay="resume", wm_scope="session")


def service(node: NodeId, peers: Doors, settings: Settings) -> Service:
    """A Python program in seamark's own image."""
    path = f"/var/lib/seamark/{'forgotten' if FORGETFUL in settings.bugs else 'notebook'}"
    return Service(
        image="seamark-node",
        port=PORT,
        hello=b"[]\n",
        folder="/var/lib/seamark",
        command=("python", "-u", "-c", SERVER, str(PORT), path),
    )


class NotebookClient:
    """One connection, made when it is needed."""

    def __init__(self, door: Address) -> None:
        self._door = door
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        mops = invocation.mops or ()
        try:
            async with asyncio.timeout(timeout_ns / 1e9):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(*self._door, limit=LIMIT)
        except (OSError, TimeoutError) as error:
            return Completion(outcome="fail", error=f"not connected: {error}")
        reader, writer = self._streams
        try:
            async with asyncio.timeout(timeout_ns / 1e9):
                writer.write(json.dumps([[mop.f, str(mop.key), mop.value] for mop in mops]).encode() + b"\n")
                line = await reader.readline()
            position, done = json.loads(line)
        except (OSError, TimeoutError, ValueError) as error:
            await self.close()
            return Completion(outcome="info", error=f"no answer: {error!r}")
        answered = tuple(MicroOp(mop.f, mop.key, told[2]) for mop, told in zip(mops, done, strict=True))
        is_write = any(mop.f == "append" for mop in mops)
        return Completion(outcome="ok", mops=answered, node=N1, commit_ts=position if is_write else None)

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


class Follower:
    """Asks for all behind what it has kept."""

    def __init__(self, door: Address, kept: dict[str, object]) -> None:
        self._door, self._kept = door, kept

    async def receive(self, deliver: Deliver) -> None:
        start = self._kept.get("position", 0)
        assert isinstance(start, int)
        reader, writer = await asyncio.open_connection(*self._door, limit=LIMIT)
        try:
            writer.write(json.dumps(start).encode() + b"\n")
            await deliver(Delivery(session=0, kind="open", position=start))
            while (line := await reader.readline()).endswith(b"\n"):
                await self._take(deliver, *json.loads(line))
        finally:
            writer.transport.abort()

    async def _take(self, deliver: Deliver, kind: str, position: int, rows: list[Any] | None = None) -> None:
        if kind == "mark":
            await deliver(Delivery(session=0, kind="watermark", position=position))
            return
        for ordinal, (key, value) in enumerate(rows or ()):
            await deliver(
                Delivery(
                    session=0,
                    kind="row",
                    key=int(key),
                    value=value,
                    position=position,
                    ordinal=ordinal,
                    unit=position,
                    unit_rows=len(rows or ()),
                )
            )
        self._kept["position"] = position


def notebook(faults: tuple[str, ...] = ("partition", "crash", "pause", "slow-link", "slow-subscriber")) -> System:
    """The system: a server, and a subscriber."""
    return System(
        name="notebook",
        service=service,
        client=lambda process, doors, settings: NotebookClient(doors[N1]),
        subscriber=lambda node, doors, settings, kept: Follower(doors[N1], kept),
        nodes=(Node(N1, "server"), Node(S1, "subscriber")),
        promises=(PROMISE, STREAM_PROMISE),
        stream=STREAM,
        bugs={FORGETFUL: "nothing is kept on disk"},
        faults=faults,
        settle_ns=12_000_000_000,
    )
