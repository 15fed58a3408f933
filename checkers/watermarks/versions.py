"""The versions of each key at the source, in their order, and the version that each event of a stream shows.

Only Committed* writes have versions: those that certainly happened, and unclear ones that were observed. Their order
comes, key by key, from the best available source:
1. Reads of lists, if they show any version of the key. Versions that no read shows are newer than all that one shows.
2. The system's own positions, if it declares that each is of one unit; inside a unit the order of its writes.
3. The order in which other subscribers received them (checkers/watermarks/order_elsewhere.py).
Otherwise a version has no place in the order. The versions are counted by source.

An event shows the write of its key and value. If several have that value, or it has none (a delete), the position
decides too; without a position it is the only delete of its key. Any other event shows an unknown version.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.columns import runs
from checkers.columns.index import GroupIndex, Places, ascending, is_kind
from checkers.columns.runs import first_of_each
from checkers.columns.spreads import Spread
from checkers.columns.table import Join
from harness.core.columns import (
    BACKFILL,
    CHECKPOINT,
    FAIL,
    INFO,
    NEVER,
    OK,
    ROW,
    Bools,
    Deliveries,
    Int64s,
    SourceWrites,
)
from harness.core.promises import StreamContract

INITIAL = -1
UNKNOWN = -2  # No age, no slot, no row.
NO_PLACES = np.empty(0, np.int64)


class KeyOrder(Struct, frozen=True, kw_only=True):
    """The versions of k keys, v of them, by key and age: those of keys[i] are the slots from start[i] to start[i + 1].

    The *age* of a version counts inside its key, from 0; INITIAL is the age of the state before all versions.
    """

    keys: Int64s  # (k,) ascending: all keys of the source
    start: Int64s  # (k + 1,)
    write: Int64s  # (v,) the row of the source that wrote each version
    slot: Int64s  # (writes,) the slot of each row of the source; UNKNOWN if it has none
    code_of_write: Int64s  # (writes,) the place of its key in `keys`
    counts: dict[str, int]  # The number of versions that each source orders.

    def is_loose(self) -> Bools:
        """True for keys none of whose versions has a place, shape (k,)."""
        result: Bools = self.start[1:] == self.start[:-1]
        return result

    def code(self, key: Int64s) -> Int64s:
        """The place of each key in `keys`; UNKNOWN for a key that the source does not have."""
        at = Places(self.keys).of(key)
        return np.where(at >= 0, at, UNKNOWN)

    def writer(self, code: Int64s, age: Int64s) -> Int64s:
        """The row of the source that wrote the version with that age of each key; UNKNOWN if there is none."""
        slot = self.start[code] + age
        exists = (age >= 0) & (slot < self.start[code + 1])
        return np.where(exists, np.append(self.write, UNKNOWN)[np.where(exists, slot, len(self.write))], UNKNOWN)

    def age(self, write: Int64s) -> Int64s:
        """The age of the version that each row of the source wrote; UNKNOWN if it has no place."""
        slot = self.slot[write]
        return np.where(slot == UNKNOWN, UNKNOWN, slot - self.start[self.code_of_write[write]])


def with_partitions(
    deliveries: Deliveries, writes: SourceWrites, *, is_position_global: bool
) -> tuple[Deliveries, SourceWrites]:
    """The log and the source without the keys whose one partition is not known.

    They moved, and nobody says when; or no log has a row of theirs. So it is not known which partition's watermarks and
    gaps speak of them, nor are positions comparable. They stay if positions are global, and every watermark and marker
    is of the whole stream. `writes` have their partitions from all logs together.
    """
    d, is_row = deliveries, is_kind(deliveries.kind, (ROW, BACKFILL))
    if not np.any(d.span >= 0) or (is_position_global and not np.any(~is_row & (d.span >= 0))):
        return deliveries, writes
    is_lost = writes.span < 0
    is_lost_row = is_row & (Places(runs.distinct(writes.key[is_lost])).of(d.key) >= 0)
    kind, outcome = np.where(is_lost_row, CHECKPOINT, d.kind), np.where(is_lost, FAIL, writes.outcome)
    return replace(d, kind=kind.astype(np.int8)), replace(writes, outcome=outcome.astype(np.int8))


def is_committed(writes: SourceWrites) -> Bools:
    """True for writes that are Committed*: they certainly happened, or were observed."""
    is_seen = (writes.position != NEVER) | (writes.version != NEVER)
    result: Bools = (writes.outcome == OK) | ((writes.outcome == INFO) & is_seen)
    return result


def key_order(writes: SourceWrites, contract: StreamContract) -> KeyOrder:
    """The order of all versions. O(n log n)."""
    keys, code = runs.codes(writes.key)
    committed = is_committed(writes)
    is_listed = committed & (writes.version != NEVER)
    is_placed = committed & ~is_listed & (writes.position != NEVER) & _trusts_positions(contract)
    rows = np.flatnonzero(is_listed | is_placed)
    by_list = np.where(is_listed[rows], writes.version[rows], NEVER)
    position = np.where(is_listed[rows], 0, writes.position[rows])
    ordinal = np.where(is_listed[rows], 0, writes.ordinal[rows])
    order = ascending(code[rows], by_list, position, ordinal)
    is_first = reduce(or_, (first_of_each(each[order]) for each in (code[rows], by_list, position, ordinal)))
    # Two versions at the same place have no place.
    is_single = is_first & np.append(is_first[1:], True)[: len(order)]
    write = rows[order[is_single]]
    counts = {
        "lists": int(np.count_nonzero(is_listed[write])),
        "positions": int(np.count_nonzero(~is_listed[write])),
        "none": int(np.count_nonzero(committed)) - len(write),
    }
    return _ordered(keys, code, write, counts)


def order_by(order: KeyOrder, place: Int64s) -> KeyOrder:
    """The versions of the same keys, ordered by `place` (writes,); a version with NEVER has no place."""
    rows = np.flatnonzero(place != NEVER)
    write = rows[ascending(order.code_of_write[rows], place[rows])]
    return _ordered(order.keys, order.code_of_write, write, {})


def _ordered(keys: Int64s, code: Int64s, write: Int64s, counts: dict[str, int]) -> KeyOrder:
    """The order whose versions are those rows of the source, which are sorted by key and age."""
    slot = np.full(len(code), UNKNOWN, np.int64)
    slot[write] = np.arange(len(write))
    start = np.searchsorted(code[write], np.arange(len(keys) + 1))
    return KeyOrder(keys=keys, start=start, write=write, slot=slot, code_of_write=code, counts=counts)


def shown_writes(deliveries: Deliveries, writes: SourceWrites) -> Int64s:
    """The row of the source that each event shows, shape (n,); UNKNOWN for unknown versions and other events."""
    d, n = deliveries, len(deliveries.kind)
    possible = np.flatnonzero(writes.outcome != FAIL)
    if not len(possible):  # As in every stream without a source.
        return np.full(n, UNKNOWN, np.int64)
    events = np.flatnonzero(is_kind(d.kind, (ROW, BACKFILL)) & (d.key != NEVER))
    by_value = _only(d, writes, events, possible, ("key", "value"))
    result = np.where(d.value[events] != NEVER, by_value, -1)
    for names in (("key", "value", "position"), ("key", "value", "position", "ordinal")):
        left = np.flatnonzero((result < 0) & (d.position[events] != NEVER))
        if len(left):
            result[left] = _only(d, writes, events[left], possible, names)
    # A delete has no value: without a position it shows the key's only delete.
    left = np.flatnonzero((result < 0) & (by_value >= 0))
    only = by_value[left]
    fits = (writes.position[possible[only]] == NEVER) | (d.position[events[left]] == NEVER)
    result[left[fits]] = only[fits]
    shown = np.full(n, UNKNOWN, np.int64)
    is_known = result >= 0
    shown[events[is_known]] = possible[result[is_known]]
    return shown


def states_at(order: KeyOrder, writes: SourceWrites, *, code: Int64s, position: Int64s, with_it: bool) -> Int64s:
    """The age that each key (m,) has just before `position` (m,), with `with_it` just after it; UNKNOWN if not known.

    Known only for keys all of whose versions have positions, and whose versions up to there have an order. O(m log v).
    """
    owner, height = _heights(order, writes)
    if not len(height):
        age = np.full(len(code), INITIAL, np.int64)
    else:
        age = GroupIndex(owner, height).place(code, position, above=with_it)
        age = age - order.start[code] - 1
    loose = _known_until(order, writes)
    is_clouded = loose[code] <= position if with_it else loose[code] < position
    return np.where(is_clouded, UNKNOWN, age)


def states_between(order: KeyOrder, writes: SourceWrites, position: Int64s, *, with_it: bool) -> tuple[Spread, Int64s]:
    """The known results of `states_at` for all keys at all m positions, which ascend, as ranges of the latter.

    The number of a range is a key's place; then the age in each range. They are sorted by key and age. O(v log m).
    """
    side: Literal["left", "right"] = "left" if with_it else "right"
    owner, height = _heights(order, writes)
    keys = np.arange(len(order.keys))
    code, age = (
        np.append(keys, owner),
        np.append(np.full(len(keys), INITIAL), np.arange(len(owner)) - order.start[owner]),
    )
    begin = np.append(np.zeros(len(keys), np.int64), np.searchsorted(position, height, side))
    by_age = ascending(code, age)
    code, age, begin = code[by_age], age[by_age], begin[by_age]
    end = np.append(begin[1:], 0)[: len(begin)]
    end[np.append(code[1:] != code[:-1], True)[: len(end)]] = len(position)
    end = np.minimum(end, np.searchsorted(position, _known_until(order, writes), side)[code])
    rows = np.flatnonzero(begin < end)
    return Spread(code[rows], begin[rows], end[rows]), age[rows]


def _heights(order: KeyOrder, writes: SourceWrites) -> tuple[Int64s, Int64s]:
    """For each version its key's place, and the lowest position from there to the last version of the key."""
    owner = np.repeat(np.arange(len(order.keys)), np.diff(order.start))
    return owner, _lowest_to_come(owner, writes.position[order.write])


