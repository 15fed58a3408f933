"""Messages with the timestamp oracle, and its record on disk."""

from msgspec import Struct


class Tso(Struct, frozen=True, tag=True):
    """A request for a timestamp."""

    number: int


class Timestamp(Struct, frozen=True, tag=True):
    """The answer: a timestamp above all that the oracle gave before."""

    number: int
    timestamp: int


class Bound(Struct, frozen=True, tag=True):
    """On disk: the oracle has given no timestamp of this millisecond, or of a later one."""

    physical_ms: int
