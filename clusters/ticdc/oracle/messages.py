"""Messages with the timestamp oracle, those of a rolling upgrade, and their records on disk."""

from msgspec import Struct


class Tso(Struct, frozen=True, tag=True):
    """A request for a timestamp."""

    number: int


class Timestamp(Struct, frozen=True, tag=True):
    """The answer: a timestamp above all that the oracle gave before. `is_new`: all stores run the new version."""

    number: int
    timestamp: int
    is_new: bool


class Bound(Struct, frozen=True, tag=True):
    """On disk: the oracle has given no timestamp of this millisecond, or of a later one."""

    physical_ms: int


class Upgrade(Struct, frozen=True, tag=True):
    """From the oracle: the receiver is to run the new version."""


class Upgraded(Struct, frozen=True, tag=True):
    """The answer: the sender runs the new version."""


class Version(Struct, frozen=True, tag=True):
    """On a node's disk: it runs the new version."""


class AllNew(Struct, frozen=True, tag=True):
    """On the oracle's disk: all stores run the new version."""
