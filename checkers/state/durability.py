"""Findings about restarts that lost or invented data: guarantees G21 and G22 of the NDB model.

Key by key and over all nodes together, the state that the nodes restored from disk must equal a replay of all
transactions up to the restored position. Acknowledged transactions beyond that position are void: they are legally
gone, as a whole, within the declared bound. Nodes that did not restore from disk show nothing. If the cluster dies
again before a node has shown what it restored, there is no evidence of that node's group.

Witnesses:
- lost-acknowledged and duplicate-elements: transactions that a restart had to keep and whose keys it showed;
- resurrected: those that it had to leave out;
- fractured-restore: both, and those of unclear outcome, with two elements or more;
- phantom-write: failed transactions;
- loss-beyond-bound: acknowledged transactions that were void, or just old enough to be safe (up to twice the bound),
  and each restart before which something was reported as saved.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

from checkers.engine.protocol import Check, Context
from checkers.history.faults import disturbed
from checkers.history.generations import Restart
from checkers.history.intervals import Interval, outside, total
from checkers.history.names import Dictionary, Name
from checkers.history.tables import Sample, samples, seconds, states, windows
from checkers.history.troubles import Trouble, findings
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
from harness.core.promises import Bounds, Excuse
from harness.core.record import Json
from harness.core.verdict import Finding, Judgement

CHECKER = "durability"
LOST, RESURRECTED, FRACTURED = "lost-acknowledged", "resurrected", "fractured-restore"
PHANTOM, TWICE, BEYOND = "phantom-write", "duplicate-elements", "loss-beyond-bound"
ANOMALIES = (LOST, RESURRECTED, FRACTURED, PHANTOM, TWICE, BEYOND)


def check(history: Path, context: Context) -> Judgement:
    """The judgement of the restarts, each by itself. Raises HistoryError if the files of the history are damaged."""
    names, bounds = Dictionary(history), context.bounds
    claims = Claims(history, bounds)
    shown = states(history, names, "restored", "row")
    groups = Groups(bounds, (*shown["restored"], *shown["row"]))
    saved = samples(history, "saved-gci")["saved-gci"]
    of_nodes = (window for window in windows(history, context.excuses) if Excuse.SUBSCRIBERS not in window.excuse)
    quiet = disturbed(of_nodes, bounds.grace_ns)
    witnesses: Counter[str] = Counter(dict.fromkeys(ANOMALIES, 0))
    found: list[Finding] = []
    known: set[Element] = set()  # Lost or brought back by an earlier restart.
    for count, restart in enumerate(claims.restarts, 1):
        content = Content(restored(shown["restored"], restart.number), groups, names)
        seen = list(sights(claims.after(count), content))
        witnesses.update(_witnesses(seen))
        troubles = [*_replay_troubles(seen, content, claims, restart, known, context.name)]
        known.update(element for sight in seen for element in wrong(sight))
        known.update(content.strangers(claims))
        for trouble, is_witness in _bound_troubles(claims, count, saved, bounds, quiet):
            witnesses[BEYOND] += is_witness
            troubles += [trouble] if trouble is not None else []
        found += findings(CHECKER, ANOMALIES, troubles, scope=(CHECKER, restart.number))
    facts: dict[str, Json] = {"restarts": len(claims.restarts), "restored rows": len(shown["restored"])}
    return Judgement(checker=CHECKER, findings=tuple(found), witnesses=dict(witnesses), facts=facts)


def _witnesses(seen: list[Sight]) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for sight in seen:
        if not sight.is_whole:
            continue
        if sight.fate is not Fate.FAILED and len(sight.claim.transaction.writes) > 1:
            counts[FRACTURED] += 1
        match sight.fate:
            case Fate.KEPT:
                counts.update((LOST, TWICE))
            case Fate.VOID:
                counts[RESURRECTED] += 1
            case Fate.FAILED:
                counts[PHANTOM] += 1
    return counts


def _replay_troubles(
    seen: list[Sight], content: Content, claims: Claims, restart: Restart, known: Set[Element], name: Name
) -> Iterator[Trouble]:
    """Elements that the restored state wrongly has or wrongly lacks, except those in `known`."""
    went = f"after restart {restart.number} of the whole cluster, which restored {restart.restored}"
    for sight in seen:
        op = sight.claim.transaction.index
        epoch = claims.shown(sight.claim.epoch) if sight.claim.epoch is not None else "unknown"
        present = tuple(each for each in sight.present if each not in known)
        absent = tuple(each for each in sight.absent if each not in known)
        if sight.fate is Fate.KEPT and absent:
            said = "was acknowledged" if sight.claim.is_acknowledged else "was delivered to a subscriber"
            text = f"T{op} {said} in epoch {epoch}, but {named(absent, name)} gone {went}."
            yield Trouble(LOST, text, (op,), (op,))
        if sight.fate is Fate.VOID and present:
            cause = claims.voided(sight.claim, len(claims.restarts))
            left = f", and restart {cause.number} left it out" if cause is not None and cause is not restart else ""
            text = f"T{op} committed in epoch {epoch}{left}, but {named(present, name)} there {went}."
            yield Trouble(RESURRECTED, text, (op,), (op,))
        if sight.fate is Fate.FAILED and present:
            text = f"T{op} certainly failed, but {named(present, name)} there {went}."
            yield Trouble(PHANTOM, text, (op,), (op,))
        if is_fractured(sight) and sight.fate is not Fate.FAILED and (present if sight.fate is Fate.VOID else absent):
            text = (
                f"Of T{op} (epoch {epoch}) {named(sight.present, name)} there {went}, {named(sight.absent, name)} not."
            )
            yield Trouble(FRACTURED, text, (op,), (op,))
    for element in content.strangers(claims):
        if element not in known:
            text = f"Nobody ever appended it, but {named((element,), name)} there {went}."
            yield Trouble(PHANTOM, text, (name(element[0]), name(element[1])))
    for node, element in content.twice:
        text = f"On {node} {named((element,), name)} there twice {went}."
        yield Trouble(TWICE, text, (node, name(element[0]), name(element[1])))


def _bound_troubles(
    claims: Claims, count: int, saved: list[Sample], bounds: Bounds, disturbances: list[Interval]
) -> Iterator[tuple[Trouble | None, int]]:
    """Losses that are too large, each with its number of witnesses.

    Nobody knows when the cluster died. It was alive when the last successful operation began, and when it last reported
    something as saved. The bound is counted back from the later of the two, without the time in which faults held up
    saving.
    """
    restart = claims.restarts[count - 1]
    earlier = [sample for sample in saved if sample.seq < restart.seq]
    if earlier:
        best = max(earlier, key=lambda sample: sample.value)
        yield _saved_trouble(restart, best), 1
    if bounds.loss_ns is None:
        return
    done = [claim for claim in claims.all if claim.is_acknowledged and claim.transaction.complete_seq < restart.seq]
    alive_ns = max([claim.transaction.invoke_ns for claim in done] + [sample.ns for sample in earlier], default=0)
    for claim in done:
        if claim.home is None or claim.home >= count or claims.voided(claim, count - 1) is not None:
            continue
        age_ns = total(outside(claim.transaction.complete_ns, alive_ns, disturbances))
        is_void = claims.voided(claim, count) is not None
        if is_void and age_ns > bounds.loss_ns:
            op = claim.transaction.index
            sentence = (
                f"T{op} was acknowledged at {seconds(claim.transaction.complete_ns)}, {seconds(age_ns)} before the "
                f"cluster failed, faults not counted, yet restart {restart.number} left it out: at most "
                f"{seconds(bounds.loss_ns)} may be lost."
            )
            yield Trouble(BEYOND, sentence, (op,), (op,)), 1
        elif is_void or bounds.loss_ns < age_ns <= 2 * bounds.loss_ns:
            yield None, 1


def _saved_trouble(restart: Restart, best: Sample) -> Trouble | None:
    if restart.restored >= best.value:
        return None
    sentence = (
        f"{best.node} reported at {seconds(best.ns)} that {best.value} was saved everywhere, but restart "
        f"{restart.number} of the whole cluster went back to {restart.restored}."
    )
    return Trouble(BEYOND, sentence, ("saved", best.value))


CHECKS = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
