"""Records are decoded in processes of their own, which miss no limit and outlive no server."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from harness.core.errors import HistoryError
from harness.core.record import Complete
from harness.record.journal import JournalWriter
from harness.serve.app import Pages
from harness.serve.decoding.child import RECORD_MAX
from harness.serve.decoding.follower import Follower
from harness.serve.decoding.requests import WATCHERS_MAX, Cut, Look, Seen
from harness.serve.decoding.worker import CUTTER, FOLLOWER, Child, OverLimit, Worker
from tests.unit.serve.stores import journal, judged, planned, report

HANGS = ("-c", "import time; time.sleep(600)")
RUN = "tutorial/20261123T010203Z-7"


def has_ended(pid: int) -> bool:
    """True if there is no such process, not even one that was not waited for."""
    return not Path(f"/proc/{pid}").exists()


def test_a_history_is_downloaded_and_nothing_of_it_is_decoded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.record.journal._decoded", None)
    journal(judged(tmp_path, report()))
    answer = TestClient(Pages(tmp_path).application()).get(f"/runs/{RUN}/history.jsonl")
    assert (answer.status_code, len(answer.text.splitlines())) == (200, 7)


def test_other_pages_are_answered_while_a_history_is_decoded_and_after_its_process_has_ended(
    tmp_path: Path,
) -> None:
    pages = Pages(tmp_path)
    journal(judged(tmp_path, report()))
    pages._cutter = Worker(HANGS, 600.0)
    web = TestClient(pages.application())
    with ThreadPoolExecutor(1) as threads, closing(pages._cutter):
        waiting = threads.submit(web.get, f"/runs/{RUN}/history.jsonl")
        while pages._cutter.pid is None:
            pass
        for address in ("/runs", f"/runs/{RUN}", f"/store/{RUN}/report.html"):
            assert web.get(address).status_code == 200
        assert not waiting.done()
        os.kill(pages._cutter.pid, 9)
        answer = waiting.result()
        assert answer.status_code == 503
        assert "the process that decoded its records ended with code -9; seamark export has no such" in answer.text


def test_a_request_over_its_time_is_refused_and_its_process_ended() -> None:
    pids = list[int]()

    class Noted(Worker):
        def _ended(self, child: Child) -> int:
            pids.append(child.process.pid)
            return super()._ended(child)

    worker = Noted(HANGS, 0.01)
    for _ in range(2):
        with pytest.raises(OverLimit, match=r"takes more than 0\.01 s"):
            worker.ask(Look("nowhere", 0))
    assert len(set(pids)) == 2
    assert all(map(has_ended, pids))


def test_a_request_over_its_memory_is_refused_and_the_next_one_is_answered(tmp_path: Path) -> None:
    hostile, honest = planned(tmp_path, "20261123T000000Z-1"), planned(tmp_path)
    with JournalWriter(hostile / "journal.log") as writer:
        for number in range(4):
            writer.append(Complete(number, number, "ok", [[]] * (RECORD_MAX - 100)))
    journal(honest)
    with closing(Worker(FOLLOWER, 60.0, memory_mib=8)) as worker:
        with pytest.raises(OverLimit, match="takes more than 8 MiB of memory"):
            worker.ask(Look(str(hostile), 0))
        seen = worker.ask(Look(str(honest), 1))
        assert isinstance(seen, Seen)
        assert (seen.shown.ok, seen.is_more) == ("2", True)
    with closing(Worker(CUTTER, 60.0)) as worker, pytest.raises(HistoryError, match="has no history yet"):
        worker.ask(Cut(str(tmp_path), str(tmp_path / "x"), "jsonl", None))


def test_the_process_ends_when_its_server_is_gone() -> None:
    with closing(Worker(CUTTER, 60.0)) as worker:
        with pytest.raises(HistoryError):
            worker.ask(Cut("nowhere", "x", "jsonl", None))
        assert worker._child is not None
        worker._child.connection.close()
        assert worker._child.process.wait(60) == 0


def test_watchers_that_have_gone_are_forgotten(tmp_path: Path) -> None:
    run, follower = planned(tmp_path), Follower()
    for number in range(WATCHERS_MAX + 3):
        follower.answered(Look(str(run), number))
        follower.answered(Look(str(run), 0))
    assert list(follower.lines) == [*range(4, WATCHERS_MAX + 3), 0]
