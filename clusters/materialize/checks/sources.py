"""Sources and their acknowledgements: guarantees G18 and G19.

A read of the source shows its records, each with its offset, at a timestamp; the upstream system shows all records.
1. `unseen-acknowledged`: a strict read has every record whose acknowledgement was seen before the read was invoked. A
   witness is a strict read after an acknowledgement.
2. `source-gap`: a read has the records from the first one on, each once, none left out. A witness is a read.
3. `source-rewritten`: two reads at one timestamp have the same records, and one at a higher timestamp has no fewer. A
   witness is a read after another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import rows, states
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import OK
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "sources"
UNSEEN, GAP, REWRITTEN = "unseen-acknowledged", "source-gap", "source-rewritten"
ANOMALIES: Final = {
    UNSEEN: "A read lacks a record that was acknowledged upstream before it was invoked.",
    GAP: "A read of a source has a record twice, or lacks one before another.",
    REWRITTEN: "A source has other records at a timestamp than it had, or fewer at a later one.",
}
Row = Mapping[str, Any]


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all reads of the source. Raises HistoryError if the history is damaged."""
    columns = ["index", "f", "invoke_value", "value", "invoke_ns", "complete_ns", "read_ts"]
    ops = rows(history, "ops", columns, outcome=[OK], f=["produce", "read-source", "source-as-of"])
    found = states(history, Dictionary(history), "upstream")["upstream"]
    try:
        read = [(op, _values(op["value"])) for op in ops if op["f"] != "produce"]
        produced = [(op, msgspec.json.decode(op["value"], type=int)) for op in ops if op["f"] == "produce"]
        log = msgspec.convert(found[-1].value, tuple[int, list[Json]])[1] if found else None
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise HistoryError(f"{history}: an operation on the source is not of this cluster ({error})") from None
    if log is None and read:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, "upstream showed no log at rest"))
    strict = [each for each in read if each[0]["f"] == "read-source"]
    unseen, after = _unseen(strict, sorted(produced, key=lambda each: int(each[0]["complete_ns"])))
    by_ts = sorted(read, key=lambda each: int(each[0]["read_ts"]))
    witnesses = {UNSEEN: after, GAP: sum(bool(values) for _, values in read), REWRITTEN: max(0, len(read) - 1)}
    troubles = [*unseen, *_gaps(read, log or []), *_rewritten(by_ts)]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _values(text: str) -> list[Json]:
    """The records that a read shows, in their order."""
    _, pairs = msgspec.json.decode(text, type=tuple[str, list[tuple[Json, Json]]])
    return [value for _, value in pairs]


def _unseen(strict: Sequence[tuple[Row, list[Json]]], produced: Sequence[tuple[Row, int]]) -> tuple[list[Trouble], int]:
    """1, and its witnesses."""
    found, witnesses = [], 0
    for op, values in strict:
        before = [each for each in produced if each[0]["complete_ns"] < op["invoke_ns"]]
        witnesses += bool(before)
        for write, offset in before:
            if offset >= len(values):
                sentence = (
                    f"T{op['index']} read {len(values)} records of the source at {op['read_ts']}, although record "
                    f"{offset}, of T{write['index']}, had been acknowledged before T{op['index']} was invoked."
                )
                found.append(Trouble(UNSEEN, sentence, (op["index"], offset), (write["index"], op["index"])))
                break
    return found, witnesses


def _gaps(read: Sequence[tuple[Row, list[Json]]], log: list[Json]) -> Iterator[Trouble]:
    """2."""
    for op, values in read:
        if values != log[: len(values)]:
            at = next(at for at, value in enumerate(values) if at >= len(log) or log[at] != value)
            sentence = (
                f"T{op['index']} read {values[at]} as record {at} of the source at {op['read_ts']}, where upstream has "
                f"{log[at] if at < len(log) else 'none'}."
            )
            yield Trouble(GAP, sentence, (op["index"], at), (op["index"],))


def _rewritten(by_ts: Sequence[tuple[Row, list[Json]]]) -> Iterator[Trouble]:
    """3."""
    for (one, before), (other, after) in pairwise(by_ts):
        is_same = one["read_ts"] == other["read_ts"]
        if len(after) < len(before) or (is_same and len(after) != len(before)):
            sentence = (
                f"T{one['index']} read {len(before)} records of the source at {one['read_ts']}, and T{other['index']} "
                f"{len(after)} at {other['read_ts']}."
            )
            yield Trouble(REWRITTEN, sentence, (one["index"], other["index"]), (one["index"], other["index"]))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
