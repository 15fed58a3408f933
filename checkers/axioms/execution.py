"""A whole history as an execution: committed transactions, their sessions, the writer of each read, and known versions.

Theory of operation.
1. A transaction is committed if it is ok, or if an ok transaction shows one of its writes.
2. A session is what one process did, one operation after the other. A transaction without a clear outcome follows what
   its process had done before. Nothing follows it: the moment at which it took effect is unknown.
3. A list's versions are in the order of its longest read. A committed append that no read shows comes after them.
4. A value that was read, and that no committed transaction wrote, was there at first, if that is possible: what follows
   from that alone is no proof (`sure`).
5. A key is left out if a value that was read has two writers, if it had two values at first, or one that no transaction
   wrote though all initial values are declared, or if it is used as a list and as a register. And if nothing shows what
   a register held at first but a read of a value that only the reader writes, later: then it was there, and was written
   again (`transactions.registers.versions`).
6. A read of a list that answered null says nothing, as for `transactions.list_rows`: an empty list answers [].
7. A declared order of a register's versions, as by the commits that the system reported, is known like that of a list.
   That of commits holds for all versions that committed transactions left, whatever their values are.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from checkers.axioms.accesses import Accesses, Lists, Ops, Reads, Writes
from checkers.columns.index import Places, ascending
from checkers.columns.runs import codes, distinct, expand, first_of_each, next_places, ordered
from checkers.columns.table import Join, concat, distinct_by, empty, ordered_by, take
from harness.core.columns import NEVER, NOTHING, OK, Bools, Int64s

INITIAL: Final = -1  # In place of a transaction: the writer of the initial version.
UNRANKED: Final = -1
K = TypeVar("K", Reads, Writes, Lists)
_LAST: Final = np.iinfo(np.int64).max  # The rank of an append that no read shows.


class Views(Struct, frozen=True):
    """External reads, sorted by transaction and key: `reader` sees what `writer` (or INITIAL) wrote to `key`.

    `install` is the row of `Installs` with the version that the writer left, or -1, and `rank` is that of the version.
    `place` is that of the read in its transaction. `is_assumed` is True if no transaction wrote the value, so that it
    is taken for an initial one (rule 4).
    """

    reader: Int64s
    key: Int64s
    writer: Int64s
    install: Int64s
    rank: Int64s
    place: Int64s
    is_assumed: Bools


class Installs(Struct, frozen=True):
    """The last version that each transaction left of each key that it wrote, sorted by transaction and key.

    `rank` ascends with the versions of a list; for registers it is UNRANKED.
    """

    writer: Int64s
    key: Int64s
    rank: Int64s


class Pairs(Struct, frozen=True):
    """Pairs of transactions: each `source` comes before its `target`."""

    source: Int64s
    target: Int64s


class Execution(Struct, frozen=True):
    """The committed transactions, numbered 0 .. n - 1 by index, with their reads and writes of the keys 0 .. k - 1.

    `end` is the moment of the answer, NEVER if the outcome is unclear. `session` is the number of its session, and
    `turn` its place in that, from 0. These columns have the shape (n,). `versions` are the pairs of writers of
    neighbouring versions, where the order is known; those of rule 7 are `declared` as well. `left_out` is the number of
    keys that rule 5 leaves out, or of which too many versions share their positions. A transaction without a clear
    outcome has a session of its own; `unclear` are the pairs of the last one that its process had ended before, and
    itself.
    """

    op: Int64s
    end: Int64s
    session: Int64s
    turn: Int64s
    unclear: Pairs
    keys: Int64s
    views: Views
    installs: Installs
    versions: Pairs
    declared: Pairs
    left_out: int

    @property
    def sessions(self) -> Pairs:
        """The pairs of each transaction and the next one of its session, and those of unclear ones."""
        order = ascending(self.session, self.turn)
        follows = np.flatnonzero(self.session[order][1:] == self.session[order][:-1])
        return concat([Pairs(order[follows], order[follows + 1]), self.unclear])

    def row_of(self, writer: Int64s, key: Int64s) -> Int64s:
        """For each pair of transaction and key the row of installs with its write; -1 if it did not write the key."""
        return _row_of(self.installs, writer, key, len(self.keys))


def part(whole: Execution, nodes: Int64s) -> tuple[Execution, Int64s]:
    """An execution of those transactions alone (`nodes` ascend), and the rows of installs that belong to them.

    Reads from other transactions are left out, so each cycle of the part is one of the whole.
    """
    views, installs = whole.views, whole.installs
    place = np.full(len(whole.op) + 1, INITIAL)
    place[nodes] = np.arange(len(nodes))
    is_inside = place >= 0
    seen = take(views, np.flatnonzero(is_inside[views.reader]))
    seen = take(seen, (seen.writer == INITIAL) | is_inside[seen.writer])
    rows = np.flatnonzero(is_inside[installs.writer])
    own, row = take(installs, rows), np.full(len(installs.writer) + 1, -1)
    row[rows] = np.arange(len(rows))
    versions, declared, unclear = (_placed(pairs, place) for pairs in (whole.versions, whole.declared, whole.unclear))
    inside = replace(
        whole,
        op=whole.op[nodes],
        end=whole.end[nodes],
        session=whole.session[nodes],
        turn=whole.turn[nodes],
        unclear=unclear,
        views=replace(seen, reader=place[seen.reader], writer=place[seen.writer], install=row[seen.install]),
        installs=replace(own, writer=place[own.writer]),
        versions=versions,
        declared=declared,
    )
    return inside, rows


def _placed(pairs: Pairs, place: Int64s) -> Pairs:
    """The pairs in other numbers, without those of which one has none."""
    placed = Pairs(place[pairs.source], place[pairs.target])
    return take(placed, (placed.source >= 0) & (placed.target >= 0))


def _row_of(installs: Installs, writer: Int64s, key: Int64s, keys: int) -> Int64s:
    packed, wanted = installs.writer * keys + installs.key, writer * keys + key
    row = np.searchsorted(packed, wanted)
    is_there = np.append(packed, -1)[row] == wanted
    return np.where(is_there & (writer >= 0), row, -1)


def sure(history: Execution) -> Execution:
    """The execution without reads of assumed initial values (rule 4)."""
    return replace(history, views=take(history.views, ~history.views.is_assumed))


def execution(
    parts: Accesses, *, is_declared: bool = False, declared: Pairs | None = None, has_commits: bool = False
) -> Execution:
    """The execution that those accesses describe. With `is_declared` all initial values of registers are declared.

    `declared` are pairs of operations (indexes), by rule 7. With `has_commits` the order of commits is declared, too.
    """
    parts = replace(parts, reads=_with_results(parts))
    ops = ordered_by(parts.ops, "index")
    every = distinct(np.concatenate([codes(each.key)[0] for each in (parts.reads, parts.writes)]))
    shown_by = Join((parts.reads.key, parts.reads.value), (parts.writes.key, parts.writes.value))
    unclear = np.concatenate(
        (
            _unclear_keys(parts, shown_by),
            _keys_with_two_firsts(parts.reads, shown_by.first, is_declared=is_declared),
            _keys_written_again(parts, shown_by.first, is_declared=is_declared),
        )
    )
    keys = every[~np.isin(every, unclear)]
    lists, reads, writes = (
        _without(parts.lists, unclear),
        _without(parts.reads, unclear),
        _without(parts.writes, unclear),
    )
    orders = _Orders(lists, parts.elements, writes)
    writer_row = _writer_rows(reads, writes) if len(unclear) else shown_by.first
    shown = np.concatenate((writer_row[writer_row >= 0], orders.row[orders.row >= 0]))
    ops = take(ops, (ops.outcome == OK) | np.isin(ops.index, writes.op[shown]))
    node, key = Places(ops.index), Places(keys)
    owner = np.append(node.of(writes.op), INITIAL)  # -1 as well for an append that never took effect.
    session, turn = _sessions(ops)
    known = declared or empty(Pairs)
    known = Pairs(node.of(known.source), node.of(known.target))
    known = take(known, (known.source >= 0) & (known.target >= 0))
    installs = _installs(writes, owner[:-1], key, orders)
    by_commits, crowded = _by_commits(installs, ops.commit) if has_commits else (empty(Pairs), 0)
    known = concatenated([known, by_commits])
    return Execution(
        op=ops.index,
        end=np.where(ops.outcome == OK, ops.after, NEVER),
        session=session,
        turn=turn,
        unclear=_unclear(ops),
        keys=keys,
        views=_views(reads, writer_row, owner, node, key, installs, len(keys)),
        installs=installs,
        versions=concatenated([orders.neighbours(owner), known]),
        declared=known,
        left_out=len(every) - len(keys) + crowded,
    )


def _with_results(parts: Accesses) -> Reads:
    """The reads without those of rule 6."""
    reads, writes = parts.reads, parts.writes
    is_null = ~reads.is_list & (reads.value == NOTHING)
    of_lists = np.append(reads.key[reads.is_list], writes.key[writes.is_list])
    return take(reads, ~(is_null & np.isin(reads.key, of_lists)))


def _without(table: K, keys: Int64s) -> K:
    """The rows of other keys than those."""
    return take(table, ~np.isin(table.key, keys)) if len(keys) else table


def _unclear_keys(parts: Accesses, shown_by: Join) -> Int64s:
    """Keys used both as a list and as a register, and keys of which a value that was read has two writers.

    `shown_by` joins reads and the writes of what they show.
    """
    reads, writes = parts.reads, parts.writes
    of_lists = np.concatenate((reads.key[reads.is_list], writes.key[writes.is_list]))
    of_registers = np.concatenate((reads.key[~reads.is_list & (reads.value != NOTHING)], writes.key[~writes.is_list]))
    is_again = shown_by.right_count > 1
    is_shown = writes.is_list | shown_by.is_found
    # A register that was reset has its initial state again: a read of that may show either version.
    is_again |= writes.value == NOTHING
    of_both = np.intersect1d(codes(of_lists)[0], codes(of_registers)[0], assume_unique=True)
    return np.concatenate((of_both, writes.key[is_again & is_shown]))


def _keys_with_two_firsts(reads: Reads, writer_row: Int64s, *, is_declared: bool) -> Int64s:
    """The keys with two different initial values: those read but not written, and the declared state."""
    is_first = writer_row < 0
    seen = _Firsts(reads.key[is_first], reads.value[is_first])
    if is_declared:
        keys = distinct(seen.key)
        nothing = np.full(len(keys), NOTHING)
        seen = _Firsts(np.append(seen.key, keys), np.append(seen.value, nothing))
    seen = distinct_by(seen)
    return seen.key[Join((seen.key,), (seen.key,)).count > 1]


def _keys_written_again(parts: Accesses, writer_row: Int64s, *, is_declared: bool) -> Int64s:
    """The registers with a value that its only writer had read before, unless what they held at first is known."""
    if is_declared:
        return np.empty(0, np.int64)
    reads = parts.reads
    rows = np.flatnonzero(~reads.is_list & (writer_row >= 0))
    is_early = reads.op[rows] == parts.writes.op[writer_row[rows]]
    known = reads.key[~reads.is_list & (writer_row < 0)]
    keys = distinct(reads.key[rows[is_early]])
    return keys[~np.isin(keys, known)]


class _Firsts(Struct, frozen=True):
    """Possible initial values: of a register its value, of a list its last element."""

    key: Int64s
    value: Int64s


def _writer_rows(reads: Reads, writes: Writes) -> Int64s:
    """For each read the row of the write that it shows; -1 if there is none."""
    return Join((reads.key, reads.value), (writes.key, writes.value)).first


def _views(reads: Reads, row: Int64s, owner: Int64s, node: Places, key: Places, installs: Installs, keys: int) -> Views:
    reader, code, writer = node.of(reads.op), key.of(reads.key), owner[row]
    install = _row_of(installs, writer, code, keys)
    rank = np.append(installs.rank, UNRANKED)[np.where(reads.is_list, install, -1)]
    views = Views(reader, code, writer, install, rank, reads.place, (row < 0) & (reads.value != NOTHING))
    return ordered_by(take(views, views.reader != writer), "reader", "key")


class _Orders:
    """The elements of all longest lists, one list after the other. `row` holds for each the row of its write, or -1."""

    def __init__(self, lists: Lists, elements: Int64s, writes: Writes) -> None:
        self._writes = writes
        self._key = np.repeat(lists.key, lists.length)
        value = elements[expand(lists.start, lists.length)]
        shown_by = Join((self._key, value), (writes.key, writes.value)) if len(value) else None
        self.row = shown_by.first if shown_by is not None else np.empty(0, np.int64)

    def ranks(self) -> Int64s:
        """For each write its place in these elements; _LAST for an append that no list shows.

        UNRANKED for a write of a register.
        """
        rank = np.where(self._writes.is_list, _LAST, UNRANKED)
        known = np.flatnonzero(self.row >= 0)
        rank[self.row[known]] = known
        return rank

    def neighbours(self, owner: Int64s) -> Pairs:
        """The writers of neighbouring versions, as pairs. An append that no read shows follows the last one shown."""
        known = self.row >= 0
        key, writer = self._key[known], owner[self.row[known]]
        is_last = np.append(first_of_each(key)[1:], True)[: len(key)]
        hidden = np.flatnonzero((self.ranks() == _LAST) & (owner[:-1] >= 0))
        last = Join((self._writes.key[hidden],), (key[is_last],)).first
        hidden, last = hidden[last >= 0], last[last >= 0]
        shown = Pairs(writer[:-1][~is_last[:-1]], writer[1:][~is_last[:-1]])
        return concatenated([shown, Pairs(writer[is_last][last], owner[hidden])])


def _installs(writes: Writes, owner: Int64s, key: Places, orders: _Orders) -> Installs:
    installs = Installs(owner, key.of(writes.key), orders.ranks())
    installs = ordered_by(take(installs, owner >= 0), "writer", "key", "rank")
    return take(installs, (np.diff(installs.writer, append=-1) != 0) | (np.diff(installs.key, append=-1) != 0))


def _by_commits(installs: Installs, commit: Int64s) -> tuple[Pairs, int]:
    """The writers of versions of registers at neighbouring positions; and how many registers have too many of those.

    Equal positions have no order. What a version's value is does not matter, nor whether another write has it as well
    or a read shows it.
    """
    position = commit[installs.writer]
    rows = np.flatnonzero((installs.rank == UNRANKED) & (position != NEVER))
    rows = rows[ascending(installs.key[rows], position[rows])]
    one, other, crowded = next_places(installs.key[rows], position[rows])
    return Pairs(installs.writer[rows[one]], installs.writer[rows[other]]), len(crowded)


def _sessions(ops: Ops) -> tuple[Int64s, Int64s]:
    """For each transaction the number of its session, and its turn in it."""
    _, process = codes(ops.process)
    is_ok: Bools = ops.outcome == OK
    alone = np.flatnonzero(~is_ok)
    process[alone] = len(process) + np.arange(len(alone))
    order, group = ordered(process)
    # A process does one thing after the other; two operations that a history shows as concurrent have no order.
    begins = first_of_each(group)
    begins[1:] |= ops.after[order[:-1]] > ops.index[order[1:]]
    number = np.cumsum(begins) - 1
    session, turn = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    session[order] = number
    turn[order] = np.arange(len(order)) - np.flatnonzero(begins)[number]
    return session, turn


def _unclear(ops: Ops) -> Pairs:
    """The pairs of each transaction without a clear outcome and the last ok one that its process had ended before."""
    order, process = ordered(codes(ops.process)[1])
    is_ok = ops.outcome[order] == OK
    late = np.flatnonzero(~is_ok)
    early = np.maximum.accumulate(np.where(is_ok, np.arange(len(order)), -1))[late]
    source, target = order[early], order[late]
    follows = (early >= 0) & (process[early] == process[late]) & (ops.after[source] <= ops.index[target])
    return Pairs(source[follows], target[follows])


def concatenated(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of all parts, each once; pairs of a transaction with itself are dropped."""
    pairs = concat(parts)
    return distinct_by(take(pairs, pairs.source != pairs.target))
