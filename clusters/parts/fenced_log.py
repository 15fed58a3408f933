"""Ordered durable logs with one writer each: whoever opens a log fences those that had opened it before.

Theory of operation. The machine that holds a log appends each change to its disk, and answers once that is durable.
A log is opened under a claim, a number that rises where the owner changes; each opening gets a token of its own.
1. An opening under a lower claim than the log's is refused, and one under the same or a higher claim raises the token.
2. Records are appended only with the log's token, and only behind those that are there (`index`). So what an owner
   appends after another one has opened the log, or after it opened it anew itself, has no effect. Records that are
   there already, by the same request, are acknowledged again.
3. An opening shows every record that was ever acknowledged, as no record behind it comes from an older token.
Source: Apache BookKeeper's ledgers, for the idea of fencing.
"""

from collections.abc import Iterable

from msgspec import Struct


class Open(Struct, frozen=True, tag=True):
    """A request to become the log's writer."""

    log: str
    claim: int


class Opened(Struct, frozen=True, tag=True):
    """The answer to Open: the sender writes the log, of which these are the first records."""

    log: str
    claim: int
    token: int
    records: tuple[bytes, ...]


class Look(Struct, frozen=True, tag=True):
    """A request for the records from `first` on, by a reader that does not become the log's writer."""

    log: str
    first: int = 0


class Looked(Struct, frozen=True, tag=True):
    """The answer to Look: the records that are there, and the token of the log's writer."""

    log: str
    token: int
    records: tuple[bytes, ...]


class Add(Struct, frozen=True, tag=True):
    """A request to append records, of which the first is to be at `index`; without any, only the token is checked."""

    log: str
    token: int
    index: int
    records: tuple[bytes, ...]


class Added(Struct, frozen=True, tag=True):
    """The answer to Add: the log has that length, durably."""

    log: str
    token: int
    length: int


class Fenced(Struct, frozen=True, tag=True):
    """The answer to Open and Add of those who do not write the log, and to records with a hole before them.

    `token` is that of the request, and 0 for Open.
    """

    log: str
    token: int


class Claimed(Struct, frozen=True, tag=True):
    """On disk: the log was opened under that claim, with that token."""

    log: str
    claim: int
    token: int


class Stored(Struct, frozen=True, tag=True):
    """On disk: records at the end of the log."""

    log: str
    records: tuple[bytes, ...]


LogRequest = Open | Add | Look
LogReply = Opened | Added | Looked | Fenced
LogWrite = Claimed | Stored


class FencedLogs:
    """All logs. `is_fencing`: False leaves out rule 2's first half, for a planted bug of a design."""

    def __init__(self, writes: Iterable[LogWrite], *, is_fencing: bool = True) -> None:
        self._is_fencing = is_fencing
        self._claims: dict[str, int] = {}
        self._tokens: dict[str, int] = {}
        self._records: dict[str, list[bytes]] = {}
        for write in writes:
            self._apply(write)

    def serve(self, request: LogRequest) -> tuple[LogReply, LogWrite | None]:
        """The answer to a request, and the change to make durable before it is given."""
        match request:
            case Open(log, claim):
                if claim < self._claims.get(log, 0):
                    return Fenced(log, 0), None
                write = Claimed(log, claim, self._tokens.get(log, 0) + 1)
                self._apply(write)
                return Opened(log, claim, write.token, tuple(self._records.get(log, ()))), write
            case Look(log, first):
                return Looked(log, self._tokens.get(log, 0), tuple(self._records.get(log, ())[first:])), None
            case Add(log, token, index, records):
                held = self._records.get(log, [])
                is_writer = token == self._tokens.get(log, 0)
                if is_writer and records and held[index:] == [*records]:
                    return Added(log, token, len(held)), None
                if self._is_fencing and (not is_writer or index != len(held)):
                    return Fenced(log, token), None
                if not records:
                    return Added(log, token, index), None
                stored = Stored(log, records)
                self._apply(stored)
                return Added(log, token, index + len(records)), stored

    def _apply(self, write: LogWrite) -> None:
        if isinstance(write, Claimed):
            self._claims[write.log], self._tokens[write.log] = write.claim, write.token
        else:
            self._records.setdefault(write.log, []).extend(write.records)
