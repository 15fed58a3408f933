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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from checkers.history.faults import disturbed
from checkers.history.generations import Restart
from checkers.history.intervals import Interval, outside, total
from checkers.history.tables import Dictionary, Sample, finding, samples, seconds, states, windows
from checkers.state.expected import (
    Claims,
    Content,
    Element,
    Fate,
    Groups,
    Sight,
    is_fractured,
    restored,
    sights,
    told,
    wrong,
)
from checkers.transactions.sentences import Name, number
from harness.core.promises import Bounds, Excuse, Excuses
from harness.core.verdict import Finding, Judgement

CHECKER = "durability"
LOST, RESURRECTED, FRACTURED = "lost-acknowledged", "resurrected", "fractured-restore"
PHANTOM, TWICE, BEYOND = "phantom-write", "duplicate-elements", "loss-beyond-bound"
ANOMALIES = (LOST, RESURRECTED, FRACTURED, PHANTOM, TWICE, BEYOND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One violation. `what` makes the fingerprint."""

    anomaly: str
    sentence: str
    what: tuple[object, ...]
    op: int | None = None


def check(history: Path, bounds: Bounds, excuses: Excuses, name: Name = number) -> Judgement:
    """The judgement of the restarts: one finding per anomaly and restart, with the first example and the count.

    Raises HistoryError if the files of the history are damaged.
    """
    names = Dictionary(history)
    claims = Claims(history, bounds)
    found = states(history, names, "restored", "row")
    groups = Groups(bounds, (*found["restored"], *found["row"]))
    saved = samples(history, "saved-gci")["saved-gci"]
    of_servers = (w for w in windows(history, excuses) if Excuse.SUBSCRIBERS not in w.excuse)
    quiet = disturbed(of_servers, bounds.grace_ns)
    witnesses: Counter[str] = Counter(dict.fromkeys(ANOMALIES, 0))
    findings: list[Finding] = []
    known: dict[Element, bool] = {}  # Lost or brought back by an earlier restart.
    for count, restart in enumerate(claims.restarts, 1):
        content = Content(restored(found["restored"], restart.number), groups, names)
        seen = list(sights(claims.after(count), content))
        witnesses.update(_witnesses(seen))
        troubles = [*_replay_troubles(seen, content, claims, restart, known, name)]
        known.update((element, True) for sight in seen for element in wrong(sight))
        known.update((element, True) for element in content.strangers(claims))
        for trouble, is_witness in _bound_troubles(claims, count, saved, bounds, quiet):
            witnesses[BEYOND] += is_witness
            troubles += [trouble] if trouble is not None else []
        findings += _findings(troubles, restart)
    facts: dict[str, int] = {"restarts": len(claims.restarts), "restored rows": len(found["restored"])}
    return Judgement(checker=CHECKER, findings=tuple(findings), witnesses=dict(witnesses), facts={**facts})


def _findings(troubles: list[Trouble], restart: Restart) -> Iterator[Finding]:
    for anomaly in ANOMALIES:
        chosen = [trouble for trouble in troubles if trouble.anomaly == anomaly]
        if chosen:
            first = chosen[0]
            yield finding(
                CHECKER,
                anomaly,
                first.sentence,
                facts=(CHECKER, restart.number, *first.what),
                count=len(chosen),
                ops=() if first.op is None else (first.op,),
            )


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
    seen: list[Sight], content: Content, claims: Claims, restart: Restart, known: dict[Element, bool], name: Name
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
            text = f"T{op} {said} in epoch {epoch}, but {told(absent, name)} gone {went}."
            yield Trouble(anomaly=LOST, sentence=text, what=(op,), op=op)
        if sight.fate is Fate.VOID and present:
            cause = claims.voided(sight.claim, len(claims.restarts))
            left = f", and restart {cause.number} left it out" if cause is not None and cause is not restart else ""
            text = f"T{op} committed in epoch {epoch}{left}, but {told(present, name)} there {went}."
            yield Trouble(anomaly=RESURRECTED, sentence=text, what=(op,), op=op)
        if sight.fate is Fate.FAILED and present:
            text = f"T{op} certainly failed, but {told(present, name)} there {went}."
            yield Trouble(anomaly=PHANTOM, sentence=text, what=(op,), op=op)
        if is_fractured(sight) and sight.fate is not Fate.FAILED and (present if sight.fate is Fate.VOID else absent):
            text = f"Of T{op} (epoch {epoch}) {told(sight.present, name)} there {went}, {told(sight.absent, name)} not."
            yield Trouble(anomaly=FRACTURED, sentence=text, what=(op,), op=op)
    for element in content.strangers(claims):
        if element not in known:
            text = f"Nobody ever appended it, but {told((element,), name)} there {went}."
            yield Trouble(anomaly=PHANTOM, sentence=text, what=(name(element[0]), name(element[1])))
    for node, element in content.twice:
        text = f"On {node} {told((element,), name)} there twice {went}."
        yield Trouble(anomaly=TWICE, sentence=text, what=(node, name(element[0]), name(element[1])))


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
            yield Trouble(anomaly=BEYOND, sentence=sentence, what=(op,), op=op), 1
        elif is_void or bounds.loss_ns < age_ns <= 2 * bounds.loss_ns:
            yield None, 1


def _saved_trouble(restart: Restart, best: Sample) -> Trouble | None:
    if restart.restored >= best.value:
        return None
    sentence = (
        f"{best.node} reported at {seconds(best.ns)} that {best.value} was saved everywhere, but restart "
        f"{restart.number} of the whole cluster went back to {restart.restored}."
    )
    return Trouble(anomaly=BEYOND, sentence=sentence, what=("saved", best.value))
