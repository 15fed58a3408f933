"""Packets that are held up: a program of ours in a container's network namespace (`queue_program.py`)."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

from harness.core.errors import DeployError

_PROGRAM: Final = Path(__file__).with_name("queue_program.py")
_WITHIN_S: Final = 10.0


class Holding(NamedTuple):
    """How packets are held: all for a time, or so that no more than that many bytes a second pass."""

    latency_ns: int = 0
    jitter_ns: int = 0
    bytes_per_s: int = 0
    is_ordered: bool = True  # False: a packet that is held longer is overtaken.


class Held(NamedTuple):
    """The number of packets that were held, and their time in all."""

    packets: int = 0
    total_ns: int = 0


class PacketQueue:
    """The program of one queue. It lets all packets go when it ends, and ends with the harness."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._turn = asyncio.Lock()
        self._held = Held()

    @classmethod
    async def opened(cls, prefix: Sequence[str], number: int, holding: Holding) -> Self:
        """The program of that queue, once it is ready; `prefix` leads to its namespace. Raises DeployError."""
        # Without site and the environment: it needs the standard library alone, and must start at once.
        program = [*prefix, sys.executable, "-I", "-S", str(_PROGRAM), str(number), *(str(int(n)) for n in holding)]
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        queue = cls(process)
        if not await queue._line():
            await queue.close()
            told = (await process.stderr.read()).decode(errors="replace").strip() if process.stderr else ""
            raise DeployError(f"packets cannot be held: {told.splitlines()[-1] if told else 'no word'}")
        return queue

    async def held(self) -> Held:
        """What it has held so far; once it has ended, what it had held when it last answered."""
        async with self._turn:
            if self._process.returncode is None and self._process.stdin is not None:
                with suppress(OSError):
                    self._process.stdin.write(b"\n")
                    await self._process.stdin.drain()
                    self._take(await self._line())
        return self._held

    async def close(self) -> Held:
        """Let everything go, and end it."""
        async with self._turn:
            if self._process.stdin is not None and self._process.returncode is None:
                self._process.stdin.close()
                self._take(await self._line())
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        return self._held

    def _take(self, line: bytes) -> None:
        if line:
            self._held = Held(*map(int, line.split()))

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(_WITHIN_S):
                return await self._process.stdout.readline()
        return b""
