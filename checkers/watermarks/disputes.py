"""Independent on purpose: a definition of which findings one opinion on a stream had to share with the other.

It consults neither the graph of watermarks nor the stream rules. An operation that is torn or split gives the graph a
cycle if a watermark contains one of its rows, and the same watermark, or one of the same node, lacks another. Positions
show the same if they are known. So a finding of one opinion alone is expected if the definition left the other nothing
to see:
1. A watermark contains a row that came before it in its session, and that it closes if the cut is by position.
2. It lacks a version of a key that it covers if no event had shown that, no earlier session had resumed above it, and
   either it came later in the session, or it is next, in the order of versions, to the newest one shown. A version that
   never came and has no such place does not count as missing.
3. Watermarks of two subscribers are one node at equal positions; without a common position there is none.
4. Rules judge what watermarks close; they do not judge an operation without position, or above all watermarks.

Plain loops over the events of a few keys. If it is in doubt what a watermark covered (an event that shows an unknown
value, a marker in the session, a watermark that went back), nothing had to be seen: some disputes are not reported, and
none is made up.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.facts import Facts
from checkers.columns.index import is_kind
from checkers.history.streams import merged, placed, placement, read_deliveries, read_writes, stream_logs
from checkers.history.version_ranks import read_ranked
from checkers.streams.coverage import is_marker
from harness.core.columns import (
    BACKFILL,
    FAIL,
    INFO,
    NEVER,
    OPEN,
    ROW,
    WATERMARK,
    Bools,
    Deliveries,
    Int64s,
    SourceWrites,
)
from harness.core.promises import StreamContract, View
from harness.core.verdict import Finding

SEEN: Final = ""
WHOLE: Final = "expected: no transaction has one row in the watermark and lacks another there"
LOST: Final = "expected: the missing rows never came, and no order of versions puts them next to rows that came"
APART: Final = "expected: no watermark that contains it is one node with one that lacks it"
OPEN_POSITION: Final = "expected: no watermark there closes its position"
SHARED: Final = "expected: a watermark is one for all subscribers there, of whom another may have received it"

Why = Callable[[Finding], str]  # For a finding the reason why the other opinion need not share it; SEEN if it had to.
Columns = TypeVar("Columns", Deliveries, SourceWrites)
_Rank = tuple[int, int, int]


class _Event(Struct, frozen=True, kw_only=True):
    """One event; `at` is its place in the order of receipt."""

    at: int
    seq: int
    subscriber: int
    session: int
    kind: int
    span: int
    key: int
    value: int
    position: int
    is_marker: bool


class _Write(Struct, frozen=True, kw_only=True):
    """A write that may have happened; `rank` is None if it has no place among the versions of its key."""

    op: int
    key: int
    value: int
    position: int
    rank: _Rank | None
    is_committed: bool


class Definition:
    """The rows that each watermark contains and lacks, for a stream and its source."""

    def __init__(self, deliveries: Deliveries, writes: SourceWrites, contract: StreamContract) -> None:
        self.contract = contract
        self.events = list(_events(deliveries))
        self.writes = list(_writes(writes, contract))
        self._written: dict[tuple[int, int], list[_Write]] = {}
        for write in self.writes:
            self._written.setdefault((write.key, write.value), []).append(write)
        self._markers: dict[tuple[int, int], list[_Event]] = {}
        for event in (each for each in self.events if each.is_marker):
            self._markers.setdefault((event.subscriber, event.session), []).append(event)
        self.is_shared = contract.wm_scope in ("partition", "global")
        self.is_steady = self._never_goes_back()

    def torn(self, finding: Finding) -> str:
        """The reason why the graph need not have seen a torn unit that the rules found; SEEN if it had to."""
        shown = [event for event in self.events if event.seq in finding.events]
        marks = [event for event in shown if event.kind == WATERMARK]
        for mark in marks:
            mine = [event for event in self.events if self._contains(mark, event)]
            ops = {write.op for event in mine if (write := self._write_of(event)) is not None}
            parts = [write for write in self.writes if write.op in finding.ops and write.op in ops]
            if any(self._lacks(mark, write) for write in parts):
                return SEEN
            if parts:
                return LOST
        return WHOLE

    def split(self, finding: Finding) -> str:
        """The reason why the graph need not have seen a split view that the rules found; SEEN if it had to."""
        reason = APART
        for row in (event for event in self.events if event.seq in finding.events):
            write = self._write_of(row)
            for mark, other in self._one_node(row) if write is not None else ():
                reason = LOST
                if write is not None and self._contains(mark, row) and self._lacks(other, write):
                    return SEEN
        return reason

    def unplaced(self, finding: Finding) -> str:
        """The reason why the rules need not have seen a torn or split operation of the graph; SEEN if they had to."""
        if self.is_shared:
            return SHARED
        marks = [event for event in self.events if event.seq in finding.events and event.kind == WATERMARK]
        positions = [write.position for write in self.writes if write.op in finding.ops]
        is_closed = bool(positions) and all(any(self._closes(mark, one) for mark in marks) for one in positions)
        return SEEN if is_closed else OPEN_POSITION

    def _one_node(self, row: _Event) -> Iterator[tuple[_Event, _Event]]:
        """Pairs of the first watermark that contains a row, and a watermark of another subscriber on the same node.

        One pair for each session of other subscribers.
        """
        if not self.contract.is_position_global:
            return
        marks = [event for event in self.events if event.kind == WATERMARK and event.span < 0]
        found: dict[tuple[int, int], list[_Event]] = {}
        for mark in marks:
            found.setdefault((mark.subscriber, mark.position), []).append(mark)
        # A position that came twice may be two nodes.
        single = {where: same[0] for where, same in found.items() if len(same) == 1}
        met = set[tuple[int, int]]()
        for mark in marks:
            if single.get((row.subscriber, mark.position)) != mark or not self._contains(mark, row):
                continue
            for other in (single.get((who, mark.position)) for who in sorted({each.subscriber for each in marks})):
                if other is None or other.subscriber == row.subscriber or (other.subscriber, other.session) in met:
                    continue
                met.add((other.subscriber, other.session))
                yield mark, other

    def _contains(self, mark: _Event, row: _Event) -> bool:
        """True if that watermark certainly contains that row."""
        if row.kind != ROW or row.at > mark.at or not _is_same_session(mark, row) or mark.span >= 0:
            return False
        is_interrupted = any(row.at < marker.at < mark.at for marker in self._markers_of(mark))
        is_in = self.contract.cut == "delivery" or self._closes(mark, row.position)
        return is_in and not is_interrupted and self.is_steady

    def _lacks(self, mark: _Event, write: _Write) -> bool:
        """True if that watermark certainly lacks that write, whose place among the versions is known."""
        of_key = [event for event in self.events if event.kind in (ROW, BACKFILL) and event.key == write.key]
        heard = [event for event in of_key if event.subscriber == mark.subscriber or self.is_shared]
        before = [event for event in heard if event.at < mark.at]
        if any(event.value == write.value for event in before) or not self.is_steady or mark.span >= 0:
            return False
        if self._was_resumed_above(mark, write.position):
            return False
        later = [
            event
            for event in heard
            if event.at > mark.at
            and _is_same_session(event, mark)
            and (event.kind, event.value) == (ROW, write.value)
            and self._write_of(event) == write
        ]
        start = self._start(mark, until=later[0] if later else mark)
        if start is None or not self._is_covered(mark, write, before, start):
            return False
        return (bool(later) and self.contract.versions == "every") or self._is_next(write, before, start)

    def _was_resumed_above(self, mark: _Event, position: int) -> bool:
        """True if a session before that watermark began with a state that holds that position."""
        opens = (event for event in self.events if event.kind == OPEN and event.at < mark.at)
        mine = (event for event in opens if event.subscriber == mark.subscriber or self.is_shared)
        return any(event.position != NEVER and self._is_early(position, event.position) for event in mine)

    def _start(self, mark: _Event, *, until: _Event) -> int | None:
        """The position with which the mark's session began; None unless it opened everything, without another marker.

        Markers after `until` do not count.
        """
        markers = [marker for marker in self._markers_of(mark) if marker.at <= until.at]
        is_whole = len(markers) == 1 and (markers[0].kind, markers[0].key) == (OPEN, NEVER) and markers[0].span < 0
        return markers[0].position if is_whole and markers[0].position != NEVER else None

    def _is_covered(self, mark: _Event, write: _Write, before: Sequence[_Event], start: int) -> bool:
        """True if the session certainly covered the write's key, and what it held of the key excludes the write."""
        mine = [event for event in before if _is_same_session(event, mark)]
        is_known = all(self._write_of(event) is not None and event.kind == ROW for event in before)
        if not is_known or NEVER in (write.position, mark.position) or self._is_early(write.position, start):
            return False
        committed = [each for each in self.writes if each.key == write.key and each.is_committed]
        early = [each for each in committed if self._is_early(each.position, start)]
        if all(each.position != NEVER for each in committed) and all(each.rank is not None for each in early):
            return mark.position > start
        first = mine[0] if mine else None
        return first is not None and self._contains(mark, first) and start < first.position < write.position

    def _is_next(self, write: _Write, before: Sequence[_Event], start: int) -> bool:
        """True if that version is the next after the newest one shown, or after that held at the session's start."""
        of_key = [each for each in self.writes if each.key == write.key]
        held = [self._write_of(event) for event in before] + [
            each for each in of_key if self._is_early(each.position, start)
        ]
        ranks = [each.rank for each in held if each is not None and each.rank is not None]
        all_ranks = [each.rank for each in of_key if each.rank is not None]
        if write.rank is None or len(ranks) < len(held) or all_ranks.count(write.rank) > 1:
            return False
        newest = max(ranks, default=(-1, 0, 0))
        return newest < write.rank and not any(newest < rank < write.rank for rank in all_ranks)

    def _markers_of(self, event: _Event) -> list[_Event]:
        return self._markers.get((event.subscriber, event.session), [])

    def _is_early(self, position: int, start: int) -> bool:
        """True if that position is part of the state with which a session begins."""
        return position < start or (position == start and self.contract.resume == "after")

    def _closes(self, mark: _Event, position: int) -> bool:
        return position < mark.position or (position == mark.position and self.contract.closed == "<=")

    def _write_of(self, event: _Event) -> _Write | None:
        """The only write that an event can show; None if there are several, or none."""
        fits = self._written.get((event.key, event.value), []) if event.value != NEVER else []
        return fits[0] if len(fits) == 1 else None

    def _never_goes_back(self) -> bool:
        """True if no watermark is below an earlier one of its line: such a watermark begins another chain."""
        chains: dict[tuple[int, ...], list[int]] = {}
        is_by_session = self.contract.wm_scope == "session"
        for mark in (event for event in self.events if event.kind == WATERMARK):
            chain = (mark.subscriber, mark.span, mark.session if is_by_session else 0)
            chains.setdefault(chain, []).append(mark.position)
        return all(one <= two for chain in chains.values() for one, two in pairwise(chain))


