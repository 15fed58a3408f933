"""S04: what makes two events the same makes them alike."""

import numpy as np

from checkers.columns.index import GroupIndex, codes
from checkers.columns.runs import distinct
from checkers.history.units import is_final_only
from checkers.streams.view import Ruling, StreamView
from harness.core.columns import NEVER, ROW, Bools, Int64s


def divergent_duplicates(view: StreamView) -> Ruling:
    """Rows with the identity of one before them, in any session of this log, and another value.

    Where the value is part of the identity, nothing can be told. Nor of an identity that several writes of the source
    claim: the system gave one position twice, and each of its rows may be right. Nor, without the source, where
    positions are not unique. Values that nobody wrote are S11's. A witness is an identity that was delivered twice with
    a value. Subscribers apart are compared by S20.
    """
    d, contract = view.deliveries, view.contract
    rows = np.flatnonzero(view.is_repeated & (d.kind == ROW) & ~view.is_phantom & (d.value != NEVER))
    is_by_value = contract.identity == "position+key+value" and not is_final_only(contract)
    if is_by_value or (not contract.is_position_unique and len(view.writes.key) == 0):
        rows = rows[:0]
    identity = codes(view.identity[rows])
    earliest = GroupIndex(identity, rows, rows).first(identity, np.zeros(len(rows), np.int64))
    is_later = earliest < rows
    differs = np.flatnonzero(is_later & (d.value[earliest] != d.value[rows]))
    is_claimed_apart = _are_two_writes(view, rows[differs], earliest[differs])
    broken = differs[~is_claimed_apart]
    return Ruling(
        watermark=rows[broken],
        row=earliest[broken],
        write=np.full(len(broken), -1, np.int64),
        witnesses=len(distinct(identity[is_later])),
        legal=len(differs) - len(broken),
    )


def _are_two_writes(view: StreamView, rows: Int64s, others: Int64s) -> Bools:
    """Does each pair show two writes of the source?"""
    one, other = view.match[rows], view.match[others]
    result: Bools = (one >= 0) & (other >= 0) & (one != other)
    return result
