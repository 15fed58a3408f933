"""The second half of the transactional check of lists: the versions of some keys, and the dependencies that follow.

Theory of operation, for each key. Source: Kingsbury and Alvaro, Elle, VLDB 2020, section 4; jepsen.list-append.
1. The longest read is the order of the key's versions (its elements; the first place, if one occurs twice).
2. ww: from the appender of an element to the appender of the next.
3. wr: from the appender of the last element of a read to the reader. Earlier elements follow by ww.
4. rw: from a reader to the appender of the element right after the last one that it read.
5. An append that no read shows comes after the newest version that was read: ww from the appender of that version, and
   rw from all its readers. Those rw stay implicit. Where reads disagree, the order is known as far as all agree, and
   whatever they show after that is newer, in no known order. A read that shows some of it has no rw.
6. Failed operations are no nodes, nor is an appender that the history lacks: edges lead over their elements to the
   nearest node. An unclear operation is one: if it did not take effect, no read shows its writes, no edge leads away
   from it, and so it is in no cycle.
7. A key to which the same element was appended twice has no known versions: it is left out, and reported. A failed
   append beside another one of the element does not count: it did not happen, and the other explains what was read.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from checkers.columns.index import ascending, last_places
from checkers.columns.index import codes as joint_codes
from checkers.columns.runs import codes, distinct, expand, first_of_each, ordered
from checkers.columns.table import take
from checkers.graph.edges import RW, WR, WW, Edges, ImplicitRw, Inference, Int32s, Members, all_edges
from checkers.graph.sightings import Example, Report, Sighting, union
from checkers.history.longest import longest_lists
from checkers.history.stretches import ONCE, Weights
from checkers.transactions.key_rows import AppendRows, KeyRows, ReadRows, chosen, concatenated, without
from harness.core.columns import FAIL, Int64s

FAR = np.iinfo(np.int64).max  # Beyond all places.
# Elements numbered across all keys leave gaps in each key: up to this many slots per element a table is still faster.
_TABLE_SPARSITY = 32


class Slots:
    """Numbers for pairs of key code and element: they are rows of tables about elements.

    `given` (n,) are the slots of the pairs that the numbers were made from. Cost: O(n) if a key's elements lie close
    together, else O(n log n).
    """

    def __init__(self, code: Int64s, element: Int64s, key_count: int) -> None:
        low = np.full(key_count, np.iinfo(np.int64).max)
        high = np.full(key_count, -1, np.int64)
        np.minimum.at(low, code, element)
        np.maximum.at(high, code, element)
        width = np.where(high >= 0, high - np.minimum(low, high) + 1, 0)
        self._low, self._width = low, width
        self._base = np.cumsum(width) - width
        # Sums of wide spans may pass int64; a float is exact enough to say that they are too wide.
        self._is_dense = float(width.sum(dtype=np.float64)) <= _TABLE_SPARSITY * code.size + 1024
        self._code, self._element = code, element
        self.given = self.of(code, element) if self._is_dense else joint_codes(code, element)
        self.count = int(width.sum()) if self._is_dense else int(self.given.max()) + 1

    def of(self, code: Int64s, element: Int64s) -> Int64s:
        """The slot of each pair; -1 for an unknown pair.

        If elements lie far apart, each call sorts all: ask for many at once.
        """
        if self._is_dense:
            offset = element - self._low[code]
            is_inside = (element >= self._low[code]) & (offset < self._width[code])
            return np.where(is_inside, self._base[code] + offset, -1)
        if not len(code):  # Always so, unless the history is broken.
            return np.empty(0, np.int64)
        joint = joint_codes(np.append(self._code, code), np.append(self._element, element))
        slot = np.full(len(joint), -1)
        slot[joint[: len(self.given)]] = self.given
        return slot[joint[len(self.given) :]]


class Versions:
    """The versions of the keys in these rows. A `writer` is a row of appends, or -1 if no append has the element.

    `rows` must hold no key to which one element was appended twice. `seen` has the elements of the longest reads (those
    of key code c are seen_start[c]:seen_start[c + 1]), and `order` the same without repetitions.
    """

    def __init__(self, rows: KeyRows) -> None:
        self.rows = rows
        self.keys, code = codes(np.concatenate((rows.lists.key, rows.appends.key)))
        self.list_code, self.append_code = code[: len(rows.lists.key)], code[len(rows.lists.key) :]
        self.read_code = self.list_code[rows.reads.of_list]
        self.read_length = rows.reads.length.astype(np.int64)
        self.is_vertex = np.append(rows.appends.outcome != FAIL, False)  # Writer -1 is the last entry.
        self._find_longest()
        self._find_writers()
        self._find_order()
        self._find_last()

    def _find_longest(self) -> None:
        rows = self.rows
        lists = rows.lists
        found = longest_lists(self.list_code, lists.start, lists.length, rows.elements, lists.op.astype(np.int64))
        self.longest = np.full(len(self.keys), -1, np.int64)  # For each key code its list, -1 without a read.
        self.longest[self.list_code[found.row]] = found.row
        self.agreed = found.agreed  # The length to which each list agrees with the longest of its key,
        # and True for reads that saw a version in the order.
        self.is_version = self.read_length <= self.agreed[rows.reads.of_list]
        self.disputed = np.flatnonzero(self.agreed < lists.length)  # The lists that differ from the longest one.
        # The length to which all lists of a key agree, if some do not.
        self.sure_length = np.full(len(self.keys), FAR)
        np.minimum.at(self.sure_length, self.list_code[self.disputed], self.agreed[self.disputed])
        length = np.zeros(len(self.keys), np.int64)
        length[self.list_code[found.row]] = lists.length[found.row]
        self.seen_start = np.concatenate(([0], np.cumsum(length)))
        self.seen_code = np.repeat(np.arange(len(self.keys)), length)
        start = np.append(lists.start, 0)[self.longest]  # Keys without a read go to the last entry.
        self.seen = rows.elements[expand(start, length)]

    def _find_writers(self) -> None:
        rows = self.rows
        code = np.concatenate((self.append_code, self.seen_code))
        self.slots = Slots(code, np.concatenate((rows.appends.value, self.seen)), len(self.keys))
        slot, self.seen_slot = np.split(self.slots.given, [len(rows.appends.value)])
        self.writer_of_slot = np.full(self.slots.count + 1, -1, np.int32)  # Slot -1 is the last entry.
        self.writer_of_slot[slot] = np.arange(len(slot))
        # If two appends have one slot, the later row has overwritten the earlier one.
        overwritten = slot[self.writer_of_slot[slot] != np.arange(len(slot))]
        self.duplicates = np.flatnonzero(np.isin(slot, overwritten)) if len(overwritten) else overwritten
        self.seen_writer = self.writer_of_slot[self.seen_slot]

    def _find_order(self) -> None:
        first = np.full(self.slots.count + 1, -1, np.int32)
        first[self.seen_slot[::-1]] = np.arange(len(self.seen))[::-1]  # Assigned backwards, so the first place stays.
        self.is_repeated = first[self.seen_slot] != np.arange(len(self.seen))
        kept = np.cumsum(~self.is_repeated) - 1
        self.place_of_seen = kept[first[self.seen_slot]]
        self._first_of_slot, self._kept = first, kept
        self.order_code = self.seen_code[~self.is_repeated]
        self.writer = self.seen_writer[~self.is_repeated]
        self.order_start = np.searchsorted(self.order_code, np.arange(len(self.keys) + 1))
        at = np.flatnonzero(~self.is_repeated) - self.seen_start[self.order_code]
        self.is_sure = at < self.sure_length[self.order_code]  # For each place in the order: all lists agree up to it.

    def _find_last(self) -> None:
        """Set for each read the place of its last element in the order (-1: none), and the writer of that element."""
        rows, code, length = self.rows, self.read_code, self.read_length
        self.last_place = np.full(len(code), -1, np.int64)
        self.last_writer = np.full(len(code), -1, np.int64)
        plain = np.flatnonzero(self.is_version & (length > 0))
        self.last_place[plain] = self.place_of_seen[self.seen_start[code[plain]] + length[plain] - 1]
        self.last_writer[plain] = self.writer[self.last_place[plain]]
        odd = np.flatnonzero(~self.is_version)
        last = rows.elements[rows.lists.start[rows.reads.of_list[odd]] + length[odd] - 1]
        slot = self.slots.of(code[odd], last)
        first = self._first_of_slot[slot]
        self.last_place[odd] = np.where(first >= 0, self._kept[first], -1)
        self.last_writer[odd] = self.writer_of_slot[slot]


def resolved(parts: Sequence[KeyRows]) -> tuple[Versions, Sighting | None]:
    """The versions of the keys in those rows, and a sighting of the keys that rule 7 leaves out, if any."""
    rows = concatenated(parts)
    versions = Versions(rows)
    if not len(versions.duplicates):
        return versions, None
    spare = _failed_beside_another(versions)
    if len(spare):
        lists, reads, appends = (np.arange(len(table.op)) for table in (rows.lists, rows.reads, rows.appends))
        rows = chosen(rows, lists, reads, np.delete(appends, spare), rows.report)
        versions = Versions(rows)
        if not len(versions.duplicates):
            return versions, None
    bad = versions.keys[distinct(versions.append_code[versions.duplicates])]
    where = versions.duplicates
    example = min(
        Example(int(rows.appends.op[row]), int(rows.appends.key[row]), int(rows.appends.value[row])) for row in where
    )
    return Versions(without(rows, bad)), Sighting("duplicate-appends", len(bad), example)


def _failed_beside_another(versions: Versions) -> Int64s:
    """The rows of failed appends of elements that an operation which did not fail appended, too."""
    rows = versions.duplicates
    slot = versions.slots.given[: len(versions.append_code)][rows]
    has_failed = versions.rows.appends.outcome[rows] == FAIL
    spare: Int64s = rows[has_failed & np.isin(slot, slot[~has_failed])]
    return spare


class _OfKeys(Struct, frozen=True):
    """Edges of one kind, each with the code of the key that it follows from."""

    edges: Edges
    code: Int64s


def _dependencies(versions: Versions) -> tuple[dict[str, _OfKeys], ImplicitRw]:
    """The edges ww, wr and rw, and the implicit rw to appends that no read shows."""
    following = _next_place(versions)
    has_place = ((versions.last_place >= 0) | (versions.read_length == 0)) & (
        versions.read_length <= versions.sure_length[versions.read_code]
    )
    is_newest = following >= versions.order_start[versions.read_code + 1]
    implicit, unseen = _implicit(versions, np.flatnonzero(has_place & is_newest))
    reader = np.flatnonzero(has_place & ~is_newest)
    writer, code = versions.writer[following[reader]], versions.read_code[reader]
    rw = _edges(versions.rows.reads, reader, versions.rows.appends, writer, RW, code)
    return {"ww": _ww(versions, unseen), "wr": _wr(versions), "rw": rw}, implicit


def _implicit(versions: Versions, readers: Int64s) -> tuple[ImplicitRw, Int64s]:
    """The implicit edges from readers of the newest sure versions, and the rows of the appends after these."""
    rows = versions.rows
    is_seen = np.zeros(len(rows.appends.op) + 1, np.bool_)
    is_seen[versions.writer[versions.is_sure]] = True
    unseen = np.flatnonzero(~is_seen[:-1] & versions.is_vertex[:-1])
    unseen = unseen[ascending(versions.append_code[unseen], rows.appends.op[unseen].astype(np.int64))]
    # Only keys with both readers and writers have such edges.
    readers = readers[np.isin(versions.read_code[readers], versions.append_code[unseen])]
    readers = readers[ordered(versions.read_code[readers])[0]]
    writers = unseen[np.isin(versions.append_code[unseen], versions.read_code[readers])]
    reading = _members(versions.read_code[readers], rows.reads.op[readers], rows.reads.after[readers])
    return ImplicitRw(
        reading, _members(versions.append_code[writers], rows.appends.op[writers], rows.appends.after[writers])
    ), unseen


def _members(code: Int64s, op: Int32s, after: Int32s) -> Members:
    """The members, each once: a transaction that repeats one thing a thousand times would give a million pairs."""
    return take(Members(code.astype(np.int32), op, after), first_of_each(code) | first_of_each(op))


def _next_place(versions: Versions) -> Int64s:
    """For each read the place in the order of the first node after its last element, of any key."""
    first = np.where(versions.last_place >= 0, versions.last_place + 1, versions.order_start[versions.read_code])
    place = np.arange(len(versions.writer) + 1)
    is_node = np.append(versions.is_vertex[versions.writer] & versions.is_sure, True)
    following: Int64s = np.minimum.accumulate(np.where(is_node, place, place[-1])[::-1])[::-1][first]
    return following


def _ww(versions: Versions, unseen: Int64s) -> _OfKeys:
    """The edges by rules 2 and 5; `unseen` are the rows of the appends that have no place."""
    place = np.flatnonzero(versions.is_vertex[versions.writer] & versions.is_sure)
    code, writer = versions.order_code[place], versions.writer[place]
    follows = np.flatnonzero(code[1:] == code[:-1])
    newest = last_places(code, len(versions.keys))[versions.append_code[unseen]]
    source = np.append(writer[follows], writer[newest[newest >= 0]])
    target = np.append(writer[follows + 1], unseen[newest >= 0])
    return _edges(versions.rows.appends, source, versions.rows.appends, target, WW, versions.append_code[target])


def _wr(versions: Versions) -> _OfKeys:
    """The edges by rule 3. A read that is no version says nothing about what comes before its last element."""
    place = np.arange(len(versions.writer))
    nearest = np.maximum.accumulate(np.where(versions.is_vertex[versions.writer], place, -1))
    shown = np.append(nearest, -1)[versions.last_place]
    is_shown = versions.is_version & (shown >= versions.order_start[versions.read_code])
    writer = np.where(is_shown, np.append(versions.writer, -1)[shown], versions.last_writer)
    reader = np.flatnonzero(versions.is_vertex[writer])
    code = versions.read_code[reader]
    return _edges(versions.rows.appends, writer[reader], versions.rows.reads, reader, WR, code)


def _edges(
    sources: ReadRows | AppendRows,
    source: Int64s,
    targets: ReadRows | AppendRows,
    target: Int64s,
    kind: int,
    code: Int64s,
) -> _OfKeys:
    """The edges between the operations of those rows, without those from an operation to itself."""
    op, other = sources.op[source], targets.op[target]
    edges = Edges(op, other, sources.after[source], targets.after[target], np.full(len(source), kind, np.int8))
    is_edge = op != other
    return _OfKeys(take(edges, is_edge), code[is_edge])


def inference(versions: Versions, duplicate: Sighting | None, anomalies: Report, weights: Weights = ONCE) -> Inference:
    """All edges, all anomalies, and all counts of these keys.

    An implicit rw counts once for each reader, as its pairs are not stored.
    """
    edges, implicit = _dependencies(versions)
    weights = weights.of(versions.keys)
    code = {kind: each.code for kind, each in edges.items()}
    code["rw"] = np.append(code["rw"], implicit.readers.group)
    tally = Counter({kind: weights.count(each) for kind, each in code.items()})
    return Inference(
        all_edges([each.edges for each in edges.values()]),
        implicit,
        union((versions.rows.report, anomalies, Report((), tally))),
        () if duplicate is None else (duplicate,),
        {kind: weights.generations(each) for kind, each in code.items()},
    )
