"""The keys of logs: at every time each key has one log.

A log ends where its successors begin. So the space stays partitioned if the first logs share no key, and the
successors of each log have exactly its keys, each of them once.
1. `lost-successor`: a log has successors, and none of them has a part of its keys. Judged once all are declared: none
   has another parent, or the session that came to the end of this log has declared a successor of it. A successor of
   several logs is declared with the first one that ends, and others may follow with the next one.
2. `key-space-overlap`: two logs that follow one log, or that follow none, have a key in common; or a log has keys that
   none of its parents had, so another log has them.
3. `changed-lineage`: a log is declared again, with other parents or keys.
Not judged: logs whose parents' keys are unknown, and the first logs' gaps, as a recording may be of some logs alone.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from checkers.history.troubles import Trouble
from checkers.lineage.logs import Lineage, Log, Range, common, without
from checkers.words.anomalies import Anomaly, Cause

LOST: Final = "lost-successor"
OVERLAP: Final = "key-space-overlap"
CHANGED: Final = "changed-lineage"
ANOMALIES: Final = {
    LOST: Anomaly(meaning="A log has ended, and some of its keys have no log after it.", cause=Cause.SESSION),
    OVERLAP: Anomaly(meaning="A key has two logs at one time.", cause=Cause.SESSION),
    CHANGED: Anomaly(meaning="A log was declared again with other parents or keys.", cause=Cause.SESSION),
}


def judge(found: Lineage) -> tuple[dict[str, int], list[Trouble]]:
    """The witnesses and the violations."""
    children = found.children()
    ended = [found.logs[name] for name in children if name in found.logs and found.logs[name].ranges]
    closed = [log for log in ended if _is_complete(found, log, children[log.name])]
    first = [log for log in found.logs.values() if not log.parents and log.ranges]
    grown = [log for log in found.logs.values() if log.ranges and _parents(found, log)]
    troubles = [
        *(each for log in closed for each in _holes(log, children[log.name])),
        *(each for log in ended for each in _overlaps([log.ranges], children[log.name], f"follow {log.name}")),
        *_overlaps([], first, "follow no other log"),
        *(each for log in grown for each in _foreign(found, log)),
        *(
            Trouble(
                CHANGED, f"Log {each.name} was declared a second time, with other parents or keys.", (each.name,),
                events=(each.first, each.seq),
            )
            for each in found.changed
        ),
    ]  # fmt: skip
    return {LOST: len(closed), OVERLAP: len(ended) + len(grown), CHANGED: len(found.logs)}, troubles


def _is_complete(found: Lineage, log: Log, successors: list[Log]) -> bool:
    """True if all successors of the log are declared (1)."""
    if not all(each.is_closed and each.ranges for each in successors):
        return False
    is_only = all(each.parents == (log.name,) for each in successors)
    return is_only or bool(found.enders.get(log.name, set()) & found.declarers.get(log.name, set()))


def _shown(part: Range) -> str:
    return f"[{part[0]}, {part[1]})"


def _holes(log: Log, successors: list[Log]) -> Iterator[Trouble]:
    """1."""
    left = without(log.ranges, [each for child in successors for each in child.ranges])
    if left:
        names = ", ".join(child.name for child in successors)
        sentence = f"Log {log.name} is followed by {names}, and its keys in {_shown(left[0])} have no log after it."
        yield Trouble(LOST, sentence, (log.name, *left[0]), events=tuple(child.seq for child in successors))


def _overlaps(within: list[tuple[Range, ...]], logs: list[Log], why: str) -> Iterator[Trouble]:
    """2, of logs that begin together."""
    for one, other in combinations(logs, 2):
        shared = common(one.ranges, other.ranges)
        for ranges in within:
            shared = common(shared, ranges)
        if shared:
            sentence = f"Logs {one.name} and {other.name}, which {why}, both have the keys in {_shown(shared[0])}."
            yield Trouble(OVERLAP, sentence, (one.name, other.name, *shared[0]), events=(one.seq, other.seq))


def _parents(found: Lineage, log: Log) -> list[Log] | None:
    """The parents of a log, if the keys of all are known."""
    parents = [found.logs.get(name) for name in log.parents]
    known = [parent for parent in parents if parent is not None and parent.ranges]
    return known if known and len(known) == len(parents) else None


def _foreign(found: Lineage, log: Log) -> Iterator[Trouble]:
    """2, of a log and the logs that it does not follow."""
    parents = _parents(found, log) or []
    left = without(log.ranges, [each for parent in parents for each in parent.ranges])
    if left:
        names = ", ".join(parent.name for parent in parents)
        sentence = f"Log {log.name} has the keys in {_shown(left[0])}, and follows {names}, which did not have them."
        yield Trouble(OVERLAP, sentence, (log.name, *left[0]), events=(log.seq, *(parent.seq for parent in parents)))
