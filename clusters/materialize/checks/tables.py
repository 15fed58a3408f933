"""Tables that clients create: guarantee G7 for them.

`lost-table`: a table that was acknowledged is there for all operations that are invoked later, until a client requests
to drop it. A witness is an operation on such a table.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from clusters.materialize.coordinator.sequencing import NO_TABLE
from harness.core.columns import FAIL, OK
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement

CHECKER: Final = "tables"
LOST: Final = "lost-table"
ANOMALIES: Final = {LOST: "An operation did not find a table that had been acknowledged before it was invoked."}
Row = Mapping[str, Any]


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all tables that clients created. Raises HistoryError if the history is damaged."""
    columns = ["index", "f", "outcome", "invoke_value", "invoke_ns", "complete_ns", "error"]
    ops = rows(history, "ops", columns, f=["create", "drop", "change", "query"])
    try:
        named = [(op, _table(op)) for op in ops]
    except (msgspec.ValidationError, msgspec.DecodeError, IndexError) as error:
        raise HistoryError(f"{history}: an operation on a table is not of this cluster ({error})") from None
    created = {name: op for op, name in named if op["f"] == "create" and op["outcome"] == OK}
    ends: dict[str, int] = {}
    for op, name in named:
        if op["f"] == "drop":
            ends[name] = min(op["invoke_ns"], ends.get(name, op["invoke_ns"]))
    later = [
        (op, name, created[name])
        for op, name in named
        if op["f"] in ("change", "query")
        and name in created
        and created[name]["complete_ns"] < op["invoke_ns"]
        and op["complete_ns"] is not None
        and op["complete_ns"] < ends.get(name, op["complete_ns"] + 1)
    ]
    return judgement(CHECKER, ANOMALIES, [*_lost(later)], {LOST: len(later)})


def _table(op: Row) -> str:
    """The table of an operation."""
    if op["f"] == "change":
        return msgspec.json.decode(op["invoke_value"], type=list[tuple[str, object, object, int]])[0][0]
    return msgspec.json.decode(op["invoke_value"], type=str)


def _lost(later: Sequence[tuple[Row, str, Row]]) -> Iterator[Trouble]:
    for op, name, by in later:
        if op["outcome"] == FAIL and NO_TABLE in (op["error"] or ""):
            sentence = (
                f"T{op['index']} did not find table {name}, although T{by['index']}, which created it, had been "
                f"acknowledged before T{op['index']} was invoked."
            )
            yield Trouble(LOST, sentence, (name,), (by["index"], op["index"]))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
