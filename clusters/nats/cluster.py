"""NATS JetStream as data: three servers that any client may use, and two subscribers of the stream."""

from functools import partial

from clusters.nats import planted, promises
from clusters.nats.client import NatsClient
from clusters.nats.service import SERVERS, VERSIONS, service
from clusters.nats.setup import prepare
from clusters.nats.subscriber import NatsSubscriber
from clusters.servers.declared import FAULTS, SECOND, SUBSCRIBERS, nodes
from harness.core.seams import Option
from harness.core.system import SERVER, SUBSCRIBER, System


def cluster() -> System:
    """Three servers, and two subscribers with a durable consumer each."""
    return System(
        name="nats",
        summary=f"NATS JetStream {', '.join(VERSIONS)}: three servers, a stream of three replicas, pull consumers",
        nodes=nodes(server=SERVERS, subscriber=SUBSCRIBERS),
        # A subscriber uses one server at a time: a fault of its links to the others would disturb nothing.
        idle=((SUBSCRIBER, SERVER),),
        service=service,
        prepare=partial(prepare, consumers=SUBSCRIBERS),
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
        faults=FAULTS,
        workloads=("single-key", "counter"),
        settle_ns=60 * SECOND,
    )
