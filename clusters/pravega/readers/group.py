"""The state that the readers of a group share: who reads which segment, from where, and which segments come later.

It is one value in the metadata store, changed by compare-and-set; these functions give the value after a change.
1. A segment has one owner, or none. It is read from the offset that is recorded here.
2. A successor comes into the group with the first of its predecessors that is read to its end, and is given to a reader
   once all are.
3. A checkpoint is a stream cut: each reader adds the offsets of its segments when it comes to it. Until all have,
   segments neither change hands nor are completed, so that the offsets fit together.
4. After a restoration the group is as it was at its last checkpoint, without members: all readers join anew. So their
   sessions have higher numbers than all that had joined before.
"""

from collections.abc import Sequence

from msgspec import Struct, msgpack, structs

from clusters.pravega import planted
from clusters.pravega.records import Copied, Epoch, Segment
from harness.core.machine import NodeId


class Member(Struct, frozen=True):
    """A reader. Each time it joins it has another `session`; `beat` rises as long as it lives."""

    node: NodeId
    session: int
    beat: int = 0


class Holding(Struct, frozen=True):
    """A segment, the session that reads it (0: none), and the offset of the first event that nobody has reported."""

    segment: Segment
    owner: int
    offset: int


class Future(Struct, frozen=True):
    """A segment that is not read yet, and its predecessors that have not been read to their ends."""

    segment: Segment
    before: tuple[Segment, ...]


class Checkpoint(Struct, frozen=True):
    """A checkpoint to which these sessions have not come yet, and the segments of the others as they were there."""

    number: int
    waiting: tuple[int, ...]
    cut: tuple[Holding, ...] = ()


class Restorable(Struct, frozen=True):
    """A checkpoint to which all have come."""

    number: int
    holdings: tuple[Holding, ...]
    future: tuple[Future, ...]

    def offsets(self) -> tuple[tuple[Segment, int], ...]:
        """The stream cut."""
        return (*((each.segment, each.offset) for each in self.holdings), *((each.segment, 0) for each in self.future))


class Restored(Struct, frozen=True):
    """A restoration: sessions above that number began at this checkpoint."""

    session: int
    place: Restorable


class Group(Struct, frozen=True):
    """The state of the group."""

    members: tuple[Member, ...] = ()
    holdings: tuple[Holding, ...] = ()
    future: tuple[Future, ...] = ()
    checkpoint: Checkpoint | None = None  # In progress.
    last: Restorable | None = None
    restored: tuple[Restored, ...] = ()

    def holds(self, segment: Segment) -> bool:
        """True if the segment is read, or will be."""
        held = (*(each.segment for each in self.holdings), *(each.segment for each in self.future))
        return segment in held

    def of(self, session: int) -> tuple[Holding, ...]:
        """The segments of that session."""
        return tuple(each for each in self.holdings if each.owner == session)

    def has(self, session: int) -> bool:
        """True if that session is a member."""
        return any(member.session == session for member in self.members)


group_of = msgpack.Decoder(Group).decode


def first_group(first: Epoch) -> Group:
    """The group of a new stream: nobody has read anything."""
    return Group(holdings=tuple(Holding(span.segment, 0, 0) for span in first.spans))


def joined(group: Group, node: NodeId, session: int) -> Group:
    """The group with a new session of that reader in place of its older ones."""
    for member in group.members:
        if member.node == node:
            group = left(group, member.session)
    return structs.replace(group, members=(*group.members, Member(node, session)))


def left(group: Group, session: int) -> Group:
    """The group without that session: its segments are free, at the offsets that it reported."""
    group = arrived(group, session)
    return structs.replace(
        group,
        members=tuple(member for member in group.members if member.session != session),
        holdings=tuple(structs.replace(each, owner=0) if each.owner == session else each for each in group.holdings),
    )


