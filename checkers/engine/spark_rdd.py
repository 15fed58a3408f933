"""Datasets of classic Spark, as RDDs, which move records as they are.

Spark's SQL would have to start, plan each job, compile code for it, and copy each blob once more: together half of the
CPU time that Java needs for a million transactions. Spark Connect has no RDDs: checkers/engine/spark_frames.py.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from pyspark import RDD, SparkContext, StorageLevel

from checkers.engine.datasets import Dataset, Noted
from checkers.engine.spark_records import Record, gathered, mapped, messages, record, routed

T = TypeVar("T")
M = TypeVar("M")
R = TypeVar("R")
N = TypeVar("N")


def over(context: SparkContext, items: Sequence[T]) -> Dataset[T]:
    """The items as a dataset with one partition per item."""
    records = [record(number, item) for number, item in enumerate(items)]
    return _RddDataset(context.parallelize(records, max(1, len(items))))


class _RddDataset(Dataset[T]):
    def __init__(self, records: "RDD[Record]") -> None:
        self._records = records

    def map(self, kernel: Callable[[T], R]) -> Dataset[R]:
        return _RddDataset(self._records.mapPartitions(partial(mapped, kernel)))

    def shuffle(
        self,
        route: Callable[[T], Iterable[tuple[int, M]]],
        gather: Callable[[Sequence[M]], R],
        *,
        partitions: int | None = None,
    ) -> Dataset[R]:
        sent = self._records.mapPartitions(partial(routed, route))
        spread = sent.partitionBy(partitions or sent.context.defaultParallelism, int)
        return _RddDataset(spread.mapPartitions(partial(gathered, gather)))

    def keep(self) -> Dataset[T]:
        return _RddDataset(self._records.persist(StorageLevel.DISK_ONLY))

    def beside(self, other: Dataset[M]) -> Dataset[T | M]:
        if not isinstance(other, _RddDataset):
            raise TypeError("a dataset of another engine")
        return _RddDataset(self._records.union(other._records))

    def items(self: "_RddDataset[Noted[R, N]]") -> Dataset[R]:
        return _RddDataset(self._records.filter(_is_item))

    def notes(self: "_RddDataset[Noted[R, N]]") -> list[N]:
        notes = _RddDataset[N](self._records.filter(_is_note))
        return notes.collect()

    def collect(self) -> list[T]:
        found: list[Any] = [item for _, item in messages(self._records.collect())]
        return found


def _is_item(each: Record) -> bool:
    return each[0] >= 0


def _is_note(each: Record) -> bool:
    return each[0] < 0
