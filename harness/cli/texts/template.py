"""yours: a system under test in one file. It runs unchanged, with Redis: replace that by your own system, part by
part.

    seamark run --cluster yours.py:yours --runtime docker --time 30

docs/your-own-system.md explains each part, and the other parts that a system may have: several nodes, a change stream,
options.
"""

import asyncio
import json
from typing import Any

from seamark import Completion, Doors, Invocation, MicroOp, NodeId, Promise, Service, Settings, System

NODE = NodeId("n1")  # The one node of a System that names none.
SYNCED = ("--appendonly", "yes", "--appendfsync", "always")

# 1. The promises, and where they are documented. A promise forbids anomalies, or all that a consistency model forbids;
# docs/promises.md lists them by name. Promise only what you would call a bug if it were broken.
PROMISES = (
    Promise(
        id="YOURS-1",
        text="Transactions are executed one after the other, and acknowledged writes survive kill -9.",
        source="redis.io/docs: Transactions, and Redis persistence with appendfsync always",
        forbids=("strict-serializable", "stale-acknowledged"),
    ),
)


# 2. The server to start for each node.
def service(node: NodeId, peers: Doors, settings: Settings) -> Service:  # noqa: ARG001  A node and its peers matter where there are several.
    """The server of that node; `peers` are the addresses at which it must dial other nodes."""
    return Service(
        image="redis:7",  # Any image that the engine has or can pull.
        debian_packages=("redis-server",),  # Without a registry: built from these. Leave it out if there is one.
        # It must listen on all addresses, and accept connections from other hosts.
        command=("redis-server", "--protected-mode", "no", "--dir", "/data", *SYNCED),
        port=6379,
        hello=b"PING\r\n",  # A message that it answers; b"" if the server sends first.
        folder="/data",  # The folder of its data.
    )


# 3. The client. Most systems have a library for asyncio; Redis needs none.
class Client:
    """One process: it does one operation at a time, raises nothing, and never sends anything twice."""

    def __init__(self, process: int, doors: Doors, settings: Settings) -> None:
        self.door = doors[NODE]  # Dial this, not the server: faults act in between.
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def invoke(self, invocation: Invocation, timeout_ns: int) -> Completion:
        """`ok` with the results of reads, `fail` if it certainly did not and will not happen, else `info`."""
        mops = invocation.mops or ()
        try:
            async with asyncio.timeout(timeout_ns / 1e9):
                if self.streams is None:
                    self.streams = await asyncio.open_connection(*self.door)
                await self.answers(["PING"])
        except (OSError, EOFError) as error:  # Nothing was sent yet. TimeoutError is an OSError as well.
            await self.close()
            return Completion(outcome="fail", error=repr(error), node=NODE)
        try:
            async with asyncio.timeout(timeout_ns / 1e9):
                *_, executed = await self.answers(["MULTI", *map(command, mops), "EXEC"])
        except (OSError, EOFError) as error:  # The answer did not arrive: the operation may have happened all the same.
            await self.close()
            return Completion(outcome="info", error=repr(error), node=NODE)
        if isinstance(executed, str):  # An error instead of a list of answers.
            is_undone = executed.startswith("-EXECABORT")
            return Completion(outcome="fail" if is_undone else "info", error=executed, node=NODE)
        return Completion(outcome="ok", mops=tuple(map(answered, mops, executed)), node=NODE)

    async def answers(self, commands: list[str]) -> list[Any]:
        """Send all commands, then read as many answers."""
        assert self.streams is not None
        reader, writer = self.streams
        writer.write("".join(f"{each}\r\n" for each in commands).encode())
        return [await answer(reader) for _ in commands]

    async def close(self) -> None:
        """Close the connection. Nothing sent on it is ever sent again."""
        if self.streams is not None:
            self.streams[1].transport.abort()
            self.streams = None


def command(mop: MicroOp) -> str:
    """The command for one step of a transaction: append a value to the list `key`, or read the whole list."""
    return f"RPUSH {mop.key} {json.dumps(mop.value)!r}" if mop.f == "append" else f"LRANGE {mop.key} 0 -1"


def answered(mop: MicroOp, result: Any) -> MicroOp:
    """The same step, with the list that was read."""
    return mop if mop.f == "append" else MicroOp("r", mop.key, [json.loads(element) for element in result])


async def answer(reader: asyncio.StreamReader) -> Any:
    """One answer in Redis' protocol; an error is a text that begins with -."""
    line = (await reader.readuntil(b"\r\n"))[:-2].decode()
    match line[0]:
        case "*":
            return [await answer(reader) for _ in range(int(line[1:]))]
        case "$":
            return (await reader.readexactly(int(line[1:]) + 2))[:-2].decode()
        case _:
            return line


# 4. The whole system. Other fields have defaults: see harness/core/system.py.
def yours() -> System:
    """The system that --cluster yours.py:yours loads."""
    return System(
        name="yours",
        summary="one Redis server",
        service=service,
        client=Client,
        promises=PROMISES,
        faults=("crash", "pause", "partition", "slow-link"),
        workloads=("list-append", "bank", "sets"),
    )
