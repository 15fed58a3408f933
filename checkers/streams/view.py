"""A stream with its source, prepared for the rules: scopes, first deliveries, expected writes, and lanes.

An *event* is a row or a backfill row. Its *identity* is what the contract compares to decide that two events are the
same. A *scope* is how far a watermark's promise reaches (`wm_scope`). A *lane* is the watermarks of one session and
partition between two markers of the session: inside it coverage changes only by a key's first row, and positions never
fall, because watermarks that went back are left out. Times are row numbers of the log: the order of receipt.
"""

from dataclasses import dataclass, field

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.facts import Facts
from checkers.columns.index import (
    FirstTimes,
    GroupIndex,
    codes,
    expand,
    first_places,
    first_rows,
    is_kind,
    max_so_far,
    segments,
)
from checkers.columns.runs import ordered
from checkers.history.around import NOTHING_AROUND, Around
from checkers.history.units import announced_writes, is_final_only
from checkers.streams.coverage import ENDS, Coverage, is_marker, is_session_marker, logs_of, lowest_starts
from checkers.streams.matches import Matches, matches_of
from harness.core.columns import (
    BACKFILL,
    CHECKPOINT,
    END,
    NEVER,
    ROW,
    WATERMARK,
    Bools,
    Deliveries,
    Int64s,
    SourceWrites,
)
from harness.core.promises import StreamContract


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A whole log and its source. `is_alone`: the history has no other log."""

    deliveries: Deliveries
    writes: SourceWrites
    around: Around = NOTHING_AROUND
    is_alone: bool = False
    facts: Facts = field(default_factory=Facts, init=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """The input of every rule: n rows of the log and e expected writes. It may show only some keys of its `log`."""

    log: Log
    deliveries: Deliveries
    writes: SourceWrites
    contract: StreamContract
    coverage: Coverage
    session: Int64s  # (n,) dense ids of (subscriber, session)
    scope: Int64s  # (n,)
    surpassed: Int64s  # (n,) the highest watermark before a lower one of its scope and partition, -1: none
    is_phantom: Bools  # (n,) events whose write was never attempted, or certainly failed
    identity: Int64s  # (n,) equal for events that are the same by the contract
    is_repeated: Bools  # (n,) events that share their identity with another
    first: Int64s  # rows: the first delivery of each identity in each scope, phantoms left out
    expected: Int64s  # (e,) rows of `writes` that the stream must deliver
    match: Int64s  # (n,) the place in `expected` of the write that an event shows, -1: none
    lanes: "Lanes"
    facts: Facts = field(default_factory=Facts, init=False, compare=False)

    def first_times(self, group: Int64s, rows: Int64s | None = None) -> FirstTimes:
        """The first delivery of each expected write in each group (n,). Query it with numbers from `of_write`.

        `rows`, ascending, must include every row that is queried; by default all rows are used.
        """
        rows = np.flatnonzero(self.match >= 0) if rows is None else rows
        return FirstTimes(self.of_write(group[rows], self.match[rows]), rows)

    def firsts(self, group: Int64s) -> Int64s:
        """The rows with the first delivery of each identity in each group (n,), without phantoms."""
        is_event = is_kind(self.deliveries.kind, (ROW, BACKFILL))
        rows = np.flatnonzero(is_event & ~self.is_phantom)
        return rows[_are_first(group, self.identity, self.is_repeated, rows)]

    def counts(self) -> Int64s:
        """Numbers for the counts of positions, shape (n,): events are the same only if these are equal, too.

        A log that ended and is read again is another one, which counts from its beginning. Where positions are global,
        the end of one partition ends no count.
        """
        d, is_global = self.deliveries, self.contract.is_position_global
        is_ignored = (d.kind == END) & (d.span >= 0) if is_global else np.zeros(len(d.kind), np.bool_)
        whole = replace(d, kind=np.where(is_ignored, CHECKPOINT, d.kind).astype(np.int8))
        return logs_of(whole, self.session, is_position_global=is_global)

    def new_rows(self) -> Int64s:
        """The rows that are first deliveries in their session, without backfill rows."""
        return np.flatnonzero(self.coverage.begins & (self.deliveries.kind == ROW))

    def of_write(self, group: Int64s, place: Int64s) -> Int64s:
        """One number for each pair of a group and a place in `expected`."""
        return group * (len(self.expected) + 1) + place

    @property
    def is_regress(self) -> Bools:
        """True for watermarks below an earlier one of their scope and partition, shape (n,)."""
        result: Bools = self.surpassed >= 0
        return result

    @property
    def arrival_scope(self) -> Int64s:
        """The scopes (n,) in which a write must arrive. With partitions that is anywhere: a key's may change."""
        return np.zeros_like(self.scope) if self.contract.wm_scope == "partition" else self.scope

    def blamed(self, ruling: "Ruling") -> Int64s:
        """One number for the write of each violation, and the scope in which it should have arrived."""
        return self.of_write(self.arrival_scope[ruling.watermark], np.searchsorted(self.expected, ruling.write))


