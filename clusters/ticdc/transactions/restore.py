"""Restores from the log backup, and flashbacks: each shows the values that it would bring back, and changes nothing.

Theory of operation.
1. A restore goes to the cluster's checkpoint: the least of all regions' checkpoints. That of a region is the highest of
   its stores' checkpoints, and that store's uploads are read.
2. A flashback goes below the least watermark of all regions. The leaders then show, of every key, the version of that
   time, and the lock. As a large transaction frees the watermark with its first commit, a lock may be of a committed
   row: its primary key shows whether it is.
"""

from clusters.ticdc import planted
from clusters.ticdc.oracle.messages import Timestamp
from clusters.ticdc.regions.messages import Region, Reply
from clusters.ticdc.rows.messages import (
    AskBackup,
    AskResolved,
    BackupGet,
    CheckStatus,
    Copied,
    CopyOf,
    Elements,
    Lock,
    Reaches,
    Status,
    Values,
)
from clusters.ticdc.shape import MS, STORES, Key, key_of
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.messages import Flashback, Refused, Restore, Seen
from clusters.ticdc.transactions.tasks import Ask, At, Procedure, Tasks, To, call
from harness.core.machine import NodeId

PATIENCE_NS = 300 * MS


def restore(site: Site, tasks: Tasks, request: Restore) -> Procedure[Seen | Refused]:
    """The values that the log backup holds at the cluster's checkpoint (invariant 1)."""
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
    return Seen(read_ts, tuple(found[key_of(key)] for key in request.keys))


def flashback(site: Site, tasks: Tasks, request: Flashback) -> Procedure[Seen | Refused]:
    """The values that a flashback to just below the least watermark leaves (invariant 2)."""
    answers = yield Ask(tuple(To(region, AskResolved()) for region in tasks.table.regions), PATIENCE_NS)
    read_ts = min(_reached(answer) for answer in answers) - 1
    if read_ts <= 0:
        return Refused("a region has no watermark")
    parts = tasks.table.parts(dict.fromkeys(map(key_of, request.keys)))
    copies = tuple(To(region, CopyOf(part, read_ts)) for region, part in parts.items())
    found: dict[Key, Elements] = {}
    locks: list[Lock] = []
    for part, answer in zip(parts.values(), (yield Ask(copies, PATIENCE_NS)), strict=True):
        if not isinstance(answer, Copied):
            return Refused("no leader")
        found.update(zip(part, answer.elements, strict=True))
        locks += answer.locks
    if planted.FLASHBACK_BLIND_ROLLBACK in site.bugs:
        locks.clear()
    for lock in locks:
        check = CheckStatus(lock.primary, lock.start_ts, reader_ts=0, now_ts=0, may_roll_back=False)
        status = yield from call(tasks.table.of(lock.primary), check, PATIENCE_NS)
        if not isinstance(status, Status):
            return Refused("no leader")
        if status.state == "committed" and status.timestamp <= read_ts:
            site.context.sometimes("a flashback took a value from a lock")
            found[lock.key] = lock.elements
    return Seen(read_ts, tuple(found[key_of(key)] for key in request.keys))


def _reached(answer: Timestamp | Reply | None) -> int:
    return answer.timestamp if isinstance(answer, Reaches) else 0
