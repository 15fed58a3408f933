"""The edges between transactions and watermarks of one log, from what each watermark contains and lacks.

Theory of operation. A watermark W reads the state that results from the rows that it contains.
1. W contains a row that was received before it, in its chain, and that it closes (`cut: position`), or whatever its
   position is (`cut: delivery`). So in a chain each row has a first watermark f that contains it.
2. From versions: while v is the newest contained version of a key and the key is covered, over a run of watermarks of
   one chain, writer(v) precedes the first of the run, and the last of it precedes the writer of the version after v.
3. From delivery, if every version is sent: the writer of a row precedes f; and the last watermark before f at which the
   key was covered precedes the writer, because it lacks the row, and the row came. Not so for rows of a backfill, and
   for the state with which a session began.
4. Watermarks of a chain precede each other in their order, and nothing more is needed: every other edge follows.
5. Coverage of a key begins with the opening of its session, if the state at its position is known, else with the first
   row after it. It ends with a gap marker, with any marker that ends a session, and with a row that shows an unknown
   version, until a newer one is contained.
6. If only other subscribers show the order of a key's versions, that order gives edges out of a watermark as in 2. The
   rows themselves lead in already (3).
7. For a quiet key (checkers/watermarks/coverage.py) the only run is that of the state with which its session began. The
   edges by 2 are the same for all sessions between two versions, and are kept as ranges of sessions.
"""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns.index import GroupIndex, ascending, codes, first_rows, max_so_far
from checkers.columns.runs import distinct, first_of_each, ordered
from checkers.columns.spreads import Spread
from checkers.columns.table import concat, empty, take
from checkers.watermarks.coverage import (
    CoverageEvents,
    KeyCoverage,
    QuietKeys,
    coverage_events,
    moments,
    quiet_keys,
)
from checkers.watermarks.nodes import Marks, marks_of, units_of
from checkers.watermarks.versions import INITIAL, NO_PLACES, UNKNOWN, KeyOrder, key_order, order_by, shown_writes
from harness.core.columns import NEVER, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract


class Links(Struct, frozen=True, kw_only=True):
    """e edges between operations and watermarks, in no order; an edge may occur twice, by different rows.

    `row` is the event of the log that shows the edge, UNKNOWN if it follows from versions alone; `version` is the row
    of the source that the operation wrote.
    """

    op: Int64s
    mark: Int64s
    version: Int64s
    row: Int64s


def once_each(links: Links) -> Links:
    """Each edge once: with the last event that shows it, if there is one. O(n log n)."""
    order = ascending(links.mark, links.version, -links.row)
    return take(links, order[first_of_each(links.mark[order]) | first_of_each(links.version[order])])


class Quiet(Struct, frozen=True, kw_only=True):
    """The edges of quiet keys under m openings: `into` leads to `first` (m,) of them, `out` comes from `last` (m,).

    Each range is one of openings, and has the row of the source, or the operation, at the other end of these edges.
    """

    first: Int64s
    last: Int64s
    into: Spread
    out: Spread

    def of(self, column: Int64s) -> "Quiet":
        """The same edges, with the values of `column` in place of row numbers."""
        into, out = (replace(each, number=column[each.number]) for each in (self.into, self.out))
        return replace(self, into=into, out=out)


class WatermarkEdges(Struct, frozen=True, kw_only=True):
    """All edges of one log: `into` from operations to watermarks, `out` from watermarks to operations.

    Those of quiet keys are in `quiet` alone, by row of the source.

    `witnesses` are the watermarks that newly contain a committed write; `passing` those of them that newly contain two
    versions of one key by one operation.
    """

    marks: Marks
    order: KeyOrder
    into: Links
    out: Links
    quiet: Quiet
    new: Links  # each watermark and the versions that it newly contains; one per operation and key
    witnesses: Int64s
    passing: Links


