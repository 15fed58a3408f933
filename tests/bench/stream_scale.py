"""The stream rules and the graph of watermarks over a long stream beside its source, from the start of a process.

`python -m tests.bench.stream_scale 1000000 10000000` is what is asked for: ten million rows of a million keys, with a
watermark behind each hundred, and the operations that wrote them, two writes each, beside some that read, in under 60 s
and 6 GB on two cores; and ten times as many rows cost no more than 11.5 times as much. The history is without an
anomaly. Its files are written before anything is measured. Memory is that of all processes, pages that they share
counted once. On a machine that is busy CPU seconds say more than seconds.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from os import getloadavg
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from checkers.columns.runs import expand, ordered
from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.streams import check as streams
from checkers.watermarks import check as watermark_check
from checkers.watermarks.cycles.steps import NAMES
from harness.core.columns import APPEND, GROUP_OPS, KINDS, NEVER, OK, OPEN, READ, ROW, WATERMARK, Int64s
from harness.core.promises import StreamContract
from harness.record.formats.parquet.schema import SCHEMAS
from tests.bench.check import spark
from tests.bench.watched import Watched, measured

SMOKE: Final = (100_000,)
ROWS_A_KEY, ROWS_A_WATERMARK, WRITES_AN_OP = 10, 100, 2
WRITES_A_READ: Final = 10  # One operation of so many only reads.
PROCESSES: Final = 20  # So many operations run at a time.
SESSIONS, REPLAYED_OPS = 4, 500  # Each session but the first begins with what the one before had been sent last.
SLOT: Final = 8 * REPLAYED_OPS  # Journal positions from one invocation to the next.
EVENTS_A_GROUP: Final = 100_000
MUST_GROWTH: Final = 1.15
CONTRACT: Final = StreamContract(
    closed="<=", cut="delivery", position="lsn", realtime="follows", wm_idle="rests", tail="settled"
)


@dataclass(frozen=True, slots=True)
class Source:
    """The operations: w write twice each, and r read two keys each, whole lists."""

    writer: Int64s  # (w,) indexes, ascending
    reader: Int64s  # (r,)
    rank: Int64s  # (w,) when each commits, among all that write
    key: Int64s  # (2 w,) what they write to
    read_key: Int64s  # (2 r,)
    read_length: Int64s  # (2 r,)
    read: Int64s  # the elements of all reads

    @classmethod
    def drawn(cls, rows: int) -> "Source":
        """A source of so many writes."""
        draw = np.random.default_rng(7)
        count, keys = rows // WRITES_AN_OP, max(WRITES_AN_OP, rows // ROWS_A_KEY)
        index = np.arange(count + count // (WRITES_A_READ - 1))
        is_reader = index % WRITES_A_READ == WRITES_A_READ - 1
        # The effect of each operation lies between its two ends, so that what it sees obeys real time.
        order, _ = ordered(index * 1000 + draw.integers(0, 1000 * (PROCESSES - 1), len(index)))
        before = np.empty(len(index), np.int64)
        before[order] = np.cumsum(~is_reader[order]) - ~is_reader[order]
        writer, reader = np.flatnonzero(~is_reader), np.flatnonzero(is_reader)

        key = _pairs(draw, len(writer), keys)
        read_key = _pairs(draw, len(reader), keys)
        rank = before[writer]
        moment = len(rank) + 1
        by_key, written = ordered(key * moment + np.repeat(rank, WRITES_AN_OP))
        start = np.searchsorted(written, read_key * moment)
        length = np.searchsorted(written, read_key * moment + np.repeat(before[reader], WRITES_AN_OP)) - start
        return cls(writer, reader, rank, key, read_key, length, by_key[expand(start, length)])


def _pairs(draw: np.random.Generator, count: int, keys: int) -> Int64s:
    """Two different keys for each of so many operations."""
    first = draw.integers(0, keys, count)
    return np.stack((first, (first + draw.integers(1, keys, count)) % keys), axis=1).ravel()


def write(folder: Path, rows: int) -> None:
    """A history of that many rows as a folder of Parquet files."""
    folder.mkdir(parents=True)
    for name in SCHEMAS.keys() - {"ops", "mops", "events"}:
        pq.write_table(SCHEMAS[name].empty_table(), folder / f"{name}.parquet")
    source = Source.drawn(rows)
    _write(folder, "ops", _ops(source))
    _write(folder, "mops", _mops(source))
    _write(folder, "events", _events(source))


def _write(folder: Path, name: str, tables: Iterator[pa.Table]) -> None:
    path = folder / f"{name}.parquet"
    with pq.ParquetWriter(path, SCHEMAS[name], compression="zstd", write_page_checksum=True) as file:
        for table in tables:
            file.write_table(table, row_group_size=table.num_rows)


def _ops(source: Source) -> Iterator[pa.Table]:
    count = len(source.writer) + len(source.reader)
    position = np.full(count, NEVER)
    position[source.writer] = source.rank + 1
    for begin in range(0, count, GROUP_OPS):
        index = np.arange(begin, min(begin + GROUP_OPS, count))
        end = index + PROCESSES  # The first one invoked after the completion.
        columns = {
            "index": index,
            "process": index % PROCESSES,
            "outcome": np.full(len(index), OK, np.int8),
            "f": pa.array(["txn"]).take(pa.array(np.zeros(len(index), np.int8))),
            "intended_ns": index * SLOT,
            "invoke_ns": index * SLOT,
            "complete_ns": (end - 1) * SLOT + 1,
            "after": end,
            "invoke_seq": index * SLOT,
            "complete_seq": (end - 1) * SLOT + 1,
            "is_txn": np.ones(len(index), np.bool_),
            "has_result": np.ones(len(index), np.bool_),
            "txn": index,
            "commit_ts": pa.array(position[index], mask=position[index] == NEVER),
        }
        yield _table("ops", columns, len(index))


def _mops(source: Source) -> Iterator[pa.Table]:
    count = len(source.writer) + len(source.reader)
    key, value = np.empty(WRITES_AN_OP * count, np.int64), np.zeros(WRITES_AN_OP * count, np.int64)
    length, is_read = np.zeros(len(key), np.int64), np.zeros(len(key), np.bool_)
    writes, reads = (expand(WRITES_AN_OP * op, np.full(len(op), WRITES_AN_OP)) for op in (source.writer, source.reader))
    key[writes], key[reads], length[reads], is_read[reads] = source.key, source.read_key, source.read_length, True
    value[writes] = np.arange(len(writes))
    starts = np.concatenate(([0], np.cumsum(length)))
    for begin in range(0, len(key), WRITES_AN_OP * GROUP_OPS):
        row = np.arange(begin, min(begin + WRITES_AN_OP * GROUP_OPS, len(key)))
        offsets = (starts[np.append(row, row[-1] + 1)] - starts[begin]).astype(np.int32)
        elements = source.read[starts[begin] : starts[row[-1] + 1]]
        columns = {
            "op": row // WRITES_AN_OP,
            "position": (row % WRITES_AN_OP).astype(np.int32),
            "f": np.where(is_read[row], READ, APPEND).astype(np.int8),
            "key": key[row],
            "value": pa.array(value[row], mask=is_read[row]),
            "read": pa.ListArray.from_arrays(pa.array(offsets, mask=np.append(~is_read[row], False)), elements),
        }
        yield _table("mops", columns, len(row))


def _events(source: Source) -> Iterator[pa.Table]:
    """What one subscriber receives, by place in the journal: sessions overlap where one takes over."""
    count = len(source.rank)
    by_rank = np.empty(count, np.int64)
    by_rank[source.rank] = np.arange(count)
    step = -(-count // SESSIONS)
    parts = [_session(source, by_rank, session, begin, step) for session, begin in enumerate(range(0, count, step))]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order, _ = ordered(columns["seq"])
    for begin in range(0, len(order), EVENTS_A_GROUP):
        rows = order[begin : begin + EVENTS_A_GROUP]
        numbers = {name: column[rows] for name, column in columns.items()}
        kind = numbers.pop("kind")
        texts = {
            "subscriber": pa.array(["reader"]).take(pa.array(np.zeros(len(rows), np.int8))),
            "kind": pa.array(KINDS).take(pa.array(kind)),
        }
        known = {name: pa.array(column, mask=column == NEVER) for name, column in numbers.items()}
        yield _table("events", {**known, **texts}, len(rows))


def _session(source: Source, by_rank: Int64s, session: int, begin: int, step: int) -> dict[str, Int64s]:
    """What one session receives, first what the one before had been sent last; NEVER where there is nothing."""
    rank = np.arange(max(0, begin - REPLAYED_OPS), min(begin + step, len(by_rank)))
    is_new = rank >= begin
    is_marked = is_new & ((rank + 1) % (ROWS_A_WATERMARK // WRITES_AN_OP) == 0)
    kinds = 2 + is_marked  # Two rows, and behind some a watermark.
    kinds[0] += 1  # The opening before the first.
    owner, place = np.repeat(np.arange(len(rank)), kinds), expand(np.zeros(len(rank), np.int64), kinds)
    place[: kinds[0]] -= 1
    at = rank[owner]
    kind = np.select([place < 0, place < WRITES_AN_OP], [OPEN, ROW], WATERMARK)
    # A session is sent at once what it had been sent before.
    when = (source.writer[by_rank[np.maximum(at, begin)]] + 2 * PROCESSES) * SLOT + 2
    # What commits in another order than it was invoked in is not received before what stands before it.
    when = np.maximum.accumulate(when)
    seq = when + np.arange(len(at)) - np.searchsorted(when, when)
    write = by_rank[at] * WRITES_AN_OP + np.clip(place, 0, WRITES_AN_OP - 1)
    is_row = kind == ROW
    return {
        "seq": seq,
        "ns": seq,
        "session": np.full(len(at), session),
        "number": np.arange(len(at)),
        "kind": kind,
        "key": np.where(is_row, source.key[write], NEVER),
        "value": np.where(is_row, write, NEVER),
        "position": at + (kind != OPEN),
        "ordinal": np.where(is_row, place, NEVER),
        "unit": np.where(is_row, source.writer[by_rank[at]], NEVER),
    }


def _table(name: str, columns: dict[str, object], count: int) -> pa.Table:
    """The columns as that table; those that are not given are null."""
    schema = SCHEMAS[name]
    return pa.table(
        {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in schema}, schema=schema
    )


def judge(kind: str, folder: Path) -> None:
    """Both checks of that history, each with a line of what it took and found."""
    with spark(folder.parent / "spark") if kind == "spark" else nullcontext(LocalEngine()) as engine:
        begin = time.perf_counter()
        rules = streams.check(folder, Context(engine=engine, contract=CONTRACT))
        middle = time.perf_counter()
        options = watermark_check.Options(forbidden=frozenset(NAMES))
        graph = watermark_check.check_source(folder, folder, CONTRACT, engine, options)
        end = time.perf_counter()
    for name, judgement, took_s in (("rules", rules, middle - begin), ("graph", graph, end - middle)):
        witnessed = sum(count > 0 for count in judgement.witnesses.values())
        said = f"{len(judgement.findings)} findings, {len(judgement.unknown)} unknown"
        print(f"  {name} {took_s:6.1f} s: {said}, {witnessed} anomalies witnessed", flush=True)


def told(kind: str, rows: int, done: Watched) -> str:
    """The line of a measurement."""
    head = f"{rows:>11,} rows  {kind:5}  {done.took_s:6.1f} s  {done.cpu_s:6.1f} CPU s  {done.peak_mb:6,.0f} MB"
    return f"{head}{'' if done.code == 0 else f'  exit {done.code}'}\n{done.output.rstrip()}"


def growth(small: tuple[int, Watched], large: tuple[int, Watched]) -> str:
    """How CPU seconds and memory grow, against what would be linear."""
    factor = large[0] / small[0]
    cpu, peak = large[1].cpu_s / small[1].cpu_s, large[1].peak_mb / small[1].peak_mb
    figures = f"{cpu:.1f} times the CPU seconds, {peak:.1f} times the memory"
    return f"{factor:g} times as many rows: {figures} (must {factor * MUST_GROWTH:g})"


def main(sizes: tuple[int, ...]) -> None:
    """Print a line for each measurement, and how the first and the last of an engine compare."""
    print(f"{getloadavg()[0]:.1f} processes were running already")
    done: dict[str, list[tuple[int, Watched]]] = {"local": [], "spark": []}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "history"
            write(folder, rows)
            for kind, figures in done.items():
                figures.append((rows, measured([sys.executable, "-m", "tests.bench.stream_scale", kind, str(folder)])))
                print(told(kind, *figures[-1]), flush=True)
    for kind, figures in done.items():
        if len(figures) > 1:
            print(f"{kind}: {growth(figures[0], figures[-1])}")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in ("local", "spark"):
        judge(sys.argv[1], Path(sys.argv[2]))
    else:
        main(tuple(map(int, sys.argv[1:])) or SMOKE)
