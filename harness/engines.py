"""Starts the engine that judges. Spark's start is hidden behind the run: it begins at once, in a thread."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Literal, Self

from checkers.engine.datasets import Engine, LocalEngine
from harness.core.errors import SeamarkError
from harness.ownership import temporary_folder

EngineName = Literal["spark", "local"]


class EngineFailed(SeamarkError):
    """The engine did not start; the message says what to do."""


class EngineStart:
    """An engine on its way. As a context it begins to start, and is stopped at the end.

    `master` and `remote` are Spark's, for a cluster of one's own; `also` are modules that it needs beside the checkers.
    It is warmed where something else goes on meanwhile; where a check waits for it, its first job does that as well.
    """

    def __init__(
        self,
        name: EngineName,
        *,
        master: str | None = None,
        remote: str | None = None,
        also: Sequence[ModuleType] = (),
        is_warmed: bool = True,
    ) -> None:
        self._name: EngineName = name
        self._master, self._remote, self._also = master, remote, also
        self._is_warmed = is_warmed
        self._started: Future[Engine] = Future()
        self._folder = temporary_folder("spark")
        self._path = Path()
        self._stop: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._path = self._folder.__enter__()
        if self._name == "local":
            self._started.set_result(LocalEngine())
        else:
            threading.Thread(target=self._start, name="engine", daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop()
        self._folder.__exit__(None, None, None)

    def engine(self) -> Engine:
        """The engine, once it has started. Raises EngineFailed if it did not."""
        return self._started.result()

    def _start(self) -> None:
        try:
            from checkers.engine import spark  # noqa: PLC0415  Only who judges with Spark loads it: it takes half a second.
            from checkers.watermarks import task  # noqa: PLC0415  Likewise. It imports the kernels of transactions, too.

            place = (self._path, self._master, self._remote)
            session = spark.start_session(*place, also=self._also, loaded=(task,))
            is_here = self._master is None and self._remote is None
            self._stop = partial(spark.stop, session) if is_here else session.stop
            if self._is_warmed:
                spark.warm_up(session)
        except Exception as error:  # noqa: BLE001  Java, the network, Spark itself: whatever it is, it is said once.
            reason = " ".join(str(error).split())[:300]
            line = f"Spark did not start ({reason}); see seamark doctor, or use --engine local"
            self._started.set_exception(EngineFailed(line))
        else:
            self._started.set_result(spark.SparkEngine(session))