def watermark_edges(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, elsewhere: Int64s = NO_PLACES
) -> WatermarkEdges:
    """The edges of a log, O(rows) and ranges of them; none if the contract declares no cut. O(n log n).

    `elsewhere` has a place for each write of the source, by checkers/watermarks/order_elsewhere.py, or is empty.
    """
    unit = units_of(deliveries, contract)
    marks = marks_of(deliveries, unit, is_cut_known=contract.cut != "unknown")
    order = key_order(writes, contract)
    coverage = KeyCoverage(deliveries, writes, contract, marks, order, unit)
    seen = coverage_events(coverage, shown_writes(deliveries, writes))
    runs = _runs(marks, seen)
    firsts = _firsts(deliveries, seen)
    into, out = _segments(marks, order, runs)
    following = _ordered_elsewhere(marks, order, seen, elsewhere) if len(elsewhere) else NO_LINKS
    entered = _entered(marks, firsts)
    missed = _missed(marks, firsts, runs) if contract.versions == "every" else NO_LINKS
    entered = _by_op(entered, writes)
    new, passing = _contained(take(entered, entered.row != UNKNOWN), writes)
    return WatermarkEdges(
        marks=marks,
        order=order,
        into=concat([_by_op(into, writes), entered]),
        out=_by_op(concat([out, missed, following]), writes),
        quiet=_quiet(quiet_keys(coverage), order, elsewhere),
        new=new,
        witnesses=distinct(new.mark),
        passing=passing,
    )


def with_quiet(edges: WatermarkEdges, writes: SourceWrites) -> WatermarkEdges:
    """The same edges, each of those of quiet keys by itself: as many as their keys times openings."""
    quiet = edges.quiet

    def links(spread: Spread, mark: Int64s) -> Links:
        row, place = spread.pairs()
        return _by_op(_links(mark[place], spread.number[row], np.full(len(row), UNKNOWN)), writes)

    return replace(
        edges,
        into=concat([edges.into, links(quiet.into, quiet.first)]),
        out=concat([edges.out, links(quiet.out, quiet.last)]),
        quiet=replace(quiet, into=empty(Spread), out=empty(Spread)),
    )


def node_pairs(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, elsewhere: Int64s = NO_PLACES
) -> tuple[Int64s, Int64s, Int64s]:
    """In edges, out edges and chain edges as (n, 2) arrays of node numbers, each pair once, ascending.

    An operation's number is its index. Watermark i of the log, counted by receipt, has the greatest index of the source
    plus i + 1.
    """
    edges = with_quiet(watermark_edges(deliveries, writes, contract, elsewhere), writes)
    base = int(writes.op.max(initial=-1)) + 1
    into = np.stack((edges.into.op, edges.into.mark + base), axis=1)
    out = np.stack((edges.out.mark + base, edges.out.op), axis=1)
    chain = np.stack(edges.marks.pairs(), axis=1) + base
    return np.unique(into, axis=0), np.unique(out, axis=0), np.unique(chain, axis=0)


class _Runs(Struct, frozen=True, kw_only=True):
    """Runs of watermarks of one chain at which a key was covered and `age` was its newest version.

    They are sorted by group and place, and go from place `first` to `last` of the chain. `age` is UNKNOWN if the order
    of the contained versions is not known.
    """

    group: Int64s
    chain: Int64s
    code: Int64s
    first: Int64s
    last: Int64s
    age: Int64s
    row: Int64s  # the event that began the run


def _runs(marks: Marks, seen: CoverageEvents) -> _Runs:
    """Runs by theory of operation, 2 and 5: the watermarks at which each key was covered, and the version it had."""
    length = marks.length()
    acts = np.flatnonzero(seen.at < length[seen.chain])
    acts = acts[ascending(seen.group[acts], seen.at[acts])]
    group, first, age = seen.group[acts], seen.at[acts], seen.age[acts]
    is_last = np.append(group[1:] != group[:-1], True)[: len(group)]
    following = np.append(first[1:], 0)[: len(group)]
    following[is_last] = length[seen.chain[acts[is_last]]]
    # A version without a place in the order may be newer than all that have one.
    is_cloud = (age == UNKNOWN) & (seen.write[acts] != UNKNOWN)
    age = max_so_far(group, np.where(age == UNKNOWN, INITIAL, age))
    if is_cloud.any():
        age[max_so_far(group, is_cloud.astype(np.int64)) > 0] = UNKNOWN
    last = np.minimum(following - 1, max_so_far(group, seen.until[acts]))
    kept = np.flatnonzero(last >= first)
    acts, group, first, last, age = acts[kept], group[kept], first[kept], last[kept], age[kept]
    begins = first_of_each(group) | first_of_each(age)
    begins[1:] |= first[1:] > last[:-1] + 1
    start = np.flatnonzero(begins)
    end = np.append(start[1:], len(kept))[: len(start)] - 1
    acts = acts[start]
    return _Runs(
        group=group[start],
        chain=seen.chain[acts],
        code=seen.code[acts],
        first=first[start],
        last=last[end],
        age=age[start],
        row=seen.row[acts],
    )


