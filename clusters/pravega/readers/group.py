"""The state that the readers of a group share: who reads which segment, from where, and which segments come later.

It is one value in the metadata store, changed by compare-and-set; these functions give the value after a change.
1. A segment has one owner, or none. It is read from the offset that is recorded here.
2. A successor comes into the group with the first of its predecessors that is read to its end, and is given to a reader
   once all are.
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


class Group(Struct, frozen=True):
    """The state of the group."""

    members: tuple[Member, ...] = ()
    holdings: tuple[Holding, ...] = ()
    future: tuple[Future, ...] = ()

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
