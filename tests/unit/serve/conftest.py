"""Two processes decode the records of all these tests: to start them takes longer than most of the tests."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.serve.decoding.worker import CUTTER, FOLLOWER, Worker

Workers = dict[tuple[str, ...], Worker]


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    with closing(Worker(FOLLOWER, 60.0)) as follower, closing(Worker(CUTTER, 60.0)) as cutter:
        yield {FOLLOWER: follower, CUTTER: cutter}


@pytest.fixture
def worker(workers: Workers) -> Worker:
    """The one that follows runs."""
    return workers[FOLLOWER]


@pytest.fixture(autouse=True)
def _one_worker_each(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.serve.app.Worker", lambda command, _: workers[command])
