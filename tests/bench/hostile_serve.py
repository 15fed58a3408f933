"""Holds `seamark serve` against hostile connections and hostile runs: `python -m tests.bench.hostile_serve [SECONDS]`.

2,000 connections without the token are open all the time: idle ones, half requests, single bytes, garbage, endless
bodies, refused requests, and clients that never read. 60 more have the token: they watch runs whose journals are pipes
and devices, and download without reading. Meanwhile one client visits every hostile run, and another reads honest pages
five times a second. Prints the times of both, the peak memory of the server with its processes, the load of the
machine, and "passed" or "failed" with the reasons; exits with 1 if an honest page failed or took a second, or the
server took 300 MB.
"""

import asyncio
import contextlib
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.worlds import hostile_store

SECONDS: Final = 300
CONNECTIONS: Final = 2000
WITH_TOKEN: Final = 60
SLOWEST_S, MEMORY_MB = 1.0, 300
TOKEN: Final = "0123456789abcdef0123"  # noqa: S105  Of this server alone.
HEAD: Final = "GET {} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n"


class Server(NamedTuple):
    pid: int
    port: int


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def idle(stream: Stream, _: int) -> None:
    await stream[0].read()


async def half(stream: Stream, port: int) -> None:
    stream[1].write(HEAD.format("/runs", port).encode())
    await stream[0].read()


async def dripping(stream: Stream, port: int) -> None:
    for byte in HEAD.format("/" + "x" * 1000, port).encode():
        stream[1].write(bytes([byte]))
        await asyncio.sleep(1)


async def garbage(stream: Stream, _: int) -> None:
    stream[1].write(os.urandom(20_000))
    await stream[0].read()
    await asyncio.sleep(1)


async def long_header(stream: Stream, port: int) -> None:
    stream[1].write(HEAD.format("/runs", port).encode() + b"x: " + b"y" * 8000)
    await stream[0].read()


async def body(stream: Stream, port: int) -> None:
    stream[1].write(
        HEAD.format("/runs", port).replace("GET", "POST").encode() + b"content-length: 1000000000000\r\n\r\n"
    )
    while True:
        stream[1].write(bytes(100_000))
        await stream[1].drain()


async def refused(stream: Stream, port: int) -> None:
    stream[1].write((HEAD.format("/runs?token=wrong", port) + "\r\n").encode())
    await stream[0].read()
    await asyncio.sleep(1)


async def deaf(stream: Stream, port: int) -> None:
    stream[1].write((HEAD.format("/runs", port) + "\r\n").encode() * 50)
    await asyncio.sleep(30)


BEHAVIOURS: Final = (idle, half, dripping, garbage, long_header, body, refused, deaf)


async def attacker(number: int, port: int, opened: Counter[str]) -> None:
    """One connection after another, with one behaviour."""
    behaviour = BEHAVIOURS[number % len(BEHAVIOURS)]
    while True:
        with contextlib.suppress(OSError):
            stream = await asyncio.open_connection("127.0.0.1", port)
            opened[behaviour.__name__] += 1
            try:
                await behaviour(stream, port)
            finally:
                stream[1].transport.abort()
        await asyncio.sleep(0.1)


async def insider(number: int, port: int, cookie: str, hostile: list[str]) -> None:
    """A client with the token that watches hostile runs, or downloads without reading."""
    place = hostile[number % len(hostile)]
    address = f"/runs/{place}/live" if number % 4 else f"/store/{place}/report.json"
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"{HEAD.format(address, port)}cookie: {cookie}\r\n\r\n".encode())
            await asyncio.sleep(20 if number % 4 else 90)
            writer.transport.abort()
        await asyncio.sleep(0.1)


async def fetched(port: int, address: str, cookie: str) -> tuple[int, float, bytes]:
    """The status, the seconds until the response was whole, and its content; of a stream, its first event."""
    began_s = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{HEAD.format(address, port)}cookie: {cookie}\r\n\r\n".encode())
    content = b""
    while not (address.endswith("/live") and b"\n\n" in content) and (part := await reader.read(1 << 16)):
        content += part
    writer.transport.abort()
    return int(content.split(b" ", 2)[1] or 0), time.monotonic() - began_s, content


class Visits:
    """Pages that a client visits, one after another, with their times."""

    def __init__(self, port: int, cookie: str, addresses: list[str], pause_s: float) -> None:
        self._port, self._cookie, self._addresses, self._pause_s = port, cookie, addresses, pause_s
        self.times: list[tuple[float, str]] = []
        self.failed: Counter[str] = Counter()

    async def go_on(self, is_fine: Callable[[int], bool]) -> None:
        """Visit the pages until this is cancelled."""
        for address in cycle(self._addresses):
            try:
                async with asyncio.timeout(60):
                    status, took_s, _ = await fetched(self._port, address, self._cookie)
            except (OSError, TimeoutError, IndexError, ValueError) as error:
                self.failed[f"{type(error).__name__} {address}"] += 1
            else:
                self.times.append((took_s, address))
                if not is_fine(status):
                    self.failed[f"{status} {address}"] += 1
            await asyncio.sleep(self._pause_s)

    def shown(self) -> str:
        """The number of visits, and their times in milliseconds."""
        times = sorted(self.times)
        at = {name: times[min(len(times) - 1, int(len(times) * share))] for name, share in
              (("median", 0.5), ("99 %", 0.99), ("slowest", 1.0))}  # fmt: skip
        listed = ", ".join(f"{name} {took_s * 1000:,.0f} ms" for name, (took_s, _) in at.items())
        return f"{len(times):,} pages, {listed} ({times[-1][1]}); failed: {dict(self.failed) or 'none'}"