def why(history: Path, contract: StreamContract, views: tuple[View, ...] = ()) -> Why:
    """A function that gives the reason for findings of one history. It reads the files at the first call."""
    ask: dict[str, Callable[[Definition, Finding], str]] = {
        "torn-unit": Definition.torn,
        "split-view": Definition.split,
    }
    columns = partial(lru_cache(maxsize=1)(_columns), history, contract, views)

    def answer(finding: Finding) -> str:
        deliveries, writes = columns()
        chosen = np.isin(writes.op, finding.ops) if finding.ops else np.zeros(len(writes.op), np.bool_)
        shown = np.isin(deliveries.seq, finding.events)
        keys = np.append(writes.key[chosen], deliveries.key[shown & (deliveries.key != NEVER)])
        is_row = is_kind(deliveries.kind, (ROW, BACKFILL))
        part = _only(deliveries, ~is_row | np.isin(deliveries.key, keys))
        written = _only(writes, np.isin(writes.key, keys))
        return ask.get(finding.anomaly, Definition.unplaced)(Definition(part, written, contract), finding)

    return answer


def _columns(history: Path, contract: StreamContract, views: tuple[View, ...]) -> tuple[Deliveries, SourceWrites]:
    """The events of all subscribers, in order of receipt; and the writes, with positions and ranks."""
    shared = Facts()
    parts = [read_deliveries(log, shared=shared) for log in stream_logs(history, contract, views)]
    writes = read_writes(history)
    ranked = read_ranked(history, placed(writes, merged([placement(part, writes) for part in parts])))
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Deliveries.__struct_fields__}
    return _only(Deliveries(**columns), np.argsort(columns["seq"])), ranked


