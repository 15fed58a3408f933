"""A run while it runs, whatever its journal is: read in steps, through no link, and counted before it begins."""

import asyncio
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.types import Message

from harness.core.record import Complete, Fault, Mark, Record, StreamEvent
from harness.record.journal import JournalTail, JournalWriter
from harness.run.live import COMMITS_MAX, NAMES_MAX, LiveLine
from harness.serve.app import Pages
from harness.serve.decoding.requests import WATCHERS_MAX
from harness.serve.decoding.worker import Worker
from harness.serve.live import events
from harness.serve.seats import SeatedResponse, Seats
from tests.unit.serve.stores import SECOND, journal, planned


def shown(run: Path, worker: Worker) -> list[str]:
    """The events of a run that is over."""

    async def collected() -> list[str]:
        return [each async for each in events(run, lambda: True, worker)]

    return asyncio.run(collected())


def names(run: Path, worker: Worker) -> list[str]:
    """The names of all events of a run that is over."""
    return [each.splitlines()[0] for each in shown(run, worker)]


def test_the_state_of_a_run_is_shown_until_it_is_over_and_nothing_of_it_is_decoded_here(
    tmp_path: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.record.journal._decoded", None)
    run = planned(tmp_path)
    journal(run)
    state, end = shown(run, worker)
    assert '"ok":"2"' in state
    assert end.startswith("event: end")


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.parent / "run.json"),
        lambda path: path.mkdir(),
        lambda path: path.write_bytes(bytes(99)),
    ],
    ids=["pipe", "device", "link", "folder", "zeros"],
)
def test_a_journal_that_is_no_journal_is_neither_read_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], object], worker: Worker
) -> None:
    run = planned(tmp_path)
    make(run / "journal.log")
    assert names(run, worker) == ["event: broken"]


def test_a_stream_is_counted_before_it_begins(tmp_path: Path) -> None:
    pages, run = Pages(tmp_path), planned(tmp_path)
    request = Request({"type": "http", "path_params": {"test": "tutorial", "name": run.name}})
    answers = [pages.live(request).status_code for _ in range(WATCHERS_MAX + 1)]
    assert answers == [200] * WATCHERS_MAX + [503]


def test_a_seat_is_free_again_whatever_ends_its_stream() -> None:
    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def refuse(message: Message) -> None:
        raise OSError("the client has gone")

    async def accept(message: Message) -> None:
        pass

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    for send in (accept, refuse):
        seats = Seats(1)
        assert (seats.take(), seats.take()) == (True, False)
        response = SeatedResponse(seats, [b"first", b"second"], media_type="text/plain")
        try:
            asyncio.run(response(scope, receive, send))
        except Exception as error:  # noqa: BLE001
            print(error)
        assert seats.take(), send.__name__


def test_a_long_journal_is_read_in_steps(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.log") as writer:
        for number in range(40):
            writer.append(Complete(number, number, "ok", value="v" * 100_000))
    tail = JournalTail(tmp_path / "journal.log")
    taken: list[Record] = []
    steps = [0]
    while tail.step(taken.append):
        steps.append(len(taken))
    assert len(taken) == 40
    assert max(after - before for before, after in pairwise(steps)) == 11
    line = LiveLine(tmp_path / "journal.log", record_max=1000)
    assert line.text().split()[2] == "starting"  # Larger records are left out.


def test_what_is_kept_of_a_journal_is_bounded(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.log") as writer:
        writer.append(Mark(0, "p" * 10_000))
        for number in range(COMMITS_MAX + 5):
            writer.append(Complete(number, number * SECOND, "ok", commit_ts=number))
        for number in range(3 * NAMES_MAX):
            writer.append(Fault(0, number, "begin", f"{number}" * 1000, (), None, None))
            writer.append(StreamEvent(0, f"{number}" + "s" * 10_000, 0, 0, "watermark", position=0))
    line = LiveLine(tmp_path / "journal.log")
    while line.step():
        pass
    now = line.progress()
    assert now.counts["ok"] == COMMITS_MAX + 5
    assert (len(line._commits), len(line._watermarks), len(line._active)) == (COMMITS_MAX, NAMES_MAX, NAMES_MAX)
    assert max(map(len, (now.phase, *now.faults, *line._watermarks))) == 100


def test_commits_at_nearly_the_same_time_count_as_one_and_the_lag_stays(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "journal.log") as writer:
        writer.append(Mark(0, "load"))
        for number in range(1000):
            writer.append(Complete(number, number * SECOND // 1000, "ok", commit_ts=number + 1))
        writer.append(StreamEvent(SECOND, "s1", 0, 0, "watermark", position=500))
    line = LiveLine(tmp_path / "journal.log")
    assert line.text().endswith("s1 0.5 s behind")
    assert len(line._commits) <= 100
