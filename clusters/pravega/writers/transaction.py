"""A transaction, as its writer carries it out.

Theory of operation. It is created, its events are written to its own segments and flushed, and it is committed.
1. The commit is requested when all events are acknowledged.
2. Its writer renews the lease several times in its length. If it stops, the transaction is aborted.
3. It has no effect unless its commit was requested: before that, a failure is certain.
4. When the commit is accepted it will be carried out; readers may see that later.
"""

from collections.abc import MutableSequence, Sequence

from clusters.parts.client import Refused, Unclear
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega import planted
from clusters.pravega.messages import (
    AbortTxn,
    Append,
    Appended,
    CommitTxn,
    Created,
    CreateTxn,
    Done,
    NoSegment,
    PingTxn,
    Sealed,
    Status,
)
from clusters.pravega.records import Event, Segment
from clusters.pravega.shape import CONTROLLER_PLACE, MS, PINGS_PLACE, container_of, key_hash
from clusters.pravega.site import Site
from harness.core.record import MicroOp

LOST_LEASE = "the transaction is "
STREAM_SEALED = "the stream is sealed"
SEALED = Status("sealed")
CREATE_NS = 600 * MS
FLUSH_NS = 600 * MS
COMMIT_NS = 1000 * MS
PINGS = 4  # In the length of a lease.
LONG_PERCENT = 30  # The share of transactions that stay open for a while.
ABORT_PERCENT = 4  # Those that their writer aborts.


def transact(
    site: Site, name: str, mops: Sequence[MicroOp], txns: MutableSequence[int]
) -> Procedure[Done | Refused | Unclear]:
    """The result of a transaction that appends these elements; its id is added to `txns`."""
    (created,) = yield Ask(((CONTROLLER_PLACE, CreateTxn()),), CREATE_NS)
    if created == SEALED:
        return Refused(STREAM_SEALED)
    if not isinstance(created, Created):
        return Refused("no controller created the transaction")
    txns.append(created.txn)
    flushed = yield from _flushed(site, name, created, mops)
    if not flushed:
        return Refused("the transaction's events were not flushed")
    draw = site.context.draw("transactions")
    if draw.below(100) < LONG_PERCENT:
        yield from _held_open(site, created.txn, draw.below(site.parameters["hold_ms"]) * MS)
    if draw.below(100) < ABORT_PERCENT:
        yield Ask(((CONTROLLER_PLACE, AbortTxn(created.txn)),), COMMIT_NS)
        return Refused("its writer aborted the transaction")
    site.context.point("writer-before-commit")
    (answer,) = yield Ask(((CONTROLLER_PLACE, CommitTxn(created.txn)),), COMMIT_NS)
    match answer:
        case Status("committing" | "committed"):
            return Done(tuple(mops), created.txn)
        case Status("sealed"):
            return Refused(STREAM_SEALED)
        case Status("aborting" | "aborted" as status):
            return Refused(f"{LOST_LEASE}{status}")
        case _:
            return Unclear("no controller answered the commit")


def _flushed(site: Site, name: str, created: Created, mops: Sequence[MicroOp]) -> Procedure[bool]:
    """True once all events are in the transaction's segments (1)."""
    missing: dict[tuple[Segment, int], Append] = {}
    last: dict[Segment, int] = {}
    writer = f"{name}/{created.txn}"
    for mop in mops:
        place = key_hash(mop.key)
        segment = next(span.segment for span in created.spans if span.low <= place < span.high).of(created.txn)
        number = last[segment] = last.get(segment, 0) + 1
        event = Event(mop.key, mop.value, name, 0, created.txn)
        missing[segment, number] = Append(segment, writer, number, number - 1, event)
    end_ns = site.now_ns() + FLUSH_NS
    while missing and site.now_ns() < end_ns:
        asked = tuple((container_of(append.segment.number), append) for append in missing.values())
        if planted.COMMIT_BEFORE_FLUSH in site.bugs:
            yield Ask(asked, MS)
            return True
        for answer in (yield Ask(asked, FLUSH_NS)):
            if isinstance(answer, Appended):
                missing = {
                    at: append
                    for at, append in missing.items()
                    if at > (answer.segment, answer.number) or at[0] != answer.segment
                }
            elif isinstance(answer, NoSegment | Sealed):
                return False
    return not missing


def _held_open(site: Site, txn: int, duration_ns: int) -> Procedure[None]:
    """Keep a transaction open for that time (2)."""
    ping_ns = site.parameters["lease_ms"] * MS // PINGS
    end_ns = site.now_ns() + duration_ns
    while site.now_ns() < end_ns:
        yield Sleep(min(ping_ns, end_ns - site.now_ns()))
        yield Ask(((PINGS_PLACE, PingTxn(txn)),), ping_ns)
