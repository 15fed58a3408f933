"""Shards and the catalog, as their nodes show them at rest: guarantees G6, G10, G14 and G20.

1. `upper-gap`: each append begins at the upper that the one before it left, and raises it. A witness is an append.
2. `late-append`: once a leader has appended to a table, or has answered a client, no leader of a lower epoch appends
   to the table. A witness is a table to which several leaders appended.
3. `superseded-record`: no record of the catalog comes after one of a higher epoch. A witness is a record that follows
   one of another epoch.
4. `negative-row`: no row is there less than never. A witness is a table with rows that went.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import State, rows, states
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import NEVER, OK
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement

CHECKER: Final = "shards"
GAP, LATE, RECORD, NEGATIVE = "upper-gap", "late-append", "superseded-record", "negative-row"
ANOMALIES: Final = {
    GAP: "The upper of a shard fell, or rose without an append.",
    LATE: "A superseded leader appended to a table after its successor had, or had answered a client.",
    RECORD: "The catalog took a record of a superseded leader.",
    NEGATIVE: "A row was taken away more often than it was there.",
}
Append = tuple[int, int, int, int]  # The expected upper, the new one, the epoch (0 for ingestion), and the time.


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all shards and of the catalog. Raises HistoryError if they are damaged."""
    found = states(history, Dictionary(history), "shard", "negative", "catalog")
    try:
        appends = {str(state.key): msgspec.convert(state.value, list[Append]) for state in found["shard"]}
        records = [msgspec.convert(state.value, tuple[str, int]) for state in found["catalog"]]
    except msgspec.ValidationError as error:
        raise HistoryError(f"{history}: a dumped shard or record is not of this cluster ({error})") from None
    if not appends:
        unknown = dict.fromkeys(ANOMALIES, "no shards were shown at rest")
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=unknown)
    deleted = [op for op in rows(history, "ops", ["f", "value"], outcome=[OK], f=["change"]) if ",-1]" in op["value"]]
    witnesses = {
        GAP: sum(map(len, appends.values())),
        LATE: sum(len({epoch for _, _, epoch, _ in each}) > 1 for each in appends.values()),
        RECORD: sum(one[1] != other[1] for one, other in pairwise(records)),
        NEGATIVE: len(deleted),
    }
    troubles = [
        *_gaps(appends),
        *_late(appends, _first_answers(history)),
        *_superseded(records),
        *_negative(found["negative"]),
    ]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _gaps(appends: dict[str, list[Append]]) -> Iterator[Trouble]:
    """1."""
    for shard, each in appends.items():
        upper = 0
        for expected, new, _, _ in each:
            if expected != upper or new <= upper:
                yield Trouble(
                    GAP, f"Shard {shard} had upper {upper}, and got an append from {expected} to {new}.", (shard, upper)
                )
            upper = new


def _first_answers(history: Path) -> dict[int, int]:
    """The time at which each epoch first answered a client."""
    first: dict[int, int] = {}
    for op in rows(history, "ops", ["epoch", "complete_ns"], outcome=[OK]):
        if op["epoch"] is not None:
            first[op["epoch"]] = min(op["complete_ns"], first.get(op["epoch"], op["complete_ns"]))
    return first


def _late(appends: dict[str, list[Append]], answers: dict[int, int]) -> Iterator[Trouble]:
    """2."""
    for shard, each in appends.items():
        highest = 0
        for expected, _, epoch, at_ns in each:
            what = f"The leader of epoch {epoch} appended to {shard} at {expected}"
            after = min(((ns, later) for later, ns in answers.items() if later > epoch), default=(NEVER, epoch))
            if epoch < highest:
                yield Trouble(LATE, f"{what}, after the leader of epoch {highest} had.", (shard, expected, epoch))
            elif epoch and after[0] < at_ns:
                sentence = f"{what}, after the leader of epoch {after[1]} had answered a client."
                yield Trouble(LATE, sentence, (shard, expected, epoch))
            highest = max(highest, epoch)


def _superseded(records: Sequence[tuple[str, int]]) -> Iterator[Trouble]:
    """3."""
    for number, ((_, before), (kind, epoch)) in enumerate(pairwise(records), start=1):
        if epoch < before:
            sentence = (
                f"Record {number} of the catalog, {kind}, is of epoch {epoch}, and follows one of epoch {before}."
            )
            yield Trouble(RECORD, sentence, (number, epoch, before))


def _negative(found: Sequence[State]) -> Iterator[Trouble]:
    """4."""
    for state in found:
        for key, value, count in msgspec.convert(state.value, list[tuple[object, object, int]]):
            sentence = f"Table {state.key} has row {value} of key {key} {count} times."
            yield Trouble(NEGATIVE, sentence, (str(state.key), str(key), str(value)))


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
