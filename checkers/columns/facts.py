"""Facts about a subject, such as a view or a history: each is computed once, at first use, and then kept.

    @fact
    def closings(view: StreamView) -> Closings: ...

A fact may need other facts, but never itself. A thread that needs a fact which another thread computes waits for it.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial, wraps
from typing import Any, Protocol, TypeVar

F = TypeVar("F")


class Facts:
    """The facts of one subject that are known so far. Another process gets none of them, but a copy (`is_copy`).

    Without `is_kept` each is computed whenever it is asked for: nothing is shared, and nothing takes memory.
    """

    def __init__(self, *, is_copy: bool = False, is_kept: bool = True) -> None:
        self.is_copy, self._is_kept = is_copy, is_kept
        self._known: dict[Hashable, Future[Any]] = {}

    def __reduce__(self) -> tuple[Callable[[], "Facts"], tuple[()]]:
        return partial(Facts, is_copy=True, is_kept=self._is_kept), ()

    def of(self, name: Hashable, make: Callable[[], F]) -> F:
        """The fact of that name, the result of `make`."""
        if not self._is_kept:
            return make()
        mine: Future[F] = Future()
        known: Future[F] = self._known.setdefault(name, mine)  # Atomic between threads.
        if known is mine:
            try:
                mine.set_result(make())
            except BaseException as problem:  # An interrupt, too: other threads wait for this result.
                mine.set_exception(problem)
                raise
        return known.result()

    def put(self, name: Hashable, value: F) -> None:
        """Store `value` as the fact of that name, so that it is not computed."""
        self._known[name] = known = Future[F]()
        known.set_result(value)

    def clear(self) -> None:
        """Forget all facts: one that refers to the subject would keep it in memory until Python collects cycles."""
        self._known.clear()


class HasFacts(Protocol):
    """A subject that keeps facts."""

    @property
    def facts(self) -> Facts: ...


S = TypeVar("S", bound=HasFacts)


def fact(make: Callable[[S], F]) -> Callable[[S], F]:
    """The function, computed once for each subject."""

    @wraps(make)
    def known(subject: S) -> F:
        return subject.facts.of(make, partial(make, subject))

    return known
