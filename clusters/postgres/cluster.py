"""The two PostgreSQL clusters: one with a change stream, whose primary restarts; and one whose standby takes over."""

from functools import partial
from typing import Final

from clusters.postgres import planted, promises
from clusters.postgres.client import LEVELS, PostgresClient
from clusters.postgres.service import PRIMARY, STANDBY, SYNC, service
from clusters.postgres.setup import fail_over, prepare
from clusters.postgres.subscriber import PostgresSubscriber
from clusters.servers.declared import SECOND, SUBSCRIBERS, WORKLOADS
from harness.core.machine import Settings
from harness.core.seams import Doors, Node, Option
from harness.core.system import CLIENT, SERVER, SUBSCRIBER, System

_SERVERS: Final = (Node(PRIMARY, "primary"), Node(STANDBY, "standby"))
_OPTIONS: Final = (
    Option(name="isolation", values=tuple(LEVELS), text="the level at which every transaction runs"),
    Option(name="replication", values=("async", SYNC), text="whether a commit waits until the standby has it on disk"),
)
_FAULTS: Final = ("partition", "crash", "pause", "slow-link", "reset", "clock", "full-disk")


def standing_cluster() -> System:
    """A primary, its standby, and two subscribers of the primary's change stream."""
    return System(
        name="postgres",
        summary="PostgreSQL 15: a primary with a physical standby, and its logical change stream",
        nodes=(*_SERVERS, *(Node(name, SUBSCRIBER) for name in SUBSCRIBERS)),
        dials=((CLIENT, "primary"), (CLIENT, "standby"), (SUBSCRIBER, "primary"), ("standby", "primary")),
        idle=((CLIENT, "standby"),),  # No operations go there; it is dialled only to see that it is ready.
        service=service,
        prepare=partial(prepare, slots=SUBSCRIBERS),
        client=partial(_client, finds_positions=True),
        subscriber=PostgresSubscriber,
        promises=promises.OF_PRIMARY,
        holds=promises.holds,
        stream=promises.STREAM,
        bugs=planted.BUGS,
        options=_OPTIONS,
        faults=(*_FAULTS, "slow-subscriber"),
        workloads=WORKLOADS,
        settle_ns=45 * SECOND,
    )


def failover_cluster() -> System:
    """A primary and its standby, which is promoted when the primary is lost."""
    return System(
        name="postgres-failover",
        summary="PostgreSQL 15: a primary, and a standby that takes its place",
        # They share a role, as either may lead.
        nodes=(Node(PRIMARY, SERVER), Node(STANDBY, SERVER)),
        dials=((CLIENT, SERVER), (SERVER, SERVER)),
        service=service,
        prepare=prepare,
        client=partial(_client, finds_positions=False),
        fail_over=fail_over,
        promises=promises.OF_FAILOVER,
        holds=promises.holds_after_failover,
        options=_OPTIONS,
        faults=("failover", *_FAULTS),
        workloads=WORKLOADS,
        settle_ns=45 * SECOND,
    )


def _client(process: int, doors: Doors, settings: Settings, *, finds_positions: bool) -> PostgresClient:
    isolation = settings.options["isolation"]
    if finds_positions:
        doors = {PRIMARY: doors[PRIMARY]}
    return PostgresClient(process, doors, isolation=isolation, finds_positions=finds_positions)
