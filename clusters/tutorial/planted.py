"""Deliberate bugs, by name. Each is read in one place of this folder."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LOST_ACK: Final = "lost-ack"
TORN_WATERMARK: Final = "torn-watermark"
LATE_ROW: Final = "late-row"

BUGS: Mapping[str, str] = MappingProxyType(
    {
        LOST_ACK: "the primary answers before its backup has the transaction, which a promotion then loses",
        TORN_WATERMARK: "a full send buffer stops a transaction half way, and the watermark counts it as sent",
        LATE_ROW: "the watermark follows commits instead of the rows sent to this subscriber",
    }
)
