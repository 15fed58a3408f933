"""Several primaries, without a rule for conflicts: do all sites agree in the end, and is each loss on record?

1. `site-divergence`: when all is at rest, two sites have different values of a row. A witness is a row of two sites.
2. `unrecorded-loss`: a site changed a row, another site never applied the change, and no exceptions table has it. Left
   out are rows that a later transaction of the same epoch replaced at home: they need not leave it. Likewise an element
   that an acknowledged operation appended at a site, and that the list of some site lacks in the end. Judged only if
   there is an exceptions table, between sites that are at rest. A witness is a change and another site.
3. `own-change-applied`: a site applied a change that was born there. A witness is a transaction that another site
   applied, so that it could come back.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from checkers.replication.arrivals import Births, births
from checkers.replication.sites import Sites, handle, sites_of
from harness.core.columns import APPEND, OK
from harness.core.record import Json
from harness.core.verdict import Judgement

CHECKER: Final = "convergence"
DIVERGENCE, LOSS, LOOP = "site-divergence", "unrecorded-loss", "own-change-applied"
ANOMALIES: Final = {
    DIVERGENCE: "Sites that write to each other have different values of a row, although all is at rest.",
    LOSS: "A change of one site has no effect at another one, and no exceptions table has it.",
    LOOP: "A site applied a change that was born there.",
}
Found = Iterator[tuple[str, Trouble | None]]  # The anomaly of each witness, and what is wrong with it.


def check(history: Path, _context: Context) -> Judgement:
    """The judgement of all sites. Raises HistoryError if the history is damaged."""
    sites = sites_of(history)
    troubles: list[Trouble] = []
    witnesses = dict.fromkeys(ANOMALIES, 0)
    found = [*judged(sites)]
    if sites.exceptions and sites.states:
        found += _appended(history, sites)
    for anomaly, trouble in found:
        witnesses[anomaly] += 1
        troubles += () if trouble is None else (trouble,)
    return judgement(CHECKER, ANOMALIES, troubles, witnesses)


def judged(sites: Sites) -> Found:
    """The witnesses in the states of all sites, without the operations of clients."""
    born = births(sites)
    yield from _divergence(sites)
    yield from _losses(sites, born)
    yield from _loops(sites, born)


def _divergence(sites: Sites) -> Found:
    """1."""
    if len(sites.states) < 2:
        return
    (first, one), *others = sites.states.items()
    for key in dict.fromkeys(key for state in sites.states.values() for key in state):
        unlike = next((site for site, state in others if state.get(key) != one.get(key)), None)
        trouble = None
        if unlike is not None:
            values = f"{one.get(key)} at {first} and {sites.states[unlike].get(key)} at {unlike}"
            trouble = Trouble(DIVERGENCE, f"When all is at rest, {key} is {values}.", (str(key), first, unlike))
        yield DIVERGENCE, trouble


def _losses(sites: Sites, born: Births) -> Found:
    """2, in the logs of the sites."""
    if not sites.exceptions:
        return
    on_record = {(name, key) for _, name, key in sites.rejected}
    applied = {
        (site, handle(entry.transaction), handle(key))
        for site, log in sites.logs.items()
        for entry in log
        for key, _ in entry.rows
    }
    at_rest = [site for site in sites.logs if site in sites.states]
    for name, birth in born.items():
        if birth.site not in at_rest:
            continue
        for site in at_rest:
            for key in birth.rows if site != birth.site else ():
                if key in birth.merged:
                    continue
                is_lost = (site, name, key) not in applied and (name, key) not in on_record
                sentence = (
                    f"{birth.entry.transaction} of {birth.site} set {key} to {birth.rows[key]}; {site} never applied "
                    "that, and no exceptions table has it."
                )
                yield LOSS, Trouble(LOSS, sentence, (birth.site, site, str(name), str(key))) if is_lost else None


def _appended(history: Path, sites: Sites) -> Found:
    """2, in the operations of clients."""
    names = Dictionary(history)
    on_record = {(handle(row.key), handle(row.value)) for of in sites.exceptions.values() for row in of}
    site_of = {row["index"]: row["node"] for row in rows(history, "ops", ["index", "node"], outcome=[OK])}
    for row in rows(history, "mops", ["op", "key", "value"], f=[APPEND]):
        site = site_of.get(row["op"])
        if site not in sites.states:
            continue
        key, element = names.value(row["key"]), names.value(row["value"])
        lists = {each: state.get(handle(key), []) for each, state in sites.states.items()}
        if not all(isinstance(each, list) for each in lists.values()):
            continue
        without = next((each for each, of in lists.items() if isinstance(of, list) and element not in of), None)
        is_lost = without is not None and (handle(key), handle(element)) not in on_record
        sentence = (
            f"T{row['op']} appended {element} to {key} at {site}; {without} does not have it in the end, and no "
            "exceptions table has it."
        )
        yield LOSS, Trouble(LOSS, sentence, (row["op"], str(key)), (row["op"],)) if is_lost else None


def _loops(sites: Sites, born: Births) -> Found:
    """3."""
    for site, log in sites.logs.items():
        elsewhere = {
            handle(entry.transaction) for other, of in sites.logs.items() if other != site for entry in of if entry.rows
        }
        times: dict[Json, int] = {}
        for entry in log:
            name = handle(entry.transaction)
            if name in born and born[name].site == site and entry.rows:
                times[name] = times.get(name, 0) + 1
        for name, count in times.items():
            if count > 1:
                transaction = born[name].entry.transaction
                sentence = f"{site} applied {transaction}, which was born there: its log has it {count} times."
                yield LOOP, Trouble(LOOP, sentence, (site, str(name)))
            elif name in elsewhere:
                yield LOOP, None


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
