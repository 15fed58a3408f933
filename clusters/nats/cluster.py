"""NATS JetStream as data: three servers that any client may use, and two subscribers of the stream."""

from functools import partial
from typing import Final

from clusters.nats import planted, promises
from clusters.nats.client import NatsClient
from clusters.nats.service import SERVERS, VERSIONS, service
from clusters.nats.setup import prepare
from clusters.nats.subscriber import NatsSubscriber
from harness.core.machine import NodeId
from harness.core.seams import Node, Option
from harness.core.system import SERVER, SUBSCRIBER, System

SECOND: Final = 1_000_000_000
_SUBSCRIBERS: Final = (NodeId("s1"), NodeId("s2"))


def cluster() -> System:
    """Three servers, and two subscribers with a durable consumer each."""
    return System(
        name="nats",
        summary=f"NATS JetStream {', '.join(VERSIONS)}: three servers, a stream of three replicas, pull consumers",
        nodes=(*(Node(node, SERVER) for node in SERVERS), *(Node(node, SUBSCRIBER) for node in _SUBSCRIBERS)),
        # A subscriber uses one server at a time: a fault of its links to the others would disturb nothing.
        idle=((SUBSCRIBER, SERVER),),
        service=service,
        prepare=partial(prepare, consumers=_SUBSCRIBERS),
        client=NatsClient,
        subscriber=NatsSubscriber,
        promises=promises.ALL,
        holds=promises.holds,
        stream=promises.STREAM,
        bugs=planted.BUGS,
        options=(
            Option(name="version", values=VERSIONS, text="the release of the server"),
            Option(
                name="sync",
                values=("always", "default", "1s"),
                text="when servers sync their files: before each acknowledgement, every two minutes, or every second",
            ),
        ),
        faults=("partition", "crash", "pause", "slow-link", "reset", "slow-subscriber", "power", "late"),
        workloads=("single-key", "counter"),
        settle_ns=60 * SECOND,
    )
