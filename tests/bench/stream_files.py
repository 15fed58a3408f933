"""Change streams of others from file to verdict: Debezium's full envelopes, packed by gzip, and CockroachDB's messages.

    python -m tests.bench.stream_files [LINES ...]

A line of Debezium has the schemas of key and value, as Kafka Connect's JSON converter writes them by default, and the
row before and after. The aim for a million lines is 15 s of processor time, all processes together.
"""

import gzip
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from seamark import check

KEYS: Final = 20_000
ROWS_OF_TRANSACTION: Final = 4
SEED: Final = 5
_COLUMNS: Final = (("int32", "id"), ("string", "first_name"), ("string", "last_name"), ("string", "email"))
_SOURCE: Final = (
    *(("string", "version"), ("string", "connector"), ("string", "name"), ("int64", "ts_ms"), ("string", "snapshot")),
    *(("string", "db"), ("string", "sequence"), ("int64", "ts_us"), ("int64", "ts_ns"), ("string", "schema")),
    *(("string", "table"), ("int64", "txId"), ("int64", "lsn"), ("int64", "xmin")),
)
_COMMON: Final = {
    "version": "3.1.0.Final",
    "connector": "postgresql",
    "name": "server",
    "snapshot": "false",
    "db": "inventory",
    "schema": "inventory",
    "table": "customers",
    "xmin": None,
}
_BLOCK: Final = (("string", "id"), ("int64", "total_order"), ("int64", "data_collection_order"))


def _struct(field: str, name: str, columns: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    fields = [{"type": kind, "optional": kind != "int32", "field": column} for kind, column in columns]
    return {"type": "struct", "fields": fields, "optional": True, "name": name, "field": field}


def _schemas() -> tuple[Any, Any]:
    row = "server.inventory.customers.Value"
    fields = [
        *(_struct("before", row, _COLUMNS), _struct("after", row, _COLUMNS)),
        _struct("source", "io.debezium.connector.postgresql.Source", _SOURCE),
        _struct("transaction", "event.block", _BLOCK),
        *({"type": "string", "optional": False, "field": "op"}, {"type": "int64", "optional": True, "field": "ts_ms"}),
    ]
    whole = {"type": "struct", "fields": fields, "optional": False, "name": "server.inventory.customers.Envelope"}
    return _struct("key", "server.inventory.customers.Key", _COLUMNS[:1]), whole | {"version": 2}


def debezium(count: int) -> Iterator[str]:
    """Lines of one table's topic: insertions and updates, four rows a transaction."""
    random, state = Random(SEED), dict[int, dict[str, Any]]()
    schemas = [json.dumps(each) for each in _schemas()]
    for number in range(count):
        unit, order = divmod(number, ROWS_OF_TRANSACTION)
        lsn, key = 24_000_000 + 120 * number, random.randrange(KEYS)
        row = {"id": key, "first_name": f"name {number}", "last_name": "Kretchmar", "email": f"{number}@example.org"}
        before, state[key] = state.get(key), row
        last = 24_000_000 + 120 * ROWS_OF_TRANSACTION * unit - 20
        at = 1_700_000_000_000 + unit
        source = {
            **_COMMON,
            "ts_ms": at,
            "ts_us": 1_000 * at,
            "ts_ns": 1_000_000 * at,
            "sequence": json.dumps([str(last), str(lsn)]),
            "txId": 500 + unit,
            "lsn": lsn,
        }
        block = {"id": f"{500 + unit}:{lsn}", "total_order": order + 1, "data_collection_order": order + 1}
        value: dict[str, Any] = {"before": before, "after": row, "source": source, "transaction": block}
        value |= {"op": "c" if before is None else "u", "ts_ms": 1_700_000_000_100 + unit}
        yield (
            f'{{"topic": "server.inventory.customers", "partition": 0, "offset": {number}, "key": {{"schema": '
            f'{schemas[0]}, "payload": {{"id": {key}}}}}, "value": {{"schema": {schemas[1]}, "payload": '
            f"{json.dumps(value)}}}}}\n"
        )


def cockroachdb(count: int) -> Iterator[str]:
    """Wrapped messages of one table, and a resolved timestamp after each hundredth."""
    random = Random(SEED)
    for number in range(count):
        at = 1_700_000_000_000_000_000 + 1_000_000 * number
        if number % 100 == 99:
            yield json.dumps({"resolved": f"{at}.0000000000"}) + "\n"
            continue
        key = random.randrange(KEYS)
        row = {"id": key, "name": f"name {number}", "city": "amsterdam", "balance": number}
        yield json.dumps({"after": row, "key": [key], "topic": "users", "updated": f"{at}.0000000000"}) + "\n"


def write(path: Path, lines: Iterator[str]) -> int:
    """Write the lines, packed if the name ends so; returns their size without the packing."""
    size = 0
    with gzip.open(path, "wt", compresslevel=6) if path.suffix == ".gz" else path.open("w") as file:
        for line in lines:
            size += file.write(line)
    return size


def _cpu_s() -> float:
    return sum(
        each.ru_utime + each.ru_stime
        for each in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


CASES: Final[tuple[tuple[str, str, Callable[[int], Iterator[str]]], ...]] = (
    ("debezium", "debezium.jsonl.gz", debezium),
    ("crdb", "crdb.jsonl", cockroachdb),
)


def main() -> None:
    """Print the time and memory that each size takes."""
    for count in map(int, sys.argv[1:] or ("10000", "100000")):
        for form, name, lines in CASES:
            with tempfile.TemporaryDirectory() as folder:
                size = write(Path(folder) / name, lines(count))
                began, started = _cpu_s(), time.perf_counter()
                report = check(Path(folder) / name, stream=form)
                cpu_s, wall_s = _cpu_s() - began, time.perf_counter() - started
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(
                f"{form}: {count} lines, {size >> 20} MB, {report.verdict}: {cpu_s:.1f} s of processor time, "
                f"{1e6 * cpu_s / count:.1f} us a line, {wall_s:.1f} s, peak {peak} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
