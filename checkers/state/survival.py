"""Findings about data that faults lost or invented: guarantee G23 of the NDB model, judged on the last state.

The last state is what the members of the last view dumped at quiescence or, without dumps, what the final reads
returned. It must contain every acknowledged transaction, whole and once, unless a restart of the whole cluster left
it out. It must contain no failed transaction, and one of unclear outcome as a whole or not at all. Elements that a
restart lost or invented are reported by durability.py and not counted again here.

A transaction whose client gave up may be under way during the final reads: it must be in those that began after a
subscriber had received it.

A witness is a transaction whose keys were shown, and which was invoked before the end of the last fault that had an
effect and struck data nodes, though not all of them by a crash. Without such a fault nothing was survived.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, Name
from checkers.history.tables import State, Window, phases, rows, states, windows
from checkers.history.troubles import Trouble, judgement
from checkers.state.expected import (
    Claims,
    Content,
    Element,
    Fate,
    Groups,
    Sight,
    is_fractured,
    named,
    restored,
    sights,
    wrong,
)
from harness.core.columns import OK, READ
from harness.core.promises import Bounds, Excuse
from harness.core.verdict import Judgement

CHECKER = "survival"
LOST, PHANTOM, FRACTURED = "lost-acknowledged", "phantom-write", "fractured-transaction"
RESURRECTED, DOUBLE, TWICE = "resurrected", "double-status", "duplicate-elements"
ANOMALIES = (LOST, PHANTOM, FRACTURED, RESURRECTED, DOUBLE, TWICE)
_READER: Final = "final reads"


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the last state. Raises HistoryError if the files of the history are damaged."""
    names, bounds = Dictionary(history), context.bounds
    claims = Claims(history, bounds)
    found = states(history, names, "restored", "row", "view", "restart")
    groups = Groups(bounds, (*found["restored"], *found["row"]))
    members = last_members(found["view"])
    dumps = [row for row in found["row"] if members is None or row.node in members]
    reads = [] if dumps else _final_reads(history, names)
    content = Content(dumps or reads, groups, names, is_partial=not dumps)
    seen = list(sights(claims.at_end(), content))
    if not dumps:
        seen = [*_ended_before(reads, seen)]
    explained = _explained(claims, found["restored"], groups, names)
    troubles = _troubles(seen, content, claims, explained, has_dumps=bool(dumps), name=context.name)
    until_ns = survived_ns(windows(history, context.excuses), bounds, [restart.ns for restart in found["restart"]])
    return judgement(
        CHECKER,
        ANOMALIES,
        troubles,
        _witnesses(seen, until_ns, has_dumps=bool(dumps)),
        facts={"transactions": len(seen), "keys": len(content.elements), "nodes": len({dump.node for dump in dumps})},
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


def _final_reads(history: Path, names: Dictionary) -> list[State]:
    """Reads of the final phase, each as if a node had dumped its result."""
    final = phases(history).get("final")
    if final is None:
        return []
    columns = ["index", "invoke_seq", "invoke_ns"]
    late = {
        row["index"]: row for row in rows(history, "ops", columns, outcome=[OK]) if row["invoke_seq"] > final["seq"]
    }
    if not late:
        return []
    return [
        State(
            seq=late[row["op"]]["invoke_seq"],
            ns=late[row["op"]]["invoke_ns"],
            node=_READER,
            key_id=row["key"],
            key=names.value(row["key"]),
            value=[names.value(element) for element in row["read"]],
            position=None,
            txn=None,
        )
        for row in rows(history, "mops", ["op", "key", "read"], f=[READ], op=list(late))
        if row["read"] is not None
    ]


def _ended_before(reads: Sequence[State], seen: Iterable[Sight]) -> Iterator[Sight]:
    """The same sights; absent are only elements that had ended before the last read of their key began."""
    begun = {read.key_id: read.seq for read in sorted(reads, key=lambda read: read.seq)}
    for sight in seen:
        yield replace(sight, absent=tuple(each for each in sight.absent if sight.claim.end_seq < begun[each[0]]))


def _explained(claims: Claims, dumps: Sequence[State], groups: Groups, names: Dictionary) -> set[Element]:
    """The elements that an earlier restart had already lost or brought back."""
    explained: set[Element] = set()
    for count, restart in enumerate(claims.restarts, 1):
        content = Content(restored(dumps, restart.number), groups, names)
        explained.update(element for sight in sights(claims.after(count), content) for element in wrong(sight))
        explained.update(content.strangers(claims))
    return explained


def _troubles(
    seen: list[Sight],
    content: Content,
    claims: Claims,
    explained: Set[Element],
    *,
    has_dumps: bool,
    name: Name,
) -> Iterator[Trouble]:
    for sight in seen:
        op, fate = sight.claim.transaction.index, sight.fate
        absent = tuple(each for each in sight.absent if each not in explained)
        present = tuple(each for each in sight.present if each not in explained)
        epoch = f" in epoch {claims.shown(sight.claim.epoch)}" if sight.claim.epoch is not None else ""
        if fate is Fate.KEPT and absent:
            said = (
                f"was acknowledged{epoch}" if sight.claim.is_acknowledged else f"was delivered to a subscriber{epoch}"
            )
            text = f"T{op} {said}, and no restart left it out, but at the end {named(absent, name)} not there."
            yield Trouble(LOST if sight.claim.is_acknowledged else DOUBLE, text, (op,), (op,))
        if fate is Fate.FAILED and present:
            yield Trouble(
                PHANTOM, f"T{op} certainly failed, but at the end {named(present, name)} there.", (op,), (op,)
            )
        if fate is Fate.VOID and present:
            text = f"A restart left out T{op}{epoch}, but at the end {named(present, name)} there."
            yield Trouble(RESURRECTED, text, (op,), (op,))
        # Final reads see one key after the other, and what is unclear may happen between two of them.
        if is_fractured(sight) and absent and fate in (Fate.KEPT, Fate.UNCLEAR) and has_dumps:
            text = f"Of T{op} {named(sight.present, name)} there at the end, and {named(absent, name)} not."
            yield Trouble(FRACTURED, text, (op,), (op,))
    for element in content.strangers(claims):
        if element not in explained:
            text = f"Nobody ever appended it, but at the end {named((element,), name)} there."
            yield Trouble(PHANTOM, text, (name(element[0]), name(element[1])))
    for node, element in content.twice:
        text = f"At the end {named((element,), name)} there twice ({node})."
        yield Trouble(TWICE, text, (name(element[0]), name(element[1])))


def _witnesses(seen: list[Sight], until_ns: int | None, *, has_dumps: bool) -> dict[str, int]:
    counts: Counter[str] = Counter(dict.fromkeys(ANOMALIES, 0))
    for sight in seen:
        transaction = sight.claim.transaction
        if until_ns is None or transaction.invoke_ns > until_ns or not sight.is_whole:
            continue
        if sight.fate in (Fate.KEPT, Fate.UNCLEAR) and len(transaction.writes) > 1 and has_dumps:
            counts[FRACTURED] += 1
        match sight.fate:
            case Fate.KEPT:
                counts.update((LOST, TWICE) if sight.claim.is_acknowledged else (DOUBLE, TWICE))
            case Fate.FAILED:
                counts[PHANTOM] += 1
            case Fate.VOID:
                counts[RESURRECTED] += 1
    return dict(counts)


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
