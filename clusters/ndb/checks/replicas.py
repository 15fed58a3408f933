"""Differences between the replicas of a group when the run is at rest: guarantee G24.

Compared are the dumps at quiescence of the members of the last view, key by key: the elements, and the epoch of the
last commit. A node outside the last view may hold anything, and a member that does not hold all rows yet shows none. A
witness is a key that two nodes of a group show. The facts count the changes of the view and the restarts before.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, Names, first_difference, shown_list
from checkers.history.tables import State, first_reports, states
from checkers.history.troubles import Trouble, judgement
from checkers.state.rest import last_members
from checkers.words.anomalies import Anomaly, Cause
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER = "replicas"
DIVERGED = "diverged-replicas"
ANOMALIES: Final = {
    DIVERGED: Anomaly(meaning="Two replicas of one object differ at rest.", cause=Cause.STATE),
}
Rows = dict[int, State]


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the dumps, with one finding per pair of nodes. Raises HistoryError if they are damaged."""
    found = states(history, Dictionary(history), "row", "view", "restart")
    members = last_members(found["view"])
    dumps: dict[str, Rows] = {}
    for row in found["row"]:
        if members is None or row.node in members:
            dumps.setdefault(row.node, {})[row.key_id] = row
    troubles: list[Trouble] = []
    witnesses = 0
    for group in context.bounds.groups:
        shown = [node for node in group if node in dumps]
        for one, other in pairwise(shown):
            witnesses += len(dumps[one].keys() | dumps[other].keys())
            troubles += _differences(one, other, dumps[one], dumps[other], context.name)
    return judgement(
        CHECKER,
        ANOMALIES,
        troubles,
        {DIVERGED: witnesses},
        facts={
            "nodes": len(dumps),
            "views": len({view.key for view in found["view"] if isinstance(view.key, int)}),
            "restarts": sum(restart.key != 0 for restart in first_reports(found["restart"])),
        },
        scope=(),
    )


def _differences(one: str, other: str, left: Rows, right: Rows, name: Names) -> Iterator[Trouble]:
    """A violation for each key on which the two nodes differ."""
    for key in sorted(left.keys() | right.keys()):
        mine, theirs = left.get(key), right.get(key)
        if mine is None or theirs is None or (mine.value, mine.position) != (theirs.value, theirs.position):
            at = first_difference(_elements(mine), _elements(theirs))
            held = [_shown(row, at, name) for row in (mine, theirs)]
            sentence = f"At rest {one} holds key {name.key(key)} as {held[0]}, and {other} as {held[1]}."
            yield Trouble(DIVERGED, sentence, (one, other, name(key)), group=(one, other))


def _elements(row: State | None) -> list[Json]:
    """The elements of a list that a node holds; empty for anything else."""
    return row.value if row is not None and isinstance(row.value, list) else []


def _shown(row: State | None, at: int | None, name: Names) -> str:
    """The content of a row, and the position of its last commit; a long list around place `at`."""
    if row is None:
        return "nothing"
    where = "" if row.position is None else f" of {name.forms.position(row.position)}"
    if isinstance(row.value, list):
        return f"{shown_list([*map(str, row.value)], at)}{where}"
    return f"{row.value}{where}"


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
