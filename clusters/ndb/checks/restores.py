"""What a backup and the epochs after it restore, against the acknowledged transactions: guarantee G35.

An operation `restore` has the value [stop checkpoint, epoch, lists by key]. The lists are the backup, of everything up
to the stop checkpoint, and after it the last element of each transaction for each key in the binlog, up to `epoch`.
1. `false-restore`: a list lacks an element that was committed by then, or has one of a later epoch, of a failed
   operation, or that nobody appended, or has epochs in falling order. A witness is a list with elements.
Elements of unclear outcome may be there. What a restart of the whole cluster lost by then must not be there: its
checkpoint is above the restored one, and its epoch below the first after that restart. O(elements), for each restore.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, EpochName, epoch_name
from checkers.history.tables import first_reports, rows, states
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause
from clusters.ndb.shape import first_epoch, gci_of
from harness.core.columns import APPEND, FAIL, OK
from harness.core.errors import HistoryError
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "restores"
FALSE: Final = "false-restore"
ANOMALIES: Final = {
    FALSE: Anomaly(meaning="What was restored from a backup is not the state after its epoch.", cause=Cause.LOSS),
}
SCHEMA: Final = "schema"


class Restore(msgspec.Struct, frozen=True, array_like=True):
    """What one operation restored."""

    gci: int
    epoch: int
    lists: tuple[tuple[Json, tuple[Json, ...]], ...]


class Element(NamedTuple):
    """An element that an operation appended; `is_last`: it is the operation's last one of the key."""

    op: int
    outcome: int
    epoch: int | None
    is_last: bool


class Restart(msgspec.Struct, frozen=True, array_like=True):
    """A restart of the whole cluster, to the end of a checkpoint; its own epochs begin with `first`."""

    gci: int
    first: int


Written = Mapping[str, Mapping[Json, Element]]  # By key and element.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all restores. Raises HistoryError if one has another form."""
    names = Dictionary(history)
    done = [each for each in rows(history, "ops", ["index", "f", "value"], outcome=[OK]) if each["f"] == "restore"]
    done = [each for each in done if each["value"] is not None]
    if not done:
        return judgement(CHECKER, ANOMALIES, (), {FALSE: 0})
    try:
        found = {int(each["index"]): msgspec.json.decode(each["value"], type=Restore) for each in done}
    except msgspec.ValidationError as error:
        raise HistoryError(f"{history}: what a restore shows has another form ({error})") from None
    written = _written(history, names)
    reports = first_reports(states(history, names, "restart")["restart"])
    restarts = [msgspec.convert(state.value, Restart) for state in reports]
    show, troubles = epoch_name(context.bounds.saved_bits), list[Trouble]()
    for index, restore in sorted(found.items()):
        for key, why in wrong(restore, written, restarts, show):
            sentence = (
                f"T{index} restored a backup of checkpoint {restore.gci} and the binlog up to {show(restore.epoch)}: "
                f"its list {key} {why}."
            )
            troubles.append(Trouble(FALSE, sentence, (index, key), (index,)))
            break
    witnesses = sum(bool(elements) for each in found.values() for _, elements in each.lists)
    return judgement(CHECKER, ANOMALIES, troubles, {FALSE: witnesses})


def wrong(
    restore: Restore, written: Written, restarts: Sequence[Restart], show: EpochName = str
) -> Iterator[tuple[str, str]]:
    """The keys whose list is not that after the epoch, each with the reason."""
    lists = {str(key): elements for key, elements in restore.lists}
    lost = [each for each in restarts if each.first <= restore.epoch]
    for key in sorted((lists.keys() | written.keys()) - {SCHEMA}):
        of_key, elements = written.get(key, {}), lists.get(key, ())
        latest = 0
        for element in elements:
            by = of_key.get(element)
            if by is None or by.outcome == FAIL:
                yield key, f"has {element}, which nobody committed"
            elif by.outcome == OK and by.epoch is not None:
                if not _is_due(by.epoch, restore.epoch, lost):
                    yield key, f"has {element}, which T{by.op} committed in {show(by.epoch)}"
                elif by.epoch < latest:
                    yield key, f"has {element} of {show(by.epoch)} behind an element of {show(latest)}"
                latest = max(latest, by.epoch)
        there = set(map(str, elements))
        for element, by in of_key.items():
            if by.outcome != OK or by.epoch is None or str(element) in there:
                continue
            is_whole = by.is_last or by.epoch < first_epoch(restore.gci + 1)
            if is_whole and _is_due(by.epoch, restore.epoch, lost):
                yield key, f"lacks {element}, which T{by.op} committed in {show(by.epoch)}"


def _is_due(epoch: int, until: int, restarts: Sequence[Restart]) -> bool:
    """True if what committed in that epoch is there after epoch `until`."""
    return epoch <= until and not any(epoch < each.first and gci_of(epoch) > each.gci for each in restarts)


def _written(history: Path, names: Dictionary) -> Written:
    ops: dict[int, Mapping[str, Any]] = {
        int(each["index"]): each for each in rows(history, "ops", ["index", "outcome", "epoch"])
    }
    written: dict[str, dict[Json, Element]] = {}
    last: dict[tuple[int, str], Json] = {}
    for mop in rows(history, "mops", ["op", "f", "key", "value"], f=[APPEND]):
        op, key, value = ops[mop["op"]], str(names.value(mop["key"])), names.value(mop["value"])
        of_key = written.setdefault(key, {})
        before = last.get((mop["op"], key))
        if before is not None:
            of_key[before] = of_key[before]._replace(is_last=False)
        last[mop["op"], key] = value
        of_key[value] = Element(int(mop["op"]), int(op["outcome"]), op["epoch"], is_last=True)
    return written


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
