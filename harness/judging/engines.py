"""Engines for the checkers: threads, or Spark, which starts in a thread.

Spark on this machine has the same cores as threads. Its start takes longer than threads take for a history of up to
`VALUES_OF_THREADS` values, and so do the jobs of its checks: so "auto" chooses, and the report names the engine.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

from checkers.engine.datasets import Dataset, Engine, LocalEngine
from checkers.engine.tasks import value_count
from harness.core.errors import HistoryError, SeamarkError
from harness.record.formats.parquet.parquet import is_history
from harness.record.ownership import temporary_folder
from harness.record.store import HISTORY, JOURNAL

FAREWELL_S = 2.0  # For a thread whose Java was killed.
GLANCE_S: Final = 0.05
VALUES_OF_THREADS: Final = 25_000_000  # The largest measured at which threads need less time and memory: docs/scale.md.
BYTES_OF_THREADS: Final = 400 << 20  # A file of this size may hold as many: the shortest, EDN, has 15 bytes for each.
WITH_KERNELS: Final = ("checkers.transactions.check", "checkers.watermarks.check")  # Most jobs of Spark use them.
EngineName = Literal["auto", "spark", "local"]
HELP: Final = (
    f"What judges: local, the threads of this process; spark; or auto: threads up to {VALUES_OF_THREADS:,} values, and "
    "Spark above."
)
EngineFor = Callable[[Path], Engine]  # The engine for the history in that folder.
T = TypeVar("T")


class EngineFailed(SeamarkError):
    """The engine did not start; the message says how to fix it."""


class StartingEngine(Engine):
    """Spark that may still be starting: who first needs it waits. Then EngineFailed is raised if it does not start."""

    name = "spark"
    checks_at_once = 2  # As for SparkEngine.

    def __init__(self, started: Future[Engine]) -> None:
        self.started = started
        self._carried: list[Mapping[str, bytes]] = []

    @property
    def parallelism(self) -> int:
        """The number of kernels that run at once."""
        return self.started.result().parallelism

    def over(self, items: Sequence[T]) -> Dataset[T]:
        """The items as a dataset."""
        engine = self.started.result()
        for files in self._carried:
            engine.carry(files)
        return engine.over(items)

    def carry(self, files: Mapping[str, bytes]) -> None:
        """The modules are sent with the first items: nobody waits for the start because of them."""
        self._carried.append(files)


def is_starting(engine: Engine, *, is_awaited: bool) -> bool:
    """True if whoever needs the engine must wait.

    With `is_awaited` it has started on return: raises EngineFailed if it does not start.
    """
    if is_awaited and isinstance(engine, StartingEngine):
        engine.started.result()
    return isinstance(engine, StartingEngine) and not engine.started.done()


def in_threads(_: Path) -> Engine:
    """Threads, whatever the history."""
    return LocalEngine()


class EngineStart:
    """An engine that may have to start. As a context manager it stops on exit what it started.

    Spark starts on entry, on this machine or on your own cluster, which `master` or `remote` name. "auto" without these
    starts it once it is needed, or on entry if `first`, the path of the run or history to judge, is large. `archive`
    makes the code for its executors, if that is more than the checks.
    """

    def __init__(
        self,
        name: EngineName,
        *,
        master: str | None = None,
        remote: str | None = None,
        first: Path | None = None,
        archive: Callable[[Path], Path] | None = None,
    ) -> None:
        self._name: EngineName = name
        self._master, self._remote = master, remote
        self._first = first
        self._archive = archive
        self._started: Future[Engine] = Future()
        self._folder = temporary_folder("spark")
        self._path = Path()
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._start, name="engine", daemon=True)
        self._is_over = False

    def __enter__(self) -> Self:
        self._path = self._folder.__enter__()
        is_large = self._is_free and self._first is not None and may_be_large(self._first)
        if self._name != "local" and (is_large or not self._is_free):
            self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._is_over = True
        if self._thread.is_alive():
            self._end_early()
        else:
            self._stop()
        self._folder.__exit__(None, None, None)

    def engine(self) -> Engine:
        """Threads, or Spark once it has started. Raises EngineFailed if it does not start."""
        if self._name == "local":
            return LocalEngine()
        self._begin()
        return self._started.result()

    def engine_for(self, history: Path) -> Engine:
        """The engine for that history, which may still be starting. Raises HistoryError if its size cannot be read."""
        if self._name == "local" or (self._is_free and value_count(history) <= VALUES_OF_THREADS):
            return LocalEngine()
        self._begin()
        return StartingEngine(self._started)

    def _begin(self) -> None:
        if self._thread.ident is None:
            self._thread.start()

    @property
    def _is_free(self) -> bool:
        """True if the user neither named an engine nor said where Spark is."""
        return self._name == "auto" and self._master is None and self._remote is None

    def _end_early(self) -> None:
        """Stop an engine that is still starting, and remove its Java process and files."""
        give_up = getattr(sys.modules.get("checkers.engine.spark"), "give_up", None)
        until = time.monotonic() + FAREWELL_S
        while give_up is not None and self._thread.is_alive() and time.monotonic() < until:
            give_up()  # Again and again: the thread may be about to start Java.
            self._thread.join(GLANCE_S)

    def _start(self) -> None:
        is_here = self._master is None and self._remote is None
        try:
            from checkers.engine import spark  # noqa: PLC0415  Only judging with Spark loads it: half a second.

            if self._is_over:
                raise EngineFailed("it was stopped")
            place = (self._path, self._master, self._remote)
            package = None if self._archive is None else self._archive(self._path)
            session = spark.start_session(*place, loaded=WITH_KERNELS, package=package)
            self._stop = partial(spark.stop, session) if is_here else session.stop
        except Exception as error:  # noqa: BLE001  Whatever failed (Java, the network, Spark) is reported once.
            from checkers.engine.spark_classes import java_program  # noqa: PLC0415  Likewise.

            reason = " ".join(str(error).split())[:300]
            if is_here and java_program() is None:
                reason = "there is no Java here, and it needs Java 17"
            line = f"Spark did not start ({reason}); see seamark doctor"
            self._started.set_exception(EngineFailed(line))
        else:
            self._started.set_result(spark.SparkEngine(session))


def may_be_large(path: Path) -> bool:
    """True if the run or history at `path` may have more values than threads judge. Nothing is validated here."""
    folder = path if is_history(path) else path / HISTORY
    if is_history(folder):
        try:
            return value_count(folder) > VALUES_OF_THREADS
        except HistoryError:
            return False  # Whoever reads the history will say so.
    file = path / JOURNAL if path.is_dir() else path
    return file.is_file() and file.stat().st_size >= BYTES_OF_THREADS
