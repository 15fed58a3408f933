"""Slow, obvious oracles for two sites of NDB: plain loops over the records, without a line of the checkers.

Each oracle gives its complaints as sentences; a correct run has none. The exceptions table is computed again from the
two logs, row by row, so that it must be exactly what the function for conflicts rejects, rounding included.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.core.record import Complete, Evidence, Invoke, State

MICRO = 0xFFFFFFFF


class Observed:
    """A run's records, as the oracles look at them. `bits` are those of the run's rows."""

    def __init__(self, records: Sequence[Evidence], bits: int) -> None:
        self.bits = bits
        invoked = {each.index: each for each in records if isinstance(each, Invoke)}
        self.done = [
            each
            for each in records
            if isinstance(each, Complete) and each.outcome == "ok" and invoked[each.index].f == "txn"
        ]
        shown: dict[tuple[str, Any], Any] = {
            (each.object, each.key): each.value for each in records if isinstance(each, State)
        }
        self.rule: str = shown["conflict-rule", None]["rule"]
        self.logs: dict[str, list[Any]] = {key: value for (kind, key), value in shown.items() if kind == "site-log"}
        self.exceptions = {key: value for (kind, key), value in shown.items() if kind == "exceptions"}
        self.states = {key: dict(value) for (kind, key), value in shown.items() if kind == "site-state"}


def complaints(records: Sequence[Evidence], bits: int) -> dict[str, list[str]]:
    """The complaints of each oracle that has some."""
    run = Observed(records, bits)
    oracles = {
        "acknowledged": acknowledged(run),
        "end": end(run),
        "exceptions": exceptions(run),
        "arrived": arrived(run),
    }
    found = {name: [*sentences] for name, sentences in oracles.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def acknowledged(run: Observed) -> Iterator[str]:
    """Each acknowledged transaction is in its site's log, with its epoch, and read what the log has before it."""
    for done in run.done:
        assert done.mops is not None
        assert done.node is not None
        log = run.logs[done.node]
        due: dict[Any, Any] = {}
        written = {mop.key: mop.value for mop in done.mops if mop.f == "w"}
        if done.txn is None:
            continue
        places = [at for at, each in enumerate(log) if each["transaction"] == done.txn]
        if len(places) != 1 or log[places[0]]["epoch"] != done.epoch:
            yield f"T{done.index} of {done.node} stands at {places} of its log, with epoch {done.epoch}"
            continue
        entry = log[places[0]]
        for before in log[: places[0]]:
            due |= dict(before["rows"])
        left = {key: value for key, value in written.items() if value is not None or due.get(key) is not None}
        if dict(entry["rows"]) != left:
            yield f"T{done.index} wrote {left}, and the log of {done.node} has {entry['rows']}"
        for mop in done.mops:
            expected = due.get(mop.key)
            if mop.f == "r" and mop.key not in written and mop.value != ([] if expected is None else expected):
                yield f"T{done.index} read {mop.value} under {mop.key} at {done.node}, where {expected} is due"


def end(run: Observed) -> Iterator[str]:
    """Both sites are at rest, with what their logs give, and with the same."""
    if sorted(run.states) != sorted(run.logs):
        yield f"at rest are {sorted(run.states)} of {sorted(run.logs)}"
    for site, log in run.logs.items():
        rows: dict[Any, Any] = {}
        for entry in log:
            rows |= dict(entry["rows"])
        due = {key: value for key, value in rows.items() if value is not None}
        if run.states.get(site, due) != due:
            yield f"{site} has {run.states[site]}, and its log gives {due}"
    if len({repr(sorted(state.items())) for state in run.states.values()}) > 1:
        yield f"sites differ: {run.states}"


def arrived(run: Observed) -> Iterator[str]:
    """Each transaction is once in each log, in the order of its home."""
    for site, log in run.logs.items():
        for other, theirs in run.logs.items():
            if other != site:
                here = [each["transaction"] for each in log if each["origin"] == other]
                home = [each["transaction"] for each in theirs if each["origin"] == other]
                if here != home:
                    yield f"{site} has {here} of {other}, which has {home}"


