"""Deliberate bugs, by name: in our subscriber and our settings; PostgreSQL's own bugs are left to PostgreSQL."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

CONFIRM_BEFORE_STORE: Final = "confirm-before-store"
FSYNC_OFF: Final = "fsync-off"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        CONFIRM_BEFORE_STORE: "the subscriber confirms what it has received before it keeps it: a crash loses it",
        FSYNC_OFF: "the servers do not sync (fsync=off), so a power failure loses commits, or all data",
    }
)
