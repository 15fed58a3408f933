"""The last state of a run: what the members of the last view dumped, or else what the final reads returned."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from checkers.history.tables import State, Window, phases, rows
from checkers.state.claims import Claims
from checkers.state.contents import Dumps, dumps_of
from harness.core.columns import NEVER, OK, READ, Bools
from harness.core.promises import Bounds, Excuse

_READER: Final = "final reads"


def last_members(views: Sequence[State]) -> tuple[str, ...] | None:
    """The members of the view with the highest number; None if no view was reported."""
    numbered = [(view.key, view.value) for view in views if isinstance(view.key, int) and isinstance(view.value, list)]
    if not numbered:
        return None
    _, members = max(numbered, key=lambda view: view[0])
    return tuple(map(str, members))


def survived_ns(faults: Iterable[Window], bounds: Bounds, restarts_ns: Sequence[int]) -> int | None:
    """The end of the last fault that struck data nodes, had an effect, and left some alive; None without one."""
    nodes = {node for group in bounds.groups for node in group}
    ends = [
        window.end_ns
        for window in faults
        if window.effect
        and _is_survivable(window, nodes)
        and not any(window.begin_ns <= ns <= window.end_ns + bounds.grace_ns for ns in restarts_ns)
    ]
    return max(ends, default=None)


def _is_survivable(window: Window, nodes: set[str]) -> bool:
    def is_one(node: str) -> bool:
        return not nodes or node in nodes

    if Excuse.LINKS in window.excuse:
        return any(all(map(is_one, target.split(">"))) for target in window.targets)
    if Excuse.NODES not in window.excuse or not any(map(is_one, window.targets)):
        return False
    is_everyone = bool(nodes) and (window.effect or 0) >= len(nodes) and nodes <= set(window.targets)
    return Excuse.MEMORY not in window.excuse or not is_everyone


def final_reads(history: Path) -> tuple[Dumps, dict[int, int]]:
    """Reads of the final phase, as if a node had dumped their results; and where the last read of each key began."""
    final = phases(history).get("final")
    columns = ["index", "invoke_seq"]
    ops = rows(history, "ops", columns, outcome=[OK]) if final is not None else []
    late = {row["index"]: row["invoke_seq"] for row in ops if final is not None and row["invoke_seq"] > final["seq"]}
    mops = rows(history, "mops", ["op", "key", "read"], f=[READ], op=list(late)) if late else []
    reads = [(row["key"], row["read"], late[row["op"]]) for row in mops if row["read"] is not None]
    begun = {key: seq for key, _, seq in sorted(reads, key=lambda read: read[2])}
    nodes, numbers = [_READER] * len(reads), [NEVER] * len(reads)
    return dumps_of(nodes, numbers, [key for key, _, _ in reads], [read for _, read, _ in reads]), begun


def had_not_ended(claims: Claims, begun: Mapping[int, int]) -> Bools:
    """True for elements whose transaction had not ended when the last read of their key began."""
    written = claims.written
    read_at = np.array([begun.get(key, -1) for key in written.key.tolist()], np.int64)
    result: Bools = claims.end_seq[written.owner] >= read_at
    return result