def reported(group: Group, session: int, offsets: dict[Segment, int]) -> Group:
    """The group after that session has reported how far it has read, and that it lives."""
    return structs.replace(
        group,
        members=tuple(
            structs.replace(member, beat=member.beat + 1) if member.session == session else member
            for member in group.members
        ),
        holdings=tuple(
            structs.replace(each, offset=offsets[each.segment])
            if each.owner == session and each.segment in offsets
            else each
            for each in group.holdings
        ),
    )


def begun(group: Group, number: int) -> Group:
    """The group with a checkpoint of that number, unless there is one in progress, or nobody to come to it (3)."""
    if group.checkpoint is not None or not group.members:
        return group
    return structs.replace(group, checkpoint=Checkpoint(number, tuple(member.session for member in group.members)))


def is_expected(group: Group, session: int) -> bool:
    """True if that session has not come to the group's checkpoint."""
    return group.checkpoint is not None and session in group.checkpoint.waiting


def arrived(group: Group, session: int) -> Group:
    """The group after that session has come to its checkpoint, if it is expected there, with the offsets here (3)."""
    if group.checkpoint is None or not is_expected(group, session):
        return group
    number, waiting, cut = group.checkpoint.number, group.checkpoint.waiting, group.checkpoint.cut
    cut = (*cut, *(structs.replace(each, owner=0) for each in group.of(session)))
    waiting = tuple(each for each in waiting if each != session)
    if waiting:
        return structs.replace(group, checkpoint=Checkpoint(number, waiting, cut))
    free = tuple(each for each in group.holdings if each.segment not in [other.segment for other in cut])
    return structs.replace(group, checkpoint=None, last=Restorable(number, (*cut, *free), group.future))


def restored(group: Group, number: int) -> Group:
    """The group at its last checkpoint, if there is one; `number` is above those of all sessions that joined (4)."""
    last = group.last
    if last is None:
        return group
    past = (*group.restored, Restored(number, last))
    return Group(holdings=last.holdings, future=last.future, last=last, restored=past)


def completed(group: Group, segment: Segment, successors: Sequence[Copied], bugs: frozenset[str]) -> Group:
    """The group after a segment was read to its end (2)."""
    future = {each.segment: each.before for each in group.future}
    for copied in successors:
        before = future.get(copied.span.segment, copied.before)
        future[copied.span.segment] = tuple(each for each in before if each != segment)
        if planted.ANY_PREDECESSOR in bugs and not group.holds(copied.span.segment):
            future[copied.span.segment] = ()
    if planted.ANY_PREDECESSOR in bugs:
        known = [each.segment for each in group.holdings]
        future = {each: before for each, before in future.items() if each not in known}
    begin = -1 if planted.SUCCESSOR_AT_TAIL in bugs else 0
    kept = tuple(each for each in group.holdings if each.segment != segment)
    freed = tuple(Holding(each, 0, begin) for each, before in future.items() if not before)
    return structs.replace(
        group,
        holdings=(*kept, *freed),
        future=tuple(Future(each, before) for each, before in future.items() if before),
    )


def dropped(group: Group, segment: Segment) -> Group:
    """With a planted bug: the group without a segment, and without what follows it."""
    return structs.replace(group, holdings=tuple(each for each in group.holdings if each.segment != segment))


def shared_out(group: Group, session: int) -> Group:
    """The group after that session has taken free segments, up to its share, or given one away that is above it."""
    share = -(-len(group.holdings) // len(group.members))
    own, free = len(group.of(session)), [each for each in group.holdings if not each.owner]
    if own < share and free:
        taken = [each.segment for each in free[: share - own]]
        held = tuple(structs.replace(each, owner=session) if each.segment in taken else each for each in group.holdings)
        return structs.replace(group, holdings=held)
    if own > share:
        given = group.of(session)[-1]
        return structs.replace(
            group,
            holdings=(*(each for each in group.holdings if each != given), structs.replace(given, owner=0)),
        )
    return group
