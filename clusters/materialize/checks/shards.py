"""Shards and the catalog, as their nodes show them at rest: guarantees G6, G10, G14, G16 and G20.

1. `upper-gap`: each append begins at the upper that the one before it left, and raises it. A witness is an append.
2. `late-append`: once a leader has appended to a table, no leader of a lower epoch does. A witness is a table to which
   several leaders appended.
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
from harness.core.columns import OK
from harness.core.errors import HistoryError
from harness.core.verdict import Judgement

CHECKER: Final = "shards"
GAP, LATE, RECORD, NEGATIVE = "upper-gap", "late-append", "superseded-record", "negative-row"
ANOMALIES: Final = {
    GAP: "The upper of a shard fell, or rose without an append.",
    LATE: "A superseded leader appended to a table after its successor had.",
    RECORD: "The catalog took a record of a superseded leader.",
    NEGATIVE: "A row was taken away more often than it was there.",
}
Append = tuple[int, int, int]  # The expected upper, the new one, and the epoch; 0 for ingestion.


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
        LATE: sum(len({epoch for _, _, epoch in each}) > 1 for each in appends.values()),
        RECORD: sum(one[1] != other[1] for one, other in pairwise(records)),
        NEGATIVE: len(deleted),
    }
    troubles = [*_gaps(appends), *_late(appends), *_superseded(records), *_negative(found["negative"])]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _gaps(appends: dict[str, list[Append]]) -> Iterator[Trouble]:
    """1."""
    for shard, each in appends.items():
        upper = 0
        for expected, new, _ in each:
            if expected != upper or new <= upper:
                yield Trouble(
                    GAP, f"Shard {shard} had upper {upper}, and got an append from {expected} to {new}.", (shard, upper)
                )
            upper = new


def _late(appends: dict[str, list[Append]]) -> Iterator[Trouble]:
    """2."""
    for shard, each in appends.items():
        for (_, _, before), (expected, _, epoch) in pairwise(each):
            if epoch < before:
                what = f"The leader of epoch {epoch} appended to {shard} at {expected}"
                sentence = f"{what}, after the leader of epoch {before} had."
                yield Trouble(LATE, sentence, (shard, expected, epoch))


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
