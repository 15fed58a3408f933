"""Replicas that apply a log in its order: is what they show the state after some prefix of it?

A replica's lists, read at one moment, hold for each key a prefix of its elements in the source's log. The last element
that is there needs the log up to its transaction, and the first one that is not there forbids it from its transaction
on. So for each source there is an interval of the number of transactions that were applied: `low` to `high`. With
several sources each is looked at by itself, as nothing orders them.
1. `torn-prefix`: the interval is empty. The two transactions that give its ends are torn apart; if both are one, it is
   a `torn-transaction`. A witness is a state with elements of two keys of a source.
2. The elements of a key are no prefix: one is there twice (`repeated-element`), or missing before another
   (`skipped-element`), or not in the log (`phantom-element`). A witness is a list with elements.
3. `prefix-regress`: a read of a replica needs less than a read there that had ended before it began. A witness is a
   pair of such reads.
A key that is in no log of the replica is not judged. Each state costs its length, and the lists before it nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from checkers.replication.sources import Lists, Log, Replication, Seen, Unit, replication, shown
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "prefixes"
TORN, PART, REGRESS = "torn-prefix", "torn-transaction", "prefix-regress"
REPEATED, SKIPPED, PHANTOM = "repeated-element", "skipped-element", "phantom-element"
ANOMALIES: Final = {
    TORN: "A replica has a later transaction of its source, and lacks an earlier one.",
    PART: "A replica shows a part of a transaction.",
    REPEATED: "A replica has an element twice that its source's log has once.",
    SKIPPED: "A replica has an element, and lacks one before it.",
    PHANTOM: "A replica has an element that its source's log does not have.",
    REGRESS: "A replica shows an earlier state of its source than it had shown before.",
}


class End(NamedTuple):
    """One end of an interval: how many units are applied at least, or at most, and the row that is the reason."""

    units: int
    key: Json
    element: Json


class Interval(NamedTuple):
    """The prefixes of a log that explain a state. `low` is None if it needs none, `high` if it forbids none."""

    low: End | None
    high: End | None
    unlike: tuple[Json, tuple[Json, ...]] | None  # A list that no prefix has.

    @property
    def is_empty(self) -> bool:
        """True if no prefix explains the state."""
        return self.low is not None and self.high is not None and self.low.units > self.high.units


def interval(log: Log, lists: Lists) -> Interval:
    """The prefixes of the log that explain these lists; those of keys that the log does not have are left out."""
    low: End | None = None
    high: End | None = None
    unlike = None
    for key, elements in lists:
        written = log.keys.get(key)
        if written is None:
            continue
        if tuple(element for element, _ in written[: len(elements)]) != elements:
            unlike = unlike or (key, elements)
            continue
        if elements:
            element, place = written[len(elements) - 1]
            if low is None or place + 1 > low.units:
                low = End(place + 1, key, element)
        if len(elements) < len(written):
            element, place = written[len(elements)]
            if high is None or place < high.units:
                high = End(place, key, element)
    return Interval(low, high, unlike)


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all replicas. Raises HistoryError if the history is damaged."""
    found = replication(history)
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    by_reader: dict[tuple[str, str], tuple[Log, list[tuple[Seen, Interval]]]] = {}
    for seen in found.seen:
        for log in _logs(found, seen):
            known = [elements for key, elements in seen.lists if key in log.keys]
            for name in (REPEATED, SKIPPED, PHANTOM):
                witnesses[name] += sum(map(bool, known))
            for name in (TORN, PART):
                witnesses[name] += sum(map(bool, known)) > 1
            ends = interval(log, seen.lists)
            troubles += _troubles(log, seen, ends)
            if seen.op is not None and ends.unlike is None and not ends.is_empty:
                by_reader.setdefault((seen.replica, log.source), (log, []))[1].append((seen, ends))
    for log, reads in by_reader.values():
        pairs, regresses = _regresses(log, reads)
        witnesses[REGRESS] += pairs
        troubles += regresses
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def _logs(found: Replication, seen: Seen) -> Iterator[Log]:
    """The logs that a replica applies: those of the sources that it names, or all."""
    for source in [source for source, _ in seen.positions] or [*found.logs]:
        if (log := found.log_for(seen.replica, source)) is not None:
            yield log


def _troubles(log: Log, seen: Seen, ends: Interval) -> Iterator[Trouble]:
    """1 and 2."""
    ops, of = () if seen.op is None else (seen.op,), f"of {log.source}"
    if ends.unlike is not None:
        key, elements = ends.unlike
        whole = tuple(element for element, _ in log.keys[key])
        anomaly, why = _why(elements, whole)
        sentence = f"{seen.begun} shows {shown(elements)} under {key}; {why} {of}."
        yield Trouble(anomaly, sentence, (seen.replica, seen.op, log.source, str(key)), ops)
    if ends.is_empty and ends.low is not None and ends.high is not None:
        there, missing = log.units[ends.low.units - 1], log.units[ends.high.units]
        torn = f"{seen.begun} shows transactions {missing.name} and {there.name} {of} torn apart"
        has, lacks = f"{ends.low.element} under {ends.low.key}", f"{ends.high.element} under {ends.high.key}"
        sentence = f"{seen.begun} shows a part of {there.name} {of}: it has {has}, and not {lacks}."
        if there is not missing:
            sentence = (
                f"{torn}: it lacks {lacks}, of {missing.name} at {missing.position}, and has {has}, of {there.name}, "
                f"which comes later, at {there.position}."
            )
        yield Trouble(PART if there is missing else TORN, sentence, (seen.replica, seen.op, log.source), ops)


def _why(elements: tuple[Json, ...], whole: tuple[Json, ...]) -> tuple[str, str]:
    """The anomaly of elements that are not the beginning of all elements, and the reason."""
    place = next(at for at, element in enumerate(elements) if at >= len(whole) or element != whole[at])
    element = elements[place]
    if element in elements[:place]:
        return REPEATED, f"{element} is there twice, which it is not in the log"
    if element not in whole:
        return PHANTOM, f"{element} is not in the log"
    return SKIPPED, f"{whole[place]} stands before {element} in the log"


def _regresses(log: Log, reads: list[tuple[Seen, Interval]]) -> tuple[int, list[Trouble]]:
    """The witnesses of 3, and the reads that need less than the one before that needs most."""
    ended = sorted(reads, key=lambda each: each[0].complete_ns)
    witnesses, place, troubles = 0, 0, []
    most: tuple[Seen, End] | None = None
    for seen, ends in sorted(reads, key=lambda each: each[0].invoke_ns):
        while ended[place][0].complete_ns < seen.invoke_ns:
            other, (low, _, _) = ended[place]
            if low is not None and (most is None or low.units > most[1].units):
                most = other, low
            place += 1
        witnesses += place > 0
        if most is not None and ends.high is not None and most[1].units > ends.high.units:
            troubles.append(_regress(log, seen, ends.high, most[0], log.units[most[1].units - 1]))
    return witnesses, troubles


def _regress(log: Log, seen: Seen, high: End, other: Seen, unit: Unit) -> Trouble:
    sentence = (
        f"{seen.begun} lacks {high.element} under {high.key}, although {other.name}, which had ended before, had shown "
        f"transaction {unit.name} of {log.source}, which does not come before it."
    )
    ops = tuple(each for each in (other.op, seen.op) if each is not None)
    return Trouble(REGRESS, sentence, (seen.replica, seen.op, log.source), ops)


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
