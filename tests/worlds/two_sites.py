"""Two primaries that write to each other, in plain loops: what they log, reject and hold in the end.

With a `slip` above 0 the decisions at the primary, the refresh, and the exceptions go wrong with that probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from harness.core.record import Record, State

Entry = tuple[str, str, int, dict[str, Any], list[str]]


@dataclass
class TwoSites:
    """Sites A, the primary, and B; rows x, y and z; every value is new, and greater than those before it."""

    draw: Random
    rule: str
    slip: float = 0.0
    logs: dict[str, list[Entry]] = field(default_factory=lambda: {"A": [], "B": []})
    exceptions: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: {"A": [], "B": []})
    rows: dict[str, dict[str, tuple[str, Any]]] = field(default_factory=lambda: {"A": {}, "B": {}})
    epoch: dict[str, int] = field(default_factory=lambda: {"A": 0, "B": 0})
    sent: dict[str, int] = field(default_factory=lambda: {"A": 0, "B": 0})
    born: dict[str, tuple[str, int, int]] = field(default_factory=dict)  # Site, epoch, last epoch of A it was told.
    told: dict[str, int] = field(default_factory=lambda: {"old": -1, "new": -1, "at": -1})
    number: int = 0

    def run(self, steps: int) -> "TwoSites":
        """Clients and links in turn, then all that is under way arrives."""
        for _ in range(steps):
            site = self.draw.choice("AB")
            if self.draw.random() < 0.55:
                self.write(site)
            elif self.draw.random() < 0.5:
                self.epoch[site] += 1
            else:
                self.ship(site)
        while any(self.sent[site] < len(self.logs[site]) for site in "AB"):
            for site in "AB":
                self.epoch[site] += 1
                self.ship(site)
        return self

    def write(self, site: str) -> None:
        """A transaction of a client: one row or two, and at times a row that it reads."""
        self.number += 1
        keys = self.draw.sample("xyz", self.draw.choice((1, 2)))
        reads = [key for key in "xyz" if key not in keys and self.draw.random() < 0.2]
        self.commit(f"{site}{self.number}", site, dict.fromkeys(keys, self.number), reads=reads)

    def commit(self, name: str, site: str, values: dict[str, Any], origin: str = "", reads: Sequence[str] = ()) -> None:
        """A transaction enters the log of a site."""
        epoch = self.epoch[site]
        if site == "B" and self.told["at"] != epoch:
            self.told |= {"old": self.told["new"], "at": epoch}
        if not origin:
            self.born[name] = (site, epoch, self.told["old"] if site == "B" else -1)
        elif site == "B":
            self.told["new"] = max(self.told["new"], self.born[name][1])
        self.logs[site].append((name, origin or site, epoch, values, [*reads]))
        self.rows[site] |= {key: (name, value) for key, value in values.items()}

    def ship(self, site: str) -> None:
        """All whole epochs of a site go to the other one."""
        other = "B" if site == "A" else "A"
        while self.sent[site] < len(self.logs[site]) and self.logs[site][self.sent[site]][2] < self.epoch[site]:
            name, origin, _, values, reads = self.logs[site][self.sent[site]]
            self.sent[site] += 1
            if origin == site:
                self.arrive(name, site, other, values, reads)

    def arrive(self, name: str, origin: str, site: str, values: dict[str, Any], reads: Sequence[str]) -> None:
        """A transaction meets the rows of another site."""
        rejected = {
            key for key in values if site == "A" and self.conflict(name, key) != (self.draw.random() < self.slip)
        }
        is_stale = site == "A" and self.rule.endswith("-trans") and any(self.conflict(name, key) for key in reads)
        if (rejected or is_stale) and self.rule.endswith("-trans") and self.draw.random() >= self.slip:
            rejected = set(values)
        if site == "A" and self.rule.endswith("-trans") and self.depends(name, (*values, *reads)):
            rejected = set(values)
        self.commit(name, site, {key: value for key, value in values.items() if key not in rejected}, origin)
        if not rejected:
            return
        if self.draw.random() >= self.slip / 2:
            self.exceptions[site] += [(name, key) for key in sorted(rejected)]
        if self.draw.random() >= self.slip / 2:
            self.number += 1
            now = {key: self.rows["A"][key][1] if key in self.rows["A"] else None for key in sorted(rejected)}
            self.commit(f"refresh{self.number}", "A", now)

    def conflict(self, name: str, key: str) -> bool:
        """NDB$EPOCH: the row was last written at A, in an epoch that B had not been told when it wrote."""
        writer = self.rows["A"].get(key, ("", None))[0]
        return writer in self.born and self.born[writer][0] == "A" and self.born[writer][1] > self.born[name][2]

    def depends(self, name: str, touched: Sequence[str]) -> bool:
        """True if it replaced or read a row of a transaction of B that A rejected."""
        log = self.logs["B"]
        before = log[: next(at for at, entry in enumerate(log) if entry[0] == name)]
        gone = {name for name, _ in self.exceptions["A"]}
        for key in touched:
            writers = [entry[0] for entry in before if key in entry[3]]
            if writers and writers[-1] in gone and self.draw.random() >= self.slip:
                return True
        return False

    def states(self) -> dict[str, dict[str, Any]]:
        """The values of all rows at each site."""
        return {site: {key: value for key, (_, value) in rows.items()} for site, rows in self.rows.items()}


def told(
    logs: dict[str, list[Entry]],
    exceptions: dict[str, list[tuple[str, str]]],
    states: dict[str, dict[str, Any]],
    rule: tuple[str, str, int] | None,
) -> list[Record]:
    """What sites show, as records."""
    records: list[Record] = []
    for site, log in logs.items():
        names = ("transaction", "origin", "epoch", "rows", "reads")
        value: Any = [
            dict(zip(names, (*entry[:3], [*map(list, entry[3].items())], entry[4]), strict=True)) for entry in log
        ]
        records.append(State(9, site, "site-log", site, value))
    for site, rejected in exceptions.items():
        records.append(State(9, site, "exceptions", site, [[*row] for row in rejected]))
    for site, rows in states.items():
        records.append(State(9, site, "site-state", site, [[*row] for row in rows.items()]))
    if rule is not None:
        value_of: Any = {"rule": rule[0], "primary": rule[1], "rounding": rule[2]}
        records.append(State(9, "A", "conflict-rule", None, value_of))
    return records
