"""Reads of whole keys, as a batch client does: all events of a key, in the order of its stream.

Theory of operation. A key has one segment in each epoch, and these follow each other. A segment goes on as long as it
is not sealed: what is behind it is not read.
1. A scan waits for the transactions that were marked for commit before it began. So it shows all that was acknowledged
   by then.
2. What a container shows is confirmed by its log, so it is no older than the request.
3. A key of which something was truncated cannot be read any more.
"""

from collections.abc import Sequence

from clusters.parts.cas_store import Held
from clusters.parts.client import Refused
from clusters.parts.procedures import Ask, Sleep
from clusters.parts.routing import Procedure
from clusters.pravega.messages import Content, Contents, Done, Epochs, Fetch, GetGroup, GetHistory, GetPending, Pending
from clusters.pravega.readers.group import group_of
from clusters.pravega.records import History, Segment
from clusters.pravega.shape import CONTROLLER_PLACE, MS, container_of, key_hash
from clusters.pravega.site import Site
from harness.core.record import Json, MicroOp

PATIENCE_NS = 800 * MS
PAUSE_NS = 20 * MS


def scan(site: Site, mops: Sequence[MicroOp]) -> Procedure[Done | Refused]:
    """The lists of these keys."""
    end_ns = site.now_ns() + PATIENCE_NS
    waited_for: set[int] | None = None
    while waited_for is None or waited_for:
        (pending,) = yield Ask(((CONTROLLER_PLACE, GetPending()),), PATIENCE_NS)
        if not isinstance(pending, Pending) or site.now_ns() > end_ns:
            return Refused("transactions marked for commit were not committed")
        waited_for = set(pending.txns) & (set(pending.txns) if waited_for is None else waited_for)
        if waited_for:
            yield Sleep(PAUSE_NS)
    keys = tuple(mop.key for mop in mops)
    while site.now_ns() < end_ns:
        (answer,) = yield Ask(((CONTROLLER_PLACE, GetHistory()),), PATIENCE_NS)
        if not isinstance(answer, Epochs):
            break
        contents = yield from _contents(answer.history, keys)
        if contents is None:
            break
        if not all(content.is_whole for content in contents.values()):
            return Refused("the stream was truncated")
        lists = [_list(answer, contents, key) for key in keys]
        found = [MicroOp("r", key, held) for key, held in zip(keys, lists, strict=True) if held is not None]
        if len(found) == len(keys):
            return Done(tuple(found))
        yield Sleep(PAUSE_NS)  # A segment has been sealed meanwhile: the stream goes on behind it.
    return Refused("the segments could not be read")


def drained() -> Procedure[Done | Refused]:
    """Done, if no commit is to be carried out, and the readers' positions are at the end of the stream."""
    (pending,) = yield Ask(((CONTROLLER_PLACE, GetPending()),), PATIENCE_NS)
    if pending != Pending(()):
        return Refused("transactions marked for commit were not committed")
    (answer,) = yield Ask(((CONTROLLER_PLACE, GetHistory()),), PATIENCE_NS)
    if not isinstance(answer, Epochs):
        return Refused("no controller answered")
    contents = yield from _contents(answer.history, (), is_active=True)
    (held,) = yield Ask(((CONTROLLER_PLACE, GetGroup()),), PATIENCE_NS)
    if contents is None or not isinstance(held, Held) or held.value is None:
        return Refused("the segments or the readers' state could not be read")
    group = group_of(held.value)
    behind = [
        str(each.segment)
        for each in group.holdings
        if contents.get(each.segment) is None or each.offset < contents[each.segment].length
    ]
    active = () if answer.is_sealed else answer.history.active.spans
    missing = [str(span.segment) for span in active if not group.holds(span.segment)]
    if answer.is_sealed:
        behind = [str(each.segment) for each in group.holdings]
    if behind or missing or group.future:
        return Refused(f"the readers have not come to the end of {', '.join(behind or missing) or 'sealed segments'}")
    return Done()


def _contents(
    epochs: History, keys: Sequence[Json], *, is_active: bool = False
) -> Procedure[dict[Segment, Content] | None]:
    """What the segments of these keys hold of them; of all segments of the active epoch, if so asked."""
    wanted: dict[str, dict[Segment, None]] = {}
    for epoch in (epochs.active,) if is_active else epochs.listed():
        for segment in (
            [span.segment for span in epoch.spans] if is_active else [epoch.at(key_hash(key)) for key in keys]
        ):
            wanted.setdefault(container_of(segment.number), {})[segment] = None
    answers = yield Ask(
        tuple((place, Fetch(tuple(segments), tuple(keys))) for place, segments in wanted.items()), PATIENCE_NS
    )
    if not all(isinstance(answer, Contents) for answer in answers):
        return None
    return {content.segment: content for answer in answers if isinstance(answer, Contents) for content in answer.found}


def _list(epochs: Epochs, contents: dict[Segment, Content], key: Json) -> list[Json] | None:
    """The list of a key; None if the stream goes on behind these epochs."""
    found: list[Json] = []
    path = dict.fromkeys(epoch.at(key_hash(key)) for epoch in epochs.history.listed())
    for segment in path:
        content = contents[segment]
        found += [event.value for event in content.events if event.key == key]
        if not content.is_sealed:
            return found
    return found if epochs.is_sealed else None
