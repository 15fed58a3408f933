"""Positions that systems write in notations of their own, as they stand in a field of a mapping file.

MySQL's and MariaDB's GTIDs (MySQL's manual, section GTID Format and Storage; MariaDB's page on GTIDs), places in binary
logs, the ids of Redis streams, MongoDB's timestamps, and its resume tokens, whose bytes are in the order of the events
(MongoDB's KeyString).
"""

import re
from collections.abc import Callable
from typing import Final

from harness.core.record import Json
from harness.record.formats.streams.line import Place

_UUID: Final = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
_GTID: Final = re.compile(rf"({_UUID}):(\d{{1,18}})")
_GTIDS: Final = re.compile(rf"\s*{_UUID}:[-:,\s0-9A-Za-z]{{1,100000}}")
_MARIADB: Final = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,18})")
_REDIS: Final = re.compile(r"(\d{1,18})-(\d{1,18})")
_BINLOG: Final = re.compile(r"([^:]{1,200})\.(\d{1,18}):(\d{1,18})")
_TOKEN: Final = re.compile(r"82(?:[0-9A-Fa-f]{2}){8,2000}")  # A KeyString that begins with a timestamp.
_CHUNK: Final = 16  # Digits of a token that are compared at once.
_SHOWN: Final = 24


def place_of(value: Json) -> Place | None:
    """The position in one of these notations; None if it is in none.

    Raises ValueError for sets of GTIDs, which have no total order.
    """
    match value:
        case {"_data": str(token)} | {"$timestamp": {"_data": str(token)}}:
            return _token(token)
        case {"$timestamp": {"t": int(second), "i": int(number)}} | {"t": int(second), "i": int(number)}:
            return Place("cluster times", (second, number), lambda parts: f"{parts[0]}, {parts[1]}")
        case str():
            return _of_text(value)
        case _:
            return None


def _of_text(value: str) -> Place | None:
    if found := _GTID.fullmatch(value):
        server = found[1].lower()
        return Place(f"GTIDs of server {server}", (int(found[2]),), lambda parts: f"{server}:{parts[0]}")
    if _GTIDS.fullmatch(value):
        raise ValueError(
            "its position is a set of GTIDs, and sets have no total order: give the GTID of the row's transaction, "
            "such as UUID:17, or file and offset of the binary log"
        )
    if found := _MARIADB.fullmatch(value):
        domain, server = found[1], found[2]
        return Place(f"GTIDs of domain {domain}", (int(found[3]),), lambda parts: f"{domain}-{server}-{parts[0]}")
    if found := _REDIS.fullmatch(value):
        return Place("ids of a Redis stream", (int(found[1]), int(found[2])), lambda parts: f"{parts[0]}-{parts[1]}")
    if found := _BINLOG.fullmatch(value):
        return Place(f"binary log {found[1]}", (int(found[2]), int(found[3])), _in_binlog(found[1], len(found[2])))
    return None if value.isdecimal() else _token(value)


def _in_binlog(name: str, width: int) -> Callable[[tuple[int, ...]], str]:
    return lambda parts: f"{name}.{parts[0]:0{width}}:{parts[1]}"


def _token(value: str) -> Place | None:
    if not _TOKEN.fullmatch(value):
        return None
    chunks = [value[at : at + _CHUNK] for at in range(0, len(value), _CHUNK)]
    return Place("resume tokens", tuple(int(chunk.ljust(_CHUNK, "0"), 16) for chunk in chunks), _shown)


def _shown(parts: tuple[int, ...]) -> str:
    return f"{''.join(f'{part:016X}' for part in parts)[:_SHOWN]}..."
