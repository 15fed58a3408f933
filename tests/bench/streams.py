"""The stream rules beside a plain loop, in seconds of processor time, for one subscriber of two hundred sessions.

The loop is the least that S05, S06 and S07 need for a stream without gaps, partitions or repeated positions; the rules
do all five, with every parameter of the contract.
"""

import time

import numpy as np

from checkers.streams.closings import missing_events
from checkers.streams.rules.watermarks.late_event import late_events
from checkers.streams.rules.watermarks.torn_unit import torn_units
from checkers.streams.rules.watermarks.watermark_regress import regressions
from checkers.streams.view import stream_view
from harness.core.columns import NEVER, OK, OPEN, ROW, WATERMARK, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract

SIZES = (10_000, 100_000, 1_000_000)
SESSIONS, KEYS, OPS_A_WATERMARK = 200, 5_000, 10
CONTRACT = StreamContract(closed="<=", cut="delivery", position="offset", wm_scope="session")


def source(count: int) -> SourceWrites:
    """Operations of two writes each, `count` writes in all."""
    op = np.arange(count) // 2
    never = np.full(count, NEVER)
    return SourceWrites(
        op=op,
        outcome=np.full(count, OK, np.int8),
        key=np.arange(count) * 7_919 % KEYS,
        value=np.arange(count),
        position=op + 1,
        ordinal=np.arange(count) % 2,
        epoch=never,
        span=np.full(count, -1),
        invoke_seq=never,
        complete_seq=never,
        txn=op,
        version=np.arange(count),
    )


def stream(writes: SourceWrites) -> Deliveries:
    """Every write once, a watermark behind every tenth operation, and a new session now and then."""
    count = len(writes.op)
    row = np.arange(count)
    marks = row[2 * OPS_A_WATERMARK - 1 :: 2 * OPS_A_WATERMARK]
    opens = row[:: max(2, count // SESSIONS // 2 * 2)]
    when = np.concatenate((row * 4 + 1, marks * 4 + 2, opens * 4))
    kind = np.concatenate((np.full(count, ROW), np.full(len(marks), WATERMARK), np.full(len(opens), OPEN)))
    of = np.concatenate((row, marks, opens))
    order = np.argsort(when)
    kind, of = kind[order], of[order]

    def column(values: Int64s) -> Int64s:
        return np.where(kind == ROW, values[of], NEVER)

    never = np.full(len(kind), NEVER)
    return Deliveries(
        seq=np.arange(len(kind)),
        ns=np.arange(len(kind)),
        subscriber=np.zeros(len(kind), np.int64),
        session=np.cumsum(kind == OPEN),
        kind=kind.astype(np.int8),
        span=np.full(len(kind), -1),
        key=column(writes.key),
        value=column(writes.value),
        position=np.where(kind == OPEN, writes.position[of] - 1, writes.position[of]),
        ordinal=column(writes.ordinal),
        epoch=never,
        unit=never,
        unit_rows=never,
    )


def plain_loop(deliveries: Deliveries) -> int:
    """Late events, those at the boundary, and watermarks that went back: how many."""
    columns = (deliveries.session, deliveries.kind, deliveries.position, deliveries.key, deliveries.ordinal)
    found, top, now = 0, -1, -1
    seen: set[tuple[int, int, int]] = set()
    for session, kind, position, key, ordinal in zip(*(column.tolist() for column in columns), strict=True):
        if session != now:
            now, top, seen = session, -1, set()
        if kind == WATERMARK:
            found += position < top
            top = max(top, position)
        elif kind == ROW and (position, key, ordinal) not in seen:
            seen.add((position, key, ordinal))
            found += position <= top
    return found


def main() -> None:
    print("   events   five rules  plain loop for three   (seconds)")
    for size in SIZES:
        writes = source(size)
        deliveries = stream(writes)
        begin = time.process_time()
        view = stream_view(deliveries, writes, CONTRACT)
        rulings = (*late_events(view), regressions(view), missing_events(view), torn_units(view))
        middle = time.process_time()
        found = plain_loop(deliveries) + sum(len(ruling.watermark) for ruling in rulings)
        end = time.process_time()
        print(f"{len(deliveries.kind):9,}   {middle - begin:10.2f}  {end - middle:20.2f}   {found} violations")


if __name__ == "__main__":
    main()
