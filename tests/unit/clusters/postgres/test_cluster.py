"""What the two clusters declare fits together."""

import pytest

from checkers.catalogue import RECORDS
from checkers.words import models
from clusters.postgres import Cluster, FailoverCluster
from clusters.postgres.service import PRIMARY, STANDBY, service
from harness.core.machine import Settings
from harness.core.seams import Address
from harness.core.system import System
from harness.scenario.workloads import WORKLOADS
from nemesis.registry import PACKAGES

DOOR = Address("proxy", 20001)


def chosen(isolation: str = "serializable", replication: str = "async") -> Settings:
    return Settings(options={"isolation": isolation, "replication": replication})


@pytest.mark.parametrize("cluster", [Cluster(), FailoverCluster()], ids=lambda cluster: cluster.name)
def test_what_a_cluster_names_exists(cluster: System) -> None:
    forbidden = {name for promise in cluster.promises for name in promise.forbids}
    assert forbidden <= {*RECORDS, *models.MODELS}
    assert set(cluster.faults) <= set(PACKAGES)
    assert set(cluster.workloads) <= set(WORKLOADS)
    assert len({promise.id for promise in cluster.promises}) == len(cluster.promises)


@pytest.mark.parametrize(
    ("isolation", "promised"),
    [("serializable", "serializable"), ("repeatable-read", "snapshot-isolation"), ("read-committed", "read-committed")],
)
def test_of_the_isolation_levels_the_chosen_one_is_promised(isolation: str, promised: str) -> None:
    forbidden = [name for promise in Cluster().promised(chosen(isolation)) for name in promise.forbids]
    assert [name for name in forbidden if name in models.MODELS] == [promised]


def test_a_failover_promises_what_was_acknowledged_only_where_the_standby_had_to_have_it() -> None:
    cluster = FailoverCluster()
    forbidden = {
        replication: {name for promise in cluster.promised(chosen(replication=replication)) for name in promise.forbids}
        for replication in ("async", "sync")
    }
    assert "lost-acknowledged" in forbidden["sync"]
    assert "lost-acknowledged" not in forbidden["async"]
    assert "serializable" not in forbidden["async"]
    assert "phantom-write" in forbidden["async"]


def test_the_primary_waits_for_its_standby_only_if_that_is_chosen() -> None:
    waits = "synchronous_standby_names=n2"
    assert waits not in service(PRIMARY, {}, chosen()).command
    assert waits in service(PRIMARY, {}, chosen(replication="sync")).command
    assert waits not in service(STANDBY, {PRIMARY: DOOR}, chosen(replication="sync")).command


def test_the_standby_follows_the_primary_by_its_door() -> None:
    standby = service(STANDBY, {PRIMARY: DOOR}, chosen())
    assert "host=proxy port=20001" in standby.environment["STANDBY_OF"]
    assert any(word.startswith("primary_conninfo=host=proxy port=20001 ") for word in standby.command)
    assert service(PRIMARY, {}, chosen()).environment == {}


def test_nothing_that_makes_writes_durable_is_turned_off() -> None:
    for node, peers in ((PRIMARY, {}), (STANDBY, {PRIMARY: DOOR})):
        words = " ".join(service(node, peers, chosen()).command)
        assert not any(
            name in words for name in ("fsync", "full_page_writes", "synchronous_commit", "statement_timeout")
        )
