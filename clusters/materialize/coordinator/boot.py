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

from typing import NamedTuple

from clusters.materialize import planted
from clusters.materialize.catalog.records import LOG, bound_of, decoded, names_of, tables_of
from clusters.materialize.coordinator.clock import Clock
from clusters.materialize.coordinator.oracle import Oracle
from clusters.materialize.coordinator.reign import Reign
from clusters.materialize.coordinator.tables import Table
from clusters.materialize.messages import AtUpper, CompareAndAppend, GetUpper, Mismatch
from clusters.materialize.shape import BAGS, CATALOG_PLACE, LISTS, UNIT_NS
from clusters.materialize.site import Site
from clusters.parts.fenced_log import Look, Looked, Open, Opened
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure

AGAIN_NS = 20_000_000
EARLY_NS = 240_000_000  # A planted bug reads the bound so long before the boot.


class Booted(NamedTuple):
    """A leader that may serve clients."""

    reign: Reign
    tables: dict[str, Table]


def boot(site: Site) -> Procedure[Booted | None]:
    """A new leader; None if another one was quicker, or the catalog does not answer."""
    before: tuple[bytes, ...] | None = None
    if planted.RANGE_BEFORE_EPOCH in site.bugs:
        (seen,) = yield Ask(((CATALOG_PLACE, Look(LOG)),))
        before = seen.records if isinstance(seen, Looked) else None
        yield Sleep(EARLY_NS)
    (opened,) = yield Ask(((CATALOG_PLACE, Open(LOG, 1)),))
    if not isinstance(opened, Opened):
        return None
    site.context.point("catalog-opened")
    records = decoded(opened.records)
    reign = Reign(site, opened.token, len(records), names_of(records))
    bound = bound_of(records if before is None else decoded(before))
    names = (*LISTS, *BAGS, *tables_of(records))
    is_new = not bound
    bottom = site.context.local_clock_ns() // UNIT_NS + 1 if is_new else bound
    reign.clock = Clock(site, None if is_new else bottom)
    if not is_new and site.context.local_clock_ns() // UNIT_NS < bound:
        site.context.sometimes("a leader began ahead of its clock")
    uppers = yield from _uppers(reign, names)
    if uppers is None:
        return None
    if planted.RESTART_BELOW in site.bugs and not is_new:
        bottom = max(1, max(uppers.values()) - 2)
    reign.oracle = Oracle(bottom, bound)
    saved: list[bool] = []
    reign.persist_bound(bottom, lambda: saved.append(True))
    while not saved and not reign.is_over:
        yield Sleep(AGAIN_NS)
    site.context.point("bound-taken")
    tables = {name: Table(reign, name, uppers[name]) for name in names}
    for table in tables.values():
        yield from _raise(reign, table, bottom)
        site.context.point("table-advanced")
    return None if reign.is_over else Booted(reign, tables)


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
    """Raise the upper of a table above `bottom`, so that it can be read there (4)."""
    while table.upper <= bottom and not reign.is_over:
        request = CompareAndAppend(table.name, table.upper, bottom + 1, (), reign.epoch)
        (answer,) = yield Ask(((table.name, request),))
        if isinstance(answer, AtUpper | Mismatch):
            table.upper = answer.upper
