"""Facts about a subject, such as a view: each is computed once, at first use, and then kept with the subject.

    @fact
    def closings(view: StreamView) -> Closings: ...

A fact may need other facts, but never itself. A thread that needs a fact which another thread computes waits for it.
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import wraps
from typing import Any, Protocol, TypeVar

F = TypeVar("F")


class Facts:
    """The facts of one subject that are known so far."""

    def __init__(self) -> None:
        self._known: dict[Callable[..., object], Future[Any]] = {}

    def of(self, make: Callable[["S"], F], subject: "S") -> F:
        """The result of `make` for the subject."""
        mine: Future[F] = Future()
        known: Future[F] = self._known.setdefault(make, mine)  # Atomic between threads.
        if known is mine:
            try:
                mine.set_result(make(subject))
            except BaseException as problem:  # An interrupt, too: other threads wait for this result.
                mine.set_exception(problem)
                raise
        return known.result()

    def put(self, make: Callable[["S"], F], value: F) -> None:
        """Store `value` as the result of `make`, so that it is not computed."""
        self._known[make] = known = Future[F]()
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
        return subject.facts.of(make, subject)

    return known
