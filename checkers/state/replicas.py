"""Differences between the replicas of a group when all is quiet: guarantee G24 of the NDB model.

Compared are the dumps at quiescence of the members of the last view, key by key: the elements, and the epoch of the
last commit. A node outside the last view may hold anything, and a member that does not hold all rows yet shows none.
A witness is a key that two nodes of a group show. The facts count the changes of the view and the restarts before.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from checkers.history.tables import Dictionary, State, finding, states
from checkers.state.survival import last_members
from checkers.transactions.sentences import Name, number
from harness.core.promises import Bounds
from harness.core.verdict import Finding, Judgement

CHECKER = "replicas"
DIVERGED = "diverged-replicas"
SHOWN = 8  # A longer list is shown by its end.
Rows = dict[int, State]


def check(history: Path, bounds: Bounds, name: Name = number) -> Judgement:
    """The judgement of the dumps, with one finding per pair of nodes. Raises HistoryError if they are damaged."""
    found = states(history, Dictionary(history), "row", "view", "restart")
    members = last_members(found["view"])
    dumps: dict[str, Rows] = {}
    for row in found["row"]:
        if members is None or row.node in members:
            dumps.setdefault(row.node, {})[row.key_id] = row
    findings: list[Finding] = []
    witnesses = 0
    for group in bounds.groups:
        shown = [node for node in group if node in dumps]
        for one, other in pairwise(shown):
            witnesses += len(dumps[one].keys() | dumps[other].keys())
            findings += _differences(one, other, dumps[one], dumps[other], name)
    return Judgement(
        checker=CHECKER,
        findings=tuple(findings),
        witnesses={DIVERGED: witnesses},
        facts={
            "nodes": len(dumps),
            "views": len({view.key for view in found["view"] if isinstance(view.key, int)}),
            "restarts": sum(restart.key != 0 for restart in found["restart"]),
        },
    )


def _differences(one: str, other: str, left: Rows, right: Rows, name: Name) -> Iterator[Finding]:
    """One finding with the first key on which the two nodes differ, if there is one."""
    different = [key for key in sorted(left.keys() | right.keys()) if _of(left, key) != _of(right, key)]
    if different:
        key = different[0]
        sentence = f"At rest {one} holds {name(key)} as {_told(left, key)}, and {other} as {_told(right, key)}."
        yield finding(CHECKER, DIVERGED, sentence, facts=(one, other, name(key)), count=len(different))


def _of(rows: Rows, key: int) -> tuple[object, int | None] | None:
    return (rows[key].value, rows[key].position) if key in rows else None


def _told(rows: Rows, key: int) -> str:
    if key not in rows:
        return "nothing"
    row = rows[key]
    if isinstance(row.value, list) and len(row.value) > SHOWN:
        last = ", ".join(map(str, row.value[-SHOWN:]))
        return f"[..., {last}] ({len(row.value)} elements) of epoch {row.position}"
    return f"{row.value} of epoch {row.position}"
