"""Matches of events: the write of the source that each event shows, and which events are the same. Key by key."""

import numpy as np
from msgspec import Struct

from checkers.columns.index import ascending, codes, first_rows, is_kind, last_places
from checkers.columns.table import Join
from checkers.history.units import is_final_only, unit_names, unit_of
from harness.core.columns import BACKFILL, FAIL, NEVER, ROW, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract


class Matches(Struct, frozen=True, kw_only=True):
    """Matches of the n rows of a log with each other, and with the e writes that the stream must deliver.

    The identity of a row that is no event has no meaning. Such a row is no phantom, and matches nothing.
    """

    identity: Int64s  # (n,) equal for events that are the same by the contract
    is_repeated: Bools  # (n,) events that share their identity with another: only these need sorting
    is_phantom: Bools  # (n,) events whose write was never attempted, or certainly failed
    expected: Int64s  # (e,) rows of the source that the stream must deliver
    match: Int64s  # (n,) the place in `expected` of the write that an event shows, -1: none


def matches_of(deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, *, has_source: bool) -> Matches:
    """The matches of a log, or of some of its keys, with the writes to these keys. O(n log n).

    `has_source` is False if the history has no source, and then no event is a phantom.
    """
    is_event = is_kind(deliveries.kind, (ROW, BACKFILL))
    identity, expected, match = _joined(deliveries, writes, contract, is_event)
    rows = np.flatnonzero(is_event)
    is_repeated = np.zeros(len(is_event), np.bool_)
    is_repeated[rows] = np.bincount(identity[rows], minlength=1)[identity[rows]] > 1
    unmatched = rows[match[rows] < 0] if has_source else rows[:0]
    return Matches(
        identity=identity,
        is_repeated=is_repeated,
        is_phantom=_are_phantoms(deliveries, writes, contract, unmatched),
        expected=expected,
        match=match,
    )


def _are_phantoms(deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, rows: Int64s) -> Bools:
    """True for those of the rows that show a value which was certainly not written, shape (n,)."""
    d, result = deliveries, np.zeros(len(deliveries.kind), np.bool_)
    rows = rows[d.value[rows] != NEVER]
    if contract.system_events or len(rows) == 0:
        return result
    possible = np.flatnonzero(writes.outcome != FAIL)
    result[rows] = Join([d.key[rows], d.value[rows]], [writes.key[possible], writes.value[possible]]).last < 0
    return result


def _owed(writes: SourceWrites, contract: StreamContract) -> Int64s:
    """The writes that the stream must deliver: those that may have happened and have a position.

    If only the final row of a unit is sent, the last one for each key of a unit.
    """
    owed = np.flatnonzero((writes.outcome != FAIL) & (writes.position != NEVER))
    if not contract.has_noop_events:
        # A write changes its key if its value was never written before. Any other write may change nothing.
        what = codes(writes.key, writes.value)
        owed = owed[(np.bincount(what)[what[owed]] == 1) & (writes.value[owed] != NEVER)]
    if contract.unit_rows == "final":
        unit, key = unit_of(writes, contract)[owed], writes.key[owed]
        order = ascending(unit, key, writes.position[owed], writes.ordinal[owed])
        unit_and_key = codes(unit, key)[order]
        owed = np.sort(owed[order[np.diff(unit_and_key, append=-1) != 0]])
    return owed


def _joined(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, is_event: Bools
) -> tuple[Int64s, Int64s, Int64s]:
    """The identity of each row, the expected writes, and for each row the one that it shows (-1: none).

    A row shows the write with its identity. If several writes have that identity (two leaders gave one position twice),
    the value decides; if only one has it, a wrong value is left to another rule. Writes that differ in nothing count as
    one.
    """
    d, rows, owed = deliveries, np.flatnonzero(is_event), _owed(writes, contract)
    n = len(rows)
    value = np.append(d.value[rows], writes.value[owed])
    parts = [np.append(d.position[rows], writes.position[owed]), np.append(d.key[rows], writes.key[owed])]
    if contract.identity == "position+key+value" and not is_final_only(contract):
        parts.append(value)
    elif contract.identity == "position+key+ordinal" and not is_final_only(contract):
        parts.append(np.append(d.ordinal[rows], writes.ordinal[owed]))
    identity = codes(*parts)
    own, match = np.zeros(len(d.kind), np.int64), np.full(len(d.kind), -1, np.int64)
    # Positions of two partitions are not comparable: a key that moved may have two events with equal ones.
    own[rows] = identity[:n] if contract.is_position_global else codes(identity[:n], d.span[rows])
    claims = np.bincount(identity[n:], minlength=int(identity.max(initial=0)) + 1)
    if claims.max() <= 1:  # Usually an identity has one write.
        expected = np.arange(len(owed))
        match[rows] = last_places(identity[n:], len(claims))[identity[:n]]
    else:
        expected, match[rows] = _by_value(identity, value, n)
    match = _by_unit(d, writes, contract, match, owed[expected])
    return own, owed[expected], np.where(is_event, match, -1)


def _by_value(identity: Int64s, value: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """The writes that differ by identity or value; and for each of the first `count` rows, the one that it shows."""
    whole = codes(identity, value)
    expected = first_rows(whole[count:])
    by_value = last_places(whole[count:][expected], int(whole.max(initial=0)) + 1)
    by_identity = last_places(identity[count:][expected], int(identity.max(initial=0)) + 1)
    claims = np.bincount(identity[count:][expected], minlength=len(by_identity))
    return expected, np.where(claims[identity[:count]] == 1, by_identity[identity[:count]], by_value[whole[:count]])


def _by_unit(
    deliveries: Deliveries, writes: SourceWrites, contract: StreamContract, match: Int64s, expected: Int64s
) -> Int64s:
    """`match`, with a write for rows whose value matches none: their key's write in the transaction that they name.

    So a row of a transaction with a value that the transaction did not write is a wrong value, and not a missing write.
    """
    if contract.unit_rows != "final" or contract.atomic_unit != "transaction":
        return match
    rows = np.flatnonzero((match < 0) & (deliveries.unit != NEVER))
    if not len(rows):
        return match
    named = [deliveries.unit[rows], deliveries.key[rows], deliveries.position[rows]]
    result = match.copy()
    result[rows] = Join(named, [unit_names(writes)[expected], writes.key[expected], writes.position[expected]]).last
    return result
