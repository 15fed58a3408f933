"""Merged events against the single ones of the same session: part of guarantee G9.

A subscriber shows the net changes of an epoch as `merged` states: a key, [session, image before, image after], and the
epoch. The single events of the epoch, which come before its watermark, have the same rows: the image after is that of a
key's last event, and the one before that of its last event in earlier epochs. A number below zero deletes its row.
1. `wrong-merge`: a key has another net change than its single events have, or none, or one without any. A row that was
   there neither before nor after has none.
The image before is unknown until the session, or its part after a gap, has an event of the key: then only the image
after is compared. A session whose process ended may lack the last epoch. A witness is a net change of which both images
are known, or the absence of one. O(n).
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, EpochName, epoch_name
from checkers.history.tables import rows, states
from checkers.history.troubles import Trouble, judgement
from checkers.words.anomalies import Anomaly, Cause
from clusters.ndb.shape import image, is_imaged
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "merges"
WRONG: Final = "wrong-merge"
ANOMALIES: Final = {
    WRONG: Anomaly(meaning="A merged event is not the net change of its row in the epoch.", cause=Cause.EVENT),
}
UNKNOWN: Final = "?"  # No image: the elements are numbers.
Net = tuple[Json, Json]  # The images before and after.


class Closed(NamedTuple):
    """An epoch that a session completed, with the net change of each key that has events in it."""

    subscriber: str
    session: int
    epoch: int
    changes: dict[str, Net]
    is_last: bool


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all merged events. Raises HistoryError if the history is damaged."""
    names = Dictionary(history)
    merged: dict[tuple[str, int, int], dict[str, Net]] = {}
    for state in states(history, names, "merged")["merged"]:
        match state.value:
            case [int(session), before, after] if state.position is not None:
                merged.setdefault((state.node, session, state.position), {})[str(state.key)] = (before, after)
            case _:
                pass
    witnesses, troubles = 0, list[Trouble]()
    for closed in _closed(history, names) if merged else ():
        shown = merged.get((closed.subscriber, closed.session, closed.epoch), {})
        witnesses += sum(before != UNKNOWN for before, _ in closed.changes.values())
        if shown or not closed.is_last:
            troubles += compared(closed, shown, epoch_name(context.bounds.saved_bits))
    return judgement(CHECKER, ANOMALIES, troubles, {WRONG: witnesses})


def compared(closed: Closed, shown: Mapping[str, Net], show: EpochName = str) -> Iterator[Trouble]:
    """The keys of an epoch whose merged event is wrong."""
    for key in sorted(closed.changes.keys() | shown.keys()):
        due, there = closed.changes.get(key, (None, None)), shown.get(key, (None, None))
        if due[1] != there[1] or (due[0] not in (there[0], UNKNOWN)):
            where = f"In epoch {show(closed.epoch)} of session {closed.session} of {closed.subscriber}"
            single = f"the single events lead from {_named(due[0])} to {_named(due[1])}"
            sentence = f"{where} the merged event of {key} {_said(there)}; {single}."
            yield Trouble(WRONG, sentence, (closed.subscriber, closed.session, closed.epoch, key), group=key)


def _closed(history: Path, names: Dictionary) -> Iterator[Closed]:
    """The epochs that sessions completed, in order."""
    columns = ["seq", "subscriber", "session", "kind", "key", "value", "position"]
    found = rows(history, "events", columns, kind=["open", "row", "watermark", "gap"])
    sessions: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in found:
        sessions.setdefault((row["subscriber"], row["session"]), []).append(row)
    for (subscriber, session), events in sessions.items():
        yield from _of_session(subscriber, session, events, names)


def _of_session(
    subscriber: str, session: int, events: Iterable[Mapping[str, Any]], names: Dictionary
) -> Iterator[Closed]:
    known: dict[str, Json] = {}
    last: dict[str, Json] = {}
    pending: Closed | None = None
    for event in events:
        match event["kind"]:
            case "row":
                key = names.value(event["key"])
                if is_imaged(key):
                    last[str(key)] = image(names.value(event["value"]))
            case "watermark":
                if pending is not None:
                    yield pending
                changes = {key: (known.get(key, UNKNOWN), after) for key, after in last.items()}
                pending = Closed(subscriber, session, event["position"], changes, is_last=False)
                known |= last
                last = {}
            case _:
                known.clear()
                last.clear()
    if pending is not None:
        yield pending._replace(is_last=True)


def _said(net: Net) -> str:
    return "is missing" if net == (None, None) else f"leads from {_named(net[0])} to {_named(net[1])}"


def _named(held: Json) -> str:
    return {"None": "no row", UNKNOWN: "an unknown row"}.get(str(held), f"row {held}")


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
