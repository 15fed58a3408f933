"""Datasets of Spark Connect, as data frames: it has no RDDs (checkers/engine/spark_rdd.py)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from checkers.engine.datasets import Dataset, Noted
from checkers.engine.spark_records import Kernel, Record, gathered, mapped, messages, record, routed

T = TypeVar("T")
M = TypeVar("M")
R = TypeVar("R")
N = TypeVar("N")

_SCHEMA: Final = "number int, blob binary"
_ARROW: Final = pa.schema([("number", pa.int32()), ("blob", pa.binary())])


def over(session: SparkSession, items: Sequence[T], parallelism: int) -> Dataset[T]:
    """The items as a dataset with one partition per item."""
    table = pa.Table.from_batches([_batch(record(number, item)) for number, item in enumerate(items)], _ARROW)
    frame = session.createDataFrame(table, schema=_SCHEMA)
    return _FrameDataset(frame.repartitionById(max(1, len(items)), "number"), parallelism)


class _FrameDataset(Dataset[T]):
    def __init__(self, frame: DataFrame, parallelism: int) -> None:
        self._frame = frame
        self._parallelism = parallelism

    def map(self, kernel: Callable[[T], R]) -> Dataset[R]:
        return self._then(_through(self._frame, partial(mapped, kernel)))

    def shuffle(
        self,
        route: Callable[[T], Iterable[tuple[int, M]]],
        gather: Callable[[Sequence[M]], R],
        *,
        partitions: int | None = None,
    ) -> Dataset[R]:
        sent = _through(self._frame, partial(routed, route))
        if partitions is None:
            spread = sent.repartition(self._parallelism, "number")
        else:
            spread = sent.repartitionById(partitions, "number")
        return self._then(_through(spread, partial(gathered, gather)))

    def keep(self) -> Dataset[T]:
        # Not `persist`: it outlives the check, and Spark takes what it holds for the result of any equal plan, also
        # after the files that the plan names were written anew.
        return self._then(self._frame.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY))

    def beside(self, other: Dataset[M]) -> Dataset[T | M]:
        if not isinstance(other, _FrameDataset):
            raise TypeError("a dataset of another engine")
        return self._then(self._frame.union(other._frame))

    def items(self: "_FrameDataset[Noted[R, N]]") -> Dataset[R]:
        return self._then(self._frame.filter("number >= 0"))

    def notes(self: "_FrameDataset[Noted[R, N]]") -> list[N]:
        notes: _FrameDataset[N] = self._then(self._frame.filter("number < 0"))
        return notes.collect()

    def collect(self) -> list[T]:
        found: list[Any] = [item for _, item in messages(_records(self._frame.toArrow().to_batches()))]
        return found

    def _then(self, frame: DataFrame) -> "_FrameDataset[R]":
        return _FrameDataset(frame, self._parallelism)


def _through(frame: DataFrame, kernel: Kernel) -> DataFrame:
    return frame.mapInArrow(partial(_in_arrow, kernel), _SCHEMA)


def _in_arrow(kernel: Kernel, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(_batch, kernel(_records(batches)))


def _batch(each: Record) -> pa.RecordBatch:
    number, blob = each
    # Not pa.array: for a list it imports pandas first, which takes half a second.
    numbers = pa.Array.from_buffers(pa.int32(), 1, [None, pa.py_buffer(np.int32(number).tobytes())])
    offsets = pa.py_buffer(np.array([0, len(blob)], np.int32).tobytes())
    blobs = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(blob)])
    return pa.RecordBatch.from_arrays([numbers, blobs], schema=_ARROW)


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[Record]:
    for batch in batches:
        for number, blob in zip(batch.column(0), batch.column(1), strict=True):
            yield number.as_py(), blob.as_buffer()
