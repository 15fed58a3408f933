"""Reads: strict ones at the oracle's timestamp, others at any or at a given one, and reads of read-then-writes.

Theory of operation.
1. A strict read gets the oracle's read timestamp when it arrives, and a hold there, so that nothing it needs is
   compacted.
2. Some time between its arrival and its answer the catalog must show that this coordinator leads. So the read sees
   every write that another coordinator had answered before it arrived.
3. A read AS OF a timestamp, or at serializable isolation, needs neither; and it moves no register of the oracle.
"""

from typing import NamedTuple

from clusters.materialize import planted
from clusters.materialize.coordinator.oracle import Timeline
from clusters.materialize.coordinator.reign import Reign
from clusters.materialize.messages import Peek, Peeked, SinceBeyond, Wanted
from clusters.materialize.shape import COMPUTE_PLACES, MS, timeline_of
from clusters.parts.procedures import Ask
from clusters.parts.routing import Procedure, Request
from harness.core.record import Json

NOT_CONFIRMED = "it could not confirm that it leads"
PATIENCE_NS = 1500 * MS
CACHED_NS = 300 * MS  # How long a confirmation lasts, for a planted bug.


class Found(NamedTuple):
    """The rows that a read found: by collection and key, the values with their ranks."""

    ts: int
    rows: dict[str, dict[Json, tuple[tuple[Json, ...], tuple[int, ...]]]]


class Failed(NamedTuple):
    """Why a read has no answer."""

    reason: str


def strict_read(reign: Reign, wanted: tuple[Wanted, ...], *, is_confirmed: bool = True) -> Procedure[Found | Failed]:
    """The rows at the oracle's read timestamp (1, 2). Without `is_confirmed` whoever asks confirms it."""
    (name, *others) = dict.fromkeys(timeline_of(each.collection) for each in wanted)
    if others:
        return Failed("a query reads one timeline")
    timeline = reign.wall if planted.TIMELINE_MIXING in reign.bugs else reign.timelines[name]
    ts = None if planted.TS_FROM_FRONTIERS in reign.bugs else timeline.oracle.read_ts
    return (yield from _peek(reign, timeline, wanted, ts, is_confirmed=is_confirmed))


def free_read(
    reign: Reign, wanted: tuple[Wanted, ...], ts: int | None = None, *, least: int = 0
) -> Procedure[Found | Failed]:
    """The rows at a given timestamp of the wall's timeline, or at any from `least` on (3)."""
    return (yield from _peek(reign, reign.wall, wanted, ts, is_confirmed=False, least=least))


def _peek(
    reign: Reign,
    timeline: Timeline,
    wanted: tuple[Wanted, ...],
    ts: int | None,
    *,
    is_confirmed: bool,
    least: int = 0,
) -> Procedure[Found | Failed]:
    place = COMPUTE_PLACES[reign.site.context.draw("compute").below(len(COMPUTE_PLACES))]
    if ts is not None:
        timeline.hold(ts)
    requests: list[Request] = [(place, Peek(ts, wanted, least))]
    if is_confirmed and not _is_skipped(reign):
        requests.append(reign.confirm())
    answers = yield Ask(tuple(requests), PATIENCE_NS)
    if ts is not None:
        timeline.release(ts)
    reign.site.context.point("read-before-answer")
    if len(answers) > 1:
        if not reign.is_confirmed(answers[1]):
            return Failed(NOT_CONFIRMED)
        reign.confirmed_ns = reign.site.now_ns()
    match answers[0]:
        case Peeked(found_ts, found):
            reign.seen_ts = max(reign.seen_ts, found_ts)
            named = zip(wanted, found, strict=True)
            return Found(
                found_ts,
                {each.collection: {key: (values, ranks) for key, values, ranks in rows} for each, rows in named},
            )
        case SinceBeyond(since):
            return Failed(f"the rows below {since} were compacted")
        case _:
            return Failed("compute does not answer")


def _is_skipped(reign: Reign) -> bool:
    """True if a planted bug leaves out the confirmation."""
    is_fresh = reign.site.now_ns() < reign.confirmed_ns + CACHED_NS
    return planted.READ_NO_CONFIRM in reign.bugs or (planted.CONFIRM_CACHED in reign.bugs and is_fresh)