def exceptions(run: Observed) -> Iterator[str]:
    """Each exceptions table has exactly what the rule rejects."""
    (first, one), (second, two) = sorted(run.logs.items())
    for site, log, home in ((first, one, two), (second, two, one)):
        due = [*_due(run, site, first, log, {each["transaction"]: each for each in home}, home)]
        held = [(name, key) for name, key, _ in run.exceptions[site]]
        if held != due:
            yield f"{site} rejected {held}, where {due} are due"


def _due(
    run: Observed, site: str, primary: str, log: Sequence[Any], at_home: Mapping[Any, Any], home: Sequence[Any]
) -> Iterator[tuple[Any, Any]]:
    """The transaction and row of each change that this site must reject."""
    writer: dict[Any, tuple[bool, int]] = {}  # By row: whether a client of this site, or a refresh, wrote it; epoch.
    value: dict[Any, Any] = {}
    peak: dict[Any, Any] = {}
    lost: dict[Any, int] = {}  # By row: the epoch at home in which a rejected transaction wrote it.
    for entry in log:
        is_own = entry["origin"] == site
        if not is_own:
            source = at_home[entry["transaction"]]
            rows = dict(source["rows"])
            rejected: list[Any] = []
            if run.rule.startswith("max"):
                before: dict[Any, Any] = {}
                for each in home[: home.index(source)]:
                    before |= dict(each["rows"])
                rejected = [
                    key for key, new in rows.items() if _is_beaten(run.rule, key, new, before.get(key), value, peak)
                ]
            elif site == primary:
                horizon = _horizon(site, log, home, source["epoch"])
                whole = run.rule == "epoch-trans"
                in_conflict = [
                    key
                    for key in [*rows, *source["reads"]]
                    if key in writer and writer[key][0] and _rounded(writer[key][1], run.bits) > horizon
                ]
                depends = any(
                    lost.get(key) == source["epoch"] and not _is_ours_since(site, home, source, key)
                    for key in [*rows, *source["reads"]]
                )
                rejected = [key for key in rows if (in_conflict or depends if whole else key in in_conflict)]
                for key in rejected:
                    lost[key] = source["epoch"]
            yield from ((entry["transaction"], key) for key in rows if key in rejected)
        for key, new in entry["rows"]:
            writer[key], value[key] = (is_own, entry["epoch"]), new
            peak[key] = new if new is not None else peak.get(key)


def _is_beaten(rule: str, key: Any, new: Any, old: Any, value: Mapping[Any, Any], peak: Mapping[Any, Any]) -> bool:
    """NDB$MAX: a value that is not greater, or a deletion of another value; what MAX_DELETE_WIN deleted stays so."""
    if new is None:
        return rule == "max" and value.get(key) != old
    if key not in value:
        return False
    if rule == "max-delete-win" and value[key] is None:
        return True
    return bool(new <= peak[key])


def _horizon(site: str, log: Sequence[Any], home: Sequence[Any], epoch: int) -> int:
    """The last epoch of this site that the other one had before that epoch of its own."""
    ours = {each["transaction"]: each["epoch"] for each in log if each["origin"] == site}
    return max(
        (ours[each["transaction"]] for each in home if each["origin"] == site and each["epoch"] < epoch), default=0
    )


def _is_ours_since(site: str, home: Sequence[Any], source: Any, key: Any) -> bool:
    """True if the last change of that row before this transaction, at its home, came from this site."""
    before = [each for each in home[: home.index(source)] if key in dict(each["rows"])]
    return bool(before) and before[-1]["origin"] == site


def _rounded(epoch: int, bits: int) -> int:
    """The last epoch that the row's stored bits may mean."""
    return epoch | MICRO if epoch & MICRO >= (1 << bits) - 1 else epoch