def _only(columns: Columns, rows: Bools | Int64s) -> Columns:
    return replace(columns, **{name: getattr(columns, name)[rows] for name in columns.__struct_fields__})


def _is_same_session(one: _Event, other: _Event) -> bool:
    return (one.subscriber, one.session) == (other.subscriber, other.session)


def _events(deliveries: Deliveries) -> Iterator[_Event]:
    names = ("seq", "subscriber", "session", "kind", "span", "key", "value", "position")
    columns = [getattr(deliveries, name).tolist() for name in names]
    for at, (marks, cells) in enumerate(zip(is_marker(deliveries).tolist(), zip(*columns, strict=True), strict=True)):
        yield _Event(at=at, is_marker=marks, **dict(zip(names, cells, strict=True)))


def _writes(writes: SourceWrites, contract: StreamContract) -> Iterator[_Write]:
    names = ("op", "outcome", "key", "value", "position", "ordinal", "version")
    is_trusted = contract.is_position_unique and contract.order_key != "none"
    for cells in zip(*(getattr(writes, name).tolist() for name in names), strict=True):
        op, outcome, key, value, position, ordinal, version = cells
        if outcome == FAIL:
            continue
        is_committed = outcome != INFO or position != NEVER or version != NEVER
        rank = (version, 0, 0) if version != NEVER else (NEVER, position, ordinal)
        has_rank = version != NEVER or (is_trusted and position != NEVER)
        yield _Write(
            op=op,
            key=key,
            value=value,
            position=position,
            rank=rank if is_committed and has_rank else None,
            is_committed=is_committed,
        )
