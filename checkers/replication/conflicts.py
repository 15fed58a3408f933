"""Several primaries, under a declared rule for conflicts: is exactly what the rule rejects rejected, and all of it?

Each transaction that arrives at another site is judged against the rows that it met there (see `Rule` in `sites.py`).
1. `missed-conflict`: a row was applied that the rule rejects. A witness is a row that met a version for which it
   could be rejected.
2. `false-rejection`: a row was rejected, and no rule rejects it: neither for itself, nor, if whole transactions are
   rejected, for another row that its transaction wrote or read, or a transaction that it depends on. A conflict within
   the allowed rounding is none. A witness is a rejected row.
3. `torn-rejection`: where whole transactions are rejected, some rows of one were, and some were applied. A witness is a
   rejected transaction of several rows.
4. `surviving-dependant`: where whole transactions are rejected, one was, and another that replaced or read a row of it
   at their common origin was applied. A witness is such a pair.
5. `decreasing-maximum`: under `max`, a change that was applied made a row's value smaller. A witness is an applied row
   that met another version.
Rows without a rule are not judged; nor are conflicts whose place in the site's log is not known, unless the whole log
has no reason for them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.troubles import Trouble, judgement
from checkers.replication.arrivals import Arrival, Births, Version, arrivals, births
from checkers.replication.sites import EPOCH_RULES, TRANSACTION_RULES, Rule, Sites, handle, sites_of
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "conflicts"
MISSED, FALSE, SHEAR = "missed-conflict", "false-rejection", "torn-rejection"
DEPENDANT, DECREASE = "surviving-dependant", "decreasing-maximum"
ANOMALIES: Final = {
    MISSED: "A change from another site was applied over one that it conflicts with.",
    FALSE: "A change from another site was rejected without a conflict.",
    SHEAR: "A part of a rejected transaction was applied.",
    DEPENDANT: "A transaction that depends on a rejected one was applied.",
    DECREASE: "A change from another site made a value smaller that must only grow.",
}
Found = Iterator[tuple[str, Trouble | None]]  # The anomaly of each witness, and what is wrong with it.


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all conflicts. Raises HistoryError if the history is damaged."""
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    for anomaly, trouble in judged(sites_of(history)):
        witnesses[anomaly] += 1
        troubles += () if trouble is None else (trouble,)
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def judged(sites: Sites) -> Found:
    """The witnesses in the states of all sites."""
    if not sites.rules:
        return
    born = births(sites)
    every = [*arrivals(sites, born)]
    rejected = {(each.site, handle(each.birth.entry.transaction)) for each in every if each.rejected}
    for arrival in every:
        yield from _applied(sites, born, arrival)
        yield from _rejected(sites, born, arrival, rejected)
        yield from _whole(sites, arrival)
        yield from _dependants(sites, born, arrival, rejected)


def _trouble(anomaly: str, arrival: Arrival, key: Json, why: str) -> Trouble:
    entry = arrival.birth.entry
    sentence = f"{arrival.site} {why}"
    return Trouble(anomaly, sentence, (arrival.site, str(entry.transaction), str(key)))


def _name(arrival: Arrival) -> str:
    return f"{arrival.birth.entry.transaction} of {arrival.birth.site}"


def _applied(sites: Sites, born: Births, arrival: Arrival) -> Found:
    """1 and 5."""
    for key in arrival.birth.rows:
        rule, met = sites.rule(key), (arrival.met or {}).get(key)
        if key not in arrival.applied or rule is None or met is None or not _has_say(born, arrival, rule, met):
            continue
        new = arrival.birth.rows[key]
        what = f"applied {_name(arrival)} to {key}, over {met.value} of {_writer(born, met)}"
        if rule.rule in ("max", "max-delete-win"):
            is_less = new is not None and met.value is not None and _column(new) < _column(met.value)
            yield DECREASE, _trouble(DECREASE, arrival, key, f"{what}; {new} is less.") if is_less else None
            if is_less:
                continue
        is_missed = is_conflict(born, arrival, key, rule, met, is_strict=True)
        why = f"{what}, with which the rule '{rule.rule}' has it conflict."
        yield MISSED, _trouble(MISSED, arrival, key, why) if is_missed else None


def _has_say(born: Births, arrival: Arrival, rule: Rule, met: Version) -> bool:
    """True if the rule could reject the row for that version: under `epoch`, only if the primary's clients wrote it."""
    if rule.rule not in EPOCH_RULES:
        return True
    writer = born.get(met.transaction)
    return arrival.site == rule.primary and writer is not None and writer.site == arrival.site


