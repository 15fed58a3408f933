"""The view of a long log, with rulings that depend on one key at a time judged block by block.

The rulings of a block are renumbered to the rows of the whole log, and become facts of its view. Violations are sorted
as over the whole log: by time, and at one time by the column that each ruling names.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from checkers.columns.blocks import Block, blocks, by_part, events_of, writes_of
from checkers.columns.index import ascending, is_kind
from checkers.columns.parts import constant
from checkers.columns.runs import distinct
from checkers.history.units import unit_names
from checkers.streams.matches import Matches, matches_of
from checkers.streams.rule import PerKey
from checkers.streams.view import Log, Ruling, StreamView, stream_view, view_of
from harness.core.columns import BACKFILL, NEVER, ROW, Bools, Int64s
from harness.core.promises import StreamContract


class _Whole:
    """The matches of a whole log with its source's writes. Blocks fill in their own rows, in parallel."""

    def __init__(self, rows: int, writes: int) -> None:
        self._identity, self._write = np.full(rows, -1, np.int64), np.full(rows, -1, np.int64)
        self._is_repeated, self._is_phantom = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        self._is_expected = np.zeros(writes, np.bool_)

    def put(self, block: Block, base: int, is_event: Bools, matches: Matches) -> None:
        """Store a block's matches of its own events. Its identities are numbered from `base`."""
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


def view_by_key(log: Log, contract: StreamContract, rulings: Sequence[PerKey]) -> StreamView:
    """The view of a log, with those rulings among its facts. O(n log n)."""
    deliveries, writes = log.deliveries, log.writes
    parts = blocks(deliveries, writes)
    if len(parts) == 1:
        view = stream_view(deliveries, writes, contract, log)
        for ruling in rulings:
            ruling(view)
        return view
    # Operations that share a unit number may have different keys. If every row is sent, the numbers are not needed.
    is_named = contract.unit_rows == "final"
    events = deliveries if is_named else replace(deliveries, unit=constant(NEVER, len(deliveries.kind)))
    named = replace(writes, txn=unit_names(writes) if is_named else constant(NEVER, len(writes.op)))
    whole = _Whole(len(deliveries.kind), len(writes.op))
    bases = np.cumsum([0, *(len(part.events) + len(part.writes) for part in parts)]).tolist()
    source = Log(deliveries=events, writes=named)
    look = partial(_of_block, source, contract, rulings, whole)
    found = list(by_part(look, list(zip(bases, parts, strict=False))))
    view = view_of(deliveries, writes, contract, whole.matches(), log)
    for ruling, of_parts in zip(rulings, zip(*found, strict=True), strict=True):
        view.facts.put(ruling.judge, _together(view, ruling, of_parts))
    return view


def _of_block(
    log: Log, contract: StreamContract, rulings: Sequence[PerKey], whole: _Whole, part: tuple[int, Block]
) -> list[Ruling]:
    """The rulings of one block, renumbered to the rows of the whole log. Stores its matches in `whole`."""
    base, block = part
    d, w = events_of(log.deliveries, block.events), writes_of(log.writes, block.writes)
    matches = matches_of(d, w, contract, has_source=len(log.writes.op) > 0)
    whole.put(block, base, is_kind(d.kind, (ROW, BACKFILL)), matches)
    view = view_of(d, w, contract, matches, log)
    return [_renumbered(ruling(view), block) for ruling in rulings]


def _renumbered(ruling: Ruling, block: Block) -> Ruling:
    """A block's ruling, with row numbers of the whole log."""
    return replace(
        ruling,
        watermark=block.events[ruling.watermark],
        row=np.append(block.events, -1)[ruling.row],
        write=np.append(block.writes, -1)[ruling.write],
        witness_rows=None if ruling.witness_rows is None else block.events[ruling.witness_rows],
    )


def _together(view: StreamView, ruling: PerKey, parts: Sequence[Ruling]) -> Ruling:
    """All violations, by time, and at one time by the ruling's `tie`; and all witnesses, each counted once."""
    watermark = np.concatenate([part.watermark for part in parts])
    row, write = np.concatenate([part.row for part in parts]), np.concatenate([part.write for part in parts])
    witnesses = [part.witness_rows for part in parts if part.witness_rows is not None]
    rows = distinct(np.concatenate(witnesses)) if witnesses else None
    order = ascending(watermark, _tie(view, ruling, row, write))
    return Ruling(
        watermark=watermark[order],
        row=row[order],
        write=write[order],
        witnesses=sum(part.witnesses for part in parts) if rows is None else len(rows),
        legal=sum(part.legal for part in parts),
        witness_rows=rows,
    )


def _tie(view: StreamView, ruling: PerKey, row: Int64s, write: Int64s) -> Int64s:
    """The column by which violations of the same time are sorted."""
    match ruling.tie:
        case "row":
            return row
        case "write":
            return write
        case "key":
            return view.writes.key[write]
