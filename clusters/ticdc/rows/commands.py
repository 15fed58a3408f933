"""The effect of a request on the rows of a region: its answer, and the command that the log must apply before, if any.

Pure functions: the caller holds the latches of the request's keys, so that nothing changes between the decision here
and the command's effect. Numbers refer to clusters/ticdc/README.md.
"""

from typing import NamedTuple

from msgspec.structs import replace

from clusters.ticdc import planted
from clusters.ticdc.rows.incarnations import incarnation, restored
from clusters.ticdc.rows.messages import (
    Alive,
    AskResolved,
    CannotRestore,
    CheckStatus,
    Commit,
    CommitKeys,
    CommittedAt,
    CommitTsExpired,
    Conflict,
    Elements,
    Get,
    Heartbeat,
    Lock,
    Locked,
    LockNotFound,
    Mutation,
    Prepared,
    PrepareFlashback,
    Prewrite,
    Prewritten,
    PutLocks,
    Resolve,
    Resolved,
    RollBackKeys,
    RowCommand,
    RowReply,
    ScanLocks,
    Status,
    Values,
)
from clusters.ticdc.rows.versions import Versions
from clusters.ticdc.shape import Key, physical_ms


class Decision(NamedTuple):
    """The answer to a request. If there is a `command`, it must be applied before the answer is sent."""

    answer: RowReply
    command: RowCommand | None = None


def is_expired(lock: Lock, now_ts: int) -> bool:
    """True if the lock's lifetime is over by `now_ts`. If it is a primary lock, so is its transaction's."""
    return physical_ms(lock.start_ts) + lock.ttl_ms < physical_ms(now_ts)


def is_closed(rows: Versions, body: object) -> bool:
    """True if a flashback that holds locks here keeps this request out: it is not its own, and settles no locks."""
    flashback = rows.flashback()
    if not flashback or isinstance(body, CheckStatus | Resolve | ScanLocks | AskResolved):
        return False
    return not (isinstance(body, PrepareFlashback | Commit) and body.start_ts == flashback)


def get(rows: Versions, request: Get) -> Locked | Values:
    """The values at the request's timestamp, or the locks of transactions that may commit at or below it."""
    blocking = tuple(
        lock
        for key in request.keys
        if (lock := rows.locks.get(key)) is not None
        and lock.start_ts <= request.read_ts
        and lock.kind == "put"
        and lock.min_commit_ts <= request.read_ts
        and lock.start_ts not in request.ignored
    )
    if blocking:
        return Locked(blocking)
    return Values(tuple(rows.read(key, request.read_ts) for key in request.keys))


def prewrite(rows: Versions, request: Prewrite, bugs: frozenset[str]) -> Decision:
    """The decision to lock the keys, unless a version was committed there since the transaction began."""
    start_ts = request.start_ts
    foreign = tuple(
        lock
        for mutation in request.mutations
        if (lock := rows.locks.get(mutation.key)) is not None and lock.start_ts != start_ts
    )
    if foreign:
        return Decision(Locked(foreign))
    for mutation in request.mutations:
        if rows.is_rolled_back(mutation.key, start_ts):
            return Decision(Conflict(is_rolled_back=True))
        if rows.newest(mutation.key) >= start_ts:
            return Decision(Conflict(is_rolled_back=False))
    locks = tuple(
        lock for mutation in request.mutations if (lock := _new_lock(rows, request, mutation, bugs)) is not None
    )
    return Decision(Prewritten(), PutLocks(locks) if locks else None)


def _new_lock(rows: Versions, request: Prewrite, mutation: Mutation, bugs: frozenset[str]) -> Lock | None:
    """The lock to set; None if the key already has it, or a newer one of the same transaction."""
    held = rows.locks.get(mutation.key)
    ttl_ms, min_commit_ts = request.ttl_ms, max(request.min_commit_ts, request.start_ts + 1)
    if held is not None:
        if request.generation <= held.generation and planted.NO_GENERATION not in bugs:
            return None
        ttl_ms, min_commit_ts = max(held.ttl_ms, ttl_ms), max(held.min_commit_ts, min_commit_ts)
    return Lock(
        key=mutation.key,
        kind=mutation.kind,
        primary=request.primary,
        start_ts=request.start_ts,
        ttl_ms=ttl_ms,
        min_commit_ts=min_commit_ts,
        is_large=request.is_large,
        generation=request.generation,
        elements=mutation.elements,
    )


def prepare_flashback(rows: Versions, request: PrepareFlashback) -> Decision:
    """The decision to lock, for a flashback, those keys that nobody has locked; others' locks must be settled before.

    A version that was committed after the flashback began is no conflict: it is undone, too.
    """
    locks, foreign = list[Lock](), list[Lock]()
    for key in request.keys:
        held = rows.locks.get(key)
        if rows.is_rolled_back(key, request.start_ts):
            return Decision(Conflict(is_rolled_back=True))
        if held is not None:
            (locks if held.start_ts == request.start_ts else foreign).append(held)
            continue
        before, after = rows.read(key, rows.newest(key)), rows.read(key, request.to_ts)
        if not incarnation(before) == incarnation(after) == request.incarnation - 1:
            return Decision(CannotRestore())
        locks.append(_flashback_lock(request, key, restored(before, after, request.number, request.to_ts)))
    new = tuple(lock for lock in locks if lock.key not in rows.locks)
    answer = Locked(tuple(foreign)) if foreign else Prepared(tuple(lock.elements for lock in locks))
    return Decision(answer, PutLocks(new) if new else None)


