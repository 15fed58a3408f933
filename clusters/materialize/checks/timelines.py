"""The timeline that counts its writes: guarantee G17.

Its answers name their timestamps in their values, so that no other check compares them with those of the wall's.
1. `mixed-timelines`: a query of two timelines is refused. A witness is such a query.
2. `timeline-order`: the timestamps of this timeline follow real time, and a read shows what was written at or below its
   timestamp. A witness is a read. Appends without an answer may be there.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import INFO, NEVER, OK
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement

CHECKER: Final = "timelines"
MIXED, ORDER = "mixed-timelines", "timeline-order"
ANOMALIES: Final = {
    MIXED: "A query of two timelines was answered.",
    ORDER: "A read shows other elements than those at or below its timestamp, or timestamps contradict real time.",
}
Row = Mapping[str, Any]


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all operations on that timeline. Raises HistoryError if the history is damaged."""
    columns = ["index", "f", "outcome", "invoke_value", "value", "invoke_ns", "complete_ns"]
    ops = rows(history, "ops", columns, f=["count-append", "count-read", "mixed-read"])
    done = [op for op in ops if op["outcome"] == OK]
    try:
        read = [(op, msgspec.json.decode(op["value"], type=tuple[int, list[int]])) for op in done if _reads(op)]
        wrote = [(op, msgspec.json.decode(op["value"], type=tuple[int, int])) for op in done if not _reads(op)]
        loose = {
            msgspec.json.decode(op["invoke_value"], type=int) for op in ops if op["outcome"] == INFO and not _reads(op)
        }
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise HistoryError(f"{history}: an operation on a timeline is not of this cluster ({error})") from None
    witnesses = {MIXED: sum(op["f"] == "mixed-read" for op in ops), ORDER: len(read)}
    troubles = [
        *(_mixed(op) for op in done if op["f"] == "mixed-read"),
        *_states(read, wrote, loose),
        *_real_time([(op, ts, _reads(op)) for op, (ts, _) in (*read, *wrote)]),
    ]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _reads(op: Row) -> bool:
    return str(op["f"]) != "count-append"


def _mixed(op: Row) -> Trouble:
    return Trouble(MIXED, f"T{op['index']} read two timelines at once.", (op["index"],), (op["index"],))


def _states(
    read: Sequence[tuple[Row, tuple[int, list[int]]]],
    wrote: Sequence[tuple[Row, tuple[int, int]]],
    loose: Collection[int],
) -> Iterator[Trouble]:
    """2, about what reads show. Elements are numbers, each appended once; those of one timestamp come in any order."""
    stamps = {element: ts for _, (ts, element) in wrote}
    for op, (ts, elements) in read:
        due = sorted(at for at in stamps.values() if at <= ts)
        shown = [stamps.get(element, NEVER) for element in elements if element not in loose]
        if shown != due or len(set(elements)) != len(elements):
            sentence = (
                f"T{op['index']} read {len(elements)} elements at {ts} of the counting timeline, which are not those "
                f"that were appended at or below it, in the order of their timestamps."
            )
            yield Trouble(ORDER, sentence, (op["index"],), (op["index"],))


def _real_time(ops: Sequence[tuple[Row, int, bool]]) -> Iterator[Trouble]:
    """2, about time."""
    by_end = sorted(ops, key=lambda each: int(each[0]["complete_ns"]))
    floor, by, place = -1, None, 0
    for op, ts, is_read in sorted(ops, key=lambda each: int(each[0]["invoke_ns"])):
        while by_end[place][0]["complete_ns"] < op["invoke_ns"]:
            if by_end[place][1] > floor:
                floor, by = by_end[place][1], by_end[place][0]
            place += 1
        if by is not None and (ts < floor or (ts == floor and not is_read)):
            sentence = f"T{op['index']} has timestamp {ts}, although T{by['index']} had been answered at {floor}."
            yield Trouble(ORDER, sentence, (op["index"], by["index"]), (by["index"], op["index"]))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
