"""Resolving locks that are in the way: the primary key shows the state of their transaction.

1. The primary key decides: a lock is never committed or rolled back by anything else.
2. A transaction that may not have locked its primary key yet is rolled back there only if the lock that was met has
   outlived its own lifetime; the record at the primary key then keeps the late prewrite out.
"""

from collections.abc import Sequence

from clusters.ticdc.rows.commands import is_expired
from clusters.ticdc.rows.messages import CheckStatus, Lock, Resolve, Status
from clusters.ticdc.shape import by_region, region_of
from clusters.ticdc.transactions.tasks import Ask, Procedure, To, call, timestamp


def resolve(locks: Sequence[Lock], reader_ts: int) -> Procedure[dict[int, str]]:
    """For each transaction that holds these locks: "settled", "pushed" above `reader_ts`, or "open".

    With `reader_ts` 0 no transaction is pushed.
    """
    found: dict[int, str] = {}
    now_ts = yield from timestamp()
    by_start: dict[int, list[Lock]] = {}
    for lock in locks:
        by_start.setdefault(lock.start_ts, []).append(lock)
    for start_ts, held in by_start.items():
        found[start_ts] = (yield from _settle(held, reader_ts, now_ts)) if now_ts else "open"
    return found


def _settle(held: list[Lock], reader_ts: int, now_ts: int) -> Procedure[str]:
    first = held[0]
    may_roll_back = any(is_expired(lock, now_ts) for lock in held)
    request = CheckStatus(first.primary, first.start_ts, reader_ts, now_ts, may_roll_back)
    status = yield from call(region_of(first.primary), request)
    match status:
        case Status("ongoing", bound):
            return "pushed" if reader_ts and bound > reader_ts else "open"
        case Status("committed" | "rolled-back", commit_ts):
            keys = tuple(lock.key for lock in held)
            requests = tuple(
                To(region, Resolve(first.start_ts, commit_ts, part)) for region, part in by_region(keys).items()
            )
            answers = yield Ask(requests)
            return "open" if None in answers else "settled"
        case _:
            return "open"