def _segments(marks: Marks, order: KeyOrder, runs: _Runs) -> tuple[Links, Links]:
    """Edges by theory of operation, 2: into the first watermark of each run, and out of the last."""
    held = order.writer(runs.code, runs.age)
    following = np.where(runs.age == UNKNOWN, UNKNOWN, order.writer(runs.code, runs.age + 1))
    into = _links(marks.number(runs.chain, runs.first), held, runs.row)
    out = _links(marks.number(runs.chain, runs.last), following, np.full(len(held), UNKNOWN))
    return into, out


def _ordered_elsewhere(marks: Marks, order: KeyOrder, seen: CoverageEvents, elsewhere: Int64s) -> Links:
    """Edges by theory of operation, 6: out of the last watermark with a version, to the writer of the next."""
    shown = order_by(order, elsewhere)
    mine = take(seen, ~shown.is_loose()[seen.code])
    is_version = mine.write != UNKNOWN
    age = np.where(is_version, shown.age(np.where(is_version, mine.write, 0)), mine.age)
    return _segments(marks, shown, _runs(marks, replace(mine, age=age)))[1]


class _Firsts(Struct, frozen=True, kw_only=True):
    """The first watermark of each chain that contains each known version."""

    group: Int64s
    chain: Int64s
    at: Int64s
    write: Int64s
    row: Int64s  # the event that shows it there; UNKNOWN for a state
    is_delivered: Bools  # True if an event of the chain delivered it.


def _firsts(deliveries: Deliveries, seen: CoverageEvents) -> _Firsts:
    """The first containment of each known version in each chain; of several at one watermark the one received first."""
    known = np.flatnonzero(seen.write != UNKNOWN)
    at = seen.at[known]
    early = _held_before(deliveries, seen, known)
    what = codes(seen.chain[known], seen.write[known])
    bits = len(known).bit_length()
    best = np.full(int(what.max(initial=-1)) + 1, NEVER)
    # Coverage events of one version are in order of receipt.
    np.minimum.at(best, what, np.minimum(at, early) << bits | np.arange(len(known)))
    first = best & ((1 << bits) - 1)
    rows = known[first]
    is_delivered = np.zeros(len(best), np.bool_)
    is_delivered[what[seen.is_delivered[known]]] = True
    is_shown = seen.is_shown[rows] & (at[first] <= early[first])
    return _Firsts(
        group=seen.group[rows],
        chain=seen.chain[rows],
        at=best >> bits,
        write=seen.write[rows],
        row=np.where(is_shown, seen.row[rows], UNKNOWN),
        is_delivered=is_delivered,
    )


def _held_before(deliveries: Deliveries, seen: CoverageEvents, known: Int64s) -> Int64s:
    """For each of the events `known` the first place at which its key's coverage began with a state that includes it.

    NEVER if no coverage began so, or only after the event itself.

    Execution: a gap, then x's version at 9 is received, which begins coverage anew; watermark 9. The subscriber resumes
    at 5, and is now sent x's version at 8 for the first time. Watermark 9 contained it all the same.
    """
    result = np.full(len(known), NEVER)
    begins = np.flatnonzero(seen.moment >= 0)
    position = deliveries.position[seen.row[known]]
    queried = np.flatnonzero(seen.is_shown[known] & (position != NEVER))
    moment = moments(position[queried], with_it=True)
    # Usually no coverage began that early: sessions begin at few moments.
    is_early = _earliest(seen.moment[begins], seen.at[begins], moment) < seen.at[known[queried]]
    queried, moment = queried[is_early], moment[is_early]
    if not len(queried):
        return result
    begins = begins[ascending(seen.group[begins], seen.moment[begins])]
    group = seen.group[begins]
    least = _least_to_come(codes(group), seen.at[begins])
    wanted = seen.group[known[queried]]
    place = GroupIndex(group, seen.moment[begins]).place(wanted, moment)
    is_found = np.append(group, UNKNOWN)[place] == wanted
    result[queried[is_found]] = least[place[is_found]]
    return result


