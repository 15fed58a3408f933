"""Data that was lost or invented, in two states: after each restart of the whole cluster, and at the end of the run.

Key by key and over all nodes together, a state must show every acknowledged transaction, whole and once, no failed one,
and one of unclear outcome as a whole or not at all. Elements that an earlier state lost or invented do not count again.

The check `durability` judges what nodes restored from disk: a replay of all transactions up to the restored position.
Acknowledged transactions beyond that position are void: they are legally gone, as a whole, within the declared bound.
Nodes that did not restore from disk show nothing. If the cluster dies again before a node has shown what it restored,
there is no evidence of that node's group. Witnesses:
- lost-acknowledged and duplicate-elements: transactions that a restart had to keep and whose keys it showed;
- resurrected: those that it had to leave out;
- fractured-restore: both, and those of unclear outcome, with two elements or more;
- phantom-write: failed transactions;
- loss-beyond-bound: acknowledged transactions that were void, or just old enough to be safe (up to twice the bound),
  and each restart before which something was reported as saved.

The check `survival` judges the last state (`rest.py`). A transaction whose client gave up may be under way during the
final reads: it must be in those that began after a subscriber had received it. A witness is a transaction whose keys
were shown, and which was invoked before the end of the last fault that had an effect and struck data nodes, though not
all of them by a crash. Without such a fault nothing was survived.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from checkers.engine.protocol import Check, Context
from checkers.history.generations import Restart
from checkers.history.names import Dictionary, Names
from checkers.history.tables import first_reports, states, windows
from checkers.history.troubles import Trouble, findings, judgement
from checkers.state.claims import Claims, Fate
from checkers.state.contents import Contents, Element, Sight, Sights, is_fractured, named, shown, wrong
from checkers.state.loss_bound import BEYOND, losses_of
from checkers.state.rest import final_reads, had_not_ended, last_members, survived_ns
from checkers.words.anomalies import SHARED, Anomaly, Cause
from checkers.words.transactional import TRANSACTIONAL
from harness.core.columns import Bools, Int64s
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

RESTARTS, REST = "durability", "survival"
LOST, RESURRECTED, PHANTOM, TWICE = "lost-acknowledged", "resurrected", "phantom-write", "duplicate-elements"
IN_RESTORE, AT_REST, DOUBLE = "fractured-restore", "fractured-transaction", "double-status"
OF_RESTARTS: Final = {
    LOST: SHARED[LOST],
    RESURRECTED: SHARED[RESURRECTED],
    IN_RESTORE: Anomaly(
        meaning="A restart of the whole cluster brought back a part of a transaction.", cause=Cause.PART
    ),
    PHANTOM: SHARED[PHANTOM],
    TWICE: TRANSACTIONAL[TWICE],
    BEYOND: Anomaly(
        meaning="A restart of the whole cluster lost more than the declared bound allows.", cause=Cause.LOSS
    ),
}
OF_REST: Final = {
    LOST: SHARED[LOST],
    PHANTOM: SHARED[PHANTOM],
    AT_REST: Anomaly(meaning="At rest a part of a transaction is there, and another part is not.", cause=Cause.PART),
    RESURRECTED: SHARED[RESURRECTED],
    DOUBLE: Anomaly(
        meaning="One transaction is both committed and aborted.",
        title="Transaction both committed and aborted",
        cause=Cause.EPOCH,
    ),
    TWICE: TRANSACTIONAL[TWICE],
}


class Moment(Struct, frozen=True, kw_only=True):
    """A state that is judged: its `rows` in the contents, and how each transaction is shown.

    `when` is a phrase for sentences; `part` the anomaly of a transaction that is there in part, which counts for
    transactions of `parted` fates; `delivered` that of one that is gone and was delivered, but not acknowledged.
    """

    seen: Sights
    rows: Int64s
    is_meant: Bools
    when: str
    part: str
    parted: frozenset[Fate]
    delivered: str


def check_restarts(history: Path, context: Context) -> Judgement:
    """The judgement of the restarts, each by itself. Raises HistoryError if the files of the history are damaged."""
    nodes = shown(history, context)
    claims, contents = nodes.claims, Contents(nodes.restored, nodes.groups, nodes.claims)
    losses = losses_of(history, context, claims)
    witnesses: Counter[str] = Counter(dict.fromkeys(OF_RESTARTS, 0))
    found: list[Finding] = []
    known: set[Element] = set()  # Elements that an earlier restart lost or brought back.
    for count, restart in enumerate(claims.restarts, 1):
        moment = _after(contents, count, restart)
        witnesses.update(_witnesses_of_restart(moment, claims))
        troubles = list(_troubles(contents, moment, known, context.name))
        known.update(_mistaken(contents, moment))
        beyond, chances = losses.beyond(count)
        witnesses[BEYOND] += chances
        found += findings(RESTARTS, OF_RESTARTS, [*troubles, *beyond], scope=(RESTARTS, restart.number))
    facts: dict[str, Json] = {"restarts": len(claims.restarts), "restored rows": len(nodes.restored.key)}
    return Judgement(checker=RESTARTS, findings=tuple(found), witnesses=dict(witnesses), facts=facts)


def check_rest(history: Path, context: Context) -> Judgement:
    """The judgement of the last state. Raises HistoryError if the files of the history are damaged."""
    nodes = shown(history, context)
    claims = nodes.claims
    reported = states(history, Dictionary(history), "view", "restart")
    members = last_members(reported["view"])
    dumps = nodes.rest if members is None else nodes.rest.of_nodes(members)
    has_dumps = len(dumps.key) > 0
    reads, begun = (dumps, {}) if has_dumps else final_reads(history)
    contents, count = Contents(reads, nodes.groups, claims, is_partial=not has_dumps), len(claims.restarts)
    rows = np.arange(len(reads.key))
    seen = contents.state(rows, count)
    if not has_dumps:
        seen = seen.without(count, had_not_ended(claims, begun))
    moment = Moment(
        seen=seen,
        rows=rows,
        is_meant=np.ones(len(claims.size), np.bool_),
        when="at the end",
        part=AT_REST,
        # Final reads see one key after the other, and an unclear transaction may happen between two of them.
        parted=frozenset({Fate.KEPT, Fate.UNCLEAR} if has_dumps else ()),
        delivered=DOUBLE,
    )
    restored, known = Contents(nodes.restored, nodes.groups, claims), set[Element]()
    for number, restart in enumerate(claims.restarts, 1):
        known.update(_mistaken(restored, _after(restored, number, restart)))
    until_ns = survived_ns(
        windows(history, context.excuses), context.bounds, [each.ns for each in first_reports(reported["restart"])]
    )
    return judgement(
        REST,
        OF_REST,
        _troubles(contents, moment, known, context.name),
        _witnesses_of_rest(moment, claims, until_ns, has_dumps=has_dumps),
        facts={
            "transactions": len(claims.size),
            "keys": len(np.unique(reads.key)),
            "nodes": len(dumps.nodes_shown()),
        },
    )


def _after(contents: Contents, count: int, restart: Restart) -> Moment:
    """The state that nodes showed after the restart, the first `count` of the run."""
    rows = contents.rows_after(restart.number)
    return Moment(
        seen=contents.state(rows, count),
        rows=rows,
        is_meant=contents.claims.after(count),
        when=f"after restart {restart.number} of the whole cluster, which restored {restart.restored},",
        part=IN_RESTORE,
        parted=frozenset(Fate) - {Fate.FAILED},
        delivered=LOST,
    )


def _mistaken(contents: Contents, moment: Moment) -> Iterator[Element]:
    """The elements that a state wrongly has or lacks."""
    for sight in moment.seen.striking(moment.is_meant):
        yield from wrong(sight)
    yield from contents.strangers(moment.rows)


def _troubles(contents: Contents, moment: Moment, known: set[Element], name: Names) -> Iterator[Trouble]:
    """Violations: elements that a state wrongly has or lacks, except those in `known`; then those it has twice."""
    for sight in moment.seen.striking(moment.is_meant):
        yield from _of_transaction(sight, contents.claims, moment, known, name)
    for element in contents.strangers(moment.rows):
        if element not in known:
            text = f"Nobody ever appended it, but {moment.when} {named((element,), name)} there."
            yield Trouble(PHANTOM, text, (name(element[0]), name(element[1])))
    for node, element in contents.twice(moment.rows):
        text = f"{moment.when[0].upper()}{moment.when[1:]} {named((element,), name)} there twice ({node})."
        facts = (name(element[0]), name(element[1]))
        yield Trouble(TWICE, text, (node, *facts) if moment.part == IN_RESTORE else facts)


def _of_transaction(
    sight: Sight, claims: Claims, moment: Moment, known: set[Element], name: Names
) -> Iterator[Trouble]:
    op, fate, when = sight.claim.transaction.index, sight.fate, moment.when
    present = tuple(each for each in sight.present if each not in known)
    absent = tuple(each for each in sight.absent if each not in known)
    place = f" at {name.forms.position(sight.claim.epoch)}" if sight.claim.epoch is not None else ""
    if fate is Fate.KEPT and absent:
        said = "was acknowledged" if sight.claim.is_acknowledged else "was delivered to a subscriber"
        text = f"T{op} {said}{place}, and no restart left it out, but {when} {named(absent, name)} not there."
        yield Trouble(LOST if sight.claim.is_acknowledged else moment.delivered, text, (op,), (op,))
    if fate is Fate.FAILED and present:
        yield Trouble(PHANTOM, f"T{op} certainly failed, but {when} {named(present, name)} there.", (op,), (op,))
    if fate is Fate.VOID and present:
        cause = claims.restarts[int(claims.left_out[sight.row])].number
        text = f"Restart {cause} left out T{op}{place}, but {when} {named(present, name)} there."
        yield Trouble(RESURRECTED, text, (op,), (op,))
    if is_fractured(sight) and fate in moment.parted and (present if fate is Fate.VOID else absent):
        both = f"{named(sight.present, name)} there, and {named(sight.absent, name)} not"
        yield Trouble(moment.part, f"T{op}{place} is there in part {when.rstrip(',')}: {both}.", (op,), (op,))


def _witnesses_of_restart(moment: Moment, claims: Claims) -> Mapping[str, int]:
    seen, is_meant = moment.seen, moment.is_meant
    of_fate = np.bincount(seen.fate[is_meant & seen.is_whole], minlength=len(Fate)).tolist()
    may_break = is_meant & seen.is_whole & (seen.fate != Fate.FAILED) & (claims.size > 1)
    return {
        LOST: of_fate[Fate.KEPT],
        TWICE: of_fate[Fate.KEPT],
        RESURRECTED: of_fate[Fate.VOID],
        PHANTOM: of_fate[Fate.FAILED],
        IN_RESTORE: int(np.count_nonzero(may_break)),
    }


def _witnesses_of_rest(moment: Moment, claims: Claims, until_ns: int | None, *, has_dumps: bool) -> dict[str, int]:
    if until_ns is None:
        return dict.fromkeys(OF_REST, 0)
    seen = moment.seen
    is_meant = seen.is_whole & (claims.written.invoke_ns <= until_ns)
    kept, failed, void, unclear = (
        is_meant & (seen.fate == fate) for fate in (Fate.KEPT, Fate.FAILED, Fate.VOID, Fate.UNCLEAR)
    )
    of: Mapping[str, Bools] = {
        LOST: kept & claims.is_ok,
        DOUBLE: kept & ~claims.is_ok,
        TWICE: kept,
        PHANTOM: failed,
        RESURRECTED: void,
        AT_REST: (kept | unclear) & (claims.size > 1) & has_dumps,
    }
    return {name: int(np.count_nonzero(of[name])) for name in OF_REST}


CHECKS: Final[Sequence[Check]] = (
    Check(name=RESTARTS, anomalies=OF_RESTARTS, judge=check_restarts),
    Check(name=REST, anomalies=OF_REST, judge=check_rest),
)
