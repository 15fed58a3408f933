"""A slow, obvious twin of the checks of several primaries: each question reads the logs again from their beginning.

`logs` are lists of [transaction, origin, epoch, rows, reads] by site, with rows as dicts; `exceptions` and `states` are
as in the history; one rule for all rows: (rule, primary, rounding), or None.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Entry = tuple[str, str, int, Mapping[str, Any], Sequence[str]]
Logs = Mapping[str, Sequence[Entry]]
Exceptions = Mapping[str, Sequence[tuple[str, str]]]
States = Mapping[str, Mapping[str, Any]]
Rule = tuple[str, str, int] | None


def _birth(logs: Logs, transaction: str) -> tuple[str, int] | None:
    """The site where the transaction was born, and its place in the log there."""
    for site, log in logs.items():
        for place, entry in enumerate(log):
            if entry[0] == transaction and entry[1] == site:
                return site, place
    return None


def _there(log: Sequence[Entry], key: str) -> tuple[str | None, Any]:
    """The last writer of a row in this part of a log, and the value."""
    writer, value = None, None
    for entry in log:
        if key in entry[3]:
            writer, value = entry[0], entry[3][key]
    return writer, value


def _seen(logs: Logs, part: Sequence[Entry], site: str) -> int:
    """The last epoch of another site in this part of a log; -1 for none."""
    seen = -1
    for entry in part:
        birth = _birth(logs, entry[0])
        if birth is not None and birth[0] == site:
            seen = max(seen, logs[site][birth[1]][2])
    return seen


def anomalies(logs: Logs, exceptions: Exceptions, states: States, rule: Rule) -> set[str]:
    """The names of everything that is wrong."""
    found: set[str] = set()
    for left in states.values():
        for right in states.values():
            if any(left.get(key) != right.get(key) for key in (*left, *right)):
                found.add("site-divergence")
    for site, log in logs.items():
        for entry in log:
            birth = _birth(logs, entry[0])
            if birth is not None and birth[0] == site and [e[0] for e in log if e[3]].count(entry[0]) > 1:
                found.add("own-change-applied")
    for site, log in logs.items():
        for place, entry in enumerate(log):
            if _birth(logs, entry[0]) != (site, place):
                continue
            for other in logs:
                if other != site:
                    moment = _Moment(logs, exceptions, site, place, other)
                    found |= set(moment.lost(states)) | (set() if rule is None else set(moment.wrong(rule)))
    return found


class _Moment(NamedTuple):
    """A transaction, by its place at its home, and another site."""

    logs: Logs
    exceptions: Exceptions
    home: str
    place: int
    site: str

    @property
    def entry(self) -> Entry:
        return self.logs[self.home][self.place]

    def applied(self) -> set[str]:
        """The rows that the other site applied."""
        return {key for entry in self.logs[self.site] if entry[0] == self.entry[0] for key in entry[3]}

    def rejected(self) -> set[str]:
        """The rows that the other site has in its exceptions."""
        return {key for name, key in self.exceptions.get(self.site, ()) if name == self.entry[0]}

    def lost(self, states: States) -> Iterator[str]:
        """Rows that are neither applied nor on record."""
        if not self.exceptions or self.home not in states or self.site not in states:
            return
        on_record = {key for of in self.exceptions.values() for name, key in of if name == self.entry[0]}
        for key in self.entry[3]:
            later = [entry for entry in self.logs[self.home][self.place + 1 :] if key in entry[3]]
            is_merged = bool(later) and later[0][1:3] == (self.home, self.entry[2])
            if not is_merged and key not in self.applied() | on_record:
                yield "unrecorded-loss"

    def arrival(self) -> int | None:
        """The transaction's place in the other site's log."""
        return next((at for at, entry in enumerate(self.logs[self.site]) if entry[0] == self.entry[0]), None)

    def conflict(self, key: str, rule: Rule, *, is_strict: bool) -> bool:
        """True if the row that is there rejects the change; all rows that were ever there count if it is unknown."""
        assert rule is not None
        at, log = self.arrival(), self.logs[self.site]
        before = self.logs[self.home][: self.place]
        _, old = _there(before, key)
        new = self.entry[3].get(key)  # None for a row that it only read, as epochs alone decide there.
        if not is_strict:
            before = [entry for entry in before if entry[2] < self.entry[2]]
        parts = [log[:at]] if at is not None else [log[: end + 1] for end in range(len(log))]
        for part in parts:
            writer, value = _there(part, key)
            if writer is None:
                continue
            if rule[0].startswith("epoch"):
                birth = _birth(self.logs, writer)
                if birth is None or birth[0] != self.site or self.site != rule[1]:
                    continue
                epoch = self.logs[self.site][birth[1]][2]
                last = epoch if is_strict else epoch - epoch % rule[2] + rule[2] - 1
                if last > _seen(self.logs, before, self.site):
                    return True
            elif rule[0] == "old":
                if old != value:
                    return True
            elif new is None:
                if rule[0] == "max" and old != value:
                    return True
            elif value is not None and new <= value:
                return True
        return False

    def wrong(self, rule: Rule) -> Iterator[str]:
        """What the rule forbids."""
        assert rule is not None
        at, whole = self.arrival(), rule[0].endswith("-trans")
        home = self.logs[self.home]
        rejected, applied, rows = self.rejected(), self.applied(), self.entry[3]
        if at is None and not rejected:
            return
        touched = {*rows, *self.entry[4]}
        met = {key: _there(self.logs[self.site][:at], key) for key in touched} if at is not None else {}
        for key in applied & set(met):
            if met[key][0] is None:
                continue
            if rule[0].startswith("max") and None not in (rows[key], met[key][1]) and rows[key] < met[key][1]:
                yield "decreasing-maximum"
            elif self.conflict(key, rule, is_strict=True):
                yield "missed-conflict"
        if whole and len(rows) > 1 and rejected & set(rows) and applied & set(rows):
            yield "torn-rejection"
        depends = False
        for key in touched:
            writer, _ = _there(home[: self.place], key)
            birth = _birth(self.logs, writer) if writer is not None else None
            gone = writer in {name for name, _ in self.exceptions.get(self.site, ())}
            depends = depends or (birth is not None and birth[0] == self.home and gone)
        if whole and depends and applied:
            yield "surviving-dependant"
        for key in rejected:
            reasons = [*touched] if whole else [key]
            absent = any(met.get(each, (None, None))[1] is None for each in reasons) if at is not None else False
            known = at is not None or rule[0].startswith("epoch")
            if not known or absent or (whole and depends):
                continue
            if not any(self.conflict(each, rule, is_strict=False) for each in reasons):
                yield "false-rejection"
