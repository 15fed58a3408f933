"""One region's log backup on one store: committed rows, written to storage in pieces, and a checkpoint.

Theory of operation. The leader keeps what commits in a buffer; at times it writes the buffer to storage.
1. The checkpoint that goes with a piece is fixed before the piece is written, and moves when the piece is durable.
2. It is the highest timestamp at or below which every *row* was applied: a row of which only the transaction's outcome
   is known would reach storage later than the checkpoint, and a restore in between would lack it
   (`Advancer.whole`, README.md, decision 2).
3. Whoever comes to lead begins with all versions above its own checkpoint. So what one store has uploaded is complete
   up to its checkpoint, whoever led in between, and a restore needs one store for each region.
4. A backup begins with the first question how far it reaches.
5. A region that is split or merged is uploaded anew: pieces belong to one version of it.
"""

from collections.abc import Sequence

from clusters.ticdc.rows.messages import DataIsNotReady, Elements, Upload, Values
from clusters.ticdc.rows.versions import Change, Versions
from clusters.ticdc.shape import Key
from clusters.ticdc.site import Site


class Uploads:
    """The pieces of one region's log backup that this store has uploaded, and those that it gathers."""

    def __init__(self, site: Site, region: int, uploaded: Sequence[Upload]) -> None:
        self.is_on = bool(uploaded)  # Invariant 4.
        self.checkpoint = 0
        self._site = site
        self._name = f"backup-{region}"
        self._uploaded = uploaded
        self._stored: dict[Key, dict[int, Elements]] = {}
        self._buffer: list[tuple[Key, int, Elements]] | None = None  # None: this store does not lead, or has not begun.
        self._whole = 0
        self.begin_version(0)

    def begin_version(self, version: int) -> None:
        """Begin anew, with the pieces of that version of the region alone (invariant 5)."""
        self._version = version
        self._buffer, self._stored, self.checkpoint = None, {}, 0
        for piece in self._uploaded:
            self._keep(piece)

    def begin(self, rows: Versions) -> None:
        """Begin to gather rows in a new term, if the backup is on (invariant 3)."""
        if self.is_on and self._buffer is None:
            self._whole = 0
            self._buffer = [
                (key, write.commit_ts, write.elements)
                for key, write in rows.writes_after(self.checkpoint)
                if write.kind == "put"
            ]

    def end(self) -> None:
        """Stop gathering rows: the term has ended."""
        self._buffer = None

    def observe(self, changes: list[Change]) -> None:
        """Add the rows that these changes commit to the buffer."""
        if self._buffer is not None:
            self._buffer += [
                (change.key, change.commit_ts, change.lock.elements)
                for change in changes
                if change.kind == "commit" and change.lock is not None and change.lock.kind == "put"
            ]

    def advanced(self, whole: int) -> None:
        """Note that every row at or below that timestamp has been applied here."""
        if self._buffer is not None:
            self._whole = whole

    def flush(self) -> None:
        """Write the buffer to storage, and then move the checkpoint (invariant 1)."""
        if self._buffer is None or self._whole <= self.checkpoint:
            return
        piece = Upload(tuple(self._buffer), self._whole, self._version)
        self._buffer = []
        self._site.context.append(self._name, piece)
        self._site.sync(lambda: self._keep(piece))

    def read(self, keys: tuple[Key, ...], read_ts: int) -> DataIsNotReady | Values:
        """The values that a restore to that timestamp brings back."""
        if read_ts > self.checkpoint:
            return DataIsNotReady(self.checkpoint)
        return Values(tuple(self._value(key, read_ts) for key in keys))

    def _keep(self, piece: Upload) -> None:
        if piece.version != self._version:
            return
        for key, commit_ts, elements in piece.rows:
            self._stored.setdefault(key, {})[commit_ts] = elements
        self.checkpoint = max(self.checkpoint, piece.checkpoint)

    def _value(self, key: Key, read_ts: int) -> Elements:
        found = self._stored.get(key, {})
        newest = max((commit_ts for commit_ts in found if commit_ts <= read_ts), default=0)
        return found.get(newest, ())
