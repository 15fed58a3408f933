"""All generations of a history but the last as one history, whose size does not depend on their number.

Theory of operation. Between two generations most keys do not change: a *stretch* is a key in consecutive generations
that include the same operations of it. The history written here has the stretches as its keys.
1. For each key, each generation's history has the same operations as one stretch. So whatever follows from a key by
   itself (edges, anomalies, chances to see them) follows from its stretch, once for all generations of the stretch.
2. An operation occurs once, with its micro-operations of every stretch that includes it. So the graph of dependencies
   has the edges of every generation's graph, and whatever is in no cycle here is in no cycle of any generation. A
   cycle here may be made of edges of several generations: then it proves nothing. Unless no generation includes all of
   its operations, each generation must be judged by itself.
3. What is about a key counts once for each generation of its stretch (`Weights`).
4. A failed operation alone shows nothing: it is kept only in generations that include another operation on its key.
   Other generations include it as well, but nothing follows from it there.
5. Generations include writers until they are void (checkers/history/generations.py). So a key has one or a few
   stretches while it is in use, and one for all generations after that.
The events of streams are repeated for every stretch of their key, in the same order.
"""

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.arrow import integers
from checkers.columns.files import opened, opened_operations, passing_writer
from checkers.columns.index import Places
from checkers.columns.runs import codes, distinct, expand
from checkers.columns.table import concat, take
from checkers.history.generation_files import as_unclear
from checkers.history.generations import Restart, Spans, spans
from checkers.history.streams import NOTHING_DERIVED, Placement
from harness.core.columns import APPEND, FAIL, INFO, NEVER, READ, Bools, Int64s

_ROWS_OF_A_CHUNK: Final = 250_000
_EVENTS: Final = "events.parquet"
_NAMES: Final = "names.parquet"
# The columns that checks of stretches read. The others are most of the files.
_OF_OPS: Final = ("index", "process", "outcome", "after", "is_txn", "has_result", "commit_ts", "epoch")
_OF_MOPS: Final = ("op", "f", "lock", "key", "value", "read")
_OF_EVENTS: Final = ("seq", "ns", "subscriber", "session", "kind", "span", "key", "value", "position", "ordinal")


class Stretches(Struct, frozen=True, kw_only=True):
    """The history in `folder`, whose keys are stretches: stretch i spans generations first[i] to last[i]; (s,) each."""

    folder: Path
    generations: int
    first: Int64s
    last: Int64s


class Weights(Struct, frozen=True):
    """How often what is about a key counts: in each generation of the stretch that the key is, or else once."""

    stretches: Stretches | None = None

    def of(self, keys: Int64s) -> "Weights":
        """The same for rows that name a key by its place in `keys`."""
        known = self.stretches
        return Weights(known and replace(known, first=known.first[keys], last=known.last[keys]))

    def count(self, key: Int64s) -> int:
        """The number of rows with those keys, each counted as often as its key."""
        known = self.stretches
        return len(key) if known is None else int((known.last[key] - known.first[key] + 1).sum())

    def generations(self, key: Int64s) -> Bools:
        """True for each generation that one of those keys is in, shape (generations,)."""
        if self.stretches is None:
            return np.array([len(key) > 0])
        size = self.stretches.generations + 1
        begins, ends = self.stretches.first[key], self.stretches.last[key] + 1
        result: Bools = np.cumsum(np.bincount(begins, minlength=size) - np.bincount(ends, minlength=size))[:-1] > 0
        return result


ONCE: Final = Weights()


class _Steps(Struct, frozen=True, kw_only=True):
    """Micro-operations, each in the generations from `first` to `last`; in none if `first` is greater."""

    key: Int64s
    first: Int64s
    last: Int64s
    is_failed: Bools


