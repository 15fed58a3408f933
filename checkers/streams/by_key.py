"""The rules about one key at a time, block by block of keys; and the view of the whole log that results.

The findings of a block are renumbered to the rows of the whole log. Violations are sorted as over the whole log: by
time, and at one time by the column that each rule names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from checkers.columns.blocks import BLOCK_ROWS, Block, blocks, by_part, events_of, writes_of
from checkers.columns.index import ascending, is_kind
from checkers.columns.parts import constant
from checkers.columns.runs import distinct
from checkers.history.units import unit_names
from checkers.streams.matches import Matches, matches_of
from checkers.streams.rules.events.order_inversion import tied_inversions
from checkers.streams.rules.sessions.outside_filter import Extent, outside_events
from checkers.streams.rules.sessions.resume_hole import Holes, holes
from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.rules.watermarks.missing_event import Closings, missing_events
from checkers.streams.rules.watermarks.state_mismatch import state_mismatches
from checkers.streams.view import Ruling, StreamView, stream_view, view_of
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract


@dataclass(frozen=True, slots=True, kw_only=True)
class OfKeys:
    """The rulings of the rules about single keys."""

    late: Ruling
    boundary: Ruling
    missing: Ruling
    mismatches: Ruling
    ties: Ruling
    outside: Ruling
    holes: Holes

    @classmethod
    def of(cls, view: StreamView, extent: Extent) -> "OfKeys":
        """The rulings for all keys of a view; `extent` is that of the whole log."""
        late, boundary = late_events(view)
        closings = Closings.of(view)
        missing = missing_events(view, closings)
        return cls(
            late=late,
            boundary=boundary,
            missing=missing,
            mismatches=state_mismatches(view, closings),
            ties=tied_inversions(view),
            outside=outside_events(view, extent),
            holes=holes(view, missing, closings),
        )

    def moved(self, to: Callable[[Ruling], Ruling]) -> "OfKeys":
        """The same rulings, each converted by `to`."""
        return OfKeys(
            late=to(self.late),
            boundary=to(self.boundary),
            missing=to(self.missing),
            mismatches=to(self.mismatches),
            ties=to(self.ties),
            outside=to(self.outside),
            holes=Holes(resumes=to(self.holes.resumes), backfills=to(self.holes.backfills)),
        )


class _Whole:
    """The matches of a whole log with its source's writes. Blocks fill them in, in parallel: each its own rows."""

    def __init__(self, rows: int, writes: int) -> None:
        self._identity, self._write = np.full(rows, -1, np.int64), np.full(rows, -1, np.int64)
        self._is_repeated, self._is_phantom = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        self._is_expected = np.zeros(writes, np.bool_)

    def put(self, block: Block, base: int, is_event: Bools, matches: Matches) -> None:
        """Fill in a block's matches of its own events, with identities numbered from `base`."""
        rows = block.events[is_event]
        expected = block.writes[matches.expected]
        self._identity[rows] = matches.identity[is_event] + base
        self._write[rows] = np.append(expected, -1)[matches.match[is_event]]
        self._is_repeated[rows] = matches.is_repeated[is_event]
        self._is_phantom[rows] = matches.is_phantom[is_event]
        self._is_expected[expected] = True

    def matches(self) -> Matches:
        """The matches of the whole log."""
        match = self._write
        if not self._is_expected.all():
            match = np.append(np.cumsum(self._is_expected) - 1, -1)[match]
        return Matches(
            identity=self._identity,
            is_repeated=self._is_repeated,
            is_phantom=self._is_phantom,
            expected=np.flatnonzero(self._is_expected),
            match=match,
        )


def judged_by_key(
    deliveries: Deliveries,
    writes: SourceWrites,
    contract: StreamContract,
    *,
    threads: int = 1,
    block_rows: int = BLOCK_ROWS,
) -> tuple[StreamView, OfKeys]:
    """The view of a log, and the rulings of the rules about single keys; in `threads` threads. O(n log n)."""
    parts, extent = blocks(deliveries, writes, block_rows), Extent.of(deliveries, writes)
    if len(parts) == 1:
        view = stream_view(deliveries, writes, contract)
        return view, OfKeys.of(view, extent)
    # Operations that share a name may have different keys. If each row of a unit is sent, names are not needed.
    is_named = contract.unit_rows == "final"
    events = deliveries if is_named else replace(deliveries, unit=constant(NEVER, len(deliveries.kind)))
    named = replace(writes, txn=unit_names(writes) if is_named else constant(NEVER, len(writes.op)))
    whole = _Whole(len(deliveries.kind), len(writes.op))
    bases = np.cumsum([0, *(len(part.events) + len(part.writes) for part in parts)]).tolist()
    look = partial(_of_block, events, named, contract, extent, whole)
    told = list(by_part(look, list(zip(bases, parts, strict=False)), threads=threads))
    view = view_of(deliveries, writes, contract, whole.matches())
    return view, _of_all(view, told)


def _of_block(
    deliveries: Deliveries,
    writes: SourceWrites,
    contract: StreamContract,
    extent: Extent,
    whole: _Whole,
    part: tuple[int, Block],
) -> OfKeys:
    """The rulings of one block, renumbered to the rows of the whole log; its matches go into `whole`."""
    base, block = part
    d, w = events_of(deliveries, block.events), writes_of(writes, block.writes)
    matches = matches_of(d, w, contract, has_source=len(writes.op) > 0)
    whole.put(block, base, is_kind(d.kind, (ROW, BACKFILL)), matches)
    return OfKeys.of(view_of(d, w, contract, matches), extent).moved(partial(_moved, block=block))


def _moved(ruling: Ruling, block: Block) -> Ruling:
    """A block's ruling, renumbered to the rows of the whole log."""
    return replace(
        ruling,
        watermark=block.events[ruling.watermark],
        row=np.append(block.events, -1)[ruling.row],
        write=np.append(block.writes, -1)[ruling.write],
        told=None if ruling.told is None else block.events[ruling.told],
    )


def _of_all(view: StreamView, parts: Sequence[OfKeys]) -> OfKeys:
    """The rulings of all blocks as one."""

    def key(ruling: Ruling) -> Int64s:
        return view.writes.key[ruling.write]

    return OfKeys(
        late=_together([part.late for part in parts], _row),
        boundary=_together([part.boundary for part in parts], _row),
        missing=_together([part.missing for part in parts], _write),
        mismatches=_together([part.mismatches for part in parts], key),
        ties=_together([part.ties for part in parts], _row),
        outside=_together([part.outside for part in parts], _row),
        holes=Holes(
            resumes=_together([part.holes.resumes for part in parts], _write),
            backfills=_together([part.holes.backfills for part in parts], _write),
        ),
    )


def _row(ruling: Ruling) -> Int64s:
    return ruling.row


def _write(ruling: Ruling) -> Int64s:
    return ruling.write


def _together(parts: Sequence[Ruling], tie: Callable[[Ruling], Int64s]) -> Ruling:
    """All violations, by time, and at one time by `tie`; and all witnesses, each once."""
    told = [part.told for part in parts if part.told is not None]
    rows = distinct(np.concatenate(told)) if told else None
    every = Ruling(
        watermark=np.concatenate([part.watermark for part in parts]),
        row=np.concatenate([part.row for part in parts]),
        write=np.concatenate([part.write for part in parts]),
        witnesses=sum(part.witnesses for part in parts) if rows is None else len(rows),
        legal=sum(part.legal for part in parts),
        told=rows,
    )
    order = ascending(every.watermark, tie(every))
    return replace(every, watermark=every.watermark[order], row=every.row[order], write=every.write[order])