def _earliest(begin: Int64s, at: Int64s, moment: Int64s) -> Int64s:
    """For each `moment` the least `at` among those whose `begin` is that moment or later; NEVER if there is none."""
    order, levels = ordered(begin)
    is_first = first_of_each(levels)
    least = np.minimum.accumulate(at[order][::-1])[::-1]
    return np.append(least[is_first], NEVER)[np.searchsorted(levels[is_first], moment)]


def _least_to_come(group: Int64s, height: Int64s) -> Int64s:
    """For each row the least height from there to the end of its group; `group` ascends."""
    top = int(height.max(initial=0)) + 1
    base = group * top
    return np.minimum.accumulate((base + height)[::-1])[::-1] - base


def _entered(marks: Marks, firsts: _Firsts) -> Links:
    """Edges by theory of operation, 3: from the writer of each contained version into the first watermark with it."""
    inside = take(firsts, firsts.at < marks.length()[firsts.chain])
    return _links(marks.number(inside.chain, inside.at), inside.write, inside.row)


def _missed(marks: Marks, firsts: _Firsts, runs: _Runs) -> Links:
    """Edges by theory of operation, 3: out of the last watermark that covered the key and lacked the version."""
    run = GroupIndex(runs.group, runs.first).last_before(firsts.group, firsts.at)
    is_missed = firsts.is_delivered & (run >= 0)
    came, run = take(firsts, is_missed), run[is_missed]
    place = np.minimum(runs.last[run], came.at - 1)
    return _links(marks.number(came.chain, place), came.write, came.row)


def _contained(entered: Links, writes: SourceWrites) -> tuple[Links, Links]:
    """The newly contained versions, one for each operation and key; and the others, where a watermark has several."""
    part = codes(entered.op, writes.key[entered.version])
    several = np.flatnonzero(np.bincount(part, minlength=1)[part] > 1)  # Usually an operation writes a key once.
    is_kept = np.ones(len(part), np.bool_)
    is_kept[several] = False
    is_kept[several[first_rows(entered.mark[several], part[several])]] = True
    again = _with_two(entered.mark[several], part[several], entered.version[several])
    return take(entered, is_kept), take(entered, several[again])


def _quiet(keys: QuietKeys, order: KeyOrder, elsewhere: Int64s) -> Quiet:
    """Edges by theory of operation, 7: of versions with a place, or before all that other subscribers order."""
    code = keys.ranges.number
    following = order.writer(code, keys.age + 1)
    if len(elsewhere):
        is_before = (keys.age == INITIAL) & (following == UNKNOWN)
        following = np.where(is_before, order_by(order, elsewhere).writer(code, keys.age + 1), following)
    into, out = (replace(keys.ranges, number=version) for version in (order.writer(code, keys.age), following))
    return Quiet(
        first=keys.first,
        last=keys.last,
        into=take(into, into.number != UNKNOWN),
        out=take(out, out.number != UNKNOWN),
    )


def _links(mark: Int64s, version: Int64s, row: Int64s) -> Links:
    """Edges by version, with `op` still missing; those without a version are left out."""
    links = Links(op=version, mark=mark, version=version, row=row)
    return take(links, version != UNKNOWN)


NO_LINKS = _links(NO_PLACES, NO_PLACES, NO_PLACES)


def _by_op(links: Links, writes: SourceWrites) -> Links:
    """The same edges with the operation that wrote each version."""
    return replace(links, op=writes.op[links.version])


def _with_two(mark: Int64s, unit: Int64s, part: Int64s) -> Int64s:
    """Rows that show a further part of a unit at a watermark which already has another part of it."""
    pairs = first_rows(mark, unit, part)
    order = pairs[ascending(mark[pairs], unit[pairs])]
    is_again = ~(first_of_each(mark[order]) | first_of_each(unit[order]))
    return order[is_again]
