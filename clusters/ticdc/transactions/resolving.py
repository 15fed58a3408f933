"""Resolving locks that are in the way: the primary key shows the state of their transaction.

1. The primary key decides: a lock is never committed or rolled back by anything else.
2. A transaction that may not have locked its primary key yet is rolled back there only if the lock that was met has
   outlived its own lifetime; the record at the primary key then keeps the late prewrite out.
"""

from collections.abc import Sequence
from typing import Final

from clusters.ticdc.regions.messages import Moved
from clusters.ticdc.rows.commands import is_expired
from clusters.ticdc.rows.messages import CheckStatus, Lock, Resolve, Resolved, Status
from clusters.ticdc.shape import Key
from clusters.ticdc.transactions.tasks import Ask, Procedure, Tasks, To, call, timestamp

TRIES: Final = 3  # Where regions change meanwhile.


def resolve(tasks: Tasks, locks: Sequence[Lock], reader_ts: int) -> Procedure[dict[int, str]]:
    """For each transaction that holds these locks: "settled", "pushed" above `reader_ts`, or "open".

    With `reader_ts` 0 no transaction is pushed.
    """
    found: dict[int, str] = {}
    now_ts = yield from timestamp()
    by_start: dict[int, list[Lock]] = {}
    for lock in locks:
        by_start.setdefault(lock.start_ts, []).append(lock)
    for start_ts, held in by_start.items():
        found[start_ts] = (yield from _settle(tasks, held, reader_ts, now_ts)) if now_ts else "open"
    return found


def _settle(tasks: Tasks, held: list[Lock], reader_ts: int, now_ts: int) -> Procedure[str]:
    first = held[0]
    may_roll_back = any(is_expired(lock, now_ts) for lock in held)
    request = CheckStatus(first.primary, first.start_ts, reader_ts, now_ts, may_roll_back)
    status = yield from call(tasks.table.of(first.primary), request)
    match status:
        case Status("ongoing", bound):
            return "pushed" if reader_ts and bound > reader_ts else "open"
        case Status("committed" | "rolled-back", commit_ts):
            left = yield from settle_keys(tasks, first.start_ts, commit_ts, [lock.key for lock in held])
            return "open" if left else "settled"
        case _:
            return "open"


def settle_keys(
    tasks: Tasks, start_ts: int, commit_ts: int, keys: Sequence[Key], *, is_flashback: bool = False
) -> Procedure[list[Key]]:
    """The keys of that transaction which could not be committed, or be rolled back if `commit_ts` is 0."""
    left = list(keys)
    for _ in range(TRIES):
        parts = tasks.table.parts(left)
        requests = (To(region, Resolve(start_ts, commit_ts, part, is_flashback)) for region, part in parts.items())
        answers = yield Ask(tuple(requests))
        left = []
        for part, answer in zip(parts.values(), answers, strict=True):
            if not isinstance(answer, Resolved):
                left += part
        if not left or not any(isinstance(answer, Moved) for answer in answers):
            break
    return left
