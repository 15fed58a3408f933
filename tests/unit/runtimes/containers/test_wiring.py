"""Who dials whom through which port."""

import pytest

from clusters.ndb import Cluster as Ndb
from clusters.tutorial import Cluster as Tutorial
from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.runtimes.containers.links.wiring import CLIENT, PROXY_HOST, peers, wires


def test_each_ordered_pair_that_the_cluster_links_has_a_port_of_its_own() -> None:
    found = wires(Tutorial())
    assert len({wire.port for wire in found}) == len(found)
    names = {wire.name for wire in found}
    assert {"n1>n2", "n2>n1", "client>n1", "c1>n1", "n1>c1", "s1>n2", "n2>s1"} <= names
    assert not {"c1>s1", "s1>s2", "client>c1", "client>s1", "n1>n1"} & names


def test_nodes_dial_their_peers_at_toxiproxy_and_clients_are_nobodys_peer() -> None:
    found = wires(Ndb())
    table = peers(found, NodeId("d1"))
    assert {"d2", "d3", "d4"} <= set(table)
    assert not {"d1", CLIENT} & set(table)
    assert {host for host, _ in table.values()} == {PROXY_HOST}
    assert table[NodeId("d2")][1] == next(wire.port for wire in found if wire.name == "d1>d2")


def test_a_datagram_link_is_refused_by_name() -> None:
    lossy = Tutorial()
    lossy.links = {**lossy.links, ("data", "data"): "datagram"}
    with pytest.raises(ScenarioError, match=r"tutorial: its datagram link data>data exists in the simulation only"):
        wires(lossy)
