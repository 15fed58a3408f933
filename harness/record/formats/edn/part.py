"""One part of a large EDN file, read alone in any process: the rows of operations that begin and end inside it.

Theory of operation. A file is cut before lines that begin a map. The reader of a part knows the number of maps and of
invocations before it (a guess, verified by `harness.record.formats.edn.whole`). It reports what it could not decide:
operations still open at its end (`Opened`), and completions of operations that an earlier part opened (`Deferred`).
1. A part must end between two forms. So it also begins between two forms, if all parts before it could be read.
2. Only a process's first map in a part may be deferred. Any other violation of the order of invocation and completion,
   and any error, makes the part unreadable: then the whole file is read in one pass, like a small one.
3. Ids of keys and values count from NAMED within a part; `names` has their texts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np
import pyarrow as pa

from harness.core.columns import Int64s
from harness.core.errors import HistoryError
from harness.core.record import Complete, Invoke, Json
from harness.record.formats.edn.forms import BadEdn, forms, one_form
from harness.record.formats.edn.jepsen import FieldNames, Map, Open, Pairing, checked
from harness.record.formats.edn.plain import PlainLines, PlainTransaction
from harness.record.formats.edn.transactions import are_answers, completion, invocation
from harness.record.formats.parquet.names import Names
from harness.record.formats.parquet.operations import (
    Row,
    completed_row,
    element_count,
    tables_of_rows,
    without_collector,
)
from harness.record.journal import canonical

_BLOCK: Final = 1 << 17  # Bytes read at once.
_EVENTS: Final = 2000  # Plain transactions read at once.
_NAMES: Final = FieldNames(":")


class Part(NamedTuple):
    """A range of bytes of a file. Before it come `first_map` maps, with `first_op` invocations among them."""

    path: str
    offset: int
    size: int
    first_map: int
    first_op: int
    is_of_lists: bool


class Opened(NamedTuple):
    """An operation still open at the end of the part. `seq` counts the records of the part."""

    process: int
    invoke: Invoke
    seq: int
    request: Open


class Deferred(NamedTuple):
    """A completion whose invocation is in an earlier part. In total, `op_count` operations were invoked before it.

    Its offset in the canonical bytes of the part is `place`.
    """

    process: int
    map: Map
    seq: int
    op_count: int
    place: int


class Batch(NamedTuple):
    """Rows of completed operations, in any order.

    `elements` counts, for each row of ops, the list elements that it read.
    """

    ops: pa.Table
    mops: pa.Table
    elements: Int64s
    names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The content of a part. `begun`: the processes whose first map in it is an invocation. Positions count from 0."""

    part: Part
    map_count: int
    op_count: int
    record_count: int
    fault_count: int
    first_index: int
    last_index: int
    begun: list[int]
    deferred: list[Deferred]
    opened: list[Opened]
    batch: Batch
    canonical: bytes


def digest_of(part: Part) -> Digest | None:
    """The digest of a part; None if the part can only be read, or its error only reported, with the whole file."""
    try:
        with without_collector():
            return _digest(part, is_plain=True) or _digest(part, is_plain=False)
    except (BadEdn, HistoryError, ValueError, OSError):
        return None


def _digest(part: Part, *, is_plain: bool) -> Digest | None:
    """The digest of a part; None if it should be plain, and is not."""
    reader = _Reader(part, is_plain=is_plain)
    with Path(part.path).open("rb") as file:
        file.seek(part.offset)
        return reader.digest() if reader.read(file) else None


