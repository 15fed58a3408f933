"""A store of values under names, each changed by compare-and-set: the metadata of a cluster.

Theory of operation. The store is memory over a log of writes: the machine that holds it appends each `Write` to its
disk, and answers once that is durable. Every write, of any name, gets the next version, and that of an absent name is
`ABSENT`.
1. A version is given once, so a value that came back under its name is another one for a compare-and-set.
2. A request may come twice. A compare-and-set whose effect is there already, by this very change, succeeds again; a
   counter only skips a number.
3. A listing is one moment of the store.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

ABSENT = 0


class Get(Struct, frozen=True, tag=True):
    """A request for the value under a name."""

    name: str


class List(Struct, frozen=True, tag=True):
    """A request for all values whose names begin so."""

    prefix: str


class Cas(Struct, frozen=True, tag=True):
    """A request to write that value, or to remove it (None), if the name is at that version."""

    name: str
    expected: int
    value: bytes | None


class Next(Struct, frozen=True, tag=True):
    """A request to count up under a name: the answer holds a number that was never given there before."""

    name: str


class Held(Struct, frozen=True, tag=True):
    """The answer to Get, Cas and Next: what is there now. Not `is_done`: another version was there, and still is."""

    name: str
    version: int
    value: bytes | None
    is_done: bool = True


class Listing(Struct, frozen=True, tag=True):
    """The answer to List: what is there, in the order of names."""

    entries: tuple[Held, ...]


class Write(Struct, frozen=True, tag=True):
    """On disk: a change of one name, from one version to the next one."""

    name: str
    version: int
    value: bytes | None
    before: int


StoreRequest = Get | List | Cas | Next
StoreReply = Held | Listing


class _Entry(NamedTuple):
    version: int
    value: bytes | None
    before: int


class CasStore:
    """The values, with what was written to the disk."""

    def __init__(self, writes: Iterable[Write]) -> None:
        self._entries: dict[str, _Entry] = {}
        self._version = ABSENT
        for write in writes:
            self._apply(write)

    def serve(self, request: StoreRequest) -> tuple[StoreReply, Write | None]:
        """The answer to a request, and the change to make durable before it is given."""
        match request:
            case Get(name):
                return self._held(name), None
            case List(prefix):
                names = sorted(name for name, entry in self._entries.items() if entry.value is not None)
                return Listing(tuple(self._held(name) for name in names if name.startswith(prefix))), None
            case Next(name):
                count = int(self._entries[name].value or b"0") if name in self._entries else 0
                return self._written(name, str(count + 1).encode())
            case Cas(name, expected, value):
                held = self._held(name)
                if held.version == expected:
                    return self._written(name, value)
                entry = self._entries.get(name)
                is_again = entry is not None and (entry.before, entry.value) == (expected, value)
                is_gone = value is None and held.version == ABSENT
                return Held(name, held.version, held.value, is_again or is_gone), None

    def _held(self, name: str) -> Held:
        entry = self._entries.get(name)
        if entry is None or entry.value is None:
            return Held(name, ABSENT, None)
        return Held(name, entry.version, entry.value)

    def _written(self, name: str, value: bytes | None) -> tuple[StoreReply, Write]:
        write = Write(name, self._version + 1, value, self._held(name).version)
        self._apply(write)
        return self._held(name), write

    def _apply(self, write: Write) -> None:
        self._version = write.version
        self._entries[write.name] = _Entry(write.version, write.value, write.before)
