"""The boot of a leader: six steps, whose order keeps the leader before it from doing harm.

Theory of operation.
1. Open the catalog's log: from now on the old leader changes neither bounds nor tables.
2. Load the tables and the bound b from the log as it is then. So the leader misses no table, and no other leader
   raises the bound.
3. The oracle begins at b; a higher bound is written. Every timestamp of an older leader is below b.
4. Raise the upper of every table to b at least: after that no append of an older leader fits.
5. Wait for the holds of subscribers: storage compacts only after they have come.
6. Serve clients. The first write is above b, and the first read at b.
Source: the published text, sections "Global Timestamp Recovery" and "Inserts". It does not say that the first step
comes before the second; README.md has the decision.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from clusters.materialize import planted
from clusters.materialize.catalog.records import LOG, bound_of, decoded, names_of, tables_of
from clusters.materialize.coordinator.clock import Clock
from clusters.materialize.coordinator.oracle import Oracle, Timeline
from clusters.materialize.coordinator.reign import Reign
from clusters.materialize.coordinator.tables import Entry, Table
from clusters.materialize.messages import AtUpper, CompareAndAppend, GetUpper, Mismatch
from clusters.materialize.shape import BAGS, CATALOG_PLACE, COUNT, COUNTED, LISTS, UNIT_NS, WALL
from clusters.materialize.site import Site
from clusters.parts.fenced_log import Look, Looked, Open, Opened
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure
from harness.core.machine import Message

AGAIN_NS = 20_000_000
BEHIND_NS = 100_000_000
EARLY_NS = 240_000_000  # Planted bugs look at the catalog this time before the boot.
EARLY = {planted.RANGE_BEFORE_EPOCH, planted.STALE_TABLE_LIST, planted.EPOCH_BACKWARDS}


class Booted(NamedTuple):
    """A leader that may serve clients, and its tables by timeline."""

    reign: Reign
    tables: dict[str, dict[str, Table]]


def boot(site: Site) -> Procedure[Booted | None]:
    """A new leader; None if another one was quicker, or the catalog does not answer."""
    early: Message | None = None
    if site.bugs & EARLY:
        (early,) = yield Ask(((CATALOG_PLACE, Look(LOG)),))
        yield Sleep(EARLY_NS)
    before = early if isinstance(early, Looked) else Looked(LOG, 0, ())
    (opened,) = yield Ask(((CATALOG_PLACE, Open(LOG, before.token + 1)),))
    if not isinstance(opened, Opened):
        return None
    site.context.point("catalog-opened")
    records = decoded(opened.records)
    reign = Reign(site, opened.token, len(records), names_of(records))
    bounds = decoded(before.records) if planted.RANGE_BEFORE_EPOCH in site.bugs else records
    listed = decoded(before.records) if planted.STALE_TABLE_LIST in site.bugs else records
    names = {WALL: (*LISTS, *BAGS, *tables_of(listed)), COUNT: (COUNTED,)}
    uppers = yield from _uppers(reign, (*names[WALL], *names[COUNT]))
    if uppers is None:
        return None
    reign.timelines = {
        WALL: _wall(site, bound_of(bounds, WALL), uppers),
        COUNT: _count(bound_of(bounds, COUNT)),
    }
    for timeline in reign.timelines.values():
        saved: list[bool] = []
        reign.persist_bound(timeline, timeline.oracle.bottom, partial(saved.append, True))
        while not saved and not reign.is_over:
            yield Sleep(AGAIN_NS)
    site.context.point("bound-taken")
    booted = Booted(
        reign, {name: {each: Table(reign, each, uppers[each]) for each in tables} for name, tables in names.items()}
    )
    if planted.NO_TABLE_ADVANCE not in site.bugs:
        yield from _advance(booted)
    return None if reign.is_over else booted


def _wall(site: Site, bound: int, uppers: Mapping[str, int]) -> Timeline:
    """The timeline of the wall clock, which begins at that bound, or now (3)."""
    now = site.clock_ns() // UNIT_NS
    if bound > now:
        site.context.sometimes("a leader began ahead of its clock")
    if site.clock_ns() < site.now_ns() - BEHIND_NS:
        site.context.sometimes("a leader began with a clock that was behind")
    if not bound or planted.CLOCK_RESTART in site.bugs:
        return Timeline(WALL, Oracle(now + 1, bound), Clock(site).now)
    clock = Clock(site, bound)
    bottom = max(1, max(uppers.values()) - 2) if planted.RESTART_BELOW in site.bugs else bound
    return Timeline(WALL, Oracle(bottom, bound), clock.now)


def _count(bound: int) -> Timeline:
    """The timeline that counts writes: it never waits for a clock."""
    oracle = Oracle(bound or 1, bound)
    return Timeline(COUNT, oracle, lambda: oracle.write_ts + 1)


def _advance(booted: Booted) -> Procedure[None]:
    """Raise the uppers of all tables above the bottoms of their timelines, so that they can be read there (4)."""
    reign = booted.reign
    for name, tables in booted.tables.items():
        bottom = reign.timelines[name].oracle.bottom
        for table in tables.values():
            if planted.SERVE_BEFORE_ADVANCE in reign.bugs:
                table.push(Entry(bottom, (), lambda: None))
                continue
            yield from _raise(reign, table, bottom)
            reign.site.context.point("table-advanced")


def _uppers(reign: Reign, names: tuple[str, ...]) -> Procedure[dict[str, int] | None]:
    """The uppers of all tables, each from its own data node."""
    found: dict[str, int] = {}
    while len(found) < len(names):
        missing = [name for name in names if name not in found]
        answers = yield Ask(tuple((name, GetUpper(name)) for name in missing))
        found |= {each.shard: each.upper for each in answers if isinstance(each, AtUpper)}
        if reign.is_over:
            return None
    return found


def _raise(reign: Reign, table: Table, bottom: int) -> Procedure[None]:
    """Raise the upper of a table above `bottom`."""
    while table.upper <= bottom and not reign.is_over:
        request = CompareAndAppend(table.name, table.upper, bottom + 1, (), reign.epoch)
        (answer,) = yield Ask(((table.name, request),))
        if isinstance(answer, AtUpper | Mismatch):
            table.upper = answer.upper
