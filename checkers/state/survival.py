"""Data that faults lost or invented: judged on the last state.

The last state is what the members of the last view dumped at quiescence or, without dumps, what the final reads
returned. It must contain every acknowledged transaction, whole and once, unless a restart of the whole cluster left it
out. It must contain no failed transaction, and one of unclear outcome as a whole or not at all. Elements that a restart
lost or invented are reported by durability.py and not counted again here.

A transaction whose client gave up may be under way during the final reads: it must be in those that began after a
subscriber had received it.

A witness is a transaction whose keys were shown, and which was invoked before the end of the last fault that had an
effect and struck data nodes, though not all of them by a crash. Without such a fault nothing was survived.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

import numpy as np

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, Names
from checkers.history.tables import State, Window, first_reports, phases, rows, states, windows
from checkers.history.troubles import Trouble, judgement
from checkers.state.claims import Claims, Fate
from checkers.state.contents import (
    Contents,
    Dumps,
    Element,
    Sights,
    dumps_of,
    is_fractured,
    named,
    shown,
    wrong,
)
from checkers.words.anomalies import SHARED, Anomaly, Cause
from checkers.words.transactional import TRANSACTIONAL
from harness.core.columns import NEVER, OK, READ, Bools
from harness.core.promises import Bounds, Excuse
from harness.core.verdict import Judgement

CHECKER = "survival"
LOST, PHANTOM, FRACTURED = "lost-acknowledged", "phantom-write", "fractured-transaction"
RESURRECTED, DOUBLE, TWICE = "resurrected", "double-status", "duplicate-elements"
ANOMALIES: Final = {
    LOST: SHARED[LOST],
    PHANTOM: SHARED[PHANTOM],
    FRACTURED: Anomaly(meaning="At rest a part of a transaction is there, and another part is not.", cause=Cause.PART),
    RESURRECTED: SHARED[RESURRECTED],
    DOUBLE: Anomaly(
        meaning="One transaction is both committed and aborted.",
        title="Transaction both committed and aborted",
        cause=Cause.EPOCH,
    ),
    TWICE: TRANSACTIONAL[TWICE],
}
_READER: Final = "final reads"


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the last state. Raises HistoryError if the files of the history are damaged."""
    nodes, bounds = shown(history, context), context.bounds
    claims, groups = nodes.claims, nodes.groups
    found = states(history, Dictionary(history), "view", "restart")
    members = last_members(found["view"])
    dumps = nodes.rest if members is None else nodes.rest.of_nodes(members)
    has_dumps = len(dumps.key) > 0
    reads, begun = (dumps, {}) if has_dumps else _final_reads(history)
    contents = Contents(reads, groups, claims, is_partial=not has_dumps)
    rows, count = np.arange(len(reads.key)), len(claims.restarts)
    seen = contents.state(rows, count)
    if not has_dumps:
        seen = seen.without(count, _had_not_ended(claims, begun))
    explained = _explained(Contents(nodes.restored, groups, claims))
    troubles = _troubles(seen, contents, claims, explained, has_dumps=has_dumps, name=context.name)
    until_ns = survived_ns(
        windows(history, context.excuses), bounds, [restart.ns for restart in first_reports(found["restart"])]
    )
    return judgement(
        CHECKER,
        ANOMALIES,
        troubles,
        _witnesses(seen, claims, until_ns, has_dumps=has_dumps),
        facts={
            "transactions": len(claims.size),
            "keys": len(np.unique(reads.key)),
            "nodes": len(dumps.nodes_shown()),
        },
    )


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


def _final_reads(history: Path) -> tuple[Dumps, dict[int, int]]:
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


def _had_not_ended(claims: Claims, begun: Mapping[int, int]) -> Bools:
    """True for elements whose transaction had not ended when the last read of their key began."""
    written = claims.written
    read_at = np.array([begun.get(key, -1) for key in written.key.tolist()], np.int64)
    result: Bools = claims.end_seq[written.owner] >= read_at
    return result


def _explained(contents: Contents) -> set[Element]:
    """The elements that an earlier restart has already lost or brought back."""
    explained: set[Element] = set()
    for count, restart in enumerate(contents.claims.restarts, 1):
        after = contents.rows_after(restart.number)
        sights = contents.state(after, count).striking(contents.claims.after(count))
        explained.update(element for sight in sights for element in wrong(sight))
        explained.update(contents.strangers(after))
    return explained


def _troubles(
    seen: Sights,
    contents: Contents,
    claims: Claims,
    explained: Set[Element],
    *,
    has_dumps: bool,
    name: Names,
) -> Iterator[Trouble]:
    for sight in seen.striking(np.ones(len(claims.size), np.bool_)):
        op, fate = sight.claim.transaction.index, sight.fate
        absent = tuple(each for each in sight.absent if each not in explained)
        present = tuple(each for each in sight.present if each not in explained)
        place = f" at {name.forms.position(sight.claim.epoch)}" if sight.claim.epoch is not None else ""
        if fate is Fate.KEPT and absent:
            said = "was acknowledged" if sight.claim.is_acknowledged else "was delivered to a subscriber"
            text = f"T{op} {said}{place}, and no restart left it out, but at the end {named(absent, name)} not there."
            yield Trouble(LOST if sight.claim.is_acknowledged else DOUBLE, text, (op,), (op,))
        if fate is Fate.FAILED and present:
            yield Trouble(
                PHANTOM, f"T{op} certainly failed, but at the end {named(present, name)} there.", (op,), (op,)
            )
        if fate is Fate.VOID and present:
            text = f"A restart left out T{op}{place}, but at the end {named(present, name)} there."
            yield Trouble(RESURRECTED, text, (op,), (op,))
        # Final reads see one key after the other, and an unclear transaction may happen between two of them.
        if is_fractured(sight) and absent and fate in (Fate.KEPT, Fate.UNCLEAR) and has_dumps:
            text = f"Of T{op} {named(sight.present, name)} there at the end, and {named(absent, name)} not."
            yield Trouble(FRACTURED, text, (op,), (op,))
    every = np.arange(len(contents.dumps.key))
    for element in contents.strangers(every):
        if element not in explained:
            text = f"Nobody ever appended it, but at the end {named((element,), name)} there."
            yield Trouble(PHANTOM, text, (name(element[0]), name(element[1])))
    for node, element in contents.twice(every):
        text = f"At the end {named((element,), name)} there twice ({node})."
        yield Trouble(TWICE, text, (name(element[0]), name(element[1])))


def _witnesses(seen: Sights, claims: Claims, until_ns: int | None, *, has_dumps: bool) -> dict[str, int]:
    if until_ns is None:
        return dict.fromkeys(ANOMALIES, 0)
    is_meant = seen.is_whole & (claims.written.invoke_ns <= until_ns)
    kept, failed, void, unclear = (
        is_meant & (seen.fate == fate) for fate in (Fate.KEPT, Fate.FAILED, Fate.VOID, Fate.UNCLEAR)
    )
    of = {
        LOST: kept & claims.is_ok,
        DOUBLE: kept & ~claims.is_ok,
        TWICE: kept,
        PHANTOM: failed,
        RESURRECTED: void,
        FRACTURED: (kept | unclear) & (claims.size > 1) & has_dumps,
    }
    return {name: int(np.count_nonzero(of[name])) for name in ANOMALIES}


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
