"""A node's durable state: one append-only file, with a record for every write of the machine.

Theory of operation.
1. A record is a head of twelve bytes (length of the payload, checksum of the payload, checksum of these eight bytes;
   CRC-32, big-endian) and the payload: msgpack of an append, a truncation or a put. It is written, by one call, when
   the effect is carried out; recovery carries out all records in order.
2. A write interrupted by a kill leaves a prefix of its record at the end of the file: recovery cuts it off. Any other
   failed check is damage, and is refused: durable writes would be missing.
3. The sidecar holds the number of bytes that have been synced. It is written between the sync and `Synced`, and the
   kernel outlives the process: so it never exceeds the synced bytes, nor falls short of the promised ones.
4. A kill of the process alone loses no written data. The nemesis can make it lose unsynced data by a file
   `crash-mode`, written while the node is down: "lost" (all of it) or "torn" (a drawn part).
5. Recovery syncs the data before the machine gets it: a later crash cannot lose it.
"""

import os
import struct
from collections.abc import Mapping, Sequence
from errno import ENOSPC
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from harness.core.draw import Stream
from harness.core.errors import SeamarkError
from harness.core.machine import Message
from harness.runtimes.host.frames import DATA_MAX, BadFrame, Codec

STATE_FILE: Final = "state.log"
SIDECAR_FILE: Final = "state.synced"
CRASH_MODE_FILE: Final = "crash-mode"
MAGIC: Final = b"seamark node 1\n"
_CHECKED: Final = struct.Struct(">II")
_HEAD_SIZE: Final = _CHECKED.size + 4
_SIDECAR: Final = struct.Struct(">QQ")  # The node's life, and the number of synced bytes.
_ENCODER: Final = msgspec.msgpack.Encoder()


class StorageDamaged(SeamarkError):
    """The file differs from what was written to it; the message names the file, the record and its byte."""


class _Append(msgspec.Struct, frozen=True, array_like=True, tag="a"):
    log: str
    record: msgspec.Raw


class _Truncate(msgspec.Struct, frozen=True, array_like=True, tag="t"):
    log: str
    index: int


