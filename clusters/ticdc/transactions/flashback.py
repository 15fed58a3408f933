"""Flashbacks: they bring back the values of an earlier timestamp, as new versions at a new one.

Theory of operation. A flashback is a transaction that locks its rows with their values of `to_ts`, and commits them.
1. `to_ts` is below the least watermark of all regions: so nothing can commit at or below it any more. A row that an
   earlier flashback has changed above `to_ts` refuses.
2. From the first of its locks in a region on, the region is closed: it serves nobody else but who settles locks, and is
   neither split nor merged (store/replica.py, invariant 6). It opens when the flashback's last lock there is gone.
3. Locks of others on its rows are settled before, by their primary keys: those of a committed transaction are
   committed, also if it is at or below `to_ts`, as a large one frees the watermark with its first commit. An open
   transaction is rolled back, alive or not.
4. The commit timestamp is fetched when all rows are locked. So nothing that began before the flashback commits above
   it: its locks are gone, and a new one meets a newer version.
5. If the coordinator dies, whoever finds its locks settles them as any others, and opens the regions.
"""

from msgspec.structs import replace

from clusters.parts.client import Refused, Unclear
from clusters.ticdc import planted
from clusters.ticdc.oracle.messages import Timestamp
from clusters.ticdc.regions.messages import Moved, Reply
from clusters.ticdc.rows.incarnations import brought_back, name, named, view
from clusters.ticdc.rows.messages import (
    AskResolved,
    CheckStatus,
    Elements,
    Lock,
    Locked,
    Mutation,
    Prepared,
    PrepareFlashback,
    Reaches,
    Status,
)
from clusters.ticdc.shape import MS, Key, key_of
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.messages import Done, Flashback, Restored, Seen
from clusters.ticdc.transactions.resolving import settle_keys
from clusters.ticdc.transactions.tasks import Ask, Procedure, Tasks, To, call, timestamp
from clusters.ticdc.transactions.two_phase import Failed, Transaction, TwoPhase
from harness.core.record import MicroOp

PATIENCE_NS = 300 * MS
TRIES = 10  # Rounds of settling others' locks.


def flashback(site: Site, tasks: Tasks, two_phase: TwoPhase, request: Flashback) -> Procedure[Done | Refused | Unclear]:
    """The outcome of a flashback to just below the least watermark."""
    begun = tuple(mop for mop in request.mops if mop.f == "append")
    answers = yield Ask(tuple(To(region, AskResolved()) for region in tasks.table.regions), PATIENCE_NS)
    to_ts = min(_reached(answer) for answer in answers) - 1
    if to_ts <= 0 or not begun:
        return Refused("a region has no watermark")
    start_ts = yield from timestamp()
    if not start_ts:
        return Refused("no timestamp")
    keys = tuple(dict.fromkeys(key_of(mop.key) for mop in begun))
    txn = Transaction(start_ts, tuple(Mutation(key, "put") for key in keys), is_large=False, primary=keys[0])
    prepare = PrepareFlashback(
        start_ts, txn.primary, keys, to_ts, named(begun[0].key), begun[0].value, two_phase.flashback_ttl_ms
    )
    found: dict[Key, Elements] = {}
    failure = yield from _prepared(site, tasks, txn, prepare, found)
    if failure is None:
        site.context.point("before-flashback-commit")
        commit_ts = yield from two_phase.commit(txn)
        if isinstance(commit_ts, int):
            site.context.sometimes("a flashback was committed")
            return Done(start_ts, commit_ts, tuple(_shown(mop, found) for mop in request.mops))
        if isinstance(commit_ts, Unclear):
            return commit_ts
        failure = commit_ts
    tasks.run(two_phase.roll_back(txn))
    return Refused(failure.reason)


def restored(two_phase: TwoPhase, request: Restored) -> Procedure[Seen | Refused]:
    """What flashbacks have brought back, as it is found in the rows now."""
    now_ts = yield from timestamp()
    if not now_ts:
        return Refused("no timestamp")
    values = yield from two_phase.read(tuple(dict.fromkeys(map(key_of, request.keys))), now_ts)
    if isinstance(values, Failed):
        return Refused(values.reason)
    found = tuple(brought_back(values[key_of(key)], named(key)) for key in request.keys)
    before = tuple(name(key_of(key), max(0, named(key) - 1)) for key in request.keys)
    held = tuple(each for each in found if each is not None)
    if len(held) < len(found) or len({to_ts for to_ts, _ in held}) != 1:
        return Refused("no flashback of all these keys")
    return Seen(held[0][0], before, tuple(elements for _, elements in held))


def _prepared(
    site: Site, tasks: Tasks, txn: Transaction, prepare: PrepareFlashback, found: dict[Key, Elements]
) -> Procedure[Failed | None]:
    """Lock all rows, and put the values that they get into `found` (invariants 2 and 3); the failure, or None."""
    txn.flushed = list(prepare.keys)
    for _ in range(TRIES):
        parts = tasks.table.parts(key for key in prepare.keys if key not in found)
        requests = tuple(To(region, replace(prepare, keys=part)) for region, part in parts.items())
        answers = yield Ask(requests, PATIENCE_NS)
        met: list[Lock] = []
        for part, answer in zip(parts.values(), answers, strict=True):
            match answer:
                case Prepared(elements):
                    found.update(zip(part, elements, strict=True))
                case Locked(locks):
                    met += locks
                case Moved():
                    pass
                case _:
                    return Failed("a region is closed, or cannot be brought back")
        if len(found) == len(prepare.keys):
            return None
        if any(lock.is_flashback for lock in met):
            return Failed("another flashback is under way")
        for lock in met:
            yield from _settle(site, tasks, lock, prepare.to_ts)
    return Failed("a lock stayed in the way")


def _settle(site: Site, tasks: Tasks, lock: Lock, to_ts: int) -> Procedure[None]:
    """Commit a lock whose transaction is committed, and roll back any other (invariant 3)."""
    commit_ts = 0
    if planted.FLASHBACK_BLIND_ROLLBACK not in site.bugs:
        check = CheckStatus(lock.primary, lock.start_ts, reader_ts=0, now_ts=0, may_roll_back=False)
        status = yield from call(tasks.table.of(lock.primary), check, PATIENCE_NS)
        if not isinstance(status, Status) or status.state not in ("committed", "rolled-back"):
            yield from settle_keys(tasks, lock.start_ts, 0, [lock.primary], is_flashback=True)
            status = yield from call(tasks.table.of(lock.primary), check, PATIENCE_NS)
        if not isinstance(status, Status) or status.state not in ("committed", "rolled-back"):
            return
        if status.state == "committed":
            commit_ts = status.timestamp
            if commit_ts <= to_ts:
                site.context.sometimes("a flashback committed a lock of its own version")
        elif status.is_flashback:
            site.context.sometimes("a flashback rolled back an open transaction")
    yield from settle_keys(tasks, lock.start_ts, commit_ts, [lock.key])


def _shown(mop: MicroOp, found: dict[Key, Elements]) -> MicroOp:
    """The micro-operation with its result: of a read the elements that the flashback has undone or kept."""
    if mop.f == "append":
        return mop
    return MicroOp("r", mop.key, list(view(found[key_of(mop.key)], named(mop.key))), lock=mop.lock)


def _reached(answer: Timestamp | Reply | None) -> int:
    return answer.timestamp if isinstance(answer, Reaches) else 0