def stream_view(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, log: Log | None = None
) -> StreamView:
    """The view of one log, in order of receipt, with its source; `log` has further facts about both.

    `writes` have the positions that `checkers.history.streams.placed` gives them: those still without a position are
    left out, and an operation of unclear outcome has one only if it was observed. O(n log n). See also `defect`.
    """
    matches = matches_of(deliveries, writes, contract, has_source=len(writes.op) > 0)
    return view_of(deliveries, writes, contract, matches, log or Log(deliveries=deliveries, writes=writes))


def view_of(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, matches: Matches, log: Log
) -> StreamView:
    """The view of a log, or of some of its keys, whose matches are known. O(n), plus a sort of the repeated events."""
    session = codes(deliveries.subscriber, deliveries.session)
    scope = _scopes(deliveries, session, contract)
    identity, is_repeated = matches.identity, matches.is_repeated
    rows = np.flatnonzero(is_kind(deliveries.kind, (ROW, BACKFILL)) & ~matches.is_phantom)
    begins = deliveries.kind == BACKFILL
    begins[rows] |= _are_first(session, identity, is_repeated, rows)
    surpassed = _surpassed(deliveries, session, scope, contract)
    is_used = (deliveries.kind == WATERMARK) & (surpassed < 0)
    return StreamView(
        log=log,
        deliveries=deliveries,
        writes=writes,
        contract=contract,
        coverage=Coverage(deliveries, session, begins, contract),
        session=session,
        scope=scope,
        surpassed=surpassed,
        is_phantom=matches.is_phantom,
        identity=identity,
        is_repeated=is_repeated,
        first=rows[_are_first(scope, identity, is_repeated, rows)],
        expected=matches.expected,
        match=matches.match,
        lanes=lanes_of(deliveries, session, scope, np.flatnonzero(is_used), deliveries.position),
    )


def announced_view(deliveries: Deliveries, contract: StreamContract) -> StreamView:
    """The view of a log without a source: its writes are those of the units that its rows name.

    Rows that name no unit are events of unknown writes: they begin coverage, and supersede.
    """
    unknown = msgspec.structs.replace(contract, system_events=("whatever names no unit",))
    return stream_view(deliveries, announced_writes(deliveries), unknown)


def defect(deliveries: Deliveries, contract: StreamContract) -> str | None:
    """The reason why these deliveries cannot be judged under this contract; None if they can."""
    is_final = is_final_only(contract)
    if contract.identity == "position+key" and not is_final:
        return "identity by position and key needs `unit_rows: final` and one unit for each position"
    needed: list[tuple[tuple[int, ...], Bools, str]] = [
        ((ROW, WATERMARK), deliveries.position == NEVER, "position: record it"),
        ((ROW, BACKFILL), deliveries.key == NEVER, "key: record it"),
    ]
    if contract.identity == "position+key+ordinal" and not is_final:
        needed.append(
            ((ROW,), deliveries.ordinal == NEVER, "number in its unit: record its ordinal, or declare another identity")
        )
    if contract.wm_scope == "partition" and np.any(deliveries.span >= 0):
        needed.append(
            ((ROW, BACKFILL, WATERMARK), deliveries.span < 0, "partition: record its span, or declare another wm_scope")
        )
    for kinds, lacks, name in needed:
        lacking = np.flatnonzero(is_kind(deliveries.kind, kinds) & lacks)
        if len(lacking):
            seq = int(deliveries.seq[lacking[0]])
            return f"the event at journal position {seq}, and {len(lacking) - 1} more, came without {name}"
    return None


