"""S12 wrong-value: an event shows the value of its write."""

from functools import partial
from typing import Final

import numpy as np

from checkers.columns.blocks import pieces
from checkers.columns.index import ascending, codes
from checkers.columns.table import Join
from checkers.history.names import Names
from checkers.history.units import is_final_only, unit_names
from checkers.streams.examples import Example
from checkers.streams.findings import arrived, lost
from checkers.streams.rule import Need, OfLog, Rule
from checkers.streams.view import Ruling, StreamView
from checkers.words.anomalies import Anomaly, Cause
from harness.core.columns import FAIL, NEVER, ROW, Bools, Int64s

WITH_NUMBER = ["key", "value", "ordinal"]


def wrong_values(view: StreamView) -> Ruling:
    """S12: rows whose write is identified without the value, and which show a value that this write does not have.

    A row's write is the one that its unit number names, if the source knows that unit; else the one of its identity,
    unless that includes the value; else, with `unit_rows: final`, the one that wrote the value, which must be the last
    that its operation wrote to the key. Values that no operation wrote are left to S11, unless the row names its unit.
    A witness is a row that was compared, and could have failed. O(n log n).
    """
    d, w = view.deliveries, view.writes
    if len(w.op) == 0 or view.contract.system_events:
        return Ruling.nothing()
    name, is_final = _names(view), _are_final(view)
    counts, parts = [], []
    for piece in pieces(len(d.kind)):
        is_meant = (d.kind[piece] == ROW) & ~view.is_phantom[piece] & (d.value[piece] != NEVER)
        rows = piece.start + np.flatnonzero(is_meant)
        is_right = _are_right(view, rows, name, is_final)
        counts.append(int(is_right.sum()))
        parts.append(rows[~is_right])
    rows = np.concatenate([np.zeros(0, np.int64), *parts])
    write, is_compared, is_wrong = _nothing(rows)
    if len(rows):  # Usually few rows: each of them is looked up in the whole source.
        finals = np.flatnonzero(is_final)
        for judge in (partial(_by_unit, name=name), _by_identity, _by_value):
            rest = np.flatnonzero(~is_compared)
            write[rest], is_compared[rest], is_wrong[rest] = judge(view, rows[rest], finals)
    return Ruling.of_writes(rows[is_wrong], write[is_wrong], witnesses=sum(counts) + int(is_compared.sum()))


def _names(view: StreamView) -> Int64s | None:
    """The numbers by which rows name the source's units; None if they name none."""
    if view.contract.atomic_unit != "transaction":
        return None
    name = unit_names(view.writes)
    return name if np.any(name != NEVER) else None


def _are_final(view: StreamView) -> Bools:
    """True for writes of the source that may be sent: all, or only the last possible one of each operation and key."""
    w = view.writes
    result: Bools = w.outcome != FAIL
    if view.contract.unit_rows == "final":
        possible = np.flatnonzero(result)
        order = possible[ascending(w.op[possible], w.key[possible], w.ordinal[possible])]
        result[order] = np.diff(codes(w.op[order], w.key[order]), append=-1) != 0
    return result


def _are_right(view: StreamView, rows: Int64s, name: Int64s | None, is_final: Bools) -> Bools:
    """True for rows whose value is that of the write found by their unit number, or by the events' identity.

    They were compared with that write, and cannot be wrong.
    """
    d, w = view.deliveries, view.writes
    by_identity = view.contract.identity != "position+key+value"
    result = np.zeros(len(rows), np.bool_)
    shown = np.flatnonzero(view.match[rows] >= 0)
    rows = rows[shown]
    write = view.expected[view.match[rows]]
    is_right: Bools = d.value[rows] == w.value[write]
    if name is None:
        is_right &= by_identity
    else:
        unit = d.unit[rows]
        is_right &= np.where(unit == NEVER, by_identity, (unit == name[write]) & is_final[write])
    result[shown] = is_right
    return result


Compared = tuple[Int64s, Bools, Bools]  # For each row: its write (-1), True if it was compared, True if it is wrong.


