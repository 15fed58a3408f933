"""The journal of a run: every record in order, readable after any crash.

Layout. A magic line; then records, each a head of eight bytes (length of the payload, and its CRC-32, both big-endian
unsigned 32-bit) and the payload, one record of `harness.core.record` as msgpack. Each append is one write to the file,
so records survive a crash of the process; after `sync` they survive a crash of the machine. The reader skips a torn
tail: a last record that is cut short or damaged. Damage before it is an error, even where it makes a record claim the
rest of the file.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from harness.core.errors import HistoryError
from harness.core.record import Evidence, Footer, Header, Record
from harness.record.documents import opened

MAGIC: Final = b"seamark journal 1\n"
STOPPED: Final = "stopped at the first violation: "  # The beginning of the footer's reason for a stopped run.
RECORD_MAX: Final = 16 << 20  # The most bytes of one record's payload.
STEP: Final = 1 << 20  # About as many bytes of a growing journal are read at a time.
OBJECTS_MAX: Final = 4_000_000  # The most objects in a record: an empty list is one byte there, 70 in memory.
_HEAD: Final = struct.Struct(">II")
_ENCODER: Final = msgspec.msgpack.Encoder()
_LIST_HEADS: Final = ((15, 1), (0xFFFF, 3), (0xFFFFFFFF, 5))  # Bytes before a list of so many elements in msgpack.
# The order of an object's names is not evidence: Parquet files keep them sorted.
_CANONICAL: Final = msgspec.msgpack.Encoder(order="deterministic")
_DECODER: Final[msgspec.msgpack.Decoder[Record]] = msgspec.msgpack.Decoder(Record)


class JournalWriter:
    """An appender to a new journal. Raises FileExistsError if the file exists."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        os.write(self._file, MAGIC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def append(self, record: Record) -> None:
        """Append one record: it is in the file on return. Raises HistoryError if it is larger than RECORD_MAX."""
        payload = _ENCODER.encode(record)
        length = len(payload)
        if length > RECORD_MAX:
            raise HistoryError(f"a record of {length:,} bytes passes the limit of {RECORD_MAX:,} bytes for one record")
        if length > OBJECTS_MAX and _has_too_many_objects(payload):
            raise HistoryError(f"a record holds more than {OBJECTS_MAX:,} values, the limit for one record")
        written = os.write(self._file, _HEAD.pack(length, zlib.crc32(payload)) + payload)
        if written != _HEAD.size + length:
            raise OSError(f"the journal took {written} of {_HEAD.size + length} bytes: is the disk full?")

    def sync(self) -> None:
        """Make all appended records durable."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file. Nothing is lost without this call."""
        os.close(self._file)


def canonical(record: Evidence) -> bytes:
    """The bytes of a record that the history's hash covers. Raises ValueError for values that no history can hold."""
    try:
        return _CANONICAL.encode(record)
    except TypeError as error:  # An object with names that are not text: msgpack can hold it, JSON cannot.
        raise ValueError(f"a value is not JSON: {error}") from None


def canonical_rows(records: Sequence[tuple[object, ...]]) -> memoryview:
    """The same of records that are given as their fields, each behind its tag: all of them, one after another."""
    text = _CANONICAL.encode(records)
    return memoryview(text)[next(size for most, size in _LIST_HEADS if len(records) <= most) :]


class HistoryHash:
    """The hash of a history: SHA-256 over its evidence in order, as canonical msgpack, without header and footer."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, record: Record) -> None:
        """Add the next record. Raises ValueError for values that no history can hold."""
        if not isinstance(record, Header | Footer):
            self.add_canonical(canonical(record))

    def add_canonical(self, records: bytes | memoryview) -> None:
        """Add the next records, concatenated as `canonical` wrote them."""
        self._hash.update(records)

    def hexdigest(self) -> str:
        """The hash of all records added so far."""
        return self._hash.hexdigest()


def history_sha256(records: Iterable[Record]) -> str:
    """The hash of a history."""
    history_hash = HistoryHash()
    for record in records:
        history_hash.add(record)
    return history_hash.hexdigest()


def read_journal(path: Path, record_max: int = RECORD_MAX) -> Iterator[Record]:
    """The records of a journal in order, header and footer included; a torn tail is left out.

    Raises HistoryError, naming the file, the record (from 0) and its byte offset, if the journal is damaged, or if a
    record has more than `record_max` bytes.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if len(magic) < len(MAGIC) and MAGIC.startswith(magic):
                return  # The writer died before the first line was complete.
            if magic != MAGIC:
                raise HistoryError(f"{path}: not a journal of this version of Seamark (its first line differs)")
            size = os.fstat(file.fileno()).st_size
            number, offset = 0, len(MAGIC)
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, checksum = _HEAD.unpack(head)
                end = offset + _HEAD.size + length
                if end > size:
                    if length > RECORD_MAX:
                        why = f"it claims {length:,} bytes, and the limit is {RECORD_MAX:,}"
                        raise _damaged(path, number, offset, why)
                    if _holds_a_record(file.read(size - offset - _HEAD.size)):  # The file may grow while we read.
                        raise _damaged(path, number, offset, "it claims to reach beyond the end, and records follow it")
                    return
                payload = file.read(length)
                if length > RECORD_MAX or zlib.crc32(payload) != checksum:
                    if end == size and length <= RECORD_MAX:
                        return
                    raise _damaged(path, number, offset, "its checksum does not match")
                if length > record_max:
                    why = f"has {length:,} bytes, and {record_max:,} are read here"
                    raise HistoryError(f"{path}: record {number} at byte {offset} {why}; use seamark export")
                yield _decoded(path, number, offset, payload)
                number, offset = number + 1, end
    except OSError as error:
        raise HistoryError(f"{path}: cannot be read ({error.strerror})") from None


