"""Restores from the log backup: each shows the values that it would bring back, and changes nothing.

Theory of operation. A restore goes to the cluster's checkpoint: the least of all regions' checkpoints. That of a region
is the highest of its stores' checkpoints, and that store's uploads are read.
"""

from clusters.parts.client import Refused
from clusters.ticdc.regions.messages import Region
from clusters.ticdc.rows.incarnations import named, view
from clusters.ticdc.rows.messages import AskBackup, BackupGet, Elements, Reaches, Values
from clusters.ticdc.shape import MS, STORES, Key, key_of
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.messages import Restore, Seen
from clusters.ticdc.transactions.tasks import Ask, At, Procedure, Tasks
from harness.core.machine import NodeId

PATIENCE_NS = 300 * MS


def restore(site: Site, tasks: Tasks, request: Restore) -> Procedure[Seen | Refused]:
    """The values that the log backup holds at the cluster's checkpoint."""
    regions = tasks.table.regions
    places = [(region, store) for region in regions for store in STORES]
    answers = yield Ask(tuple(At(store, region, AskBackup()) for region, store in places), PATIENCE_NS)
    best: dict[Region, tuple[int, NodeId]] = {}
    for (region, store), answer in zip(places, answers, strict=True):
        if isinstance(answer, Reaches):
            best[region] = max(best.get(region, (0, store)), (answer.timestamp, store))
    read_ts = min(timestamp for timestamp, _ in best.values()) if len(best) == len(regions) else 0
    if not read_ts:
        return Refused("the backup has no checkpoint")
    parts = tasks.table.parts(dict.fromkeys(map(key_of, request.keys)))
    if not parts.keys() <= best.keys():
        return Refused("the regions have changed")
    gets = tuple(At(best[region][1], region, BackupGet(part, read_ts)) for region, part in parts.items())
    found: dict[Key, Elements] = {}
    for part, answer in zip(parts.values(), (yield Ask(gets, PATIENCE_NS)), strict=True):
        if not isinstance(answer, Values):
            return Refused("the backup cannot be read")
        found.update(zip(part, answer.elements, strict=True))
    site.context.sometimes("a backup was restored")
    return Seen(read_ts, request.keys, tuple(view(found[key_of(key)], named(key)) for key in request.keys))
