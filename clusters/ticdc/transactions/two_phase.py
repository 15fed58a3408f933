"""One transaction: a snapshot, then two-phase commit with a primary key.

Theory of operation.
1. Reads see the snapshot at the start timestamp. A lock of a transaction that may commit at or below it is resolved, or
   its bound is pushed above the snapshot: then it may be ignored, for this snapshot only.
2. The commit timestamp is fetched when all keys are locked. The transaction is committed when its primary key is; until
   that request was sent it certainly is not, and a failure is certain. The other keys are committed later.
3. A large transaction locks its primary key first, then flushes the others in pieces, while heartbeats extend its
   lifetime and raise the bound below which it will not commit. A flush carries no bound but one that a heartbeat has
   replicated. A key that it writes several times is flushed each time: the number of the flush says which is newer.
4. Reads under lock become mutations that change nothing: they conflict with writers, as a write would.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from clusters.parts.client import Unclear
from clusters.ticdc import planted
from clusters.ticdc.regions.messages import Moved
from clusters.ticdc.rows.incarnations import incarnation, named, view
from clusters.ticdc.rows.messages import (
    Alive,
    CheckStatus,
    Commit,
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
    Prewrite,
    Prewritten,
    Status,
    Values,
)
from clusters.ticdc.shape import MS, Key, key_of, physical_ms
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.messages import BOUND_TOO_HIGH, ROLLED_BACK_ALIVE, Done
from clusters.ticdc.transactions.resolving import resolve, settle_keys
from clusters.ticdc.transactions.tasks import Ask, Procedure, Sleep, Tasks, To, call, timestamp
from harness.core.record import MicroOp

LOCK_WAIT_NS = 5 * MS
LOCK_WAITS = 80  # How often a reader tries again to resolve a lock;
HELD_WAITS = 20  # a writer less often, as it holds locks of its own, and with them the watermark.
COMMIT_TRIES = 10  # Timestamps that are tried against a bound that rises.


class Failed(NamedTuple):
    """The reason why an attempt ended before its commit, and whether an attempt with a new start may succeed."""

    reason: str
    may_retry: bool = False


@dataclass(slots=True)
class Transaction:
    """One attempt at a transaction, with its start timestamp."""

    start_ts: int
    mutations: tuple[Mutation, ...]
    is_large: bool
    primary: Key
    bound: int = 0  # The highest bound that a heartbeat has replicated.
    alive_until_ns: int = 0  # Until then its last answered heartbeat has extended its lifetime, at least.
    is_over: bool = False
    flushed: list[Key] = field(default_factory=list)


class TwoPhase:
    """The two-phase commits of one coordinator."""

    def __init__(self, site: Site, tasks: Tasks) -> None:
        self._site = site
        self._tasks = tasks
        self._large_keys = site.parameters["large_keys"]
        self._ttl_ms = site.parameters["ttl_ms"]
        self._heartbeat_ns = site.parameters["heartbeat_ms"] * MS
        self._flush_ns = site.parameters["flush_ms"] * MS
        self.flashback_ttl_ms = 2 * self._ttl_ms
        self._ignored: dict[int, None] = {}  # For a planted bug only: what a snapshot before this one ignored.

    def attempt(self, mops: tuple[MicroOp, ...]) -> Procedure[Done | Unclear | Failed]:
        """One attempt at a transaction: it is committed, its outcome is unclear, or it failed."""
        start_ts = yield from timestamp()
        if not start_ts:
            return Failed("no timestamp")
        keys = tuple(dict.fromkeys(key_of(mop.key) for mop in mops))
        snapshot = yield from self.read(keys, start_ts)
        if isinstance(snapshot, Failed):
            return snapshot
        if not all(mop.f != "append" or named(mop.key) == incarnation(snapshot[key_of(mop.key)]) for mop in mops):
            return Failed("a flashback has ended that incarnation, or it has not begun")
        results, after = _executed(mops, snapshot)
        mutations = _mutations(mops, snapshot, after)
        if not mutations:
            return Done(start_ts, None, results)
        is_large = len(mutations) >= self._large_keys
        flushes = _flushes(mops, snapshot, mutations) if is_large else mutations
        txn = Transaction(start_ts, mutations, is_large, flushes[0].key)
        failure = yield from (self._flush_all(txn, flushes) if is_large else self._prewrite_all(txn))
        if failure is None:
            self._site.context.point("before-commit-timestamp")
            commit_ts = yield from self.commit(txn)
            txn.is_over = True
            if isinstance(commit_ts, int):
                return Done(start_ts, commit_ts, results)
            if isinstance(commit_ts, Unclear):
                return commit_ts
            failure = commit_ts
        txn.is_over = True
        self._tasks.run(self.roll_back(txn))
        return failure

    # The snapshot.

    def read(self, keys: tuple[Key, ...], read_ts: int) -> Procedure[dict[Key, Elements] | Failed]:
        """The values of the keys at that timestamp (invariant 1)."""
        found: dict[Key, Elements] = {}
        ignored: dict[int, None] = {}
        if planted.IGNORE_SET_SURVIVES in self._site.bugs:
            ignored = self._ignored
        for _ in range(LOCK_WAITS):
            parts = self._tasks.table.parts(key for key in keys if key not in found)
            answers = yield Ask(tuple(To(region, Get(part, read_ts, tuple(ignored))) for region, part in parts.items()))
            met: list[Lock] = []
            for part, answer in zip(parts.values(), answers, strict=True):
                match answer:
                    case Values(elements):
                        found.update(zip(part, elements, strict=True))
                    case Locked(locks):
                        met += locks
                    case Moved():
                        pass
                    case _:
                        return Failed("no leader")
            if len(found) == len(keys):
                return found
            if met:
                self._site.context.sometimes("a reader met a lock")
            outcomes = yield from resolve(self._tasks, met, read_ts)
            for start_ts, outcome in outcomes.items():
                if outcome == "pushed":
                    self._site.context.sometimes("a reader pushed a transaction's bound")
                    ignored[start_ts] = None
            if "open" in outcomes.values():
                yield Sleep(LOCK_WAIT_NS)
        return Failed("a lock stayed in the way")

    # Prewrite.

    def _prewrite_all(self, txn: Transaction) -> Procedure[Failed | None]:
        """Lock all keys, in all regions at once; the failure, or None."""
        by_key = {mutation.key: mutation for mutation in txn.mutations}
        txn.flushed = list(by_key)
        for _ in range(HELD_WAITS):
            parts = self._tasks.table.parts(by_key)
            requests = tuple(
                To(region, self._prewrite(txn, tuple(by_key[key] for key in part))) for region, part in parts.items()
            )
            answers = yield Ask(requests)
            met: list[Lock] = []
            for part, answer in zip(parts.values(), answers, strict=True):
                match answer:
                    case Prewritten():
                        for key in part:
                            del by_key[key]
                    case Locked(locks):
                        met += locks
                    case Moved():
                        pass
                    case Conflict(is_rolled_back):
                        return Failed("rolled back by others" if is_rolled_back else "write conflict", may_retry=True)
                    case _:
                        return Failed("no leader")
            if not by_key:
                return None
            outcomes = yield from resolve(self._tasks, met, 0)
            if "open" in outcomes.values():
                yield Sleep(LOCK_WAIT_NS)
        return Failed("a lock stayed in the way")

    def _prewrite(self, txn: Transaction, mutations: tuple[Mutation, ...], generation: int = 0) -> Prewrite:
        return Prewrite(
            start_ts=txn.start_ts,
            primary=txn.primary,
            mutations=mutations,
            ttl_ms=self._ttl_ms * (2 if txn.is_large else 1),
            min_commit_ts=txn.bound,
            is_large=txn.is_large,
            generation=generation,
        )

    def _flush_all(self, txn: Transaction, flushes: tuple[Mutation, ...]) -> Procedure[Failed | None]:
        """Lock the primary key, then the others in pieces, while heartbeats run (invariant 3); the failure, or None."""
        self._site.context.sometimes("a large transaction began")
        failure = yield from self._flush(txn, flushes[0], 1)
        if failure is not None:
            return failure
        self._tasks.run(self._beat(txn))
        for generation, mutation in enumerate(flushes[1:], 2):
            yield Sleep(self._flush_ns)
            failure = yield from self._flush(txn, mutation, generation)
            if failure is not None:
                return failure
        return None

    def _flush(self, txn: Transaction, mutation: Mutation, generation: int) -> Procedure[Failed | None]:
        if mutation.key in txn.flushed:
            self._site.context.sometimes("a large transaction flushed a key again")
        txn.flushed.append(mutation.key)
        for _ in range(HELD_WAITS):
            region = self._tasks.table.of(mutation.key)
            answer = yield from call(region, self._prewrite(txn, (mutation,), generation))
            match answer:
                case Prewritten():
                    self._site.context.point("flushed")
                    return None
                case Conflict(is_rolled_back):
                    if is_rolled_back:
                        return (yield from self._rolled_back(txn))
                    return Failed("write conflict", may_retry=True)
                case Locked(locks):
                    outcomes = yield from resolve(self._tasks, locks, 0)
                    if "open" in outcomes.values():
                        yield Sleep(LOCK_WAIT_NS)
                case _:
                    return Failed("no leader")
        return Failed("a lock stayed in the way")

    def _beat(self, txn: Transaction) -> Procedure[None]:
        """Send heartbeats for a large transaction until it is over."""
        while not txn.is_over:
            yield Sleep(self._heartbeat_ns)
            asked_ns = self._site.now_ns()
            now_ts = yield from timestamp()
            if txn.is_over or not now_ts:
                continue
            ttl_ms = physical_ms(now_ts) - physical_ms(txn.start_ts) + 2 * self._ttl_ms
            beat = Heartbeat(txn.primary, txn.start_ts, ttl_ms, now_ts)
            answer = yield from call(self._tasks.table.of(txn.primary), beat)
            match answer:
                case Alive(_, bound):
                    self._site.context.point("heartbeat-answered")
                    txn.bound = max(txn.bound, bound)
                    txn.alive_until_ns = asked_ns + 2 * self._ttl_ms * MS
                case LockNotFound():
                    return

    # Commit.

    def commit(self, txn: Transaction) -> Procedure[int | Unclear | Failed]:
        """Commit the primary key, and return the commit timestamp (invariant 2)."""
        for _ in range(COMMIT_TRIES):
            commit_ts = yield from timestamp()
            if not commit_ts:
                return Failed("no timestamp")
            self._site.context.point("before-commit-primary")
            request = Commit(txn.start_ts, commit_ts, (txn.primary,))
            answer = yield from call(self._tasks.table.of(txn.primary), request)
            match answer:
                case CommittedAt(committed_ts):
                    self._tasks.run(self._commit_rest(txn, committed_ts))
                    return committed_ts
                case CommitTsExpired():
                    self._site.context.sometimes("a commit timestamp was below the bound")
                case LockNotFound():
                    return (yield from self._rolled_back(txn))
                case _:
                    return Unclear("the commit was not answered")
        return Failed(BOUND_TOO_HIGH)

    def _commit_rest(self, txn: Transaction, commit_ts: int) -> Procedure[None]:
        """Commit the other keys: those of a large transaction one after the other, else all regions at once."""
        self._site.context.point("between-primary-and-rest")
        keys = tuple(mutation.key for mutation in txn.mutations if mutation.key != txn.primary)
        if not txn.is_large:
            if keys:
                yield from settle_keys(self._tasks, txn.start_ts, commit_ts, keys)
            return
        for key in keys:
            yield Sleep(self._flush_ns // 4)
            yield from settle_keys(self._tasks, txn.start_ts, commit_ts, (key,))
            self._site.context.point("between-secondaries")

    def _rolled_back(self, txn: Transaction) -> Procedure[Failed]:
        """The failure of a transaction that others rolled back.

        If a heartbeat has just extended its lifetime, only a flashback may, which leaves a record of that.
        """
        if self._site.now_ns() < txn.alive_until_ns:
            check = CheckStatus(txn.primary, txn.start_ts, reader_ts=0, now_ts=0, may_roll_back=False)
            status = yield from call(self._tasks.table.of(txn.primary), check)
            if not isinstance(status, Status):
                return Failed("rolled back by an unknown client")
            return Failed("rolled back by a flashback" if status.is_flashback else ROLLED_BACK_ALIVE)
        return Failed("rolled back by others", may_retry=True)

    def roll_back(self, txn: Transaction) -> Procedure[None]:
        """Roll back what is locked, and what may still become locked."""
        if txn.flushed:
            yield from settle_keys(self._tasks, txn.start_ts, 0, tuple(dict.fromkeys(txn.flushed)))


def _executed(
    mops: tuple[MicroOp, ...], snapshot: dict[Key, Elements]
) -> tuple[tuple[MicroOp, ...], dict[Key, Elements]]:
    """The results of the micro-operations, and the values of the keys that were written."""
    results, after = [], dict[Key, Elements]()
    for mop in mops:
        key = key_of(mop.key)
        held = after.get(key, snapshot[key])
        if mop.f == "append":
            after[key] = (*held, mop.value)
            results.append(mop)
        else:
            results.append(MicroOp("r", mop.key, list(view(held, named(mop.key))), lock=mop.lock))
    return tuple(results), after


def _flushes(
    mops: tuple[MicroOp, ...], snapshot: dict[Key, Elements], mutations: tuple[Mutation, ...]
) -> tuple[Mutation, ...]:
    """The flushes of a large transaction: one for each append, then what it only read under lock."""
    held: dict[Key, Elements] = {}
    flushes: list[Mutation] = []
    for mop in mops:
        if mop.f == "append":
            key = key_of(mop.key)
            held[key] = (*held.get(key, snapshot[key]), mop.value)
            flushes.append(Mutation(key, "put", held[key]))
    return (*flushes, *(mutation for mutation in mutations if mutation.kind == "lock"))


def _mutations(
    mops: tuple[MicroOp, ...], snapshot: dict[Key, Elements], after: dict[Key, Elements]
) -> tuple[Mutation, ...]:
    """The mutations of changed keys, in their order, then those of keys only read under lock (invariant 4)."""
    puts = tuple(Mutation(key, "put", after[key]) for key in snapshot if key in after)
    locked = dict.fromkeys(
        key_of(mop.key) for mop in mops if mop.f == "r" and mop.lock in ("locked", "shared", "exclusive")
    )
    return (*puts, *(Mutation(key, "lock") for key in locked if key not in after))
