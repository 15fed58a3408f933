"""The meaning of the server's error for a message that is to be stored: the declared list of definite errors.

1. A request for stored messages, or for a consumer's state, changes nothing: every error of it is definite.
2. A message is sent once. From then on only an acknowledgement counts, or an error of this list, with which the stream
   refuses a message before it stores it. With any other error, a time-out or a lost connection the message may be
   stored, so the outcome is unknown.
3. "No responders" means that the message reached a server that knows no stream for its subject: it went nowhere.
Source: server/errors.json of nats-server; read on 2026-11-27.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

DEFINITE: Final[Mapping[int, str]] = MappingProxyType(
    {
        10054: "the message is larger than the stream allows",
        10060: "another stream was expected",
        10070: "another last message was expected",
        10071: "another last sequence was expected",
        10164: "another last sequence was expected",
    }
)
NO_RESPONDERS: Final = "no responders: no server has a stream for it"


def is_definite(code: int) -> bool:
    """True if this error of a message that was published means that it is not stored, and never will be."""
    return code in DEFINITE
