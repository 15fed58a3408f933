"""Kills a process that writes, again and again at moments of a fixed seed, and checks what its successors find.

Arguments: a folder, and how many times. Prints how many records each had written when it died.
"""

import os
import signal
import struct
import sys
import time
from pathlib import Path

from harness.core.draw import Draw
from harness.runtimes.host.frames import codec_of
from harness.runtimes.host.storage import CRASH_MODE_FILE, Storage
from tests.unit.runtimes.host.nodes import SCRIPTED
from tests.unit.runtimes.host.scripted import Note

CODEC = codec_of(SCRIPTED)
REPORT = struct.Struct(">BQ")  # What has been done, and up to which record.
FOUND, WROTE, SYNCED = range(3)


def write(folder: Path, report: int) -> None:
    """A life: say what was found, then write and sync until the end comes."""

    def say(what: int, number: int) -> None:
        os.write(report, REPORT.pack(what, number))

    storage = Storage(folder)
    durable, _ = storage.recover(CODEC, Draw(storage.life).stream("storage"))
    numbers = [record.number for record in durable.log("log") if isinstance(record, Note)]
    assert numbers == list(range(len(numbers))), numbers
    say(FOUND, len(numbers))
    for number in range(len(numbers), 1 << 30):
        storage.append("log", Note(number, "x" * (number * 97 % 3000)))
        say(WROTE, number + 1)
        if number % 5 == 0:
            storage.sync()
            say(SYNCED, number + 1)


def live(folder: Path, sleep_s: float) -> dict[int, int]:
    """What a life had said when it was killed."""
    reading, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write(folder, report)
        finally:
            os._exit(1)
    os.close(report)
    said = dict([REPORT.unpack(os.read(reading, REPORT.size))])
    time.sleep(sleep_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    while report_made := os.read(reading, REPORT.size):
        said.update([REPORT.unpack(report_made)])
    os.close(reading)
    return said


def main() -> None:
    folder, times = Path(sys.argv[1]), int(sys.argv[2])
    stream = Draw(11).stream("kills")
    low = high = 0
    for number in range(times):
        said = live(folder, stream.below(20_000) / 1e6)
        assert low <= said[FOUND] <= high, f"life {number + 1} found {said[FOUND]}, not {low} to {high}"
        wrote = said.get(WROTE, said[FOUND])
        print(wrote)
        low, high = wrote, wrote + 1  # The write under way may be there as well.
        if number % 3 == 2:
            (folder / CRASH_MODE_FILE).write_text("torn" if number % 2 else "lost")
            low = max(said[FOUND], said.get(SYNCED, 0))
            high = wrote + 1 if number % 2 else low + 6  # A sync may be complete that was not told any more.


if __name__ == "__main__":
    main()
