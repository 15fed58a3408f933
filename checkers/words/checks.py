"""The names of the checks that others than their own modules name. A check's module takes long to load."""

from typing import Final

TRANSACTIONS: Final = "serializability"
STREAMS: Final = "streams"
WATERMARKS: Final = "watermark-graph"
LINEAGE: Final = "log-lineage"
REGISTERS: Final = "linearizability"
