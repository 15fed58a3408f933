"""Readers that begin at a stream cut, that of a checkpoint: the other half of guarantee G19.

A restoration has all readers begin again at the group's last checkpoint, in new sessions. Events of a key lie before a
cut, or behind it, in the order of the key's stream.
1. `restored-early`: sessions after a restoration deliver nothing that lies before its cut. A witness is a row of such
   a session.
2. `restored-lost`: sessions after the last restoration deliver all that lies behind its cut, but what was truncated.
   Judged if an operation `drain` succeeded. A witness is an event behind the cut.
3. `torn-checkpoint`: what a session delivers before it comes to that checkpoint lies before the cut, and all else lies
   behind it. A witness is a row of a session that came to one.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from clusters.pravega.checks.dumped import Place, Restored, Stream, shown_at, stream
from harness.core.columns import OK
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "reader-checkpoints"
EARLY, LOST, TORN = "restored-early", "restored-lost", "torn-checkpoint"
ANOMALIES: Final = {
    EARLY: "Readers that began at a checkpoint delivered an event that lies before it.",
    LOST: "No reader that began at a checkpoint delivered an event that lies behind it.",
    TORN: "A reader delivered an event on the wrong side of its checkpoint.",
}
Row = Mapping[str, Any]


class _Cut:
    """The events of the stream before and behind a cut."""

    def __init__(self, found: Stream, restored: Restored) -> None:
        self._found, self._offsets = found, restored.offsets
        self._begins: dict[Json, tuple[dict[tuple[int, int], int], tuple[int, int]]] = {}

    def is_before(self, key: Json, place: Place) -> bool:
        """True if that place of the key's stream lies before the cut."""
        if key not in self._begins:
            rank = {name: at for at, name in enumerate(self._found.path(key))}
            ends = [(rank[name], offset) for name, offset in self._offsets.items() if name in rank]
            self._begins[key] = (rank, min(ends, default=(0, 0)))
        rank, begin = self._begins[key]
        name, offset = place
        return (rank.get(name, len(rank)), offset) < begin


def check(history: Path, context: Context) -> Judgement:
    """The judgement of checkpoints and restorations. Raises HistoryError if they are damaged."""
    found = stream(history, context)
    if found.lacking is not None:
        return judgement(CHECKER, ANOMALIES, (), {}, unknown=dict.fromkeys(ANOMALIES, found.lacking))
    if not found.restored:
        return judgement(CHECKER, ANOMALIES, (), {})
    names = Dictionary(history)
    columns = ["seq", "subscriber", "session", "kind", "span", "key", "position", "ordinal"]
    events = [
        {**row, "key": names.value(row["key"])} if row["kind"] == "row" else row
        for row in rows(history, "events", columns, kind=["row", "checkpoint"])
    ]
    is_drained = any(row["outcome"] == OK for row in rows(history, "ops", ["outcome", "f"], f=["drain"]))
    witnesses = dict.fromkeys(ANOMALIES, 0)
    troubles: list[Trouble] = []
    ends = [*(each.session for each in found.restored[1:]), None]
    for restored, end in zip(found.restored, ends, strict=True):
        cut = _Cut(found, restored)
        own = [row for row in events if row["kind"] == "row" and restored.session < row["session"]]
        behind = [row for row in own if end is None or row["session"] <= end]
        witnesses[EARLY] += len(behind)
        troubles += _early(cut, behind)
        if end is None and is_drained:
            count, lost = _lost(found, cut, behind)
            witnesses[LOST], troubles = count, [*troubles, *lost]
    for checkpoint, restored in {each.checkpoint: each for each in found.restored}.items():
        count, torn = _torn(_Cut(found, restored), events, checkpoint)
        witnesses[TORN] += count
        troubles += torn
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _place(row: Row) -> Place:
    number, epoch = str(row["span"]).split("/")
    return (int(number), int(epoch)), int(row["position"])


def _early(cut: _Cut, delivered: Sequence[Row]) -> Iterator[Trouble]:
    """1."""
    for row in delivered:
        place = _place(row)
        if cut.is_before(row["key"], place):
            sentence = (
                f"{row['subscriber']} began at a checkpoint, and delivered what key {row['key']} has at "
                f"{shown_at(place)}, which lies before it."
            )
            yield Trouble(EARLY, sentence, (row["key"], *place), events=(row["seq"],))


def _lost(found: Stream, cut: _Cut, delivered: Sequence[Row]) -> tuple[int, list[Trouble]]:
    """2."""
    came = {_place(row) for row in delivered}
    count, troubles = 0, []
    for key in found.keys():  # noqa: SIM118  A method, not a dictionary.
        for name, offset, _ in found.events(key):
            if offset < found.segments[name].start or cut.is_before(key, (name, offset)):
                continue
            count += 1
            if (name, offset) not in came:
                sentence = (
                    f"No reader that began at the last restored checkpoint delivered what key {key} has at "
                    f"{shown_at((name, offset))}, behind it."
                )
                troubles.append(Trouble(LOST, sentence, (key, name, offset)))
    return count, troubles


def _torn(cut: _Cut, events: Sequence[Row], checkpoint: int) -> tuple[int, list[Trouble]]:
    """3."""
    came = {
        row["session"]: row["seq"] for row in events if row["kind"] == "checkpoint" and row["ordinal"] == checkpoint
    }
    count, troubles = 0, []
    for row in events:
        if row["kind"] != "row" or row["session"] not in came:
            continue
        count += 1
        place, is_earlier = _place(row), row["seq"] < came[row["session"]]
        if cut.is_before(row["key"], place) != is_earlier:
            side, other = ("before", "behind") if is_earlier else ("after", "before")
            sentence = (
                f"{row['subscriber']} delivered what key {row['key']} has at {shown_at(place)} {side} it came to a "
                f"checkpoint, and that lies {other} it."
            )
            troubles.append(Trouble(TORN, sentence, (row["key"], *place), events=(row["seq"],)))
    return count, troubles


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