def _beside_others(chunks: Sequence[_Steps]) -> list[_Steps]:
    """The same steps. Failed ones stay only in generations with another step on their key (theory of operation, 4)."""
    every = concat(chunks)
    _, code = codes(every.key)
    first = np.full(int(code.max(initial=-1)) + 1, NEVER, np.int64)
    last = np.full(len(first), -1, np.int64)
    other = np.flatnonzero(~every.is_failed & (every.first <= every.last))
    np.minimum.at(first, code[other], every.first[other])
    np.maximum.at(last, code[other], every.last[other])
    is_failed = every.is_failed
    clipped = replace(
        every,
        first=np.where(is_failed, np.maximum(every.first, first[code]), every.first),
        last=np.where(is_failed, np.minimum(every.last, last[code]), every.last),
    )
    ends = np.cumsum([0, *(len(chunk.key) for chunk in chunks)]).tolist()
    return [take(clipped, slice(begin, end)) for begin, end in pairwise(ends)]


class _Cuts(Struct, frozen=True):
    """The stretches of all keys: each goes from one cut to the next, and they are numbered by key and generation."""

    keys: Int64s
    cuts: Int64s  # place of the key * step + generation, ascending
    step: int

    @classmethod
    def of(cls, key: Int64s, first: Int64s, last: Int64s, *, step: int) -> "_Cuts":
        """The stretches of those keys, given steps on them, each in the generations from `first` to `last`."""
        keys, code = codes(key)
        return cls(keys, distinct(np.concatenate((code * step + first, code * step + last + 1))), step)

    def of_rows(self, steps: _Steps) -> tuple[Int64s, Int64s]:
        """The first stretch of each micro-operation, and the number of its stretches."""
        is_any = steps.first <= steps.last
        base = np.searchsorted(self.keys, steps.key) * self.step
        begin = np.searchsorted(self.cuts, base + np.where(is_any, steps.first, 0))
        return begin, np.where(is_any, np.searchsorted(self.cuts, base + steps.last + 1) - begin, 0)

    def of_keys(self, key: Int64s) -> tuple[Int64s, Int64s]:
        """The first stretch of each key, and the number of its stretches; 0 for a key that has none."""
        place = Places(self.keys).of(key)
        bounds = np.searchsorted(self.cuts, np.arange(len(self.keys) + 1) * self.step)
        # The last cut of a key begins no stretch.
        count = np.append(np.diff(bounds) - 1, 0)
        return np.append(bounds[:-1], 0)[place], count[place]

    def generations(self) -> tuple[Int64s, Int64s]:
        """The first and the last generation of each stretch.

        The last cut of a key begins none, and gets an empty range.
        """
        first, code = self.cuts % self.step, self.cuts // self.step
        following = np.append(self.cuts[1:], -1)
        return first, np.where(following // self.step == code, following % self.step, first) - 1


def write_stretches(
    history: Path,
    folder: Path,
    known: Sequence[Restart],
    *,
    saved_bits: int,
    reported: Placement = NOTHING_DERIVED,
) -> Stretches | None:
    """Write all generations before the last restart into `folder`, as one history. O(n) for n rows of all stretches.

    None if the history has registers, or events by which a session begins with some keys: each generation must then be
    judged by itself. Raises HistoryError.
    """
    with opened_operations(history) as (op_file, mop_file):
        of_ops, of_mops = _among(op_file, (*_OF_OPS, "invoke_seq", "complete_seq")), _among(mop_file, _OF_MOPS)
        read = (
            (op_file.read_row_group(group, columns=of_ops), mop_file.read_row_group(group, columns=of_mops))
            for group in range(op_file.num_row_groups)
        )
        chunks = [_Rows(ops, mops, spans(ops, known, saved_bits=saved_bits, reported=reported)) for ops, mops in read]
    if not chunks or not all(chunk.has_lists_only() for chunk in chunks) or not _has_plain_events(history / _EVENTS):
        return None
    until = len(known) - 1
    rows = _beside_others([chunk.of_mops(until) for chunk in chunks])
    every = concat(rows)
    every = take(every, every.first <= every.last)
    cuts = _Cuts.of(every.key, every.first, every.last, step=len(known) + 1)
    first, last = cuts.generations()
    whole = [chunk.repeated(cuts, row, until=until) for chunk, row in zip(chunks, rows, strict=True)]
    _write(folder, whole)
    _write_events(history / _EVENTS, folder / _EVENTS, cuts)
    if (history / _NAMES).is_file():
        shutil.copy(history / _NAMES, folder / _NAMES)
    return Stretches(folder=folder, generations=len(known), first=first, last=last)


def _among(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    """Those of the columns that the file has, in its order."""
    return [name for name in file.schema_arrow.names if name in names]


class _Rows(Struct, frozen=True):
    """The operations of one chunk with their spans, and its micro-operations."""

    ops: pa.Table
    mops: pa.Table
    spans: Spans

    def has_lists_only(self) -> bool:
        """True if every micro-operation reads or appends."""
        is_list = pc.is_in(self.mops["f"], value_set=pa.array((READ, APPEND), self.mops.schema.field("f").type))
        return bool(pc.all(is_list, min_count=0).as_py())

    def of_mops(self, until: int) -> _Steps:
        """The micro-operations, each with its generations, of which none is after `until`."""
        op = Places(integers(self.ops["index"])).of(integers(self.mops["op"]))
        return _Steps(
            key=integers(self.mops["key"]),
            first=self.spans.first[op],
            last=np.minimum(self.spans.last[op], until),
            is_failed=(integers(self.ops["outcome"], INFO) == FAIL)[op],
        )

    def repeated(self, cuts: _Cuts, steps: _Steps, *, until: int) -> tuple[pa.Table, pa.Table]:
        """Each operation once, and its micro-operations once per stretch, with the stretch as their key."""
        begin, count = cuts.of_rows(steps)
        mops = _with_keys(self.mops.take(pa.array(np.repeat(np.arange(len(begin)), count))), expand(begin, count))
        ops = self.ops.select([name for name in self.ops.column_names if name in _OF_OPS])
        ops = as_unclear(ops, self.spans.unclear)
        return ops.filter(pa.array(self.spans.first <= np.minimum(self.spans.last, until))), mops


def _with_keys(table: pa.Table, key: Int64s) -> pa.Table:
    return table.set_column(table.schema.get_field_index("key"), table.schema.field("key"), pa.array(key, pa.int64()))


def _write(folder: Path, chunks: Sequence[tuple[pa.Table, pa.Table]]) -> None:
    ops, mops = chunks[0]
    with (
        passing_writer(folder / "ops.parquet", ops.schema) as ops_out,
        passing_writer(folder / "mops.parquet", mops.schema) as mops_out,
    ):
        for chunk in chunks:
            for table, out in zip(chunk, (ops_out, mops_out), strict=True):
                out.write_table(table, row_group_size=max(1, table.num_rows))


def _has_plain_events(path: Path) -> bool:
    """True if every event with a key is a plain row."""
    if not path.is_file():
        return True
    with opened(path, texts=["kind"]) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=["kind", "key"], use_threads=False)
            keyed = table.filter(pc.is_valid(table["key"]))
            if set(pc.unique(keyed["kind"].cast(pa.string())).to_pylist()) - {"row"}:
                return False
    return True


def _write_events(path: Path, out: Path, cuts: _Cuts) -> None:
    """Write the events: each once for each stretch of its key, or once under a new key if its key has no stretch."""
    if not path.is_file():
        return
    with opened(path, texts=("subscriber", "kind", "span")) as file:
        names = _among(file, _OF_EVENTS)
        groups = (file.read_row_group(group, names, use_threads=False) for group in range(file.num_row_groups))
        schema = pa.schema([file.schema_arrow.field(name) for name in names])
        with passing_writer(out, schema) as writer:
            for table in groups:
                writer.write_table(_repeated_events(table, cuts), row_group_size=_ROWS_OF_A_CHUNK)


def _repeated_events(table: pa.Table, cuts: _Cuts) -> pa.Table:
    key = integers(table["key"], NEVER)
    begin, count = cuts.of_keys(key)
    is_strange: Bools = count == 0
    begin = np.where(is_strange, np.where(key == NEVER, NEVER, len(cuts.cuts) + key), begin)
    count = np.maximum(count, 1)
    stretch = expand(begin, count)
    repeated = table.take(pa.array(np.repeat(np.arange(len(key)), count)))
    place = repeated.schema.get_field_index("key")
    return repeated.set_column(
        place, repeated.schema.field("key"), pa.array(stretch, pa.int64(), mask=stretch == NEVER)
    )
