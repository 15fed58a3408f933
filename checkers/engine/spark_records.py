"""What travels between the tasks of Spark: records, each the number of a receiver and a blob.

The task that sends a record pickled its blob, and only the receiver reads it. Spark moves blobs as they are.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from checkers.engine.datasets import Noted
from checkers.engine.wire import blob_of

T = TypeVar("T")
M = TypeVar("M")
Record = tuple[int, bytes]
Kernel = Callable[[Iterable[Record]], Iterator[Record]]  # Turns the records of a partition into new ones.


def record(number: int, item: object) -> Record:
    """The record of that item for that receiver."""
    return number, blob_of(item)


def messages(records: Iterable[Record]) -> Iterator[tuple[int, Any]]:
    """The number and the item of each record."""
    for number, blob in records:
        yield number, pickle.loads(blob)  # noqa: S301  Made by `record`, in this session.


def mapped(kernel: Callable[[T], object], records: Iterable[Record]) -> Iterator[Record]:
    """Records of the kernel's result for each item."""
    for number, item in messages(records):
        yield from _results(number, kernel(item))


def routed(kernel: Callable[[T], Iterable[tuple[int, object]]], records: Iterable[Record]) -> Iterator[Record]:
    """Records of the messages that the kernel sends for each item."""
    for _, item in messages(records):
        for number, message in kernel(item):
            yield record(number, message)


def gathered(kernel: Callable[[Sequence[M]], object], records: Iterable[Record]) -> Iterator[Record]:
    """Records of the kernel's result for each receiver of messages."""
    mailboxes: dict[int, list[M]] = {}
    for number, message in messages(records):
        mailboxes.setdefault(number, []).append(message)
    for number in list(mailboxes):
        yield from _results(number, kernel(mailboxes.pop(number)))


def _results(number: int, result: object) -> Iterator[Record]:
    """Records of a kernel's result for that receiver. A note has a number below 0, by which Spark finds it."""
    if isinstance(result, Noted):
        yield record(number, result.item)
        yield record(~number, result.note)
    else:
        yield record(number, result)
