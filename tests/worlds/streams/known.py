"""A small stream in each format that is known, and what is found if one of its rows is lost, or comes late.

Written by hand after the shapes that their vendors document. `python -m tests.worlds.streams.known` prints the table of
docs/streams.md.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from harness.record.formats.streams.mappings.known import builtin


class Sample(NamedTuple):
    """The lines of a legal stream. Line `lost` may be lost, and line `late` come last: the anomalies are found.

    None: no rule can find that without the operations of the source. `key` is what --key names.
    """

    lines: Sequence[str]
    lost: int
    lost_is: str | None
    late: int
    late_is: str
    key: str | None = None
    is_once: bool = False  # Its user declares that each event comes once.


def _lines(*each: Any) -> list[str]:
    return [json.dumps(one) for one in each]


def _debezium(lsn: int, before: int | None, after: int) -> dict[str, Any]:
    source = {"connector": "postgresql", "lsn": lsn, "sequence": f'["{lsn - 5}","{lsn}"]', "schema": "s", "table": "t"}
    images = {"before": None if before is None else {"id": 1, "v": before}, "after": {"id": 1, "v": after}}
    value = images | {"source": source, "op": "c" if before is None else "u"}
    return {"topic": "t", "partition": 0, "key": {"id": 1}, "value": value}


def _maxwell(at: int, before: int | None, after: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "database": "d",
        "table": "t",
        "type": "insert" if before is None else "update",
        "ts": 1491742023,
        "xid": at,
    }
    row |= {
        "commit": True,
        "position": f"bin.000003:{at}",
        "primary_key_columns": ["id"],
        "data": {"id": 1, "v": after},
    }
    return row if before is None else row | {"old": {"v": before}}


def _canal(before: str | None, after: str, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "data": [{"id": "1", "v": after}],
        "database": "d",
        "es": 1,
        "id": 1,
        "isDdl": False,
        "mysqlType": {"id": "int"},
    }
    row |= {"old": None if before is None else [{"v": before}], "pkNames": ["id"], "sql": "", "table": "t", "ts": 2}
    return row | {"type": "INSERT" if before is None else "UPDATE"} | more


def _watermark(at: int) -> dict[str, Any]:
    about: dict[str, Any] = {
        "database": "",
        "table": "",
        "pkNames": None,
        "isDdl": False,
        "type": "TIDB_WATERMARK",
        "es": 1,
        "data": None,
    }
    return about | {"_tidb": {"watermarkTs": at}}


def _wal2json(at: int, before: int | None, after: int) -> dict[str, Any]:
    change: dict[str, Any] = {"kind": "insert" if before is None else "update", "schema": "s", "table": "t"}
    change |= {
        "columnnames": ["id", "v"],
        "columnvalues": [1, after],
        "pk": {"pknames": ["id"], "pktypes": ["integer"]},
    }
    if before is not None:
        change |= {"oldkeys": {"keynames": ["id", "v"], "keyvalues": [1, before]}}
    return {"xid": at, "nextlsn": f"0/{at:X}", "change": [change]}


def _wal2json2(at: int, before: int | None, after: int) -> dict[str, Any]:
    def columns(value: int) -> list[dict[str, Any]]:
        return [{"name": "id", "type": "integer", "value": 1}, {"name": "v", "type": "integer", "value": value}]

    row: dict[str, Any] = {
        "action": "I" if before is None else "U",
        "xid": at,
        "lsn": f"0/{at:X}",
        "schema": "s",
        "table": "t",
    }
    row |= {"columns": columns(after), "pk": [{"name": "id", "type": "integer"}]}
    return row if before is None else row | {"identity": columns(before)}


def _decoded(at: int, before: int | None, after: int) -> str:
    new = f"id[integer]:1 v[integer]:{after}"
    change = (
        f"INSERT: {new}" if before is None else f"UPDATE: old-key: id[integer]:1 v[integer]:{before} new-tuple: {new}"
    )
    return f" 0/{at:07X} | {at} | table s.t: {change}"


def _mongodb(at: int, before: int | None, after: int) -> dict[str, Any]:
    token = f"826353AB{at:02X}000000012B022C0100296E5A1004"
    event: dict[str, Any] = {"_id": {"_data": token}, "operationType": "insert" if before is None else "replace"}
    event |= {"clusterTime": {"$timestamp": {"t": 1666427676 + at, "i": 1}}, "fullDocument": {"_id": 1, "v": after}}
    event |= {"ns": {"db": "d", "coll": "c"}, "documentKey": {"_id": 1}}
    return event if before is None else event | {"fullDocumentBeforeChange": {"_id": 1, "v": before}}


def _etcd(at: int, before: str | None, after: str) -> dict[str, Any]:
    def pair(value: str, revision: int) -> dict[str, Any]:
        key, text = (base64.b64encode(each.encode()).decode() for each in ("a", value))
        return {"key": key, "create_revision": 2, "mod_revision": revision, "version": revision - 1, "value": text}

    event: dict[str, Any] = {"kv": pair(after, at)} | ({} if before is None else {"prev_kv": pair(before, at - 1)})
    header = {"cluster_id": 1, "member_id": 2, "revision": at, "raft_term": 3}
    return {"Header": header, "Events": [event], "CompactRevision": 0, "Canceled": False, "Created": False}


def _message(offset: int, value: str) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "offset": offset, "ts": 1, "key": "k", "payload": value}


def _open(at: int, before: int | None, after: int) -> dict[str, Any]:
    def columns(value: int) -> dict[str, Any]:
        return {"id": {"t": 3, "h": True, "f": 11, "v": 1}, "v": {"t": 3, "f": 64, "v": value}}

    value = {"u": columns(after)} | ({} if before is None else {"p": columns(before)})
    return {"topic": "t", "partition": 0, "key": {"ts": at, "scm": "s", "tbl": "t", "t": 1}, "value": value}


_SHOWN: Final = (1, "before-mismatch", 1, "order-inversion")
_IDS: Final = ("1526919030474-55", "1526919030474-56", "1526919030475-0")
_HEAD: Final = ("    lsn    | xid | data", "-----------+-----+------", " 0/0000009 | 9 | BEGIN 9")
_DATA: Final = base64.b64encode(b"hello").decode()
SAMPLES: Final[dict[str, Sample]] = {
    "crdb": Sample(
        _lines(
            {"after": {"id": 1, "v": 1}, "key": [1], "updated": "10.0000000000"},
            {"after": {"id": 1, "v": 2}, "key": [1], "updated": "11.0000000000"},
            {"resolved": "12.0000000000"},
            {"after": {"id": 1, "v": 3}, "key": [1], "updated": "13.0000000000"},
        ),
        *(1, None, 1, "late-event"),
    ),
    "debezium": Sample(
        _lines(_debezium(10, None, 1), _debezium(20, 1, 2), _debezium(30, 2, 3)),
        1,
        "before-mismatch",
        1,
        "order-inversion",
    ),
    "canal": Sample(
        _lines(_canal(None, "1"), _canal("1", "2"), _canal("2", "3")),
        *(1, "before-mismatch", 1, "before-mismatch"),
        is_once=True,
    ),
    "etcd": Sample(
        _lines(_etcd(2, None, "1"), _etcd(3, "1", "2"), _etcd(4, "2", "3")), 1, "before-mismatch", 1, "order-inversion"
    ),
    "flink": Sample(
        ["+I[1, a]", "-U[1, a]", "+U[1, b]", "-U[1, b]", "+U[1, c]"],
        *(2, "before-mismatch", 2, "before-mismatch"),
        key="f0",
        is_once=True,
    ),
    "kafka": Sample(_lines(*(_message(at, f"v{at}") for at in (4, 5, 7))), 1, None, 1, "order-inversion"),
    "materialize": Sample(
        _lines(
            {"mz_timestamp": 10, "mz_progressed": False, "mz_diff": 1, "id": 1},
            {"mz_timestamp": 11, "mz_progressed": True, "mz_diff": None, "id": None},
            {"mz_timestamp": 11, "mz_progressed": False, "mz_diff": 1, "id": 2},
            {"mz_timestamp": 12, "mz_progressed": True, "mz_diff": None, "id": None},
        ),
        *(2, None, 2, "late-event"),
    ),
    "maxwell": Sample(
        _lines(_maxwell(10, None, 1), _maxwell(20, 1, 2), _maxwell(30, 2, 3)),
        1,
        "before-mismatch",
        1,
        "order-inversion",
    ),
    "mongodb": Sample(_lines(_mongodb(1, None, 1), _mongodb(2, 1, 2), _mongodb(3, 2, 3)), *_SHOWN),
    "nats": Sample(
        _lines(*({"subject": "a", "seq": seq, "data": _DATA, "time": "2026-01-01T00:00:00Z"} for seq in (1, 2, 3))),
        *(1, None, 1, "order-inversion"),
    ),
    "redis": Sample(
        ["[", *(f'["{each}", ["v", "1"]],' for each in _IDS[:2]), f'["{_IDS[2]}", ["v", "1"]]', "]"],
        *(2, None, 2, "order-inversion"),
    ),
    "test_decoding": Sample(
        [*_HEAD, _decoded(10, None, 1), _decoded(20, 1, 2), _decoded(30, 2, 3)],
        *(4, "before-mismatch", 4, "order-inversion"),
        key="id",
    ),
    "ticdc": Sample(
        _lines(
            _canal(None, "1", _tidb={"commitTs": 10}),
            _canal("1", "2", _tidb={"commitTs": 20}),
            _watermark(25),
            _canal("2", "3", _tidb={"commitTs": 30}),
        ),
        *(1, "before-mismatch", 1, "late-event"),
    ),
    "ticdc-open": Sample(
        _lines(
            _open(10, None, 1),
            _open(20, 1, 2),
            {"topic": "t", "partition": 0, "key": {"ts": 25, "t": 3}, "value": None},
            _open(30, 2, 3),
        ),
        *(1, "before-mismatch", 1, "late-event"),
    ),
    "wal2json": Sample(
        _lines(_wal2json(10, None, 1), _wal2json(20, 1, 2), _wal2json(30, 2, 3)),
        1,
        "before-mismatch",
        1,
        "order-inversion",
    ),
    "wal2json2": Sample(
        _lines(_wal2json2(10, None, 1), _wal2json2(20, 1, 2), _wal2json2(30, 2, 3)),
        1,
        "before-mismatch",
        1,
        "order-inversion",
    ),
}


def without(sample: Sample) -> list[str]:
    """The lines without the lost one."""
    return [line for place, line in enumerate(sample.lines) if place != sample.lost]


def moved(sample: Sample) -> list[str]:
    """The lines with the late one behind the next one; of an array, without a comma at the end."""
    lines = list(sample.lines)
    at = sample.late
    behind = len(lines) - (1 if lines[-1] != "]" else 2)
    lines.insert(behind, lines.pop(at))
    if lines[-1] == "]":
        lines[1:-1] = [line.rstrip(",") + "," for line in lines[1:-2]] + [lines[-2].rstrip(",")]
    return lines


def table() -> list[str]:
    """The rows of the table in docs/streams.md."""
    abouts = {
        "crdb": "CockroachDB's changefeeds",
        "debezium": "Debezium's change events",
        "ticdc-open": "TiCDC's open protocol",
    }
    abouts |= {name: mapping.about for name, mapping in builtin().items()}
    rows = ["| `--stream` | lines | lost row | late row |", "| --- | --- | --- | --- |"]
    for name, sample in SAMPLES.items():
        lost = "not seen" if sample.lost_is is None else f"`{sample.lost_is}`"
        once = "; found if declared exactly-once" if sample.is_once else ""
        rows.append(f"| `{name}` | {abouts[name]}{once} | {lost} | `{sample.late_is}` |")
    return rows


if __name__ == "__main__":
    print("\n".join(table()))
