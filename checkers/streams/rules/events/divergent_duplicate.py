"""S04 divergent-duplicate: two events that are the same have the same value."""

from typing import Final

import numpy as np

from checkers.columns.index import GroupIndex, codes
from checkers.columns.runs import distinct
from checkers.history.names import Names
from checkers.history.units import is_final_only, unit_of
from checkers.streams.examples import Example
from checkers.streams.findings import after, both, first, place
from checkers.streams.rule import OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import INFO, NEVER, ROW, Bools, Int64s


def divergent_duplicates(view: StreamView) -> Ruling:
    """S04: rows with the identity of an earlier row, in any session of this log, and another value.

    Not judged: identities that include the value; rows on two sides of a log's end, which are of two logs; an identity
    that several writes of the source have (the system gave one position twice, and each of its rows may be right); and,
    without the source, positions that are not unique. Values that no operation wrote are left to S11, and different
    subscribers to S20. A witness is an identity that was delivered twice with a value.
    """
    d, contract = view.deliveries, view.contract
    rows = np.flatnonzero(view.is_repeated & (d.kind == ROW) & ~view.is_phantom & (d.value != NEVER))
    is_by_value = contract.identity == "position+key+value" and not is_final_only(contract)
    if is_by_value or (not contract.is_position_unique and len(view.writes.key) == 0):
        rows = rows[:0]
    identity = codes(view.identity[rows], view.counts()[rows])
    earliest = GroupIndex(identity, rows, rows).first(identity, np.zeros(len(rows), np.int64))
    is_later = earliest < rows
    differs = np.flatnonzero(is_later & (d.value[earliest] != d.value[rows]))
    is_claimed_apart = _are_two_writes(view, rows[differs], earliest[differs])
    broken = differs[~is_claimed_apart]
    return Ruling.of_events(
        rows[broken],
        earliest[broken],
        witnesses=len(distinct(identity[is_later])),
        legal=len(differs) - len(broken),
    )


def _are_two_writes(view: StreamView, rows: Int64s, others: Int64s) -> Bools:
    """True for pairs of rows that show two different writes of the source.

    A write of unclear outcome has no position but that of its row: if positions are unique, it is none of another's.
    """
    one, other = view.match[rows], view.match[others]
    result: Bools = (one >= 0) & (other >= 0) & (one != other)
    if view.contract.is_position_unique and result.any():
        is_clear = view.writes.outcome[view.expected] != INFO
        unit = unit_of(view.writes, view.contract)[view.expected]
        is_apart = unit[one] != unit[other]
        result &= ~is_apart | (is_clear[one] & is_clear[other])
    return result


def _sentence(example: Example, name: Names) -> str:
    mark, event = both(example)
    when = f"{after(event, mark)} after value {name(event.value)} had come as the same event"
    return f"{first(mark, name)}{place(mark, name)} reached {example.subscriber} {when}."


DIVERGENT_DUPLICATE: Final = Rule(
    name="divergent-duplicate",
    id="S04",
    rank=130,
    anomaly=Anomaly(meaning="An event came twice, with two values.", cause=Cause.EVENT),
    witness="an event that came twice with a value",
    scope=OfLog(divergent_duplicates, _sentence),
)
