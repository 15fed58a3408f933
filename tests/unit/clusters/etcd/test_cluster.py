"""What the cluster declares fits together."""

import pytest

from checkers.catalogue import RECORDS
from checkers.words import models
from clusters.etcd import Cluster
from clusters.etcd.checks import ANOMALY
from clusters.etcd.service import MEMBERS, VERSIONS, service
from harness.core.machine import Settings
from harness.core.seams import GoModule, Wheel
from harness.scenario.workloads import WORKLOADS
from nemesis.registry import PACKAGES


def chosen(version: str = VERSIONS[0], reads: str = "linearizable", locks: str = "off") -> Settings:
    return Settings(options={"version": version, "reads": reads, "locks": locks, "compaction": "off"})


def test_what_the_cluster_names_exists() -> None:
    cluster = Cluster()
    assert {name for promise in cluster.promises for name in promise.forbids} <= {*RECORDS, *models.MODELS, ANOMALY}
    assert set(cluster.faults) <= set(PACKAGES)
    assert set(cluster.workloads) <= set(WORKLOADS)
    assert len({promise.id for promise in cluster.promises}) == len(cluster.promises)


@pytest.mark.parametrize(
    ("reads", "promised"), [("linearizable", ["strict-serializable"]), ("serializable", ["serializable"])]
)
def test_the_promised_model_is_that_of_the_chosen_reads(reads: str, promised: list[str]) -> None:
    forbidden = [name for promise in Cluster().promised(chosen(reads=reads)) for name in promise.forbids]
    assert [name for name in forbidden if name in models.MODELS] == promised
    assert ("stale-acknowledged" in forbidden) is (reads == "linearizable")
    assert "late-event" in forbidden


@pytest.mark.parametrize(
    ("locks", "leases", "strict"), [("off", False, True), ("fenced", True, True), ("bare", True, False)]
)
def test_a_bare_lock_promises_its_lease_alone(locks: str, *, leases: bool, strict: bool) -> None:
    promised = {promise.id for promise in Cluster().promised(chosen(locks=locks))}
    assert ("ETCD-5" in promised, "ETCD-1" in promised, "ETCD-4" in promised) == (leases, strict, strict)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_a_source_here_and_a_registry_s_image(version: str) -> None:
    made = service(MEMBERS[0], {}, chosen(version))
    assert made.image.endswith(f":v{version}")
    assert made.debian_packages or made.programs
    for program in made.programs:
        match program:
            case Wheel():
                assert len(program.sha256) == 64
                assert program.requirement.endswith(f"=={version}")
            case GoModule():
                assert program.version == f"v{version}"


def test_all_members_have_one_list_of_addresses_and_nothing_that_makes_writes_durable_is_turned_off() -> None:
    commands = [service(node, {}, chosen()).command for node in MEMBERS]
    lists = {word for command in commands for word in command if word.startswith("--initial-cluster=")}
    assert len(lists) == 1
    assert not any("fsync" in word for command in commands for word in command)
