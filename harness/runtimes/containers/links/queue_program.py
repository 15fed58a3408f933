"""Holds the packets of one queue of the kernel, and lets each go on when it is due. Standard library only.

Run in a container's network namespace as `python queue_program.py QUEUE LATENCY_NS JITTER_NS BYTES_PER_S ORDERED`. For
each line on its input it prints how many packets it has held, and for how many nanoseconds in all. At the end of its
input it lets everything go on, prints the same once more, and ends: so it does not outlive the harness.

Source: linux/netfilter/nfnetlink_queue.h. All numbers of the kernel's attributes are in the byte order of the network.
"""

import contextlib
import errno
import heapq
import os
import random
import select
import socket
import struct
import sys
import time

_NETFILTER, _QUEUE = 12, 3  # The family of netlink, and the subsystem in it.
_PACKET, _VERDICT, _CONFIG = 0, 1, 2
_COMMAND, _COPY, _LENGTH, _MASK, _FLAGS = 1, 2, 3, 4, 5
_PACKET_HEAD, _VERDICT_HEAD, _PAYLOAD = 1, 2, 10
_BIND, _COPY_PACKET, _ACCEPT, _FAIL_OPEN = 1, 2, 1, 1
_MOST_HELD = 16_384  # Beyond it the kernel lets packets pass.
_REQUEST = 1
_COPIED = 4  # Bytes of each packet: an IPv4 header begins with four that contain its length.
_ATTRIBUTE_TYPE = 0x3FFF
_READ_BYTES = 1 << 16
_BUFFER_BYTES = 4 << 20


class Schedule:
    """When packets are due. `is_ordered`: none overtakes another."""

    def __init__(self, latency_ns: int, jitter_ns: int, bytes_per_s: int, *, is_ordered: bool) -> None:
        self._latency_ns, self._jitter_ns, self._bytes_per_s = latency_ns, jitter_ns, bytes_per_s
        self._is_ordered = is_ordered
        self._draw = random.Random(0)  # noqa: S311  No secret, and each run delays alike.
        self._last_ns = 0

    def due_ns(self, now_ns: int, length: int) -> int:
        """The time at which a packet of that length, which arrives now, goes on."""
        if self._bytes_per_s:
            self._last_ns = max(now_ns, self._last_ns) + length * 1_000_000_000 // self._bytes_per_s
            return self._last_ns
        due_ns = now_ns + self._latency_ns + self._draw.randint(0, self._jitter_ns)
        if self._is_ordered:
            self._last_ns = due_ns = max(due_ns, self._last_ns)
        return due_ns


def message(kind: int, queue: int, *attributes: tuple[int, bytes]) -> bytes:
    """A message to the kernel about that queue."""
    body = struct.pack("!BBH", socket.AF_UNSPEC, 0, queue)
    for number, content in attributes:
        body += struct.pack("=HH", 4 + len(content), number) + content + bytes(-len(content) % 4)
    return struct.pack("=IHHII", 16 + len(body), _QUEUE << 8 | kind, _REQUEST, 0, 0) + body


def packets(data: bytes) -> list[tuple[int, int]]:
    """The number and the length in bytes of each packet that the kernel announces."""
    found, start = [], 0
    while start + 20 <= len(data):
        size, kind = struct.unpack_from("=IH", data, start)
        if kind == _QUEUE << 8 | _PACKET:
            parts = dict(_attributes(data[start + 20 : start + size]))
            [number] = struct.unpack_from("!I", parts[_PACKET_HEAD])
            [length] = struct.unpack_from("!H", parts.get(_PAYLOAD, b"").ljust(_COPIED, b"\0"), 2)
            found.append((number, length))
        start += max(16, size + -size % 4)
    return found


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    found, start = [], 0
    while start + 4 <= len(data):
        size, number = struct.unpack_from("=HH", data, start)
        found.append((number & _ATTRIBUTE_TYPE, data[start + 4 : start + size]))
        start += max(4, size + -size % 4)
    return found


def bound(queue: int) -> socket.socket:
    """A socket that gets the packets of that queue."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
    kernel.bind((0, 0))
    kernel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    kernel.setblocking(False)
    flag = struct.pack("!I", _FAIL_OPEN)
    kernel.send(message(_CONFIG, queue, (_COMMAND, struct.pack("!BBH", _BIND, 0, socket.AF_INET))))
    kernel.send(message(_CONFIG, queue, (_COPY, struct.pack("!IB", _COPIED, _COPY_PACKET))))
    kernel.send(message(_CONFIG, queue, (_LENGTH, struct.pack("!I", _MOST_HELD)), (_MASK, flag), (_FLAGS, flag)))
    return kernel


def serve(queue: int, schedule: Schedule) -> None:
    """Hold the packets of that queue until the input ends."""
    kernel, held = bound(queue), list[tuple[int, int, int]]()  # When each is due, its number, when it came.
    count, total_ns = 0, 0
    _told("ready")
    is_open = True
    while is_open:
        wait_s = max(0, held[0][0] - time.monotonic_ns()) / 1e9 if held else None
        ready, _, _ = select.select([kernel, sys.stdin], [], [], wait_s)
        now_ns = time.monotonic_ns()
        if kernel in ready:
            for number, length in packets(_read(kernel)):
                heapq.heappush(held, (schedule.due_ns(now_ns, length), number, now_ns))
        is_told = sys.stdin in ready
        is_open = not is_told or bool(os.read(sys.stdin.fileno(), 1))
        while held and (held[0][0] <= now_ns or not is_open):
            _, number, came_ns = heapq.heappop(held)
            kernel.send(message(_VERDICT, queue, (_VERDICT_HEAD, struct.pack("!II", _ACCEPT, number))))
            count, total_ns = count + 1, total_ns + now_ns - came_ns
        if is_told:
            _told(f"{count} {total_ns}")


def _told(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # The harness may have ended.
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _read(kernel: socket.socket) -> bytes:
    try:
        return kernel.recv(_READ_BYTES)
    except OSError as error:
        if error.errno in (errno.ENOBUFS, errno.EAGAIN):
            return b""  # The kernel has dropped packets, as a full device does; TCP sends them again.
        raise


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    serve(numbers[0], Schedule(*numbers[1:4], is_ordered=bool(numbers[4])))
