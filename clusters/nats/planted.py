"""Deliberate bugs, by name: what a user of NATS may do wrong; the server's own bugs are left to it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ACK_FIRST: Final = "ack-first"
BLIND_COUNTER: Final = "blind-counter"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        ACK_FIRST: "the subscriber acknowledges what it has received before it keeps it, so that a crash loses it",
        BLIND_COUNTER: "a read and the append that builds on it go without the expected sequence: updates are lost",
    }
)