class Ruling(Struct, frozen=True, kw_only=True):
    """The result of a rule: v violations by time of their watermark, as rows of the log and of the source.

    `watermark` (v,) is the row of the broken promise; for a rule without watermarks, the event that broke it. `row`
    (v,) is the event that shows it, -1 without one: the late event, the earlier watermark, an event of the torn unit
    that had arrived, the event before this one. `write` (v,) is the row of the source that is missing, or with which
    the event was compared; -1 for rules about the stream alone. `witnesses` counts the chances to see a violation, and
    `legal` the cases that look like one and are allowed. If several keys may share a witness, `witness_rows` has those
    that `witnesses` counts, as rows of the log.
    """

    watermark: Int64s
    row: Int64s
    write: Int64s
    witnesses: int
    legal: int = 0
    witness_rows: Int64s | None = None

    @classmethod
    def of_events(
        cls,
        event: Int64s,
        other: Int64s | None = None,
        *,
        witnesses: int,
        legal: int = 0,
        witness_rows: Int64s | None = None,
    ) -> "Ruling":
        """A ruling whose violations are events, each with an `other` event if there is one, and without writes."""
        none = np.full(len(event), -1, np.int64)
        row = none if other is None else other
        return cls(watermark=event, row=row, write=none, witnesses=witnesses, legal=legal, witness_rows=witness_rows)

    @classmethod
    def by_time(cls, event: Int64s, other: Int64s, *, witnesses: int, legal: int = 0) -> "Ruling":
        """A ruling whose violations are pairs of events, given in any order."""
        order = np.lexsort((other, event))
        return cls.of_events(event[order], other[order], witnesses=witnesses, legal=legal)

    @classmethod
    def of_writes(
        cls, watermark: Int64s, write: Int64s, *, witnesses: int, witness_rows: Int64s | None = None
    ) -> "Ruling":
        """A ruling whose violations are pairs of a watermark and a write."""
        row = np.full(len(watermark), -1, np.int64)
        return cls(watermark=watermark, row=row, write=write, witnesses=witnesses, witness_rows=witness_rows)

    @classmethod
    def nothing(cls) -> "Ruling":
        """The ruling of a rule that does not apply under the contract."""
        return cls.of_events(np.zeros(0, np.int64), witnesses=0)


class Lanes(Struct, frozen=True, kw_only=True):
    """The lanes of a view: l lanes with k watermarks. Lane i has rows[begin[i]:begin[i + 1]], in order of time."""

    rows: Int64s  # (k,) rows of the log; a *place* is an index of this array
    height: Int64s  # (k,) their positions, never falling inside a lane
    begin: Int64s  # (l + 1,)
    session: Int64s  # (l,)
    span: Int64s  # (l,) -1: the watermarks of the whole stream
    scope: Int64s  # (l,)
    low: Int64s  # (l,) no key is covered here from a lower position than this one
    last: Int64s  # (l,) the row of the last watermark
    by_time: GroupIndex  # (k,) finds places
    by_height: GroupIndex

    def top(self) -> Int64s:
        """The highest position that each lane announces, shape (l,)."""
        return self.height[self.begin[1:] - 1]


def lanes_of(deliveries: Deliveries, session: Int64s, scope: Int64s, rows: Int64s, height: Int64s) -> Lanes:
    """The lanes of the watermarks `rows` (k,); `height` (n,) are their positions."""
    lane = codes(session[rows], deliveries.span[rows], segments(session, is_marker(deliveries), rows))
    order, _ = ordered(lane)  # The rows ascend.
    rows, lane = rows[order], lane[order]
    begin = np.flatnonzero(np.diff(lane, prepend=-1))
    places = np.arange(len(rows))
    return Lanes(
        rows=rows,
        height=height[rows],
        begin=np.append(begin, len(rows)),
        session=session[rows[begin]],
        span=deliveries.span[rows[begin]],
        scope=scope[rows[begin]],
        low=lowest_starts(deliveries, session, rows[begin]),
        last=rows[np.append(begin[1:], len(rows))[: len(begin)] - 1],
        by_time=GroupIndex(lane, rows, places),
        by_height=GroupIndex(lane, height[rows], places),
    )


class Pairs(Struct, frozen=True, kw_only=True):
    """Pairs of a lane and a candidate position that its watermarks cover: arrays (p,)."""

    lane: Int64s
    candidate: Int64s
    opens: Int64s  # The first place of the lane at which the candidate's key was covered; always before `end`.
    end: Int64s  # The place after the lane's last.


