"""The logs of several primaries, read once: the birth of each transaction, and its arrivals at other sites."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from checkers.replication.sites import Entry, Sites, handle
from harness.core.record import Json


class Version(NamedTuple):
    """A row as a site has it: the transaction that wrote it, and its value."""

    transaction: Json
    value: Json


class Birth(Struct, frozen=True, kw_only=True):
    """A transaction at the site where it was born.

    `seen` is the last epoch of each other site that it could see; `told`: that had arrived in an earlier epoch of
    `site`. `replaced` are the versions that its rows replaced; `basis`: these versions and the versions that it read,
    by key. `merged` are rows that a transaction of the same epoch replaced: they need not leave the site.
    """

    site: str
    entry: Entry
    rows: Mapping[Json, Json]
    seen: Mapping[str, int]
    told: Mapping[str, int]
    replaced: Mapping[Json, Version]
    basis: Mapping[Json, Version]
    merged: set[Json] = field(default_factory=set)


Births = Mapping[Json, Birth]  # By handle of the transaction.


class Arrival(NamedTuple):
    """A transaction at another site: the rows that it changed there.

    `met`: the versions there of all rows that it changed or read at home, None if not known.
    """

    site: str
    birth: Birth
    applied: frozenset[Json]
    rejected: frozenset[Json]
    met: Mapping[Json, Version] | None


def births(sites: Sites) -> dict[Json, Birth]:
    """Each transaction at its birth: its first entry in the log of its origin."""
    found: dict[Json, Birth] = {}
    epoch_at = _epochs(sites)
    for site, log in sites.logs.items():
        current: dict[Json, Version] = {}
        seen: dict[str, int] = {}
        told: dict[str, int] = {}
        epoch: int | None = None
        for entry in log:
            name = handle(entry.transaction)
            rows = {handle(key): value for key, value in entry.rows}
            if entry.epoch != epoch:
                told, epoch = dict(seen), entry.epoch
            source = epoch_at.get(name)
            if source is not None and source[0] != site:
                seen[source[0]] = max(source[1], seen.get(source[0], source[1]))
            elif name not in found and entry.origin == site:
                replaced = {key: current[key] for key in rows if key in current}
                reads = {key: current[key] for key in map(handle, entry.reads) if key in current}
                for key, version in replaced.items():
                    before = found.get(version.transaction)
                    if before is not None and before.site == site and before.entry.epoch == epoch:
                        before.merged.add(key)
                found[name] = Birth(
                    site=site,
                    entry=entry,
                    rows=rows,
                    seen=dict(seen),
                    told=told,
                    replaced=replaced,
                    basis=reads | replaced,
                )
            current |= {key: Version(name, value) for key, value in rows.items()}
    return found


def _epochs(sites: Sites) -> dict[Json, tuple[str, int]]:
    """The origin of each transaction, and its epoch there."""
    found: dict[Json, tuple[str, int]] = {}
    for site, log in sites.logs.items():
        for entry in log:
            if entry.origin == site:
                found.setdefault(handle(entry.transaction), (site, entry.epoch))
    return found


def arrivals(sites: Sites, born: Births) -> Iterator[Arrival]:
    """Each transaction at each other site that has applied or rejected rows of it."""
    rejected: dict[tuple[str, Json], set[Json]] = {}
    for site, name, key in sites.rejected:
        rejected.setdefault((site, name), set()).add(key)
    for site, log in sites.logs.items():
        current: dict[Json, Version] = {}
        known: set[Json] = set()
        for entry in log:
            name = handle(entry.transaction)
            rows = {handle(key): value for key, value in entry.rows}
            birth = born.get(name)
            if birth is not None and birth.site != site and name not in known:
                known.add(name)
                touched = (*birth.rows, *map(handle, birth.entry.reads))
                met = {key: current[key] for key in touched if key in current}
                yield Arrival(site, birth, frozenset(rows), frozenset(rejected.get((site, name), ())), met)
            current |= {key: Version(name, value) for key, value in rows.items()}
        for (where, name), keys in rejected.items():
            birth = born.get(name)
            if where == site and name not in known and birth is not None and birth.site != site:
                yield Arrival(site, birth, frozenset(), frozenset(keys), None)
