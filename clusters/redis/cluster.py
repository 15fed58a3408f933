"""The two clusters: one whose master restarts; and one whose Sentinels let a replica take the master's place."""

from functools import partial
from typing import Any, Final

from clusters.redis import planted, promises
from clusters.redis.client import RedisClient
from clusters.redis.service import CONFIRMATIONS, MASTER, REPLICAS, SENTINELS, SERVERS, VERSIONS, service
from clusters.redis.setup import prepare
from clusters.redis.subscriber import RedisSubscriber
from harness.core.machine import NodeId
from harness.core.seams import Node, Option
from harness.core.system import CLIENT, SERVER, SUBSCRIBER, System

SECOND: Final = 1_000_000_000
_REPLICA, _SENTINEL = "replica", "sentinel"
_SUBSCRIBERS: Final = (NodeId("s1"), NodeId("s2"))
# What both clusters share.
_PARTS: Final[dict[str, Any]] = {
    "prepare": partial(prepare, groups=_SUBSCRIBERS),
    "client": RedisClient,
    "subscriber": RedisSubscriber,
    "stream": promises.STREAM,
    "naming": promises.NAMING,
    "options": (
        Option(name="server", values=tuple(VERSIONS), text="the program: Redis 7.0.15, or Valkey 9.1.2"),
        Option(
            name="appendfsync",
            values=("always", "everysec"),
            text="when servers sync their append-only file: before each answer, or every second",
        ),
        Option(
            name="confirm",
            values=CONFIRMATIONS,
            text="what clients wait for after a write: nothing more, a replica (WAIT), or the files of the master and "
            "of a replica (WAITAOF)",
        ),
    ),
    "faults": ("partition", "crash", "pause", "slow-link", "reset", "slow-subscriber", "power", "late"),
    "workloads": (
        "list-append",
        "rw-register",
        "bank",
        "sets",
        "monotonic",
        "long-fork",
        "write-skew",
        "counter",
        "cas-register",
    ),
    "settle_ns": 60 * SECOND,
}


def _nodes(**roles: tuple[NodeId, ...]) -> tuple[Node, ...]:
    return tuple(Node(node, role) for role, nodes in roles.items() for node in nodes)


def standing_cluster() -> System:
    """A master, two replicas that never take its place, and two consumer groups of the master's stream."""
    return System(
        name="redis",
        summary="Redis 7 or Valkey: a master with two replicas, and a stream of its writes",
        nodes=_nodes(master=(MASTER,), replica=REPLICAS, subscriber=_SUBSCRIBERS),
        # No operation goes to a replica, and replicas do not know each other.
        idle=((CLIENT, _REPLICA), (SUBSCRIBER, _REPLICA), (_REPLICA, _REPLICA)),
        service=partial(service, has_sentinels=False),
        promises=promises.ALL,
        holds=promises.holds,
        bugs=planted.BUGS,
        **_PARTS,
    )


def sentinel_cluster() -> System:
    """Three servers, one of which is the master, three Sentinels that choose it, and two consumer groups."""
    return System(
        name="redis-sentinel",
        summary="Redis 7 or Valkey with three Sentinels: a replica takes the master's place",
        nodes=_nodes(server=SERVERS, sentinel=SENTINELS, subscriber=_SUBSCRIBERS),
        # Sentinels are asked for a moment, and a subscriber uses one server: faults there would disturb nothing.
        idle=((CLIENT, _SENTINEL), (SUBSCRIBER, _SENTINEL), (SUBSCRIBER, SERVER)),
        service=partial(service, has_sentinels=True),
        promises=promises.OF_SENTINEL,
        **_PARTS,
    )
