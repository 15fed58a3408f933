"""The two clusters: one whose master restarts; and one whose Sentinels let a replica take the master's place."""

from functools import partial
from typing import Any, Final

from clusters.redis import planted, promises
from clusters.redis.client import RedisClient
from clusters.redis.service import CONFIRMATIONS, MASTER, REPLICAS, SENTINELS, SERVERS, VERSIONS, service
from clusters.redis.setup import prepare
from clusters.redis.subscriber import RedisSubscriber
from clusters.servers.declared import FAULTS, SECOND, SUBSCRIBERS, WORKLOADS, nodes
from harness.core.seams import Option
from harness.core.system import CLIENT, SERVER, SUBSCRIBER, System

_REPLICA, _SENTINEL = "replica", "sentinel"
_PROGRAMS: Final = f"Redis {VERSIONS['redis']} or Valkey {VERSIONS['valkey']}"
# What both clusters share.
_PARTS: Final[dict[str, Any]] = {
    "prepare": partial(prepare, groups=SUBSCRIBERS),
    "client": RedisClient,
    "subscriber": RedisSubscriber,
    "stream": promises.STREAM,
    "naming": promises.NAMING,
    "options": (
        Option(name="server", values=tuple(VERSIONS), text=f"the program: {_PROGRAMS}"),
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
        Option(
            name="repair",
            values=("yes", "no"),
            text="whether the damaged end of an append-only file is cut off before a server starts (check-aof --fix)",
        ),
    ),
    "faults": FAULTS,
    "workloads": WORKLOADS,
    "settle_ns": 60 * SECOND,
}


def standing_cluster() -> System:
    """A master, two replicas that never take its place, and two consumer groups of the master's stream."""
    return System(
        name="redis",
        summary=f"{_PROGRAMS}: a master with two replicas, and a stream of its writes",
        nodes=nodes(master=(MASTER,), replica=REPLICAS, subscriber=SUBSCRIBERS),
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
        summary=f"{_PROGRAMS} with three Sentinels: a replica takes the master's place",
        nodes=nodes(server=SERVERS, sentinel=SENTINELS, subscriber=SUBSCRIBERS),
        # Sentinels are asked for a moment, and a subscriber uses one server: faults there would disturb nothing.
        idle=((CLIENT, _SENTINEL), (SUBSCRIBER, _SENTINEL), (SUBSCRIBER, SERVER)),
        service=partial(service, has_sentinels=True),
        promises=promises.OF_SENTINEL,
        **_PARTS,
    )
