"""Members leave and join while the others work: etcd's own requests, to any member that answers.

A new member starts with the list of all, and with `existing` as the state of its cluster. etcd refuses a change while
a member that it needs for a majority has not been connected for five seconds; the caller repeats the request.
"""

from typing import Final
from urllib.parse import urlsplit

from clusters.etcd.line import asked
from clusters.etcd.messages import message
from clusters.etcd.service import peer_url, service_of
from harness.core.machine import NodeId, Settings
from harness.core.seams import Doors, Membership, Service


async def listed(doors: Doors, _: Settings) -> frozenset[NodeId]:
    """The members, by a linearizable read. Raises OSError."""
    return frozenset(await _numbers(doors))


async def remove(node: NodeId, doors: Doors, _: Settings) -> None:
    """Remove a member, if it is one. Raises OSError."""
    number = (await _numbers(doors)).get(node)
    if number is not None:
        await asked(doors, "member_remove", message("MemberRemoveRequest", ID=number))


async def add(node: NodeId, doors: Doors, settings: Settings) -> Service:
    """Add a member, and return its service. Raises OSError."""
    if node not in await _numbers(doors):
        await asked(doors, "member_add", message("MemberAddRequest", peerURLs=[peer_url(node)]))
    return service_of(node, settings, sorted(await _numbers(doors)), is_new=False)


MEMBERSHIP: Final = Membership(listed=listed, remove=remove, add=add)


async def _numbers(doors: Doors) -> dict[NodeId, int]:
    """The number of each member. A member that has not started yet has no name: its address names its node."""
    answer = await asked(doors, "member_list", message("MemberListRequest", linearizable=True))
    return {NodeId(urlsplit(each.peerURLs[0]).hostname or ""): each.ID for each in answer.members}
