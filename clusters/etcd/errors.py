"""The meaning of a member's error for a request that writes: the declared list of definite errors.

1. A request that reads only changes nothing, so every error of it is definite. The same holds until the request that
   writes has been handed to the connection: an operation sends one such request, and sends it once.
2. From then on only an answer counts. An error of this list means that the request was refused before it was proposed
   to the others, or that every member refuses it alike when it is applied. With anything else (UNAVAILABLE, a time-out
   of etcd's own, another leader, no answer) the request may be in the log, so the outcome is unknown.
Source: api/v3rpc/rpctypes/error.go of etcd, with all its errors; read on 2026-11-27.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# gRPC's code, and the beginning of the details: an empty one is any.
DEFINITE: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("INVALID_ARGUMENT", "etcdserver: "): "the request is malformed: it is refused before it is proposed",
        ("OUT_OF_RANGE", "etcdserver: mvcc: "): "a revision that was compacted, or is still to come",
        ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded"): "every member refuses to grow",
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests"): "it is refused before it is proposed",
        ("PERMISSION_DENIED", "etcdserver: "): "refused before it is proposed",
        ("NOT_FOUND", "etcdserver: requested lease not found"): "every member refuses a key of a lease that is gone",
        ("UNIMPLEMENTED", ""): "the member does not know the method",
    }
)


def is_definite(code: str, details: str) -> bool:
    """True if this answer to a request that writes means that it changed nothing, and never will."""
    return any(code == known and details.startswith(words) for known, words in DEFINITE)
