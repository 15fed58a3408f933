"""Engines that run kernels: in the threads of this process, or on Spark (checkers/engine/spark.py).

Both give the same results. A `Dataset` is a collection that lives with its engine; only collected items come to the
caller.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from checkers.engine.memory import one_heap

T = TypeVar("T")
M = TypeVar("M")
R = TypeVar("R")
N = TypeVar("N")


class Noted(Struct, Generic[T, N], frozen=True):
    """An item with a note: the facts that the driver needs, so that a large item need not travel to it."""

    item: T
    note: N


class Dataset(Protocol[T]):
    """Items that an engine holds. Their order has no meaning."""

    def map(self, kernel: Callable[[T], R]) -> "Dataset[R]":
        """The kernel's result for each item."""

    def shuffle(
        self,
        route: Callable[[T], Iterable[tuple[int, M]]],
        gather: Callable[[Sequence[M]], R],
        *,
        partitions: int | None = None,
    ) -> "Dataset[R]":
        """Send messages to numbered receivers, then compute a result for each receiver from all its messages.

        `route` gives the (receiver, message) pairs of an item. The messages of a receiver come in any order; a receiver
        without messages has no result. `partitions`: the number of receivers, if it is known.
        """

    def keep(self) -> "Dataset[T]":
        """The same items, cached: using them twice computes them once."""

    def beside(self, other: "Dataset[M]") -> "Dataset[T | M]":
        """The items of both datasets, which must belong to one engine."""

    def items(self: "Dataset[Noted[R, N]]") -> "Dataset[R]":
        """The items without their notes."""

    def notes(self: "Dataset[Noted[R, N]]") -> list[N]:
        """All notes, in the caller's process."""

    def collect(self) -> list[T]:
        """All items, in the caller's process. For `Noted` items use `notes`, or call `items` first."""


class Engine(Protocol):
    """A maker of datasets. Kernels must be importable functions, or `functools.partial` of such with plain values."""

    name: str
    checks_at_once: int

    @property
    def parallelism(self) -> int:
        """The number of kernels that run at once."""

    def over(self, items: Sequence[T]) -> Dataset[T]:
        """The items as a dataset."""

    def carry(self, files: Mapping[str, bytes]) -> None:
        """Let kernels import these modules, wherever they run. Files are named as in an archive: "a/b.py" is a.b."""


class _LocalDataset(Dataset[T]):
    def __init__(self, pool: ThreadPoolExecutor, items: Sequence[T]) -> None:
        self._pool = pool
        self._items = items

    def map(self, kernel: Callable[[T], R]) -> Dataset[R]:
        return _LocalDataset(self._pool, list(self._pool.map(kernel, self._items)))

    def shuffle(
        self,
        route: Callable[[T], Iterable[tuple[int, M]]],
        gather: Callable[[Sequence[M]], R],
        *,
        partitions: int | None = None,
    ) -> Dataset[R]:
        mailboxes: dict[int, list[M]] = {}
        for messages in self._pool.map(lambda item: list(route(item)), self._items):
            for number, message in messages:
                mailboxes.setdefault(number, []).append(message)
        return _LocalDataset(self._pool, list(self._pool.map(gather, mailboxes.values())))

    def keep(self) -> Dataset[T]:
        return self

    def beside(self, other: Dataset[M]) -> Dataset[T | M]:
        return _LocalDataset[T | M](self._pool, [*self._items, *other.collect()])

    def items(self: "_LocalDataset[Noted[R, N]]") -> Dataset[R]:
        return _LocalDataset(self._pool, [noted.item for noted in self._items])

    def notes(self: "_LocalDataset[Noted[R, N]]") -> list[N]:
        return [noted.note for noted in self._items]

    def collect(self) -> list[T]:
        return list(self._items)


class LocalEngine:
    """An engine that runs kernels in threads: NumPy releases the interpreter's lock in all long calls."""

    name = "local"

    def __init__(self, threads: int | None = None) -> None:
        self.parallelism = threads or cpu_count() or 1
        self.checks_at_once = min(2, self.parallelism)  # Parts of each check keep one thread; more would need memory.
        one_heap()
        self._pool = ThreadPoolExecutor(self.parallelism)

    def __reduce__(self) -> tuple[type["LocalEngine"], tuple[int]]:
        return LocalEngine, (self.parallelism,)  # An unpickled engine starts a thread pool of its own.

    def over(self, items: Sequence[T]) -> Dataset[T]:
        """The items as a dataset in memory."""
        return _LocalDataset(self._pool, items)

    def carry(self, files: Mapping[str, bytes]) -> None:
        """Nothing to do: kernels run in this process."""
