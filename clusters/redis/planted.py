"""Deliberate bugs, by name: what a user of Redis may do wrong; the server's own bugs are left to it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EARLY_ACK: Final = "early-ack"
NO_WATCH: Final = "no-watch"
NO_FILE: Final = "no-file"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        EARLY_ACK: "the subscriber acknowledges what it has received before it keeps it, so that a crash loses it",
        NO_WATCH: "a compare-and-set reads and writes without WATCH: updates in between are lost",
        NO_FILE: "servers keep no append-only file, so that the restart of the master loses everything",
    }
)
