"""The order in which other subscribers received the versions of a key: used if no other source gives an order.

Theory of operation. A stream that orders the events of each key, and sends every version, shows with each session the
order of a part of them.
1. Only keys are considered none of whose versions has a place by the other sources (checkers/watermarks/versions.py).
2. It is evidence from the system under suspicion: it shows which version follows the one that another subscriber's
   watermark holds, never anything about the transactions, or about what is missing in the session that shows it.
3. A key whose sessions, of any subscribers, allow no common order has none. The next version in one session is the next
   of all or a later one, so one session is enough: the one with most versions.
4. A snapshot shows nothing, and neither does a repetition in a session.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from checkers.columns.index import Places, ascending, first_rows
from checkers.columns.runs import codes, first_of_each
from checkers.columns.table import concat, empty, ordered_by, take
from checkers.graph.paths import cycle_labels
from checkers.watermarks.versions import NO_PLACES, UNKNOWN, key_order, shown_writes
from harness.core.columns import NEVER, ROW, Bools, Deliveries, Int64s, SourceWrites
from harness.core.promises import StreamContract


class Received(Struct, frozen=True):
    """Versions without a place in the order, n of them: by key, log, session, and then by first receipt.

    `write` are rows of the source. A log is that of one subscriber.
    """

    key: Int64s
    log: Int64s
    session: Int64s
    write: Int64s


NOTHING_RECEIVED = empty(Received)


def shows_order(contract: StreamContract) -> bool:
    """True if streams under that contract show the order of versions: every one is sent, in the order of its key.

    Each watermark must bind a single subscriber or session.
    """
    is_apart = contract.wm_scope in ("session", "subscriber")
    return is_apart and contract.versions == "every" and contract.order_key != "none"


def received(log: int, deliveries: Deliveries, writes: SourceWrites, contract: StreamContract) -> Received:
    """The versions, and their order, that one log shows to the others. O(n log n)."""
    order = key_order(writes, contract)
    keys = order.keys[order.is_loose()]
    events = np.flatnonzero((deliveries.kind == ROW) & (Places(keys).of(deliveries.key) >= 0))
    written = np.flatnonzero(order.is_loose()[order.code_of_write])
    shown = shown_writes(take(deliveries, events), take(writes, written))
    known = np.flatnonzero(shown != UNKNOWN)
    known = known[first_rows(deliveries.session[events[known]], shown[known])]
    write, session = written[shown[known]], deliveries.session[events[known]]
    key = writes.key[write]
    by_key = ascending(key, session)
    return Received(key[by_key], np.full(len(write), log), session[by_key], write[by_key])


def agreed(parts: Sequence[Received]) -> Received:
    """For each key with an undisputed order and each log, the versions in the session that has most. O(n log n)."""
    every = ordered_by(concat([NOTHING_RECEIVED, *parts]), "key", "log", "session")
    begins = first_of_each(every.key) | first_of_each(every.log) | first_of_each(every.session)
    run = np.cumsum(begins) - 1
    key, log = every.key[begins], every.log[begins]
    best = ascending(key, log, -np.bincount(run))
    best = best[first_of_each(key[best]) | first_of_each(log[best])]
    return take(every, np.isin(run, best) & ~np.isin(every.key, _disputed(every, begins)))


def places(agreement: Received, log: int, count: int) -> Int64s:
    """For each write of the source (count,) its place in the order that another log shows; NEVER if there is none.

    Empty if no other log shows an order.
    """
    others = take(agreement, agreement.log != log)
    if not len(others.key):
        return NO_PLACES
    # Of several logs only the one with most versions of a key is used.
    run = np.cumsum(first_of_each(others.key) | first_of_each(others.log))
    best = ascending(others.key, -np.bincount(run)[run])
    chosen = run[best[first_of_each(others.key[best])]]
    kept = np.flatnonzero(np.isin(run, chosen))
    result = np.full(count, NEVER, np.int64)
    result[others.write[kept]] = kept
    return result


def _disputed(every: Received, begins: Bools) -> Int64s:
    """The keys whose sessions allow no common order: one version after another, and the reverse."""
    versions, node = codes(every.write)
    source, target = node[:-1][~begins[1:]], node[1:][~begins[1:]]
    part = cycle_labels(source, target, len(versions))
    return every.key[np.bincount(part)[part][node] > 1]