class JournalTail:
    """A reader of the records appended to a journal since the last read.

    For display, not for judging: damage is not reported. Records of more than `record_max` bytes are not read.
    """

    def __init__(self, path: Path, record_max: int = RECORD_MAX) -> None:
        self._path, self._record_max = path, record_max
        self._offset = len(MAGIC)

    def read(self) -> Iterator[Record]:
        """The new whole records; none while there is no journal. Raises HistoryError if it is no plain file."""
        records = list[Record]()
        while self.step(records.append):
            yield from records
            records.clear()

    def step(self, take: Callable[[Record], object]) -> bool:
        """Hand the next new records, about STEP bytes together, to `take`; False if there are no more."""
        if not os.path.lexists(self._path):
            return False
        begin = self._offset
        with opened(self._path) as file:
            size = os.fstat(file.fileno()).st_size
            while self._offset < begin + STEP and (head := self._head(file, size)) is not None:
                length, checksum = head
                if length <= self._record_max:
                    payload = file.read(length)
                    if zlib.crc32(payload) != checksum:
                        break
                    take(_decoded(self._path, 0, self._offset, payload))
                self._offset += _HEAD.size + length
        return self._offset > begin

    def _head(self, file: BufferedReader, size: int) -> tuple[int, int] | None:
        """The length and the checksum of the next record; None if it is not whole in a file of `size` bytes."""
        file.seek(self._offset)
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        length, checksum = _HEAD.unpack(head)
        is_whole = length <= RECORD_MAX and self._offset + _HEAD.size + length <= size
        return (length, checksum) if is_whole else None


def end_after(path: Path, count: int, footer: Footer) -> None:
    """Cut a journal that has no writer any more after its first `count` pieces of evidence, and append that footer.

    Raises HistoryError, and changes nothing, if fewer records are whole.
    """
    with path.open("r+b") as file:
        file.seek(len(MAGIC))
        for number in range(count + 1):
            head = file.read(_HEAD.size)
            length, checksum = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, -1)
            if zlib.crc32(file.read(length)) != checksum:
                raise HistoryError(f"{path}: {count} records were expected, and only {number - 1} are whole")
        payload = _ENCODER.encode(footer)
        file.truncate(file.tell())
        file.write(_HEAD.pack(len(payload), zlib.crc32(payload)) + payload)
        file.flush()
        os.fsync(file.fileno())


def _holds_a_record(rest: bytes) -> bool:
    """True if `rest` contains a whole record: then what precedes it is no torn tail, but a record with a wrong length.

    Looks at the first 10,000 places where a record of up to 64 KiB may begin: a longer search would add nothing.
    """
    start = -1
    for _ in range(10_000):
        start = rest.find(b"\0\0", start + 1)
        if not 0 <= start <= len(rest) - _HEAD.size:
            return False
        length, checksum = _HEAD.unpack_from(rest, start)
        begin = start + _HEAD.size
        if 0 < length <= len(rest) - begin and zlib.crc32(rest[begin : begin + length]) == checksum:
            return True
    return False


def _decoded(path: Path, number: int, offset: int, payload: bytes) -> Record:
    if _has_too_many_objects(payload):
        raise _damaged(path, number, offset, f"it holds more than {OBJECTS_MAX:,} values, the limit")
    try:
        return _DECODER.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _damaged(path, number, offset, str(error)) from None


# The meaning of msgpack's first bytes. Numbers, nil and booleans cost little memory; all others are objects.
_NO_OBJECTS: Final = bytes([*range(0x80), 0xC0, 0xC2, 0xC3, *range(0xCA, 0xD4), *range(0xE0, 0x100)])
_IS_OBJECT: Final = [byte not in _NO_OBJECTS for byte in range(256)]
# By first byte the number of bytes that follow: the size of a number, a text, a count.
_FOLLOWING: Final = (
    dict.fromkeys(range(256), 0)
    | {0xA0 + size: size for size in range(32)}
    | {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
    | {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
)
# For texts, bytes and extensions: the width of the length field, and the number of further bytes.
_SIZED: Final = (
    {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0)}
    | {0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
    | {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
)


def _has_too_many_objects(payload: bytes) -> bool:
    """True if a record has more than OBJECTS_MAX objects. Each takes at least a byte, so most records need no look."""
    if len(payload) <= OBJECTS_MAX or len(payload.translate(None, _NO_OBJECTS)) <= OBJECTS_MAX:
        return False
    count = place = 0
    while place < len(payload) and count <= OBJECTS_MAX:
        first = payload[place]
        count += _IS_OBJECT[first]
        place += 1 + _FOLLOWING[first]
        if first in _SIZED:
            width, more = _SIZED[first]
            place += width + more + int.from_bytes(payload[place : place + width])
    return count > OBJECTS_MAX


def _damaged(path: Path, number: int, offset: int, why: str) -> HistoryError:
    remedy = "restore the file, or cut it there to judge what comes before"
    return HistoryError(f"{path}: record {number} at byte {offset} is damaged ({why}); {remedy}")


def is_stopped(footer: Footer | None) -> bool:
    """True if the run of that footer was stopped at its first violation."""
    return footer is not None and footer.reason.startswith(STOPPED)