def _flashback_lock(request: PrepareFlashback, key: Key, elements: Elements) -> Lock:
    return Lock(
        key=key,
        kind="put",
        primary=request.primary,
        start_ts=request.start_ts,
        ttl_ms=request.ttl_ms,
        min_commit_ts=request.start_ts + 1,
        is_large=False,
        generation=0,
        elements=elements,
        is_flashback=True,
    )


def commit(rows: Versions, request: Commit, bugs: frozenset[str]) -> Decision:
    """The decision to commit the keys, if each is locked by the transaction or was committed by it."""
    for key in request.keys:
        lock = rows.locks.get(key)
        if lock is None or lock.start_ts != request.start_ts:
            done = rows.commit_ts(key, request.start_ts)
            return Decision(LockNotFound() if done is None else CommittedAt(done))
        # Only the primary lock's bound is kept up to date: no other can refuse.
        is_early = request.commit_ts < lock.min_commit_ts
        if key == lock.primary and is_early and planted.COMMIT_NO_MIN_CHECK not in bugs:
            return Decision(CommitTsExpired(lock.min_commit_ts))
    return Decision(CommittedAt(request.commit_ts), CommitKeys(request.start_ts, request.commit_ts, request.keys))


def heartbeat(rows: Versions, request: Heartbeat, bugs: frozenset[str]) -> Decision:
    """The decision to extend the lifetime of a primary lock, and to raise its bound."""
    lock = rows.locks.get(request.primary)
    if lock is None or lock.start_ts != request.start_ts:
        return Decision(LockNotFound())
    ttl_ms = lock.ttl_ms if planted.TTL_NOT_EXTENDED in bugs else max(lock.ttl_ms, request.ttl_ms)
    raised = replace(lock, ttl_ms=ttl_ms, min_commit_ts=max(lock.min_commit_ts, request.min_commit_ts))
    return Decision(Alive(raised.ttl_ms, raised.min_commit_ts), PutLocks((raised,), is_rewrite=True))


def check_status(rows: Versions, request: CheckStatus, bugs: frozenset[str]) -> Decision:
    """The decision on a transaction's state, by its primary key: an expired one is rolled back, a live one pushed."""
    primary, start_ts = request.primary, request.start_ts
    lock = rows.locks.get(primary)
    if lock is not None and lock.start_ts == start_ts:
        if is_expired(lock, request.now_ts):
            return Decision(Status("rolled-back"), RollBackKeys(start_ts, (primary,)))
        pushed_ts = max(request.reader_ts + 1, request.now_ts)
        if request.reader_ts and lock.min_commit_ts < pushed_ts:
            raised = replace(lock, min_commit_ts=pushed_ts)
            return Decision(Status("ongoing", pushed_ts), PutLocks((raised,), is_rewrite=True))
        return Decision(Status("ongoing", lock.min_commit_ts))
    status = final_status(rows, primary, start_ts)
    if status.state == "missing" and request.may_roll_back:
        is_recorded = planted.NO_ROLLBACK_RECORD not in bugs
        return Decision(Status("rolled-back"), RollBackKeys(start_ts, (primary,), is_recorded))
    return Decision(status)


def final_status(rows: Versions, primary: Key, start_ts: int) -> Status:
    """The state of a transaction that holds no lock on its primary key."""
    committed = rows.commit_ts(primary, start_ts)
    if committed is not None:
        return Status("committed", committed)
    if rows.is_rolled_back(primary, start_ts):
        return Status("rolled-back", is_flashback=rows.is_flashed_back(primary, start_ts))
    return Status("missing")


def resolve(rows: Versions, request: Resolve) -> Decision:
    """The decision to commit or roll back the transaction's keys. A rollback leaves a record on keys without a lock."""
    start_ts = request.start_ts
    if request.commit_ts:
        held = tuple(key for key in request.keys if _holds(rows, key, start_ts))
        return Decision(Resolved(), CommitKeys(start_ts, request.commit_ts, held) if held else None)
    open_keys = tuple(
        key for key in request.keys if not rows.is_rolled_back(key, start_ts) and rows.commit_ts(key, start_ts) is None
    )
    command = RollBackKeys(start_ts, open_keys, is_flashback=request.is_flashback) if open_keys else None
    return Decision(Resolved(), command)


def _holds(rows: Versions, key: Key, start_ts: int) -> bool:
    lock = rows.locks.get(key)
    return lock is not None and lock.start_ts == start_ts
