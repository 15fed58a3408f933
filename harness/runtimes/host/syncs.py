"""Syncs in the background: in order, each covering all writes before its request."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from harness.runtimes.host.storage import Storage


class Syncs:
    """A queue of syncs. It calls `done(token)` in the loop for each one, or `failed(error)` once."""

    def __init__(self, storage: Storage, done: Callable[[int], None], failed: Callable[[OSError], None]) -> None:
        self._storage, self._done, self._failed = storage, done, failed
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[int] = []
        self._running: tuple[int, ...] = ()

    def ask(self, token: int) -> None:
        """Make all earlier writes durable. Requests that wait while a sync runs share the next one."""
        self._waiting.append(token)
        if not self._running:
            self._start()

    def _start(self) -> None:
        self._running = tuple(self._waiting)
        self._waiting.clear()
        asyncio.get_running_loop().run_in_executor(self._thread, self._storage.sync).add_done_callback(self._finish)

    def _finish(self, sync: asyncio.Future[None]) -> None:
        error = sync.exception()
        if error is not None:
            if not isinstance(error, OSError):
                raise error
            self._failed(error)
            return
        tokens, self._running = self._running, ()
        if self._waiting:
            self._start()
        for token in tokens:
            self._done(token)
