"""A node's disk: logs and values, whose unsynced writes a crash loses.

1. Writes take effect in order. A write waits in memory until a later sync completes.
2. Syncs complete in the order of their requests, each after a time drawn from the disk's own stream.
3. At a crash the waiting writes are lost, or torn (a drawn prefix of them reaches the disk), or kept.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Literal, assert_never

import msgspec

from harness.core.draw import Stream
from harness.core.machine import Message

CrashMode = Literal["lost", "torn", "kept"]
_SYNC_NS_MIN: Final = 50_000
_SYNC_NS_MEAN: Final = 500_000  # The mean in addition to the minimum: about that of a fast SSD.


class _Append(msgspec.Struct, frozen=True):
    log: str
    record: Message


class _Truncate(msgspec.Struct, frozen=True):
    log: str
    index: int


class _Put(msgspec.Struct, frozen=True):
    key: str
    value: Message


class Disk:
    """One node's disk. It outlives the node's crashes, and `recover` reads it (`Durable`)."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._sync_ns = stream.exponentials(_SYNC_NS_MIN, _SYNC_NS_MEAN)
        self._logs: defaultdict[str, list[Message]] = defaultdict(list)
        self._values: dict[str, Message] = {}
        self._waiting: deque[_Append | _Truncate | _Put] = deque()
        self._durable_count = 0  # Writes since the start of the run that reached the disk.
        self._synced_at_ns = 0  # The time at which the last requested sync completes.

    def log(self, name: str) -> Sequence[Message]:
        """The durable records of a log, in order."""
        return tuple(self._logs.get(name, ()))

    def value(self, key: str) -> Message | None:
        """The durable value under that key, or None."""
        return self._values.get(key)

    def append(self, log: str, record: Message) -> None:
        """Add a record to the end of a log, in memory."""
        self._waiting.append(_Append(log, record))

    def truncate(self, log: str, index: int) -> None:
        """Keep the first `index` records of a log, in memory."""
        self._waiting.append(_Truncate(log, index))

    def put(self, key: str, value: Message) -> None:
        """Set a value, in memory."""
        self._waiting.append(_Put(key, value))

    @property
    def written(self) -> int:
        """The number of writes since the start of the run, without those lost in crashes."""
        return self._durable_count + len(self._waiting)

    def begin_sync(self, now_ns: int) -> tuple[int, int]:
        """When a sync requested now completes, in ns, and the number of writes before it, for `complete_sync`."""
        done_ns = now_ns + self._sync_ns()
        self._synced_at_ns = max(self._synced_at_ns, done_ns)
        return self._synced_at_ns, self.written

    def complete_sync(self, upto: int) -> None:
        """Make the writes before number `upto` durable."""
        while self._durable_count < upto:
            self._write(self._waiting.popleft())

    def crash(self, mode: CrashMode) -> int:
        """Lose waiting writes as `mode` says; returns how many.

        The node must not complete a sync that was in progress.
        """
        match mode:
            case "lost":
                survivors = 0
            case "torn":
                survivors = self._stream.below(len(self._waiting) + 1)
            case "kept":
                survivors = len(self._waiting)
            case _:
                assert_never(mode)
        self.complete_sync(self._durable_count + survivors)
        lost = len(self._waiting)
        self._waiting.clear()
        self._synced_at_ns = 0
        return lost

    def digest(self) -> str:
        """A hash of the durable content, 16 bytes in hex."""
        content = (sorted(self._logs.items()), sorted(self._values.items()))
        return blake2b(msgspec.msgpack.encode(content, order="deterministic"), digest_size=16).hexdigest()

    def _write(self, write: _Append | _Truncate | _Put) -> None:
        self._durable_count += 1
        if isinstance(write, _Append):
            self._logs[write.log].append(write.record)
        elif isinstance(write, _Put):
            self._values[write.key] = write.value
        else:
            del self._logs[write.log][write.index :]