class _Put(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    key: str
    value: msgspec.Raw


_Write = _Append | _Truncate | _Put
_DECODER: Final[msgspec.msgpack.Decoder[_Write]] = msgspec.msgpack.Decoder(_Write)


class Recovered:
    """The content of the disk after a start: `Durable`."""

    def __init__(self, logs: Mapping[str, Sequence[Message]], values: Mapping[str, Message]) -> None:
        self._logs, self._values = logs, values

    def log(self, name: str) -> Sequence[Message]:
        """The records of a log, in order."""
        return tuple(self._logs.get(name, ()))

    def value(self, key: str) -> Message | None:
        """The value last put under that key, or None."""
        return self._values.get(key)


class _Scanned(NamedTuple):
    """The whole records of a file: record i ends before byte `ends[i]`, and `payloads[i]` is its payload."""

    ends: Sequence[int]
    payloads: Sequence[bytes]

    @property
    def end(self) -> int:
        return self.ends[-1] if self.ends else len(MAGIC)


class Storage:
    """The files of one life of a node. It counts the lives; writes raise OSError when the disk is full or broken."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._path = folder / STATE_FILE
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._sidecar = os.open(folder / SIDECAR_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        previous_life, self._synced = self._read_sidecar()
        self.life = previous_life + 1
        self._write_sidecar()
        os.fsync(self._sidecar)
        self._size = self._synced  # None until `recover`.

    def recover(self, codec: Codec, stream: Stream) -> tuple[Recovered, int]:
        """The content of the file, and the number of records removed to simulate a crash. Call it once, first.

        Raises StorageDamaged if the file differs from what was written.
        """
        lost = self._crash(stream)
        scanned = self._scan()
        logs: dict[str, list[Message]] = {}
        values: dict[str, Message] = {}
        for number, payload in enumerate(scanned.payloads):
            try:
                match _DECODER.decode(payload):
                    case _Append(log=log, record=record):
                        logs.setdefault(log, []).append(codec.decode_record(record))
                    case _Truncate(log=log, index=index):
                        del logs.setdefault(log, [])[index:]
                    case _Put(key=key, value=value):
                        values[key] = codec.decode_record(value)
            except (msgspec.MsgspecError, BadFrame) as error:
                raise self._damaged(number, scanned, f"it does not decode: {error}") from error
        self._cut(scanned.end)
        self.sync()
        return Recovered(logs, values), lost

    def append(self, log: str, record: Message) -> None:
        """Add a record to the end of a log."""
        self._write(_Append(log, msgspec.Raw(_ENCODER.encode(record))))

    def truncate(self, log: str, index: int) -> None:
        """Keep the first `index` records of a log."""
        self._write(_Truncate(log, index))

    def put(self, key: str, value: Message) -> None:
        """Set a value."""
        self._write(_Put(key, msgspec.Raw(_ENCODER.encode(value))))

    def sync(self) -> None:
        """Make everything written before this call durable. Blocks; may run in another thread than the writes."""
        upto = self._size
        os.fsync(self._file)
        self._synced = upto
        self._write_sidecar()

    def _write(self, write: _Write) -> None:
        payload = _ENCODER.encode(write)
        if len(payload) > DATA_MAX:
            raise ValueError(f"a record of {len(payload):,} bytes passes the limit of {DATA_MAX:,} bytes")
        checked = _CHECKED.pack(len(payload), crc32(payload))
        record = b"".join((checked, crc32(checked).to_bytes(4, "big"), payload))
        self._extend(record)
        self._size += len(record)

    def _extend(self, content: bytes) -> None:
        written = os.write(self._file, content)
        if written != len(content):
            raise OSError(ENOSPC, f"took {written} of {len(content)} bytes", str(self._path))

    def _crash(self, stream: Stream) -> int:
        """Remove the records that the nemesis orders to be lost (4); returns their number."""
        order = self._folder / CRASH_MODE_FILE
        if not order.exists():
            return 0
        mode = order.read_text().strip()
        if mode not in ("lost", "torn", "kept"):
            raise StorageDamaged(f"{order} says {mode[:20]!r}, but must say lost, torn or kept")
        scanned = self._scan()
        if self._synced not in (0, len(MAGIC), *scanned.ends):
            raise StorageDamaged(f"{self._path}: synced up to byte {self._synced}, where no record ends")
        unsynced = [place for place, end in enumerate(scanned.ends) if end > self._synced]
        survivors = len(unsynced)
        if mode != "kept":
            survivors = stream.below(len(unsynced) + 1) if mode == "torn" else 0
        cut = scanned.ends[unsynced[survivors - 1]] if survivors else min(scanned.end, max(self._synced, len(MAGIC)))
        if mode == "torn" and survivors < len(unsynced):
            cut += stream.below(scanned.ends[unsynced[survivors]] - cut)  # A piece of the next may survive as well.
        self._cut(cut)
        order.unlink()
        return len(unsynced) - survivors

    def _cut(self, size: int) -> None:
        """Cut the file at that byte, and write its first line if it has none."""
        if os.fstat(self._file).st_size != size:
            os.ftruncate(self._file, size)
            if size <= len(MAGIC):
                os.ftruncate(self._file, 0)
                self._extend(MAGIC)
            os.fsync(self._file)
        self._size = size

    def _scan(self) -> _Scanned:
        """All whole records.

        Raises StorageDamaged if they are followed by more than a torn tail (2), or synced ones are missing.
        """
        content = os.pread(self._file, os.fstat(self._file).st_size, 0)
        if not content.startswith(MAGIC[: len(content)]):
            raise StorageDamaged(f"{self._path}: not the state of a node of this version (its first line differs)")
        ends: list[int] = []
        payloads: list[bytes] = []
        scanned = _Scanned(ends, payloads)
        while len(head := content[scanned.end : scanned.end + _HEAD_SIZE]) == _HEAD_SIZE:
            checked, start = head[: _CHECKED.size], scanned.end + _HEAD_SIZE
            if crc32(checked) != int.from_bytes(head[_CHECKED.size :], "big"):
                raise self._damaged(len(ends), scanned, "its head does not check")
            length, checksum = _CHECKED.unpack(checked)
            payload = content[start : start + length]
            if len(payload) == length and crc32(payload) != checksum:
                raise self._damaged(len(ends), scanned, "its payload does not check")
            if len(payload) < length:
                break
            ends.append(start + length)
            payloads.append(payload)
        if scanned.end < self._synced:
            raise self._damaged(len(ends), scanned, f"it is cut short, and {self._synced} bytes were synced")
        return scanned

    def _damaged(self, number: int, scanned: _Scanned, why: str) -> StorageDamaged:
        start = scanned.ends[number - 1] if number else len(MAGIC)
        return StorageDamaged(f"{self._path}: record {number} at byte {start} is damaged: {why}")

    def _read_sidecar(self) -> tuple[int, int]:
        """The previous life, and the number of synced bytes: zeros before the first life."""
        content = os.pread(self._sidecar, _SIDECAR.size + 4, 0)
        if not content:
            return 0, 0
        values, checksum = content[: _SIDECAR.size], content[_SIDECAR.size :]
        if crc32(values).to_bytes(4, "big") != checksum:
            raise StorageDamaged(f"{self._folder / SIDECAR_FILE}: does not check")
        life, synced = _SIDECAR.unpack(values)
        return int(life), int(synced)

    def _write_sidecar(self) -> None:
        """Write the sidecar in place by one call.

        A kill leaves the old or the new content; a full disk does not matter.
        """
        values = _SIDECAR.pack(self.life, self._synced)
        os.pwrite(self._sidecar, values + crc32(values).to_bytes(4, "big"), 0)
