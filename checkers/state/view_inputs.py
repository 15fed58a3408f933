"""The evidence of a history about views: updates of their inputs, answers, and logs of changes.

Updates come from operations called `change`, whose value is a list of [collection, key, value, diff] and whose
`commit_ts` places them; or from events whose `span` is the collection: a row at `position` with its diff as `ordinal`
(without one: 1), and watermarks: no update below them follows. If there are several subscribers, the first one counts.

Claims come from operations called `query` with a `read_ts`, whose value is [view, [[key, value], ...]]; or from events
whose `span` is the view. The rows of a log at or below a timestamp add up to the view at that timestamp.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from checkers.columns.files import reading
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.state.view_groups import Row
from harness.core.columns import FAIL, OK
from harness.core.errors import HistoryError
from harness.core.promises import View
from harness.core.record import Json

_changes = msgspec.json.Decoder(list[tuple[str, Json, Json, int]])
_answer = msgspec.json.Decoder(tuple[str, list[tuple[Json, Json]]])


class Update(NamedTuple):
    """A change of a collection. `origin` is the operation or event (from -2 downwards) that shows it."""

    ts: int
    key: Row
    row: Row
    diff: int
    origin: int


class Answer(NamedTuple):
    """All rows of a view at a timestamp, from operation `op`."""

    ts: int
    op: int
    rows: list[tuple[Row, Row]]


class Log(NamedTuple):
    """The changes of a view in one session, complete below `end`; before `begin` it claims nothing.

    `is_resumed`: it goes on where the view was at `begin`; else its first rows are the whole view.
    """

    subscriber: str
    begin: int
    end: int
    is_resumed: bool
    updates: list[Update]


class Material(Struct):
    """The evidence of a history about one view."""

    inputs: list[list[Update]]
    answers: list[Answer] = field(default_factory=list)
    logs: list[Log] = field(default_factory=list)
    vague: set[Row] = field(default_factory=set)  # Keys that a write of unknown outcome may have changed.
    end: int | None = None  # From this timestamp on the inputs are not complete.


def frozen(value: Json) -> Row:
    """A value that can be hashed: lists become tuples, and objects their JSON."""
    if isinstance(value, list):
        return tuple(map(frozen, value))
    return msgspec.json.encode(value, order="sorted") if isinstance(value, dict) else value


def material(history: Path, view: View) -> Material:
    """The evidence of the history in that folder about a view. Raises HistoryError if it is damaged."""
    found = Material([[] for _ in view.inputs])
    with reading(history / "ops.parquet", msgspec.DecodeError, msgspec.ValidationError, ValueError):
        _operations(history, view, found)
    _events(history, view, found)
    for updates in found.inputs:
        updates.sort(key=lambda update: update.ts)
    found.answers.sort(key=lambda answer: answer.ts)
    return found


def _operations(history: Path, view: View, found: Material) -> None:
    columns = ["index", "f", "outcome", "invoke_value", "value", "read_ts", "commit_ts"]
    for op in rows(history, "ops", columns, f=["change", "query"]):
        if op["f"] == "query":
            if op["outcome"] == OK and op["read_ts"] is not None and op["value"] is not None:
                name, shown = _answer.decode(op["value"])
                if name == view.name:
                    pairs = [(frozen(key), frozen(value)) for key, value in shown]
                    found.answers.append(Answer(op["read_ts"], op["index"], pairs))
            continue
        is_placed = op["outcome"] == OK and op["commit_ts"] is not None
        text = op["value"] if op["outcome"] == OK and op["value"] is not None else op["invoke_value"]
        for collection, key, value, diff in _changes.decode(text) if op["outcome"] != FAIL and text else ():
            for place, name in enumerate(view.inputs):
                if name == collection and is_placed:
                    update = Update(op["commit_ts"], frozen(key), frozen(value), diff, op["index"])
                    found.inputs[place].append(update)
                elif name == collection:
                    found.vague.add(frozen(key))


def _events(history: Path, view: View, found: Material) -> None:
    columns = ["seq", "subscriber", "session", "kind", "span", "key", "value", "position", "ordinal"]
    spans = [*view.inputs, view.name]
    by_log: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for row in rows(history, "events", columns, span=spans, kind=["open", "row", "watermark"]):
        by_log.setdefault((row["span"], row["subscriber"], row["session"]), []).append(row)
    names = Dictionary(history) if by_log else None
    for (span, subscriber, session), events in by_log.items():
        assert names is not None
        log = _log(subscriber, events, names, f"{history}: session {session} of {subscriber} on {span}")
        if span == view.name:
            found.logs.append(log)
    for place, name in enumerate(view.inputs):
        mine = [(who, number) for span, who, number in by_log if span == name]
        if not mine:
            continue
        assert names is not None
        reached = 0
        for who, number in sorted(each for each in mine if each[0] == mine[0][0]):
            log = _log(who, by_log[name, who, number], names, f"{history}: session {number} of {who} on {name}")
            found.inputs[place] += [each for each in log.updates if reached <= each.ts < log.end]
            reached = max(reached, log.end)
        found.end = reached if found.end is None else min(found.end, reached)


def _log(subscriber: str, events: Sequence[Mapping[str, Any]], names: Dictionary, where: str) -> Log:
    """The log of a session."""
    updates, end, begin, is_resumed = list[Update](), 0, None, False
    for event in events:
        position = event["position"]
        if position is None:
            raise HistoryError(f"{where}: an event has no position, which is its timestamp")
        if event["kind"] == "open":
            begin, is_resumed = position, True
        elif event["kind"] == "watermark":
            end = max(end, position)
        else:
            diff = 1 if event["ordinal"] is None else event["ordinal"]
            key, row = frozen(names.value(event["key"])), frozen(names.value(event["value"]))
            updates.append(Update(position, key, row, diff, -2 - event["seq"]))
    first = min((update.ts for update in updates), default=end)
    updates.sort(key=lambda update: update.ts)
    return Log(subscriber, first if begin is None else begin, end, is_resumed, updates)
