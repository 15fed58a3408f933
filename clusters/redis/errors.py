"""The meaning of a server's error for a transaction: the declared list of definite errors.

1. Until EXEC has been sent every error is definite: a server discards the queued commands of a connection that ends.
   The commands of a transaction and its EXEC are sent together, and once.
2. From then on only an answer counts. A server that refuses EXEC, or has refused a queued command (as a replica does,
   or without room), answers EXECABORT, and has executed none of them. Any other error, a time-out or a lost connection
   leaves the outcome unknown.
3. An error inside of EXEC's answer is that of one command: the others were executed.
Source: documentation of Redis, "Transactions", section "Errors inside a transaction"; read on 2026-11-28.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# By the library's name of the error.
DEFINITE: Final[Mapping[str, str]] = MappingProxyType(
    {"ExecAbortError": "the transaction was discarded, because EXEC or a queued command was refused"}
)


def is_definite(name: str) -> bool:
    """True if this answer to EXEC means that no command was executed, and none will be."""
    return name in DEFINITE