def _by_unit(view: StreamView, rows: Int64s, finals: Int64s, *, name: Int64s | None) -> Compared:
    """The comparison by the unit that a row names: its value must be one that this unit may send for the key."""
    d, w = view.deliveries, view.writes
    write, is_compared, is_wrong = _nothing(rows)
    rest = np.flatnonzero(d.unit[rows] != NEVER)
    if name is None or not len(rest):
        return write, is_compared, is_wrong
    unit, key, value = d.unit[rows[rest]], d.key[rows[rest]], d.value[rows[rest]]
    named = np.flatnonzero((name != NEVER) & (w.outcome != FAIL))
    of_unit = _matching([unit], [name[named]], named)
    of_key = _matching([unit, key], [name[finals], w.key[finals]], finals)
    of_value = _matching([unit, key, value], [name[finals], w.key[finals], w.value[finals]], finals)
    write[rest] = np.where(of_key >= 0, of_key, of_unit)
    is_compared[rest] = of_unit >= 0
    is_wrong[rest] = is_compared[rest] & (of_value < 0)
    return write, is_compared, is_wrong


def _by_identity(view: StreamView, rows: Int64s, finals: Int64s) -> Compared:
    """The comparison by position, key, and number in the unit.

    A write with the same three, or one of unknown position, must have the row's value.
    """
    d, w, contract = view.deliveries, view.writes, view.contract
    if contract.identity == "position+key+value":
        return _nothing(rows)
    place = view.match[rows]
    write = np.where(place >= 0, np.append(view.expected, -1)[place], -1)
    is_compared = write >= 0
    is_wrong = is_compared & (np.append(w.value, NEVER)[write] != d.value[rows])
    if not is_wrong.any():
        return write, is_compared, is_wrong
    checked, unplaced = rows[is_wrong], finals[w.position[finals] == NEVER]
    names = ["key", "value"] if is_final_only(contract) or contract.identity == "position+key" else WITH_NUMBER

    def matching(names: list[str], source: Int64s) -> Int64s:
        return _matching([getattr(d, n)[checked] for n in names], [getattr(w, n)[source] for n in names], source)

    is_wrong[is_wrong] = (matching([*names, "position"], finals) < 0) & (matching(names, unplaced) < 0)
    return write, is_compared, is_wrong


def _by_value(view: StreamView, rows: Int64s, finals: Int64s) -> Compared:
    """The comparison by a value that only one operation wrote to the key.

    If only the last write of an operation to the key is sent, the value must be that of the last one.
    """
    d, w = view.deliveries, view.writes
    if view.contract.identity != "position+key+value" or view.contract.unit_rows == "each":
        return _nothing(rows)
    possible = np.flatnonzero(w.outcome != FAIL)
    what = codes(w.key[possible], w.value[possible])
    sole = possible[np.bincount(what)[what] == 1] if len(what) else possible
    owner = _matching([d.key[rows], d.value[rows]], [w.key[sole], w.value[sole]], sole)
    op = np.append(w.op, NEVER)[owner]
    final = _matching([op, d.key[rows]], [w.op[finals], w.key[finals]], finals)
    pair = codes(w.op[possible], w.key[possible])
    several = possible[np.bincount(pair)[pair] > 1] if len(pair) else possible
    is_compared = (owner >= 0) & (np.append(w.position, NEVER)[owner] == d.position[rows])
    is_compared &= _matching([op, d.key[rows]], [w.op[several], w.key[several]], several) >= 0
    return final, is_compared, is_compared & (final != owner)


def _nothing(rows: Int64s) -> Compared:
    no = np.zeros(len(rows), np.bool_)
    return np.full(len(rows), -1, np.int64), no, no.copy()


def _matching(wanted: list[Int64s], columns: list[Int64s], source: Int64s) -> Int64s:
    """For each wanted row the last of `source` with equal columns; -1 if there is none."""
    return np.append(source, -1)[Join(wanted, columns).last]


def _sentence(example: Example, name: Names) -> str:
    mark, write = example.watermark, lost(example)
    what = f"wrote value {name(write.value)}" if write.key == mark.key else f"wrote nothing to key {name.key(mark.key)}"
    return f"{arrived(example, name)}, but operation {write.op}, whose row it is, {what}."


WRONG_VALUE: Final = Rule(
    name="wrong-value",
    id="S12",
    rank=90,
    anomaly=Anomaly(
        meaning="An event with the right key and position, and another value than was written.", cause=Cause.EVENT
    ),
    witness="an event compared with its write",
    needs=frozenset({Need.SOURCE}),
    scope=OfLog(wrong_values, _sentence),
)
