"""The committed rows of one node, and the log from which they are restored.

A row is an append-only list; each element has the epoch of its commit.
1. A restart invalidates later entries by a record at the log's end, not by cutting the log: a cut and the records that
   would have to follow it may reach the disk only in part, and then saved data is lost.
"""

from collections.abc import Iterator, Sequence

from clusters.ndb.parts import Site
from clusters.ndb.planted import REDO_TAIL_NOT_INVALIDATED
from clusters.ndb.shape import Key, gci_of, image
from clusters.ndb.transactions.messages import CopiedRow, Invalidated, Redo
from harness.core.machine import Message
from harness.core.record import Json

LOG = "redo"


class Row:
    """One row; both lists are equally long."""

    __slots__ = ("elements", "epochs")

    def __init__(self) -> None:
        self.elements: list[Json] = []
        self.epochs: list[int] = []

    def keep(self, gci: int) -> None:
        """Drop the elements of later global checkpoints."""
        kept = [place for place, epoch in enumerate(self.epochs) if gci_of(epoch) <= gci]
        if len(kept) < len(self.epochs):
            self.elements = [self.elements[place] for place in kept]
            self.epochs = [self.epochs[place] for place in kept]


class Rows:
    """All rows by their keys. A caller that changes a row must hold its lock."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._rows: dict[Key, Row] = {}

    def keys(self) -> tuple[Key, ...]:
        """The keys of all rows."""
        return tuple(self._rows)

    def read(self, key: Key) -> tuple[list[Json], int]:
        """A copy of the row's elements, and the epoch of the last commit to it; 0 if there is none."""
        row = self._rows.get(key)
        return (row.elements.copy(), row.epochs[-1]) if row else ([], 0)

    def image(self, key: Key, values: Sequence[Json] = ()) -> Json:
        """The row of an imaged key when these values are appended; None if there is none."""
        row = self._rows.get(key)
        elements = values or (row.elements if row else ())
        return image(elements[-1]) if elements else None

    def pairs(self, key: Key) -> tuple[tuple[Json, int], ...]:
        """The row's elements with their epochs."""
        row = self._rows.get(key)
        return tuple(zip(row.elements, row.epochs, strict=True)) if row else ()

    def install(self, epoch: int, transid: int, key: Key, values: Sequence[Json]) -> None:
        """Append the values that a transaction has committed."""
        self._extend(key, values, epoch)
        self._site.context.append(LOG, Redo(epoch, transid, key, tuple(values)))

    def replace(self, key: Key, pairs: tuple[tuple[Json, int], ...]) -> None:
        """Replace the row by another node's version."""
        self._set(key, pairs)
        self._site.context.append(LOG, CopiedRow(key, pairs))

    def restore(self, records: Sequence[Message], gci: int) -> None:
        """Restore rows from the log up to global checkpoint `gci`, and invalidate the rest (invariant 1)."""
        self._rows.clear()
        for record in records:
            match record:
                case Redo(epoch, _, key, elements):
                    self._extend(key, elements, epoch)
                case CopiedRow(key, pairs):
                    self._set(key, pairs)
                case Invalidated(last):
                    self._keep(last)
        self._keep(gci)
        if records and REDO_TAIL_NOT_INVALIDATED not in self._site.bugs:
            self._site.context.append(LOG, Invalidated(gci))

    def dump(self) -> Iterator[tuple[Key, list[Json], int]]:
        """Each row in order of the keys, numbers before text: key, elements, epoch of the last commit."""
        for key in sorted(self._rows, key=lambda key: (isinstance(key, str), key)):
            elements, epoch = self.read(key)
            yield key, elements, epoch

    def _extend(self, key: Key, values: Sequence[Json], epoch: int) -> None:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row()
        row.elements.extend(values)
        row.epochs.extend([epoch] * len(values))

    def _set(self, key: Key, pairs: tuple[tuple[Json, int], ...]) -> None:
        row = self._rows[key] = Row()
        row.elements = [value for value, _ in pairs]
        row.epochs = [epoch for _, epoch in pairs]

    def _keep(self, gci: int) -> None:
        for key, row in tuple(self._rows.items()):
            row.keep(gci)
            if not row.elements:
                del self._rows[key]
