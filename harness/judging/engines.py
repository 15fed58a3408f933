"""Starts the engine for the checkers. Spark starts in a thread during the run, so its start costs no time."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from checkers.engine.datasets import Engine, LocalEngine
from checkers.engine.spark_classes import java_program
from harness.core.errors import SeamarkError
from harness.record.ownership import temporary_folder

FAREWELL_S = 2.0  # For a thread whose Java was killed.
EngineName = Literal["spark", "local"]


class EngineFailed(SeamarkError):
    """The engine did not start; the message says how to fix it."""


class EngineStart:
    """An engine that is starting. As a context manager it starts on entry, and stops on exit.

    `master` and `remote` are Spark's, for your own cluster. `archive` makes the code for its executors, if that is more
    than the checks. The engine is warmed up if other work goes on meanwhile; if a check waits for it, the check's first
    job warms it up.
    """

    def __init__(
        self,
        name: EngineName,
        *,
        master: str | None = None,
        remote: str | None = None,
        is_warmed: bool = True,
        archive: Callable[[Path], Path] | None = None,
    ) -> None:
        self._name: EngineName = name
        self._master, self._remote = master, remote
        self._is_warmed = is_warmed
        self._archive = archive
        self._started: Future[Engine] = Future()
        self._folder = temporary_folder("spark")
        self._path = Path()
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._start, name="engine", daemon=True)
        self._is_over = False

    def __enter__(self) -> Self:
        self._path = self._folder.__enter__()
        if self._name == "local":
            self._started.set_result(LocalEngine())
        else:
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
        """The engine, once it has started. Raises EngineFailed if it did not."""
        return self._started.result()

    def _end_early(self) -> None:
        """Stop an engine that is still starting, and remove its Java process and files."""
        give_up = getattr(sys.modules.get("checkers.engine.spark"), "give_up", None)
        if give_up is not None:
            give_up()
            self._thread.join(FAREWELL_S)

    def _start(self) -> None:
        is_here = self._master is None and self._remote is None
        try:
            from checkers.engine import spark  # noqa: PLC0415  Only judging with Spark loads it: half a second.
            from checkers.watermarks import task  # noqa: PLC0415  Likewise. It imports the kernels of transactions, too.

            if self._is_over:
                return
            place = (self._path, self._master, self._remote)
            package = None if self._archive is None else self._archive(self._path)
            session = spark.start_session(*place, loaded=(task,), package=package)
            self._stop = partial(spark.stop, session) if is_here else session.stop
            if self._is_warmed:
                spark.warm_up(session)
        except Exception as error:  # noqa: BLE001  Whatever failed (Java, the network, Spark) is reported once.
            reason = " ".join(str(error).split())[:300]
            if is_here and java_program() is None:
                reason = "there is no Java here, and it needs Java 17"
            line = f"Spark did not start ({reason}); see seamark doctor"
            self._started.set_exception(EngineFailed(line))
        else:
            self._started.set_result(spark.SparkEngine(session))
