"""Histories that are sound as files and silly in what they say: cells changed, rows lost, doubled, moved."""

import struct
import zlib
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from harness.core.columns import NAMED
from harness.core.record import Record
from harness.record.journal import MAGIC

INTEGERS = (0, 1, 2, 3, -1, 17, NAMED, NAMED + 1, 1 << 62, (1 << 63) - 1, -(1 << 63), (1 << 63), (1 << 64) - 1)
SCALARS = (None, True, False, 0.5, float("nan"), float("-inf"), "", "ok", "append", "\ud7ff\0", b"", b"\xff")
Silly = None | bool | int | float | str | bytes | list["Silly"] | dict[object, "Silly"] | msgspec.msgpack.Ext


def silly_value(random: Random) -> Silly:
    """Anything that msgpack can say."""
    nested: Silly = 0
    for _ in range(random.choice([3, 70, 400])):
        nested = [nested]
    others: tuple[Silly, ...] = ([], {}, {1: 2}, {"a": b""}, msgspec.msgpack.Ext(5, b"x"), nested, ["r", 1, [2]], [[]])
    return random.choice([*INTEGERS, *SCALARS, *others])


def silly_journal(records: list[Record], path: Path, random: Random) -> None:
    """Write a journal whose checksums are right."""
    payloads: list[Silly] = [msgspec.msgpack.decode(msgspec.msgpack.encode(record)) for record in records]
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(payloads)) if payloads else 0
        match random.randint(0, 6):
            case 0:
                payloads[place : place + 1] = []
            case 1:
                payloads[place:place] = payloads[place : place + 2]
            case 2:
                payloads[place : place + 2] = reversed(payloads[place : place + 2])
            case _ if payloads:
                payloads[place] = _changed(payloads[place], random)
    content = bytearray(MAGIC)
    for payload in map(msgspec.msgpack.encode, payloads):
        content += struct.pack(">II", len(payload), zlib.crc32(payload)) + payload
    path.write_bytes(content)


def _changed(value: Silly, random: Random) -> Silly:
    """The value with one of its parts replaced, or one more."""
    if not isinstance(value, list) or random.random() < 0.1:
        return silly_value(random)
    place = random.randint(0, len(value))
    if place == len(value):
        return [*value, silly_value(random)]
    return [*value[:place], _changed(value[place], random), *value[place + 1 :]]


def silly_parquet(folder: Path, random: Random) -> None:
    """Rewrite one of the tables of a history, with pages whose checksums are right."""
    path = random.choice(sorted(folder.glob("*.parquet")))
    table = pq.read_table(path)
    column = random.randrange(table.num_columns)
    field = table.schema.field(column)
    cells = table[column].to_pylist()
    match random.randint(0, 7):
        case 0:
            table = table.remove_column(column)
        case 1:
            table = table.slice(random.randint(0, 1), max(0, table.num_rows - random.randint(0, 2)))
        case 2:
            table = pa.concat_tables([table, table.slice(0, random.randint(0, 2))])
        case 3:
            table = table.take(random.sample(range(table.num_rows), table.num_rows))
        case 4:
            other = random.choice([pa.string(), pa.float64(), pa.int64(), pa.list_(pa.string()), pa.null()])
            table = table.set_column(column, pa.field(field.name, other), pa.nulls(table.num_rows, other))
        case _ if cells:
            cells[random.randrange(len(cells))] = _silly_cell(field.type, random)
            table = table.set_column(
                column, field.with_nullable(field.nullable or None in cells), pa.array(cells, field.type)
            )
    pq.write_table(table, path, row_group_size=random.choice([1, 5, 1000]), write_page_checksum=True)


def _silly_cell(kind: pa.DataType, random: Random) -> object:
    """Something of that type, or null."""
    if random.random() < 0.2:
        return None
    if pa.types.is_integer(kind):
        low, high = -(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1
        return min(max(random.choice(INTEGERS), low), high)
    if pa.types.is_boolean(kind):
        return random.random() < 0.5
    if pa.types.is_string(kind):
        return random.choice(["", "null", "[", '"x"', "{", "0", "[[1]]", '{"a": NaN}', "\0", "[" * 2000, "9" * 400])
    return random.choice([[], [None], [-1], [NAMED + 10**9], [1, 2, 3]])