class _Reader:
    """Pairs invocations and completions within a part. Raises ValueError by rule 2.

    A plain part has transactions alone. It is read by columns, a few at a time, which stay in a cache of the processor.
    """

    def __init__(self, part: Part, *, is_plain: bool) -> None:
        self._part, self._is_plain = part, is_plain
        self._pairing = Pairing(is_of_lists=part.is_of_lists, first_op=part.first_op)
        self._open: dict[int, tuple[Invoke, int] | None] = {}  # By process, of all processes seen; None: it is idle.
        self._begun, self._deferred = list[int](), list[Deferred]()
        self._rows, self._canonical = list[Row](), bytearray()
        self._map_count = self._seq = self._fault_count = 0
        self._op_count = part.first_op
        self._first_index = self._last_index = -1
        self._names, self._batches = Names(), list[tuple[pa.Table, pa.Table, Int64s]]()

    def read(self, file: IO[bytes]) -> bool:
        """Read the part, which begins at the current position of `file`. False if it should be plain, and is not."""
        found = forms(_blocks(file, self._part.size), PlainLines(one_form).read)
        if not self._is_plain:
            self._read_any(found)
            return True
        while some := list(islice(found, _EVENTS)):
            plain = [form for form in some if isinstance(form, PlainTransaction) and form.f is not None]
            if len(plain) < len(some):
                return False
            self._read_plain(plain)
        return True

    def _read_any(self, found: Iterable[PlainTransaction | Json]) -> None:
        previous = -1
        for number, form in enumerate(found, self._part.first_map):
            each, previous = checked(form, _NAMES, place="", number=number, previous=previous)
            if self._map_count == 0:
                self._first_index = previous
            self._map_count += 1
            if each.process is None:
                self._fault_count += 1
            elif each.type == "invoke":
                self._invoked(each, each.process)
            else:
                self._completed(each, each.process)
        self._last_index = previous

    def _read_plain(self, events: list[PlainTransaction]) -> None:
        """Read the next transactions as `_read_any` does, but compare requests and answers column by column."""
        first = self._part.first_map + self._map_count
        indexes = [number if event.index is None else event.index for number, event in enumerate(events, first)]
        if any([one >= other for one, other in pairwise([self._last_index, *indexes])]):  # noqa: C419  Faster.
            raise ValueError("indexes fall")
        if self._map_count == 0:
            self._first_index = indexes[0]
        self._last_index = indexes[-1]
        self._map_count += len(events)
        records: list[Invoke | Complete] = []
        answers: list[PlainTransaction] = []
        for number, event in enumerate(events, first):
            process = event.process or 0
            opened = self._open.get(process)
            if event.type == "invoke":
                self._begin(process)
                invoke = invocation(event, self._op_count, number)
                self._open[process] = invoke, self._seq
                self._op_count += 1
                records.append(invoke)
            elif opened is None:
                self._canonical += b"".join(map(canonical, records))
                records = []
                self._defer(checked(event, _NAMES, place="", number=number, previous=-1)[0], process)
            else:
                complete = completion(event, opened[0].index, number, is_of_lists=self._part.is_of_lists)
                self._rows.append(completed_row(*opened, complete, self._seq, self._op_count))
                self._open[process] = None
                answers.append(event)
                records.append(complete)
            self._seq += 1
        self._canonical += b"".join(map(canonical, records))
        if not are_answers(self._rows, answers):
            raise ValueError("a completion is not that of its invocation")
        self._flush()

    def _flush(self) -> None:
        """Make tables of the rows so far."""
        counts = [0 if row.complete is None else element_count(row.complete) for row in self._rows]
        self._batches.append((*tables_of_rows(self._rows, self._names), np.array(counts, np.int64)))
        self._rows = []

    def _begin(self, process: int) -> None:
        if process not in self._open:
            self._begun.append(process)
        elif self._open[process] is not None:
            raise ValueError("operations of one process overlap")

    def _defer(self, each: Map, process: int) -> None:
        if process in self._open:
            raise ValueError("a process completes, but is idle")
        self._deferred.append(Deferred(process, each, self._seq, self._op_count, len(self._canonical)))
        self._open[process] = None

    def _request(self, process: int, invoke: Invoke) -> Open:
        """The request of an operation that is open."""
        return Open("", invoke.index, "txn", None, invoke.mops) if self._is_plain else self._pairing.request(process)

    def _invoked(self, each: Map, process: int) -> None:
        self._begin(process)
        record = self._pairing.invoked(each, process)
        self._open[process] = record, self._seq
        self._canonical += canonical(record)
        self._op_count += 1
        self._seq += 1

    def _completed(self, each: Map, process: int) -> None:
        opened = self._open.get(process)
        if opened is None:
            self._defer(each, process)
        else:
            record = self._pairing.completed(each, process)
            self._rows.append(completed_row(*opened, record, self._seq, self._op_count))
            self._canonical += canonical(record)
            self._open[process] = None
        self._seq += 1

    def digest(self) -> Digest:
        """The digest of everything read."""
        self._flush()
        ops, mops, elements = zip(*self._batches, strict=True)
        tables = pa.concat_tables(ops).combine_chunks(), pa.concat_tables(mops).combine_chunks()
        opened = [
            Opened(process, *found, self._request(process, found[0]))
            for process, found in self._open.items()
            if found is not None
        ]
        return Digest(
            part=self._part,
            map_count=self._map_count,
            op_count=self._op_count - self._part.first_op,
            record_count=self._seq,
            fault_count=self._fault_count,
            first_index=self._first_index,
            last_index=self._last_index,
            begun=self._begun,
            deferred=self._deferred,
            opened=opened,
            batch=Batch(*tables, np.concatenate(elements), self._names.rows()[1]),
            canonical=bytes(self._canonical),
        )


def batch(rows: list[Row]) -> Batch:
    """The rows as tables, with their own ids and names. Raises HistoryError if the rows are inconsistent."""
    names = Names()
    ops, mops = tables_of_rows(rows, names)
    counts = [0 if row.complete is None else element_count(row.complete) for row in rows]
    return Batch(ops, mops, np.array(counts, np.int64), names.rows()[1])


def _blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """The next `size` bytes of a file, in blocks."""
    while size > 0 and (block := file.read(min(_BLOCK, size))):
        size -= len(block)
        yield block
