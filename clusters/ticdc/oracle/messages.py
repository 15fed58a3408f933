"""Messages with the timestamp oracle, and its record on disk."""

from msgspec import Struct


class Tso(Struct, frozen=True, tag=True):
    """A request for a timestamp."""

    number: int


class Timestamp(Struct, frozen=True, tag=True):
    """The answer: a timestamp above all that were given before."""

    number: int
    timestamp: int


class Bound(Struct, frozen=True, tag=True):
    """On disk: no timestamp of this millisecond or a later one was ever given."""

    physical_ms: int
