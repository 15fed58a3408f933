"""The pool of runs on the executors of an existing Spark cluster, as the driver sees it."""

import io
import pickle
import socket
import tarfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from checkers.engine.datasets import Engine
from harness.campaign.away import archive, there
from harness.campaign.ledger.rows import Row
from harness.campaign.task import Task, landed
from harness.core.errors import ScenarioError
from harness.judging.engines import EngineFailed, EngineStart
from harness.run.pool import TaskDied

CLASSIC, CONNECT = "spark://", "sc://"
ANSWER_S: Final = 10.0


def require_cluster(address: str) -> str:
    """The address, if something answers there: Spark itself would try for minutes.

    Raises ScenarioError if it is no address of Spark, EngineFailed if nothing answers.
    """
    scheme = next((each for each in (CLASSIC, CONNECT) if address.startswith(each)), None)
    if scheme is None:
        raise ScenarioError(f"--on {address}: must be spark://HOST:PORT, or sc://HOST:PORT for Spark Connect")
    reasons = []
    for place in address.removeprefix(scheme).partition("/")[0].split(","):  # Standby masters are listed, too.
        host, _, port = place.rpartition(":")
        if not (host and port.isdecimal()):
            raise ScenarioError(f"--on {address}: {place} is not HOST:PORT")
        try:
            with socket.create_connection((host, int(port)), ANSWER_S):
                return address
        except OSError as error:
            reasons.append(f"{place}: {error.strerror or error}")
    raise EngineFailed(f"--on {address}: no Spark answers there ({'; '.join(reasons)}); start it, or leave --on out")


@contextmanager
def spark_pool(address: str) -> Iterator["SparkPool"]:
    """The pool of that cluster. Raises EngineFailed if it does not answer."""
    is_connect = address.startswith(CONNECT)
    master, remote = (None, address) if is_connect else (address, None)
    with EngineStart("spark", master=master, remote=remote, archive=archive) as start:
        pool = SparkPool(start.engine())
        try:
            yield pool
        except BaseException:
            pool.close(is_waiting=False)
            raise
        pool.close(is_waiting=True)


class SparkPool:
    """The executors of an engine as a pool of runs. Threads in this process wait for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.slots = engine.parallelism
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="away")

    def submitted(self, task: Task) -> "Future[Row]":
        """The future row of that run."""
        return self._threads.submit(self._row, task)

    def close(self, *, is_waiting: bool) -> None:
        """Begin no other run; with `is_waiting` wait for those in progress."""
        self._threads.shutdown(wait=is_waiting, cancel_futures=True)

    def _row(self, task: Task) -> Row:
        (answer,) = self._engine.over([pickle.dumps(task)]).map(there).collect()
        row, content = pickle.loads(answer)  # noqa: S301  Our own task's.
        if not isinstance(row, Row):
            raise TaskDied(content)
        return landed(task, _unpacked(content, task)) if content else row


def _unpacked(content: bytes, task: Task) -> Path:
    """The folder of a run that an executor returned, inside the task's folder."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as packed:
        names = packed.getnames()
        packed.extractall(task.folder, filter="data")
    return task.folder / names[0]
