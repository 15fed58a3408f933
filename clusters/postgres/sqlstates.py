"""The meaning of a server's error for a transaction: the declared list of definite errors.

1. Until COMMIT has been sent, every error is definite: the server commits an open transaction only on request, and
   rolls it back when its connection ends. The same holds for time-outs and broken connections: an unsent COMMIT cannot
   arrive, as its connection is closed before the outcome is reported.
2. From then on only an answer counts. An error with severity ERROR and a code of this list means that the transaction
   was rolled back; with anything else (another code, FATAL, PANIC, a warning, no answer) the outcome is unknown.
Source: documentation of PostgreSQL 15, appendix A (error codes), chapters 55.2 (message flow) and 13.2 (isolation).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DEFINITE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "40001": "serialization_failure: it would not have been as if alone",
        "40P01": "deadlock_detected: it was chosen to give way",
        "40002": "transaction_integrity_constraint_violation",
        "23502": "not_null_violation",
        "23503": "foreign_key_violation, found at the end if deferred",
        "23505": "unique_violation, found at the end if deferred",
        "23514": "check_violation",
        "23P01": "exclusion_violation",
        "25006": "read_only_sql_transaction: a standby, which changes nothing",
        "25P02": "in_failed_sql_transaction: undone before",
        "53100": "disk_full, as an ERROR: a full disk under the log itself is a PANIC",
        "53200": "out_of_memory",
        "53300": "too_many_connections: there was no session yet",
        "55P03": "lock_not_available",
        "57014": "query_canceled: at a statement; at COMMIT it is a warning instead",
        "57P03": "cannot_connect_now: starting, stopping or recovering",
    }
)
ERROR: Final = "ERROR"


def is_definite(severity: str, sqlstate: str) -> bool:
    """True if this answer to COMMIT means that nothing was committed, and never will be."""
    return severity == ERROR and sqlstate in DEFINITE
