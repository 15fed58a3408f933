"""Positions of Debezium's change events: each connector's own, from its `source` block, in the order of the source.

`ts_ms` is the clock of the source, which may stand still or fall: it is no position, except for MongoDB, whose oplog
counts inside each second. Sources: Debezium, the connectors for PostgreSQL, MySQL, MariaDB, SQL Server, Oracle,
MongoDB, Db2 and Informix, each its section on the `source` structure of change events.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from harness.core.columns import Int64s
from harness.core.record import Json
from harness.record.formats.streams.line import Place, Places

_MYSQL_FILE: Final = re.compile(r"(.{0,200})\.(\d{1,18})")
_LSN_PARTS: Final = re.compile(r"[0-9A-Fa-f]{1,8}:[0-9A-Fa-f]{1,8}:[0-9A-Fa-f]{1,4}")
_LSN_BITS: Final = 32
_LOW_BITS: Final = (1 << _LSN_BITS) - 1
_NO_COMMIT: Final = -1
_LSN_MAX: Final = (1 << 62) - 1
# The commit before, and the change itself, where both are known.
_COMMITTED: Final = re.compile(r'^\["([0-9]{1,18})", ?"[0-9]{1,18}"\]$', re.MULTILINE)
_SEQUENCE: Final = msgspec.json.Decoder(list[int | str | None])
_SEQUENCE_IN: Final = attrgetter("sequence")


class Source(Protocol):
    """The `source` block of a change event."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """The field of that name."""

    def __getitem__(self, name: str, /) -> Any: ...


class PlainSource(msgspec.Struct, gc=False):
    """The same, with the fields that are read here; None for a missing one."""

    connector: str | None = None
    snapshot: Any = None
    db: str | None = None
    schema: str | None = None
    table: str | None = None
    collection: str | None = None
    lsn: Any = None
    sequence: Any = None
    file: Any = None
    pos: Any = None
    row: Any = None
    server_id: Any = None
    commit_lsn: Any = None
    change_lsn: Any = None
    event_serial_no: Any = None
    scn: Any = None
    commit_scn: Any = None
    ts_ms: Any = None
    ord: Any = None
    rs: Any = None
    replica_set: Any = None

    def get(self, name: str, default: Any = None, /) -> Any:
        """The field of that name."""
        value = getattr(self, name)
        return default if value is None else value

    def __getitem__(self, name: str, /) -> Any:
        return getattr(self, name)


class PostgreSQLSource(msgspec.Struct, gc=False):
    """The source of a change from PostgreSQL with a position of two parts: other sources are refused."""

    connector: Literal["postgresql"]
    lsn: Annotated[int, msgspec.Meta(ge=0, le=_LSN_MAX)]
    sequence: str
    schema: Annotated[str, msgspec.Meta(min_length=1)]
    table: Annotated[str, msgspec.Meta(min_length=1)]

    def get(self, name: str, default: Any = None, /) -> Any:
        """The field of that name."""
        value = getattr(self, name, None)
        return default if value is None else value

    def __getitem__(self, name: str, /) -> Any:
        return getattr(self, name)


def places_in(sources: Sequence[PlainSource] | Sequence[PostgreSQLSource]) -> Sequence[Place | None]:
    """The positions of changes, as `place_in` gives them."""
    if isinstance(sources[0], PostgreSQLSource):
        sequences = "\n".join(map(_SEQUENCE_IN, sources))
        commits = _COMMITTED.findall(sequences)
        if len(commits) == len(sources) == sequences.count("\n") + 1:
            parts = np.array((list(map(int, commits)), [each.lsn for each in sources]), np.int64)
            return Places("LSNs", parts.T, _lsn, _lsn_texts)
    return [place_in(each) for each in sources]


def place_in(source: Source) -> Place | None:
    """The position of a change; None for a row of a snapshot that has none.

    Raises ValueError, with what to do, if the connector or its positions are unknown.
    """
    connector = str(source.get("connector") or _guessed(source))
    if connector in _UNORDERED:
        raise ValueError(
            f"it comes from the connector {connector}, whose positions ({_UNORDERED[connector]}) have no order that "
            "can be read here: write a mapping file for the rows of one shard, with a position that rises"
        )
    read = _READERS.get(connector)
    if read is None:
        raise ValueError(
            f"its source is of the connector {connector[:40]!r}, which is not known: known are "
            f"{', '.join(sorted(_READERS))}; or write a mapping file"
        )
    try:
        place = read(source)
    except (TypeError, ValueError, KeyError, msgspec.DecodeError) as error:
        reason = f"{type(error).__name__}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"its source has no position of {connector} that can be read ({reason[:80]})") from None
    if place is None and not _is_snapshot(source):
        raise ValueError(f"its source has no position of {connector}: {_WANTED[connector]}")
    return place


def _guessed(source: Source) -> str | None:
    """The connector of a source that does not name it, by the fields that only one has."""
    for field, connector in (("lsn", "postgresql"), ("file", "mysql"), ("commit_lsn", "sqlserver")):
        if source.get(field) is not None:
            return connector
    return None


def _is_snapshot(source: Source) -> bool:
    return str(source.get("snapshot", "false")) not in ("false", "None")


def _postgresql(source: Source) -> Place | None:
    """The LSN of the change, behind the commit that the connector had sent last; both rise together."""
    if source.get("lsn") is None:
        return None
    lsn, sequence = int(source["lsn"]), source.get("sequence")
    if not 0 <= lsn <= _LSN_MAX:
        raise ValueError("its lsn does not fit into 62 bits")
    if sequence is None:
        return Place("LSNs", (None, lsn), _lsn)
    before, *_ = _SEQUENCE.decode(sequence)
    return Place("LSNs", (_commit(before), lsn), _lsn)


def _commit(before: int | str | None) -> int:
    return _NO_COMMIT if before is None else int(before)


def _mysql(source: Source) -> Place | None:
    """The event's place in the binary log, and the row's inside the event."""
    if source.get("file") is None or source.get("pos") is None:
        return None
    found = _MYSQL_FILE.fullmatch(str(source["file"]))
    if found is None:
        raise ValueError(f"a binary log is called name.000001, and not {str(source['file'])[:40]!r}")
    server = int(source.get("server_id") or 0)
    width = len(found[2])

    def shown(parts: tuple[int, ...]) -> str:
        return f"{found[1]}.{parts[0]:0{width}}:{parts[1]}" + (f" row {parts[2]}" if parts[2] else "")

    of = f"binary log {found[1]}" + (f" of server {server}" if server else "")
    return Place(of, (int(found[2]), int(source["pos"]), int(source.get("row") or 0)), shown, is_snapshot=server == 0)


def _lsns(source: Source) -> Place | None:
    """The LSNs of the commit and of the change, and the change's number in its event."""
    if source.get("commit_lsn") is None:
        return None
    commit, change = _hex(source["commit_lsn"]), source.get("change_lsn")
    inside = -1 if change is None else _hex(change)
    return Place("commit and change LSNs", (commit, inside, int(source.get("event_serial_no") or 0)), _shown_lsns)