def _rejected(sites: Sites, born: Births, arrival: Arrival, rejected: set[tuple[str, Json]]) -> Found:
    """2."""
    for key in sorted(arrival.rejected, key=str):
        rule = sites.rule(key)
        if rule is None or (arrival.met is None and rule.rule not in EPOCH_RULES):
            continue
        keys = [key]
        is_excused = False
        if rule.rule in TRANSACTION_RULES:
            keys = [*arrival.birth.rows, *map(handle, arrival.birth.entry.reads)]
            is_excused = any((arrival.site, each.transaction) in rejected for each in _own(born, arrival).values())
        is_excused = is_excused or any(_may_conflict(sites, born, arrival, each, rule) for each in keys)
        met = (arrival.met or {}).get(key)
        there = "" if met is None else f", where it met {met.value} of {_writer(born, met)}"
        why = f"rejected {_name(arrival)} at {key}{there}; the rule '{rule.rule}' has no reason for that."
        yield FALSE, None if is_excused else _trouble(FALSE, arrival, key, why)


def _whole(sites: Sites, arrival: Arrival) -> Found:
    """3."""
    rows = [key for key in arrival.birth.rows if _is_whole(sites, key)]
    if not any(key in arrival.rejected for key in rows) or len(rows) < 2:
        return
    torn = [key for key in rows if key in arrival.applied]
    if torn:
        lost = next(key for key in rows if key in arrival.rejected)
        yield (
            SHEAR,
            _trouble(SHEAR, arrival, torn[0], f"rejected {_name(arrival)} at {lost}, and applied it to {torn[0]}."),
        )
    else:
        yield SHEAR, None


def _dependants(sites: Sites, born: Births, arrival: Arrival, rejected: set[tuple[str, Json]]) -> Found:
    """4."""
    applied = [key for key in arrival.applied if _is_whole(sites, key)]
    for key, version in _own(born, arrival).items():
        if not _is_whole(sites, key) or (arrival.site, version.transaction) not in rejected:
            continue
        why = f"rejected {_writer(born, version)}, and applied {_name(arrival)}, which builds on its {key}."
        yield DEPENDANT, _trouble(DEPENDANT, arrival, key, why) if applied else None


def _own(born: Births, arrival: Arrival) -> dict[Json, Version]:
    """The versions that the transaction replaced or read, and that were born at its own site."""
    birth = arrival.birth
    return {
        key: version
        for key, version in birth.basis.items()
        if version.transaction in born and born[version.transaction].site == birth.site
    }


def _is_whole(sites: Sites, key: Json) -> bool:
    rule = sites.rule(key)
    return rule is not None and rule.rule in TRANSACTION_RULES


def _may_conflict(sites: Sites, born: Births, arrival: Arrival, key: Json, rule: Rule) -> bool:
    """True if the row may be rejected for itself."""
    if arrival.met is not None:
        met = arrival.met.get(key)
        # A row that is not there can be neither updated nor deleted.
        return met is None or met.value is None or is_conflict(born, arrival, key, rule, met, is_strict=False)
    log = sites.logs.get(arrival.site, ())
    versions = [
        Version(handle(entry.transaction), value) for entry in log for at, value in entry.rows if handle(at) == key
    ]
    return any(is_conflict(born, arrival, key, rule, met, is_strict=False) for met in versions)


def is_conflict(born: Births, arrival: Arrival, key: Json, rule: Rule, met: Version, *, is_strict: bool) -> bool:
    """True if the rule rejects the row for the version that it met. `is_strict`: without any rounding."""
    birth, replaced = arrival.birth, arrival.birth.replaced.get(key)
    if rule.rule in EPOCH_RULES:
        if not _has_say(born, arrival, rule, met):
            return False
        seen = (birth.seen if is_strict else birth.told).get(arrival.site)
        epoch = born[met.transaction].entry.epoch
        return seen is None or (epoch > seen if is_strict else not rule.is_over(epoch, seen))
    new, old = birth.rows[key], None if replaced is None else replaced.value
    if rule.rule == "old":
        return old != met.value
    if new is None:
        return rule.rule == "max" and old != met.value
    return met.value is not None and not _column(new) > _column(met.value)


def _column(value: Json) -> tuple[bool, float, str]:
    """The part of a row that `max` compares: the value, or the first item of a list. Numbers come before texts."""
    item = value[0] if isinstance(value, list) and value else value
    return (False, item, "") if isinstance(item, int | float) else (True, 0, str(item))


def _writer(born: Births, version: Version) -> str:
    birth = born.get(version.transaction)
    return str(version.transaction) if birth is None else f"{birth.entry.transaction} of {birth.site}"


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
