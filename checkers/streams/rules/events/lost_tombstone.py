"""S32 lost-tombstone: a tombstone directly follows each deletion in its partition, and stands nowhere else."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes, is_kind
from checkers.history.names import Names, capital
from checkers.streams.examples import Example
from checkers.streams.findings import both, place
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import BACKFILL, ROW, TOMBSTONE, Int64s


def lost_tombstones(view: StreamView) -> Ruling:
    """S32: deletions that something else follows in their partition, and tombstones behind something else.

    Legal are: a partition without tombstones, or one in which they were switched on or off once, unless the contract
    declares them; a deletion at the end, unless all was at rest; one that came again with its tombstone; a tombstone
    that came again, with what had followed it, unless each event comes once; a tombstone whose deletion the beginning
    of the partition may lack, or compaction may have removed. A witness is a deletion with its tombstone.
    """
    d, images = view.deliveries, view.log.around.images
    if images is None or (view.contract.tombstones != "each" and not np.any(d.kind == TOMBSTONE)):
        return Ruling.nothing()
    if images.deleted is None:
        return Ruling.nothing()
    rows = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL, TOMBSTONE)))
    lane = codes(view.session[rows], d.span[rows])
    pairs: list[tuple[int, int]] = []
    witnesses = 0
    for each in range(int(lane.max()) + 1):
        part = _Lane(view, rows[lane == each], images.deleted)
        pairs += [*part.bare(), *part.astray()]
        witnesses += len(part.paired)
    event, other = np.array(sorted(dict(pairs).items()), np.int64).reshape(-1, 2).T
    return Ruling.of_events(event, other, witnesses=witnesses)


class _Lane:
    """The rows and tombstones of one partition in one session, by places in the order of receipt."""

    def __init__(self, view: StreamView, rows: Int64s, deleted: int) -> None:
        d = view.deliveries
        self._rows, self._is_once = rows, view.contract.delivery != "at-least-once"
        self._are_declared, self._is_over = view.contract.tombstones == "each", view.contract.tail == "settled"
        self._key, self._is_tombstone = d.key[rows], d.kind[rows] == TOMBSTONE
        self._same = np.where(self._is_tombstone, -1, view.identity[rows])
        self._deletions = np.flatnonzero((d.kind[rows] == ROW) & (d.value[rows] == deleted))
        after = self._deletions[self._deletions + 1 < len(rows)]
        self.paired = after[self._is_tombstone[after + 1] & (self._key[after + 1] == self._key[after])]
        is_known = np.isin(self._same, self._same[self.paired])  # Also those that came again, whole.
        self._unpaired = self._deletions[~is_known[self._deletions]]
        again, first = self._key[1:], np.unique(self._key, return_index=True)[1]
        repeats = np.setdiff1d(np.arange(len(again) + 1), first)
        self._is_whole_from = int(repeats[0]) if len(repeats) else len(rows)  # Compaction has not come so far.

    def bare(self) -> Iterator[tuple[int, int]]:
        """Deletions that lack their tombstone: what follows each, or itself if nothing does, and the deletion.

        Each must have one, or those between two others that have one.
        """
        last = len(self._rows) - 1
        low, high = -1, last + 1 if self._is_over else last
        if not self._are_declared:
            low, high = (int(self.paired[0]), int(self.paired[-1])) if len(self.paired) else (0, 0)
        for at in self._unpaired.tolist():
            if low < at < high:
                yield int(self._rows[min(at + 1, last)]), int(self._rows[at])

    def astray(self) -> Iterator[tuple[int, int]]:
        """Tombstones that do not follow the deletion of their key; and the event before each."""
        marks = np.flatnonzero(self._is_tombstone)
        marks = marks[marks > 0]
        is_behind = self._key[marks - 1] == self._key[marks]
        is_behind &= (self._is_tombstone[marks - 1] & (not self._is_once)) | np.isin(marks - 1, self._deletions)
        stray = marks[~is_behind]
        last = GroupIndex(self._key[self._deletions], self._deletions, self._deletions).last_before(
            self._key[stray], stray
        )
        for at, deletion in zip(stray.tolist(), last.tolist(), strict=True):
            if self._is_wrong(at, deletion):
                yield int(self._rows[at]), int(self._rows[at - 1])

    def _is_wrong(self, at: int, deletion: int) -> bool:
        if deletion < 0:
            return at > self._is_whole_from
        if deletion not in self.paired:
            return True
        if self._is_once or at + 1 == len(self._rows):
            return self._is_once
        # It came again after a restart: then what had followed it comes again, too.
        return deletion + 2 < len(self._rows) and bool(self._same[deletion + 2] != self._same[at + 1])


def _sentence(example: Example, name: Names) -> str:
    mark, before = both(example)
    if mark.kind == TOMBSTONE:
        behind = (
            f"{name.pair(before.key, before.value)}{place(before, name)}" if before.kind != TOMBSTONE else "another"
        )
        what = f"A tombstone of key {name.key(mark.key)} reached {example.subscriber}"
        return f"{what} after {behind}, not after its deletion."
    what = f"the deletion of key {name.key(before.key)}{place(before, name)}"
    return f"{capital(what)} reached {example.subscriber} without its tombstone, although tombstones are on."


LOST_TOMBSTONE: Final = Rule(
    name="lost-tombstone",
    id="S32",
    rank=98,
    anomaly=Anomaly(
        meaning="A deletion lacks its tombstone, or a tombstone follows another event.",
        cause=Cause.EVENT,
    ),
    witness="a deletion with its tombstone",
    needs=frozenset({Need.IMAGES}),
    scope=OfLog(lost_tombstones, _sentence),
)