def _hex(value: Json) -> int:
    text = str(value)
    if _LSN_PARTS.fullmatch(text):
        log, block, slot = text.split(":")
        return int(log, 16) << 48 | int(block, 16) << 16 | int(slot, 16)
    return int(text.replace(":", ""), 16)


def _shown_lsns(parts: tuple[int, ...]) -> str:
    commit, change, _ = parts
    return _triple(commit) + ("" if change < 0 else f" change {_triple(change)}")


def _triple(lsn: int) -> str:
    return f"{lsn >> 48:08x}:{lsn >> 16 & 0xFFFFFFFF:08x}:{lsn & 0xFFFF:04x}"


def _oracle(source: Source) -> Place | None:
    """The system change numbers of the commit and of the change."""
    if source.get("scn") is None and source.get("commit_scn") is None:
        return None
    scn = int(source.get("scn") or source["commit_scn"])
    commit = int(source.get("commit_scn") or scn)
    return Place("SCNs", (commit, scn), lambda parts: f"{parts[0]} change {parts[1]}", is_of_change=False)


def _mongodb(source: Source) -> Place | None:
    """The second of the cluster's clock, and the number inside of it."""
    if source.get("ord") is None or source.get("ts_ms") is None:
        return None
    parts = (int(source["ts_ms"]) // 1000, int(source["ord"]))
    rs = source.get("rs") or source.get("replica_set")
    return Place(
        f"cluster times{f' of {rs}' if rs else ''}", parts, lambda parts: f"{parts[0]}, {parts[1]}", is_of_change=False
    )


def _lsn(parts: tuple[int, ...]) -> str:
    lsn = parts[-1]
    return f"{lsn >> _LSN_BITS:X}/{lsn & _LOW_BITS:X}"


def _lsn_texts(parts: Int64s) -> pa.Array:
    """The texts of these positions, shape (n, parts), as `_lsn` shows each."""
    digits = np.frombuffer(parts[:, -1].astype(">i8").tobytes().hex().upper().encode(), np.uint8).reshape(-1, 2, 8)
    is_shown = np.logical_or.accumulate(digits != ord("0"), axis=2)
    is_shown[:, :, -1] = True
    slash = np.full((len(parts), 1), ord("/"), np.uint8)
    signs = np.concatenate((digits[:, 0], slash, digits[:, 1]), axis=1)
    kept = np.concatenate((is_shown[:, 0], slash > 0, is_shown[:, 1]), axis=1)
    offsets = np.append(0, np.cumsum(kept.sum(axis=1)))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(signs[kept])]
    return pa.Array.from_buffers(pa.large_string(), len(parts), buffers)


_READERS: Final[Mapping[str, Callable[[Source], Place | None]]] = MappingProxyType(
    {
        "postgresql": _postgresql,
        "mysql": _mysql,
        "mariadb": _mysql,
        "sqlserver": _lsns,
        "db2": _lsns,
        "informix": _lsns,
        "oracle": _oracle,
        "mongodb": _mongodb,
    }
)
_WANTED: Final = MappingProxyType(
    {
        "postgresql": "it needs lsn",
        "mysql": "it needs file and pos",
        "mariadb": "it needs file and pos",
        "sqlserver": "it needs commit_lsn and change_lsn",
        "db2": "it needs commit_lsn and change_lsn",
        "informix": "it needs commit_lsn and change_lsn",
        "oracle": "it needs commit_scn and scn",
        "mongodb": "it needs ts_ms and ord",
    }
)
_UNORDERED: Final = MappingProxyType(
    {
        "vitess": "VGTIDs, one for each shard",
        "spanner": "commit timestamps of partitions that split and merge",
        "cassandra": "commit logs of each node",
        "cassandra-3": "commit logs of each node",
        "cassandra-4": "commit logs of each node",
    }
)