def pairs_of(
    view: StreamView,
    lanes: Lanes,
    *,
    key: Int64s,
    span: Int64s,
    position: Int64s,
    scope: Int64s | None,
    high: Int64s,
) -> Pairs:
    """Pairs of a lane and a candidate at or below position `high` (l,) that the lane covers.

    A lane covers a candidate if it is of the candidate's partition (or of the whole stream), covers its key at its last
    watermark, and its coverage began below the candidate's position. Each lane pairs with the candidates of its own
    scope; `scope` None: with those of all scopes.
    """
    group = np.zeros(len(key), np.int64) if scope is None else scope
    wanted = np.zeros(len(lanes.last), np.int64) if scope is None else lanes.scope
    index = GroupIndex(group, position)
    lane, place = expand(index.place(wanted, lanes.low), index.place(wanted, high, above=True))
    candidate = index.rows[place]
    if np.any(lanes.span >= 0):
        is_announced = (lanes.span[lane] < 0) | (lanes.span[lane] == span[candidate])
        lane, candidate = lane[is_announced], candidate[is_announced]
    covered = view.coverage.at(lanes.session[lane], key[candidate], span[candidate], lanes.last[lane])
    is_in = covered.reaches(position[candidate])
    since = covered.since
    if not is_in.all():
        lane, candidate, since = lane[is_in], candidate[is_in], since[is_in]
    opens = lanes.begin[lane]
    late = np.flatnonzero(since >= lanes.rows[opens])  # Usually coverage begins before the lane.
    opens[late] = lanes.by_time.place(lane[late], since[late], above=True)
    return Pairs(lane=lane, candidate=candidate, opens=opens, end=lanes.begin[lane + 1])


def _are_first(group: Int64s, identity: Int64s, is_repeated: Bools, rows: Int64s) -> Bools:
    """True for those of `rows`, which ascend, that are the first in their group to show an identity."""
    is_first = ~is_repeated[rows]
    again = np.flatnonzero(~is_first)
    is_first[again[first_rows(group[rows[again]], identity[rows[again]])]] = True
    return is_first


def _scopes(deliveries: Deliveries, session: Int64s, contract: StreamContract) -> Int64s:
    match contract.wm_scope:
        case "session":
            return session
        case "subscriber":
            return deliveries.subscriber
        case "partition":
            return deliveries.span + 1
        case "global":
            return np.zeros(len(session), np.int64)


def _surpassed(deliveries: Deliveries, session: Int64s, scope: Int64s, contract: StreamContract) -> Int64s:
    """For each watermark below an earlier one of its scope and partition the highest such row, else -1; shape (n,).

    Readers of one partition may lag behind each other. So another subscriber's watermark counts only if its session had
    ended before this one began: then the partition has moved.
    """
    rows = np.flatnonzero(deliveries.kind == WATERMARK)
    is_shared = contract.wm_scope == "partition"
    group = codes(deliveries.subscriber[rows] if is_shared else scope[rows], deliveries.span[rows])
    height = deliveries.position[rows]
    reached = max_so_far(group, height)
    result = np.full(len(scope), -1, np.int64)
    lower = np.flatnonzero(height < reached)
    result[rows[lower]] = GroupIndex(group, height, rows).first(group[lower], reached[lower])
    if is_shared and len(rows):
        before = _highest_before(deliveries, session, rows)
        moved = np.flatnonzero((before >= 0) & (height < np.append(deliveries.position, 0)[before]))
        moved = moved[result[rows[moved]] < 0]
        result[rows[moved]] = before[moved]
    return result


def _highest_before(deliveries: Deliveries, session: Int64s, rows: Int64s) -> Int64s:
    """For each watermark the highest one of its partition in sessions that ended before its own began; -1: none."""
    d, count = deliveries, int(session.max(initial=-1)) + 1
    begin, end = first_places(session, count), np.full(count, NEVER, np.int64)
    ends = np.flatnonzero(is_kind(d.kind, ENDS) & is_session_marker(d))[::-1]
    end[session[ends]] = ends  # The first of each session remains.
    of_span = codes(d.span[rows])
    order = np.lexsort((end[session[rows]], of_span))
    highest = max_so_far(of_span[order], d.position[rows][order])
    index = GroupIndex(of_span, end[session[rows]], rows)
    place = index.place(of_span, begin[session[rows]]) - 1
    inside = np.clip(place, 0, None)
    is_found = (place >= 0) & (of_span[order][inside] == of_span)
    tops = GroupIndex(of_span, d.position[rows], rows).first(of_span, highest[inside])
    return np.where(is_found, tops, -1)
