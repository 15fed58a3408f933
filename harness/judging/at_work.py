"""The check at work, for people who wait for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
