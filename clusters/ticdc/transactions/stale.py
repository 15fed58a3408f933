"""Stale reads: one past timestamp, read from the replicas of any store, or from leaders if those are not ready."""

from clusters.parts.client import Refused
from clusters.ticdc import planted, shape
from clusters.ticdc.rows.incarnations import named, view
from clusters.ticdc.rows.messages import CheckStatus, Elements, Lock, Locked, StaleGet, Status, Values
from clusters.ticdc.shape import MS, STORES, Key, key_of
from clusters.ticdc.site import Site
from clusters.ticdc.transactions.messages import Seen, StaleRead
from clusters.ticdc.transactions.tasks import Ask, At, Procedure, Tasks, call, timestamp
from clusters.ticdc.transactions.two_phase import Failed, TwoPhase

TRIES = 5
PATIENCE_NS = 200 * MS


def stale_read(site: Site, tasks: Tasks, two_phase: TwoPhase, request: StaleRead) -> Procedure[Seen | Refused]:
    """The values at a timestamp of that age."""
    now_ts = yield from timestamp()
    read_ts = now_ts - shape.timestamp(request.age_ms)
    if not now_ts or read_ts <= 0:
        return Refused("no timestamp")
    if read_ts > now_ts:
        if planted.FUTURE_STALE_READ in site.bugs:
            yield from two_phase.read(tuple(dict.fromkeys(map(key_of, request.keys))), read_ts)
        return Refused("its timestamp is in the future")
    keys = tuple(dict.fromkeys(map(key_of, request.keys)))
    store = STORES[site.context.draw("replica").below(len(STORES))]
    found: dict[Key, Elements] = {}
    known: dict[int, Status] = {}
    for _ in range(TRIES):
        parts = tasks.table.parts(key for key in keys if key not in found)
        if not parts:
            break
        requests = tuple(
            At(store, region, StaleGet(part, read_ts, tuple(known.items()))) for region, part in parts.items()
        )
        answers = yield Ask(requests, PATIENCE_NS)
        for part, answer in zip(parts.values(), answers, strict=True):
            match answer:
                case Values(elements):
                    site.context.sometimes("a replica served a stale read")
                    found.update(zip(part, elements, strict=True))
                case Locked(locks):
                    site.context.sometimes("a stale read asked for a large transaction")
                    yield from _ask(tasks, locks, read_ts, now_ts, known)
                case _:
                    values = yield from two_phase.read(part, read_ts)
                    if isinstance(values, Failed):
                        return Refused(values.reason)
                    found.update(values)
    if len(found) < len(keys):
        return Refused("not ready")
    return Seen(read_ts, request.keys, tuple(view(found[key_of(key)], named(key)) for key in request.keys))


def _ask(tasks: Tasks, locks: tuple[Lock, ...], read_ts: int, now_ts: int, known: dict[int, Status]) -> Procedure[None]:
    """Find out at their primary keys the states of these locks' transactions, and add them to `known`.

    An open one is pushed: it will commit above `read_ts`.
    """
    for lock in locks:
        if lock.start_ts in known:
            continue
        check = CheckStatus(lock.primary, lock.start_ts, read_ts, now_ts, may_roll_back=False)
        status = yield from call(tasks.table.of(lock.primary), check, PATIENCE_NS)
        if isinstance(status, Status) and status.state != "missing":
            known[lock.start_ts] = status
