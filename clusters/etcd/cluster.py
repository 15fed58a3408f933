"""etcd as data: three members that any client may use, and two subscribers of the watch."""

from typing import Final

from clusters.etcd import planted, promises
from clusters.etcd.client import EtcdClient
from clusters.etcd.locks import WAYS
from clusters.etcd.members import MEMBERSHIP
from clusters.etcd.service import MEMBERS, UPGRADES, VERSIONS, service
from clusters.etcd.setup import prepare
from clusters.etcd.subscriber import EtcdSubscriber
from clusters.servers.declared import FAULTS, SECOND, SUBSCRIBERS, nodes
from harness.core.seams import Option
from harness.core.system import SUBSCRIBER, System

_MEMBER: Final = "member"


def cluster() -> System:
    """Three members, and two subscribers, which watch from one member and then from another."""
    return System(
        name="etcd",
        summary=f"etcd {', '.join(VERSIONS)}: three members, and the watch of their revisions",
        nodes=nodes(member=MEMBERS, subscriber=SUBSCRIBERS),
        # A subscriber watches one member at a time: a fault of its links to the others would disturb nothing.
        idle=((SUBSCRIBER, _MEMBER),),
        service=service,
        prepare=prepare,
        membership=MEMBERSHIP,
        client=EtcdClient,
        subscriber=EtcdSubscriber,
        checks=("clusters.etcd.checks",),
        promises=promises.ALL,
        holds=promises.holds,
        stream=promises.STREAM,
        bugs=planted.BUGS,
        options=(
            Option(name="version", values=VERSIONS, text="the release of etcd", upgrades=UPGRADES),
            Option(
                name="reads",
                values=("linearizable", "serializable"),
                text="whether transactions that only read go through the leader, or one member answers alone",
            ),
            Option(
                name="locks",
                values=WAYS,
                text="whether transactions with appends hold locks, and write only if these still exist (fenced)",
            ),
            Option(name="compaction", values=("off", "on"), text="whether clients discard old revisions"),
        ),
        faults=(*FAULTS, "rolling-restart", "membership"),
        workloads=(
            "list-append",
            "rw-register",
            "bank",
            "sets",
            "monotonic",
            "long-fork",
            "write-skew",
            "cas-register",
        ),
        settle_ns=45 * SECOND,
    )
