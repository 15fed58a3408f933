"""Prints in which order the children of an aborted TaskGroup, and the tasks that asyncio.wait returns, come to an end.

`allocate` makes a thread allocate beside it, so that tasks lie elsewhere in memory.
"""

import asyncio
import sys
import threading

from harness.runtimes.simulation.loop import VirtualLoop

CHILDREN = 40


async def child(number: int, order: list[str]) -> None:
    try:
        await asyncio.sleep(100 + number)
    finally:
        order.append(f"child {number}")


async def failing() -> None:
    await asyncio.sleep(1)
    raise ValueError("the others are to be cancelled")


async def main() -> list[str]:
    order: list[str] = []
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(CHILDREN):
                group.create_task(child(number, order))
            group.create_task(failing())
    except* ValueError:
        order.append("aborted")
    tasks = [asyncio.create_task(asyncio.sleep(1), name=f"sleeper {number}") for number in range(CHILDREN)]
    done, _ = await asyncio.wait(tasks)
    return [*order, *(task.get_name() for task in done)]


def allocate(stop: threading.Event, kept: list[bytearray]) -> None:
    """Allocate pieces of all sizes, and keep some of them for a while."""
    turn = 0
    while not stop.is_set():
        turn += 1
        kept.append(bytearray(turn * 7919 % 600))
        if turn % 997 == 0:
            del kept[: turn % 1009]


if __name__ == "__main__":
    finished = threading.Event()
    if "allocate" in sys.argv:
        threading.Thread(target=allocate, args=(finished, [])).start()
    try:
        for _ in range(20):
            sys.stdout.write(" ".join(VirtualLoop().run(main())) + "\n")
    finally:
        finished.set()
