"""Packets that are held up: when each goes on, and how the kernel announces them."""

import asyncio
import struct

import pytest

from harness.core.errors import DeployError
from harness.runtimes.containers.links.queue_program import Schedule, message, packets
from harness.runtimes.containers.links.queues import Holding, PacketQueue

MS = 1_000_000


def test_late_packets_of_one_link_never_overtake_each_other() -> None:
    schedule = Schedule(50 * MS, 25 * MS, 0, is_ordered=True)
    due = [schedule.due_ns(now, 100) for now in range(0, 100 * MS, MS)]
    assert due == sorted(due)
    assert all(now + 50 * MS <= each for now, each in zip(range(0, 100 * MS, MS), due, strict=True))
    assert max(due) <= 99 * MS + 75 * MS


def test_packets_that_are_to_be_overtaken_are_free_to_overtake() -> None:
    schedule = Schedule(MS, 19 * MS, 0, is_ordered=False)
    due = [schedule.due_ns(now, 100) for now in range(0, 100 * MS, MS)]
    assert due != sorted(due)
    assert all(MS <= each - now <= 20 * MS for now, each in zip(range(0, 100 * MS, MS), due, strict=True))


def test_a_narrow_link_carries_so_many_bytes_a_second_and_rests_when_it_is_idle() -> None:
    schedule = Schedule(0, 0, 1_000, is_ordered=True)
    assert [schedule.due_ns(0, 100) // MS for _ in range(3)] == [100, 200, 300]
    assert schedule.due_ns(900 * MS, 50) == 950 * MS


def test_the_kernels_announcements_give_each_packet_with_its_length() -> None:
    def announced(number: int, length: int) -> bytes:
        head = struct.pack("!IHB", number, 0x0800, 1)
        return message(0, 7, (1, head), (3, b"mark"), (10, struct.pack("!BBH", 0x45, 0, length)))

    other = message(2, 7, (1, b"?"))
    assert packets(announced(5, 1500) + other + announced(6, 52)) == [(5, 1500), (6, 52)]
    assert packets(b"\0\0\0") == []


def test_a_program_that_cannot_start_is_reported_with_its_last_words() -> None:
    async def main() -> None:
        with pytest.raises(DeployError, match="packets cannot be held: out of order"):
            await PacketQueue.opened(["sh", "-c", "echo out of order >&2"], 1, Holding())

    asyncio.run(main())
