"""The checks at work: some at once, and the one that people who wait are told of."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

C = TypeVar("C")
R = TypeVar("R")


def of_all(judged: Callable[[C], R], checks: Sequence[C], at_once: int) -> list[R]:
    """The result of `judged` for each check, `at_once` at a time. An interrupt does not wait for the checks at work."""
    if at_once == 1:
        return list(map(judged, checks))
    pool = ThreadPoolExecutor(at_once)
    is_interrupted = False
    try:
        return list(pool.map(judged, checks))
    except KeyboardInterrupt:
        is_interrupted = True
        raise
    finally:
        pool.shutdown(wait=not is_interrupted, cancel_futures=True)


class AtWork:
    """Reports which check is at work: of several at once, the one that began first. `tell` gets its name."""

    def __init__(self, tell: Callable[[str], None] | None) -> None:
        self._tell = tell
        self._names: list[str] = []

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """That check is at work as long as the context lasts."""
        self._names.append(name)
        self._report()
        try:
            yield
        finally:
            self._names.remove(name)
            self._report()

    def _report(self) -> None:
        if self._tell is not None:
            for name in self._names[:1]:
                self._tell(f"judging: {name}")
