"""A file log: transaction messages in a file, each with its offset, and an index of them.

Theory of operation. A record is a head, with its offset and length, and then its body.
1. Offsets are reserved and written in one step, so each record begins where the one before ends.
2. A crash may leave a head without its body. A restart cuts the file after the last whole record, so that nothing is
   written behind a torn one.
3. A piece counts once it is durable. Readers get pieces from the durable part alone.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from clusters.drizzle import planted
from clusters.drizzle.messages import Piece
from clusters.drizzle.site import Site
from harness.core.machine import Message


class Head(Struct, frozen=True, tag=True):
    """On disk: the beginning of a record."""

    offset: int
    length: int


class Body(Struct, frozen=True, tag=True):
    """On disk: the rest of it."""

    piece: Piece


HEAD_SIZE = 1


class FileLog:
    """The file log of one stream. `listener` is called with each piece that becomes durable."""

    def __init__(self, site: Site, name: str, records: Sequence[Message]) -> None:
        self._site, self.name = site, name
        self.records = list(records)
        if planted.APPEND_AFTER_TORN not in site.bugs:
            self._cut_torn()
        self._count = len(self.records)  # Records that are durable.
        self._next_offset = sum(each.length for each in self.records if isinstance(each, Head))
        self.pieces = [*whole(self.records)]
        self.listener: Callable[[], None] = lambda: None

    def _cut_torn(self) -> None:
        """Cut what follows the last whole record (2)."""
        if self.records and isinstance(self.records[-1], Head):
            self._site.context.sometimes("a restart cut a torn record")
            self.records.pop()
            self._site.context.truncate(self.name, len(self.records))

    def write(self, piece: Piece, then: Callable[[], None] | None = None) -> None:
        """Append a piece; `then` is called when it is durable."""
        head = Head(self._next_offset, piece.size + HEAD_SIZE)
        self._append(head)
        self._site.context.point("record-begun")
        self._append(Body(piece))
        if planted.OFFSET_RACE not in self._site.bugs:
            self._next_offset += head.length
        self._site.sync(partial(self._written, len(self.records), head.length, then))

    def _append(self, record: Message) -> None:
        self.records.append(record)
        self._site.context.append(self.name, record)

    def _written(self, count: int, length: int, then: Callable[[], None] | None) -> None:
        if planted.OFFSET_RACE in self._site.bugs:
            self._next_offset += length
        self.pieces.extend(whole(self.records[self._count : count]))
        self._count = count
        if then is not None:
            then()
        self.listener()


def whole(records: Sequence[Message]) -> Iterator[Piece]:
    """The pieces of the file, as a reader finds them: up to the first record that is not whole."""
    for head, body in zip(records[::2], records[1::2], strict=False):
        if not (isinstance(head, Head) and isinstance(body, Body)):
            return
        yield body.piece
