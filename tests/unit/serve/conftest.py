"""One process decodes the records of all these tests: to start one takes longer than most of them."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.serve.decoding.worker import Worker


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    with closing(Worker(60.0)) as found:
        yield found


@pytest.fixture(autouse=True)
def _one_worker(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.serve.app.Worker", lambda _: worker)