def held_mb(pid: int) -> float:
    """The memory that the server and its processes hold now: what they share counts once."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    kb = 0
    for each in [pid, *(int(child) for task in tasks for child in task.read_text(encoding="ascii").split())]:
        with contextlib.suppress(OSError):  # A process that missed a limit has ended.
            found = re.search(r"Pss:\s*(\d+) kB", Path(f"/proc/{each}/smaps_rollup").read_text(encoding="ascii"))
            kb += int(found[1]) if found is not None else 0
    return kb / 1024


async def peak(pid: int, held: list[float]) -> None:
    """Note the memory ten times a second, until this is cancelled."""
    while True:
        held.append(await asyncio.to_thread(held_mb, pid))
        await asyncio.sleep(0.1)


def processor(pid: int) -> str:
    """How long the server's first thread ran, and how long it waited for a processor that others used."""
    ran_ns, waited_ns, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split())
    return f"its first thread ran {ran_ns / 1e9:.1f} s, and waited {waited_ns / 1e9:.1f} s for a processor"


async def attack(port: int) -> None:
    """All connections without the token, until this process is ended; each second their numbers."""
    opened: Counter[str] = Counter()
    attackers = [asyncio.create_task(attacker(number, port, opened)) for number in range(CONNECTIONS)]
    while attackers:
        await asyncio.sleep(1)
        print(opened.total(), dict(opened), flush=True)


async def measured(
    server: Server, seconds: float, honest: list[str], hostile: list[str]
) -> tuple[Visits, Visits, list[float]]:
    """The visits of the honest and of the curious client, and the memory of the server over time."""
    port, held = server.port, list[float]()
    _, _, answer = await fetched(port, f"/?token={TOKEN}", "")
    found = re.search(rb"set-cookie: ([^;]+);", answer)
    assert found is not None, answer
    cookie = found[1].decode()
    pages = ["/runs", "/runs?page=2", f"/runs/{honest[0]}", f"/runs/{honest[1]}", f"/store/{honest[1]}/report.html"]
    pages += ["/style.css", f"/compare?run={honest[1]}&run={honest[2]}", "/trends", "/sweeps"]
    each = [f"/runs/{place}{rest}" for place in hostile for rest in ("", "/live", "/history.jsonl?from=1&to=2")]
    each += [f"/compare?run={place}&run={honest[1]}" for place in hostile] + ["/calibration"]
    good, curious = Visits(port, cookie, pages, 0.2), Visits(port, cookie, each, 0.05)
    work: list[Coroutine[Any, Any, None]] = [good.go_on(lambda status: status == 200)]
    work += [curious.go_on(lambda status: status in (200, 404, 500, 503))]
    work += [peak(server.pid, held)]
    work += [insider(number, port, cookie, hostile) for number in range(WITH_TOKEN)]
    tasks = [asyncio.create_task(each) for each in work]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    return good, curious, held


def main() -> None:
    seconds, load = float(sys.argv[1]) if sys.argv[1:] else SECONDS, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        honest, hostile = hostile_store.write(store)
        command = [str(Path(sys.executable).with_name("seamark")), "serve", "--store", str(store), "--port", "0"]
        environment = os.environ | {"SEAMARK_TOKEN": TOKEN}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stdout is not None
            port = int(server.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0])
            attacking = [sys.executable, "-m", "tests.bench.hostile_serve", "attack", str(port)]
            with subprocess.Popen(attacking, stdout=subprocess.PIPE, text=True) as attackers:
                time.sleep(3)
                good, curious, held = asyncio.run(measured(Server(server.pid, port), seconds, honest, hostile))
                attackers.terminate()
                opened = attackers.communicate()[0].splitlines()[-1]
            is_up, ran = server.poll() is None, processor(server.pid)
            server.terminate()
    print(f"{len(honest)} honest runs, {len(hostile)} hostile ones, {seconds:.0f} s; connections opened: {opened}")
    print(f"honest client:  {good.shown()}")
    print(f"curious client: {curious.shown()}")
    print(f"the server {'answers' if is_up else 'HAS ENDED'}; its peak of memory: {max(held):.0f} MB; {ran}")
    print("load average: before {:.1f}; at the end {:.1f} (1 min), {:.1f} (5 min)".format(load, *os.getloadavg()[:2]))
    slowest_s = max(good.times)[0]
    missed = {
        "the server has ended": not is_up,
        f"{good.failed.total()} honest pages failed": bool(good.failed),
        f"the slowest honest page took {slowest_s:.3f} s, asked are {SLOWEST_S:g} s": slowest_s >= SLOWEST_S,
        f"the server took {max(held):.0f} MB, asked are {MEMORY_MB} MB": max(held) >= MEMORY_MB,
    }
    reasons = [reason for reason, is_missed in missed.items() if is_missed]
    print(f"failed: {'; '.join(reasons)}" if reasons else "passed")
    sys.exit(1 if reasons else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["attack"]:
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # A warning for each write to a closed connection.
        asyncio.run(attack(int(sys.argv[2])))
    else:
        main()