def _known_until(order: KeyOrder, writes: SourceWrites) -> Int64s:
    """For each key the first position of a version that has no place in the order; -1 if some has no position."""
    result = np.full(len(order.keys), NEVER, np.int64)
    rows = np.flatnonzero(is_committed(writes) & ((order.slot == UNKNOWN) | (writes.position == NEVER)))
    when = np.where(writes.position[rows] == NEVER, -1, writes.position[rows])
    np.minimum.at(result, order.code_of_write[rows], when)
    return result


def _trusts_positions(contract: StreamContract) -> bool:
    """True if positions order the versions of a key: they are unique, and events of a key come in order."""
    return contract.is_position_unique and contract.order_key != "none"


def _lowest_to_come(owner: Int64s, height: Int64s) -> Int64s:
    """For each version the lowest height from there to the last version of its key."""
    if np.all((height[1:] >= height[:-1]) | (owner[1:] != owner[:-1])):
        return height
    levels, rank = runs.codes(height)
    base = owner * len(levels)
    return levels[np.minimum.accumulate((base + rank)[::-1])[::-1] - base]


def _only(deliveries: Deliveries, writes: SourceWrites, rows: Int64s, possible: Int64s, names: Sequence[str]) -> Int64s:
    """For each of those events the place in `possible` of the only write with equal columns; -1 without one."""
    events, written = (
        [getattr(table, name)[at] for name in names] for table, at in ((deliveries, rows), (writes, possible))
    )
    return Join(events, written).only
