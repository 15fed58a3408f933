"""Deliberate bugs, by name: what a user of etcd may do wrong; etcd's own bugs are left to etcd."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STALE_READS: Final = "stale-reads"
SKIP_MISSED: Final = "skip-missed"
UNSAFE_NO_FSYNC: Final = "no-fsync"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        STALE_READS: "reads are answered by one member alone (serializable=true), which may be behind",
        SKIP_MISSED: "the subscriber resumes its watch at the current revision, and skips what it has missed",
        UNSAFE_NO_FSYNC: "members do not sync (--unsafe-no-fsync, from 3.5 on), so a power failure of all loses writes",
    }
)
