"""Coverage events of each key in each chain: contained rows, states at the start of sessions, unknown versions.

Coverage of a key (checkers/watermarks/edges.py, 5) begins with a coverage event and ends with the next break after it:
a marker that names the key, its partition or nothing, or the first event of another session.

Most keys are *quiet* in most sessions: no event of the session names them, so that its watermarks have the state with
which it began. A state is no coverage event for a quiet key; `quiet_keys` has them all as ranges, which are as many as
the states that change from one session to the next.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import GroupIndex, ascending, codes, expand, first_rows, is_kind
from checkers.columns.runs import first_of_each, ordered
from checkers.columns.spreads import Spread
from checkers.columns.table import concat, ordered_by
from checkers.streams.coverage import ENDS, is_marker
from checkers.watermarks.nodes import WHOLE, Marks
from checkers.watermarks.versions import UNKNOWN, KeyOrder, states_at, states_between
from harness.core.columns import BACKFILL, NEVER, OPEN, ROW, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract


class CoverageEvents(Struct, frozen=True, kw_only=True):
    """h coverage events, sorted by chain and key, then row. Each concerns one key in one chain.

    A row is a coverage event in the chain of its partition and in that of the whole stream.

    `at` is the place of the first watermark of the chain that contains it; the chain's length if none does. `until` is
    the place of the last watermark up to which it makes the key covered; -1 if it does not.
    """

    group: Int64s  # one number for each chain and key
    chain: Int64s
    code: Int64s  # the key, as a place among those of the source
    row: Int64s  # of the log
    broken: Int64s  # the row of the last break of the key up to there; -1 without one
    at: Int64s
    until: Int64s
    write: Int64s  # the row of the source that it shows; UNKNOWN if not known, or if no operation wrote it
    age: Int64s  # of that version; UNKNOWN if it has no place in the order
    is_delivered: Bools  # a row of the stream, not of a backfill or a state
    is_shown: Bools  # an event of the log, not a state
    moment: Int64s  # whatever contains it contains all lower moments (see `moments`); -1: not known


class KeyCoverage:
    """The columns and indexes from which all coverage events of one log are derived."""

    def __init__(
        self,
        deliveries: Deliveries,
        writes: SourceWrites,
        contract: StreamContract,
        marks: Marks,
        order: KeyOrder,
        unit: Int64s,
    ) -> None:
        self.deliveries, self.writes, self.contract = deliveries, writes, contract
        self.marks, self.order, self.unit = marks, order, unit
        self.session = codes(deliveries.subscriber, deliveries.session)
        self.code = order.code(deliveries.key)
        self.span = _spans_of_keys(self.code, deliveries, order, writes)
        self.breaks = Breaks(self)
        self.sole = _sole_openings(self)

    def places(self, line: Int64s, row: Int64s, position: Int64s, *, above: bool) -> tuple[Int64s, Int64s]:
        """Chain and place of each line's first watermark after `row` that closes `position`, if the cut is by position.

        The place is the chain's length if the session has no such watermark. A later session does not count, as what
        no watermark contained is sent to it again. `above`: the watermark must be above the position. An unknown
        position is closed by every watermark.
        """
        chain, place = self.marks.first_after(line, row)
        if self.contract.cut == "position":
            closing = self._by_height.place(chain, position, above=above) - self.marks.begin[chain]
            closing = np.minimum(closing, np.append(self.marks.length(), 0)[chain])
            place = np.where(position == NEVER, place, np.maximum(place, closing))
        length = np.append(self.marks.length(), 0)[chain]
        inside = place < length
        mark = self.marks.rows[self.marks.number(chain[inside], place[inside])]
        inside[inside] = self.session[mark] == self.session[row[inside]]
        return chain, np.where(inside, place, length)

    @cached_property
    def _by_height(self) -> GroupIndex:
        return GroupIndex(self.marks.chain[self.marks.order], self.marks.position[self.marks.order])

    def untils(self, line: Int64s, chain: Int64s, code: Int64s, row: Int64s) -> Int64s:
        """The place of the last watermark of each chain before the first break of the key after `row`."""
        return self.last_before(line, chain, self.breaks.following(self.marks.unit_of_line[line], code, row))

    def last_before(self, line: Int64s, chain: Int64s, broken: Int64s) -> Int64s:
        """The place of the last watermark of each chain before the row `broken`; its last one for NEVER."""
        last: Int64s = (self.marks.length() - 1)[chain]
        ends = np.flatnonzero(broken != NEVER)
        # A session may begin with a watermark: its own row is then the break, and it counts as after it.
        where, place = self.marks.first_after(line[ends], broken[ends] - 1)
        is_cut = where == chain[ends]
        cut = ends[is_cut]
        last[cut] = np.minimum(place[is_cut] - 1, last[cut])
        return last


class Breaks:
    """The breaks of each key: rows at which its coverage ends, or is declared anew."""

    def __init__(self, coverage: KeyCoverage) -> None:
        d, self._unit, self._marks = coverage.deliveries, coverage.unit, coverage.marks.rows
        # No reference to `coverage`, which refers to this: a reference cycle outlives its block for long.
        self._span_of_key, self._keys = coverage.span, max(1, len(coverage.order.keys))
        is_break = is_marker(d)
        is_first = np.zeros(len(d.kind), np.bool_)
        is_first[first_rows(coverage.session)] = True
        is_whole = (is_break & (d.key == NEVER) & (d.span < 0)) | is_first
        is_key = is_break & (d.key != NEVER) & (coverage.code >= 0)
        is_span = is_break & (d.key == NEVER) & (d.span >= 0)
        self._spans = int(max(d.span.max(initial=0), coverage.span.max(initial=0))) + 1
        self._whole = _by_time(coverage.unit, is_whole)
        self._anew = _by_time(coverage.unit, is_first | (is_whole & (d.kind == OPEN)))
        spans, keys = np.flatnonzero(is_span), np.flatnonzero(is_key)
        self._span = GroupIndex(coverage.unit[spans] * self._spans + d.span[spans], spans, spans)
        self._key = GroupIndex(coverage.unit[keys] * self._keys + coverage.code[keys], keys, keys)

    def _groups(self, unit: Int64s, code: Int64s) -> Iterator[tuple[GroupIndex, Int64s]]:
        yield self._whole, unit
        if len(self._span.rows):
            span = self._span_of_key[code]
            yield self._span, np.where(span >= 0, unit * self._spans + span, -1)
        if len(self._key.rows):
            yield self._key, unit * self._keys + code

    def following(self, unit: Int64s, code: Int64s, row: Int64s) -> Int64s:
        """The row of the first break of each key after `row`; NEVER if there is none."""
        found = [index.first(group, row, above=True) for index, group in self._groups(unit, code)]
        result: Int64s = np.minimum.reduce([np.where(each < 0, NEVER, each) for each in found])
        return result

    def of_all_keys(self, unit: Int64s, row: Int64s) -> Int64s:
        """The row of the first break of all keys after `row`; NEVER if there is none."""
        found = self._whole.first(unit, row, above=True)
        return np.where(found < 0, NEVER, found)

    def watched(self, opens: Int64s) -> Int64s:
        """Those of the openings that are followed by a watermark before everything is declared anew."""
        unit, marks = self._unit, self._marks
        mark = GroupIndex(unit[marks], marks, marks).first(unit[opens], opens)
        over = self._anew.first(unit[opens], opens, above=True)
        return opens[(mark >= 0) & ((over < 0) | (mark < over))]

    def before(self, unit: Int64s, code: Int64s, row: Int64s) -> Int64s:
        """The row of the last break of each key at or before `row`; -1 if there is none."""
        found = [index.last_before(group, row, or_equal=True) for index, group in self._groups(unit, code)]
        result: Int64s = np.maximum.reduce(found)
        return result


def coverage_events(coverage: KeyCoverage, shown: Int64s) -> CoverageEvents:
    """All coverage events. `shown` (n,) is the row of the source that each event of the log shows.

    O(n log n), and for each opening before a watermark the keys of the source that are not quiet.
    """
    # All later steps keep this order, and need no further sorts.
    every = ordered_by(concat([_rows(coverage, shown), _states(coverage)]), "group", "row")
    is_unknown = every.is_shown & (every.write == UNKNOWN)
    until = np.minimum(every.until, _until_unknown(every, is_unknown))
    position = coverage.deliveries.position[every.row]
    begins = np.flatnonzero(_begins(every, is_unknown) & every.is_shown & (position != NEVER) & (until >= every.at))
    every.moment[begins] = moments(position[begins], with_it=False)
    return replace(every, until=until)


def moments(position: Int64s, *, with_it: bool) -> Int64s:
    """A number for the state just after each position (`with_it`), or just before; such numbers ascend in time."""
    return position * 2 + with_it


def _begins(every: CoverageEvents, is_unknown: Bools) -> Bools:
    """True for events that begin coverage: the first of a key since the last break or unknown version."""
    since = every.broken
    if is_unknown.any():
        group = np.cumsum(first_of_each(every.group)) - 1
        phantoms = GroupIndex(group[is_unknown], every.row[is_unknown], every.row[is_unknown])
        since = np.maximum(since, phantoms.last_before(group, every.row))
    covers = np.flatnonzero(every.until >= every.at)
    result = np.zeros(len(since), np.bool_)
    result[covers[first_of_each(every.group[covers]) | first_of_each(since[covers])]] = True
    return result


def _rows(coverage: KeyCoverage, shown: Int64s) -> CoverageEvents:
    """Coverage events for rows that are the first of their session to show a version, and for all backfill rows."""
    d, order = coverage.deliveries, coverage.order
    rows = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL)) & (coverage.code >= 0))
    is_first = np.zeros(len(rows), np.bool_)
    # Rows that show one write have one key; UNKNOWN is below all writes.
    by_write, same = ordered(coverage.session[rows] * (len(coverage.writes.op) - UNKNOWN) + shown[rows])
    is_first[by_write[first_of_each(same)]] = True
    is_kept = is_first | (d.kind[rows] == BACKFILL) | (shown[rows] == UNKNOWN)
    rows = rows[is_kept]
    code = coverage.code[rows]
    line, owner = _lines(coverage, coverage.unit[rows], coverage.span[code])
    rows, code = rows[owner], code[owner]
    before = coverage.breaks.before(coverage.unit[rows], code, rows)
    is_open = (before >= 0) & (d.kind[before] == OPEN) & (d.position[before] != NEVER)
    start, position = d.position[before], d.position[rows]
    is_early = position < start if coverage.contract.resume == "at" else position <= start
    is_early &= is_open & (position != NEVER) & (d.kind[rows] == ROW) & (shown[rows] != UNKNOWN)
    is_over = (before >= 0) & is_kind(d.kind[before], ENDS)
    received = np.where(is_early, before, rows)
    exclusive = coverage.contract.closed == "<"
    # A backfill row shows the state with which its session begins: no watermark below that state contains it.
    is_state = is_open & (d.kind[rows] == BACKFILL)
    closing = np.where(is_state, np.where(position == NEVER, start, np.maximum(position, start)), position)
    chain, at = coverage.places(line, received, closing, above=exclusive)
    until = coverage.untils(line, chain, code, rows)
    write = shown[rows]
    is_unknown = write == UNKNOWN
    return CoverageEvents(
        group=chain * max(1, len(order.keys)) + code,
        chain=chain,
        code=code,
        row=rows,
        broken=before,
        at=at,
        until=np.where(is_early | is_over | is_unknown, -1, until),
        write=write,
        age=np.where(is_unknown, UNKNOWN, order.age(np.maximum(write, 0))) if len(coverage.writes.op) else write,
        is_delivered=d.kind[rows] == ROW,
        is_shown=np.ones(len(rows), np.bool_),
        moment=np.full(len(rows), -1, np.int64),
    )


def _states(coverage: KeyCoverage) -> CoverageEvents:
    """Coverage events for the states with which sessions begin: one per opening and key, also if it is unknown.

    Quiet keys have none.
    """
    d = coverage.deliveries
    opens = coverage.breaks.watched(np.flatnonzero((d.kind == OPEN) & (d.position != NEVER)))
    others = opens[coverage.sole[coverage.unit[opens]] < 0]
    owner, code = _meant(coverage, others)
    named, code_named = _named(coverage)
    row, code = np.append(others[owner], named), np.append(code, code_named)
    is_after = coverage.contract.resume == "after"
    position = d.position[row]
    age = states_at(coverage.order, coverage.writes, code=code, position=position, with_it=is_after)
    line, again = _lines(coverage, coverage.unit[row], coverage.span[code])
    row, code, age, position = row[again], code[again], age[again], position[again]
    chain, at = coverage.places(line, row, position, above=is_after and coverage.contract.closed == "<")
    return CoverageEvents(
        group=chain * max(1, len(coverage.order.keys)) + code,
        chain=chain,
        code=code,
        row=row,
        broken=row,
        at=at,
        until=np.where(age == UNKNOWN, -1, coverage.untils(line, chain, code, row)),
        write=coverage.order.writer(code, age),
        age=age,
        is_delivered=np.zeros(len(row), np.bool_),
        is_shown=np.zeros(len(row), np.bool_),
        moment=moments(position, with_it=is_after),
    )


class QuietKeys(Struct, frozen=True, kw_only=True):
    """The known states of quiet keys under m openings, by position: the ranges are of these, and number the keys.

    Watermarks from number first[i] to last[i] of one chain show the state of opening i. `age` is that of each range.
    """

    first: Int64s
    last: Int64s
    ranges: Spread
    age: Int64s


def quiet_keys(coverage: KeyCoverage) -> QuietKeys:
    """All states of quiet keys that some watermark shows. O(n log n) for n rows of the log and the source."""
    d, is_after = coverage.deliveries, coverage.contract.resume == "after"
    opens = coverage.sole[coverage.sole >= 0]
    opens = opens[ascending(d.position[opens])]
    position = d.position[opens]
    chain, at, last = _reach(coverage, opens)
    shown = np.flatnonzero(at < coverage.marks.length()[chain])
    every, age = states_between(coverage.order, coverage.writes, position[shown], with_it=is_after)
    place = np.full(len(d.kind), -1, np.int64)
    place[opens[shown]] = np.arange(len(shown))
    row, code = _named(coverage)
    is_shown = place[row] >= 0
    part, begin, end = every.without(code[is_shown], place[row[is_shown]], len(shown))
    return QuietKeys(
        first=coverage.marks.number(chain[shown], at[shown]),
        last=coverage.marks.number(chain[shown], last[shown]),
        ranges=Spread(every.number[part], begin, end),
        age=age[part],
    )


def _reach(coverage: KeyCoverage, opens: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """For each opening its chain, the place of the first watermark with its state, and that of the last before a break.

    The first is the chain's length if no watermark has the state.
    """
    position, is_after = coverage.deliveries.position[opens], coverage.contract.resume == "after"
    line = coverage.marks.line_of(coverage.unit[opens], np.full(len(opens), WHOLE))
    chain, at = coverage.places(line, opens, position, above=is_after and coverage.contract.closed == "<")
    return chain, at, coverage.last_before(line, chain, coverage.breaks.of_all_keys(coverage.unit[opens], opens))


def _sole_openings(coverage: KeyCoverage) -> Int64s:
    """For each unit its only opening, if it begins with the state of all keys, and a watermark follows; -1 if not.

    None if the log has partitions: then a key has several lines, and breaks of its own. None either where a break comes
    before the first watermark with that state, which contains it all the same.
    """
    d, unit = coverage.deliveries, coverage.unit
    result = np.full(int(unit.max(initial=-1)) + 1, -1, np.int64)
    if max(d.span.max(initial=-1), coverage.span.max(initial=-1)) >= 0:
        return result
    opens = np.flatnonzero(d.kind == OPEN)
    is_only = np.bincount(unit[opens], minlength=len(result))[unit[opens]] == 1
    watched = coverage.breaks.watched(opens[is_only & (d.key[opens] == NEVER) & (d.position[opens] != NEVER)])
    chain, at, last = _reach(coverage, watched)
    watched = watched[(last >= at) | (at >= coverage.marks.length()[chain])]
    result[unit[watched]] = watched
    return result


def _named(coverage: KeyCoverage) -> tuple[Int64s, Int64s]:
    """Each sole opening with the keys of the source that events of its unit name: the keys that are not quiet."""
    rows = np.flatnonzero((coverage.code >= 0) & (coverage.sole[coverage.unit] >= 0))
    rows = rows[first_rows(coverage.unit[rows], coverage.code[rows])]
    return coverage.sole[coverage.unit[rows]], coverage.code[rows]


def _meant(coverage: KeyCoverage, opens: Int64s) -> tuple[Int64s, Int64s]:
    """Pairs of a place in `opens` and a key of the source that this opening covers."""
    d, keys = coverage.deliveries, np.arange(len(coverage.order.keys))
    by_span = ordered(coverage.span)[0]
    spans = coverage.span[by_span]
    span = d.span[opens]
    is_one, is_part = d.key[opens] != NEVER, span >= 0
    first = np.where(is_part, np.searchsorted(spans, span), 0)
    stop = np.where(is_part, np.searchsorted(spans, span, side="right"), len(keys))
    owner, place = expand(first, np.where(is_one, first, stop))
    one = np.flatnonzero(is_one & (coverage.code[opens] >= 0))
    code = by_span[place] if len(keys) else place
    return np.append(owner, one), np.append(code, coverage.code[opens[one]])


def _lines(coverage: KeyCoverage, unit: Int64s, span: Int64s) -> tuple[Int64s, Int64s]:
    """The lines whose watermarks cover keys of each unit and partition, and the row of each: at most two per row."""
    whole = coverage.marks.line_of(unit, np.full(len(unit), WHOLE))
    if not np.any(span >= 0):
        owner = np.flatnonzero(whole >= 0)
        return whole[owner], owner
    part = np.where(span >= 0, coverage.marks.line_of(unit, span), -1)
    line, owner = np.append(whole, part), np.tile(np.arange(len(unit)), 2)
    return line[line >= 0], owner[line >= 0]


def _until_unknown(every: CoverageEvents, is_unknown: Bools) -> Int64s:
    """For each coverage event the place before the first watermark with a later unknown version of the key."""
    if not is_unknown.any():
        return every.until
    group = codes(every.group)
    order = ascending(group, -every.row)
    top = int(max(every.at.max(initial=0), every.until.max(initial=0))) + 3
    height = np.where(is_unknown[order], every.at[order], top - 1)
    # Groups descend in `base`, so that each group's running minimum is below those of all groups before it.
    base = (int(group.max(initial=0)) - group[order]) * top
    result = np.empty(len(group), np.int64)
    result[order] = np.minimum.accumulate(base + height) - base - 1
    return result


def _spans_of_keys(code: Int64s, deliveries: Deliveries, order: KeyOrder, writes: SourceWrites) -> Int64s:
    """The partition of each key of the source; -1 if none is named."""
    result = np.full(len(order.keys), -1, np.int64)
    if max(deliveries.span.max(initial=-1), writes.span.max(initial=-1)) < 0:
        return result
    is_named = code >= 0
    np.maximum.at(result, order.code_of_write, writes.span)
    np.maximum.at(result, code[is_named], deliveries.span[is_named])
    return result


def _by_time(group: Int64s, mask: Bools) -> GroupIndex:
    time = np.flatnonzero(mask)
    return GroupIndex(group[time], time, time)
